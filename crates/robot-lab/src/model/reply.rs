//! Folds the events of a stream into one whole reply.

use super::{FinishReason, ModelError, ModelErrorKind, ModelEvent, Usage, estimate_tokens};
use crate::message::{AssistantMessage, AssistantPart};

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
pub struct ReplyBuilder {
    parts: Vec<AssistantPart>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    estimated_input: u64,
    output_bytes: usize,
    served_by: Option<String>,
    /// What the attempts cost that do not count.
    discarded: Usage,
}

impl ReplyBuilder {
    /// Starts a reply to a request of about `estimated_input` tokens.
    pub fn new(estimated_input: u64) -> Self {
        Self {
            parts: Vec::new(),
            usage: None,
            finish: None,
            estimated_input,
            output_bytes: 0,
            served_by: None,
            discarded: Usage::default(),
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: ModelEvent) {
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
            ModelEvent::Usage(usage) => self.usage = Some(usage),
            ModelEvent::Served(model) => self.served_by = Some(model),
            ModelEvent::Adapted(_) => {}
            ModelEvent::Discarded => {
                // It had ended, so what was reported of it is all of it.
                self.finish.get_or_insert(FinishReason::Stop);
                *self = Self {
                    discarded: self.usage(),
                    ..Self::new(self.estimated_input)
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

    fn of_this_attempt(&self) -> Usage {
        let written = estimate_tokens(self.output_bytes);
        match self.usage {
            Some(reported) if self.finish.is_some() || reported.output >= written => reported,
            Some(reported) => Usage {
                output: written,
                estimated: true,
                ..reported
            },
            None => Usage {
                input: self.estimated_input,
                output: written,
                estimated: true,
                ..Usage::default()
            },
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
