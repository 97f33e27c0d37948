//! Folds the events of a stream into one whole reply.

use super::{FinishReason, ModelError, ModelErrorKind, ModelEvent, Usage, estimate_tokens};
use crate::cost::Cost;
use crate::message::{AssistantMessage, AssistantPart};
use crate::meter::Meter;
use crate::model::ModelId;

/// One whole reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// What the model said.
    pub message: AssistantMessage,
    /// What the request cost, estimated where the provider did not say.
    pub usage: Usage,
    /// Why the reply ended.
    pub finish: FinishReason,
    /// The model that answered, in the provider's words; `None` where it did not say.
    pub served_by: Option<String>,
}

/// Collects a reply event by event, and knows at every moment what it has cost.
#[derive(Debug)]
pub struct ReplyBuilder<'a> {
    parts: Vec<AssistantPart>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    request: Usage,
    output_bytes: usize,
    served_by: Option<String>,
    /// What the attempts cost that do not count.
    discarded: Usage,
    /// What the provider charged for this attempt, and for those that do not count.
    charged: Option<Cost>,
    discarded_charge: Option<Cost>,
    /// Whether no reply is on its way, since one was discarded and the next has not begun.
    idle: bool,
    meter: Option<(&'a Meter, &'a ModelId)>,
}

impl<'a> ReplyBuilder<'a> {
    /// Starts a reply to a request of about `estimated_input` tokens.
    pub fn new(estimated_input: u64) -> Self {
        Self {
            parts: Vec::new(),
            usage: None,
            finish: None,
            request: Usage {
                input: estimated_input,
                estimated: true,
                ..Usage::default()
            },
            output_bytes: 0,
            served_by: None,
            discarded: Usage::default(),
            charged: None,
            discarded_charge: None,
            idle: false,
            meter: None,
        }
    }

    /// Starts a reply to a request of so many bytes, with estimates by what earlier replies of the model taught.
    pub fn metered(meter: &'a Meter, model: &'a ModelId, bytes: usize) -> Self {
        Self {
            request: meter.request(model, bytes),
            meter: Some((meter, model)),
            ..Self::new(0)
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: ModelEvent) {
        self.idle &= matches!(event, ModelEvent::Discarded);
        match event {
            ModelEvent::Text(more) => {
                self.output_bytes += more.len();
                match self.parts.last_mut() {
                    Some(AssistantPart::Text { text }) => text.push_str(&more),
                    _ => self.parts.push(AssistantPart::Text { text: more }),
                }
            }
            ModelEvent::Reasoning(more) => {
                self.output_bytes += more.len();
                match self.parts.last_mut() {
                    Some(AssistantPart::Reasoning { text }) => text.push_str(&more),
                    _ => self.parts.push(AssistantPart::Reasoning { text: more }),
                }
            }
            ModelEvent::Opaque(data) => self.parts.push(AssistantPart::Opaque { data }),
            ModelEvent::CallProgress(bytes) => self.output_bytes += bytes,
            ModelEvent::Call(call) => self.parts.push(AssistantPart::Call(call)),
            ModelEvent::Usage(usage) => {
                self.usage = Some(self.usage.unwrap_or_default().grown_to(usage));
            }
            ModelEvent::Charged(cost) => self.charged = Some(cost),
            ModelEvent::Served(model) => self.served_by = Some(model),
            ModelEvent::Adapted { .. } | ModelEvent::Again => {}
            ModelEvent::Discarded => {
                // It had ended, so what was reported of it is all of it.
                self.finish.get_or_insert(FinishReason::Stop);
                *self = Self {
                    discarded: self.usage(),
                    discarded_charge: self.charged,
                    idle: true,
                    request: self.request,
                    meter: self.meter,
                    ..Self::new(0)
                };
            }
            ModelEvent::Finished(reason) => self.finish = Some(reason),
        }
    }

    /// The model that answers, in the provider's words, once it has said so.
    pub fn served_by(&self) -> Option<&str> {
        self.served_by.as_deref()
    }

    /// What the request has cost so far: as reported, or estimated where nothing was reported. Some providers report
    /// at the beginning; what was written since then is estimated, until the reply is complete. Attempts that were
    /// discarded are in it.
    pub fn usage(&self) -> Usage {
        let mut usage = self.discarded;
        usage += self.of_this_attempt();
        usage
    }

    /// What the attempts cost that were discarded since this was asked last, and what the provider charged for them:
    /// they are somebody else's to count now.
    pub(crate) fn take_discarded(&mut self) -> (Usage, Option<Cost>) {
        let usage = std::mem::take(&mut self.discarded);
        (usage, self.discarded_charge.take())
    }

    /// What the provider charged for this attempt, once it has said so.
    pub(crate) fn charged(&self) -> Option<Cost> {
        self.charged
    }

    /// Whether none is on its way, so that there is nothing to pay for.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle
    }

