//! What a robot does, as records of the run: clipped, so that the log stays bounded.

use super::Journal;
use crate::event::{Event, MAX_TEXT};
use crate::shell::head_and_tail;
use jiff::Timestamp;
use robot_lab::{EventSink, FinishReason, RobotEvent};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Writes a robot's events to the journal. A failure to write is kept by the journal, which stops the run.
pub struct RobotEvents {
    /// Where to.
    pub journal: Arc<Journal>,
    /// Whose.
    pub candidate: u32,
}

impl EventSink for RobotEvents {
    fn emit(&self, event: RobotEvent) {
        let candidate = self.candidate;
        let event = match event {
            RobotEvent::TurnStarted { .. } => return,
            RobotEvent::TextDelta { text } | RobotEvent::ReasoningDelta { text } => {
                return self.journal.delta(text.len());
            }
            RobotEvent::ModelFinished {
                model,
                usage,
                cost,
                finish,
                elapsed,
            } => Event::model_finished(
                candidate,
                model,
                usage,
                cost,
                finish.map(name_of),
                millis(elapsed),
            ),
            RobotEvent::ModelFailed {
                kind,
                message,
                retry_in,
            } => Event::ModelFailed {
                candidate,
                kind: kind.name().to_owned(),
                message: self.clip(message),
                retry_in_ms: retry_in.map(millis),
            },
            RobotEvent::ModelAdapted { model, note, change } => Event::ModelAdapted {
                candidate,
                model,
                note: self.clip(note),
                change: change.map(|change| self.clip(change)),
            },
            RobotEvent::WindowLearnt { model, tokens } => Event::WindowLearnt {
                candidate,
                model,
                tokens,
            },
            RobotEvent::Switched {
                model,
                instead_of,
                why,
            } => Event::ModelSwitched {
                candidate,
                model,
                instead_of,
                why: why.map(|why| self.clip(why)),
            },
            RobotEvent::ModelServed { model, served_by } => Event::ModelServed {
                candidate,
                model,
                served_by: self.clip(served_by),
            },
            RobotEvent::Waiting {
                model,
                kind,
                message,
                wait,
                announced,
                other,
            } => Event::ProviderWait {
                candidate,
                model,
                kind: kind.name().to_owned(),
                message: self.clip(message),
                until: end_of(self.journal.now(), wait),
                announced,
                other_model: other.as_ref().map(|other| other.model.clone()),
                other_kind: other.as_ref().map(|other| other.kind.name().to_owned()),
                other_message: other.map(|other| self.clip(other.message)),
            },
            RobotEvent::Resumed {
                model,
                waited,
                answered,
            } => Event::ProviderResumed {
                candidate,
                model,
                waited_ms: millis(waited),
                answered,
            },
            RobotEvent::Compacted {
                model,
                before,
                after,
                window,
            } => Event::Compacted {
                candidate,
                model,
                before_tokens: before,
                after_tokens: after,
                window,
            },
            RobotEvent::ToolStarted {
                call_id,
                tool,
                arguments,
                repair,
            } => Event::ToolStarted {
                candidate,
                call_id,
                tool,
                arguments: self.clip_all(arguments),
                repaired: repair.arguments,
                called: repair.name.map(|name| head_and_tail(&name, 100)),
                from_text: repair.text,
            },
            RobotEvent::ToolFinished {
                call_id,
                tool,
                ok,
                text,
                elapsed,
            } => Event::ToolFinished {
                candidate,
                call_id,
                tool,
                ok,
                output: self.clip(text),
                elapsed_ms: millis(elapsed),
            },
        };
        // The journal remembers that it failed, and the driver looks before it goes on.
        self.journal.note(event);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// When a wait that begins now is over; to the second, as it is shown.
fn end_of(now: Timestamp, wait: Duration) -> Timestamp {
    let end = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
    Timestamp::from_second(end.as_second()).unwrap_or(end)
}

fn name_of(finish: FinishReason) -> String {
    match finish {
        FinishReason::Stop => "stop".into(),
        FinishReason::ToolCalls => "tool_calls".into(),
        FinishReason::Length => "length".into(),
        FinishReason::ContentFilter => "content_filter".into(),
        FinishReason::Refused => "refused".into(),
        FinishReason::Other(other) => head_and_tail(&other, 100),
    }
}

impl RobotEvents {
    /// A text that is short enough. Secrets are taken out first: a cut could leave a part of one.
    fn clip(&self, text: String) -> String {
        head_and_tail(&self.journal.redact(text), MAX_TEXT)
    }

    /// Arguments with long texts cut; arguments with too many values as one text.
    fn clip_all(&self, arguments: Value) -> Value {
        match arguments {
            Value::String(text) => Value::String(self.clip(text)),
            Value::Object(map) if map.len() <= 20 => map
                .into_iter()
                .map(|(key, value)| match value {
                    Value::String(text) => (key, Value::String(self.clip(text))),
                    Value::Array(_) | Value::Object(_) if value.to_string().len() > MAX_TEXT => {
                        (key, Value::String(self.clip(value.to_string())))
                    }
                    value => (key, value),
                })
                .collect(),
            other => Value::String(self.clip(other.to_string())),
        }
    }
}