    /// The same without attempts that were discarded.
    fn of_this_attempt(&self) -> Usage {
        if self.idle {
            return Usage::default();
        }
        let written = match self.meter {
            Some((meter, model)) => meter.tokens(model, self.output_bytes),
            None => estimate_tokens(self.output_bytes),
        };
        let Some(reported) = self.usage else {
            return Usage {
                output: written,
                ..self.request
            };
        };
        // What cannot be nothing was not counted.
        let input = match reported.input {
            0 => self.request,
            _ => reported,
        };
        let counted = reported.output >= written || (self.finish.is_some() && reported.output > 0);
        Usage {
            output: if counted { reported.output } else { written },
            reasoning: reported.reasoning,
            estimated: reported.estimated || input.estimated || !counted,
            ..input
        }
    }

    /// Why the reply ended, once it has.
    pub fn finished(&self) -> Option<&FinishReason> {
        self.finish.as_ref()
    }

    /// The whole reply. A stream that ended without [`ModelEvent::Finished`] was cut: its tool calls may be cut too,
    /// so there is no reply.
    pub fn finish(self) -> Result<ModelReply, ModelError> {
        let usage = self.usage();
        match self.finish {
            Some(finish) => Ok(ModelReply {
                message: AssistantMessage { parts: self.parts },
                usage,
                finish,
                served_by: self.served_by,
            }),
            None => Err(ModelError::new(
                ModelErrorKind::MalformedReply,
                "the reply broke off before its end; nothing of it was used",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reply of 400 bytes to a request of 4 000 costs by these reports.
    fn booked(reports: &[(u64, u64)], finished: bool) -> (u64, u64, bool) {
        let meter = Meter::default();
        let model = ModelId {
            provider: "p".into(),
            name: "m".into(),
        };
        let mut reply = ReplyBuilder::metered(&meter, &model, 4_000);
        reply.push(ModelEvent::Text("x".repeat(400)));
        for (input, output) in reports {
            reply.push(ModelEvent::Usage(Usage {
                input: *input,
                output: *output,
                ..Usage::default()
            }));
        }
        if finished {
            reply.push(ModelEvent::Finished(FinishReason::Stop));
        }
        let usage = reply.usage();
        (usage.input, usage.output, usage.estimated)
    }

    #[test]
    fn an_attempt_that_was_refused_after_one_that_was_discarded_costs_nothing() {
        let usage = Usage {
            input: 900,
            output: 80,
            ..Usage::default()
        };
        let mut reply = ReplyBuilder::new(1_000);
        for event in [ModelEvent::Usage(usage), ModelEvent::Discarded] {
            reply.push(event);
        }
        assert_eq!((reply.usage(), reply.is_idle()), (usage, true));
        reply.push(ModelEvent::Again);
        assert_eq!(
            (reply.usage().input, reply.is_idle()),
            (1_900, false),
            "it may cost as much"
        );
        assert_eq!(reply.take_discarded(), (usage, None));
        assert_eq!(reply.usage().input, 1_000);
    }

    #[test]
    fn f62_counts_that_are_missing_or_shrink_are_made_up_for_and_marked() {
        for (reports, finished, expected) in [
            (&[][..], true, (1_000, 100, true)),
            (&[(900, 80)], true, (900, 80, false)),
            (&[(900, 1), (900, 80)], true, (900, 80, false)),
            (&[(900, 80), (10, 3)], true, (900, 80, false)),
            (&[(900, 0)], true, (900, 100, true)),
            (&[(0, 80)], true, (1_000, 80, true)),
            (&[(900, 1)], false, (900, 100, true)),
        ] {
            assert_eq!(booked(reports, finished), expected, "{reports:?} {finished}");
        }
    }
}
