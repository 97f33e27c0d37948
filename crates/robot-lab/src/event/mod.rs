//! What a robot does, as it does it: one closed set of events. Events observe; hooks steer.

use crate::cost::Cost;
use crate::model::{FinishReason, ModelErrorKind, Usage};
pub use crate::repair::Repair;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// One thing that happened during an invocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RobotEvent {
    /// A request goes out.
    TurnStarted {
        /// Number of the turn within the invocation, from 1.
        turn: u32,
    },
    /// A piece of text arrived. For people who watch; not meant for records.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of reasoning arrived.
    ReasoningDelta {
        /// The piece.
        text: String,
    },
    /// A request ended, with a reply or without: this is where its tokens are counted.
    ModelFinished {
        /// The model, as `provider/name`.
        model: String,
        /// The tokens that it cost.
        usage: Usage,
        /// The money; `None` where nobody knows the price.
        cost: Option<Cost>,
        /// Why the reply ended; `None` when there is no whole reply.
        finish: Option<FinishReason>,
        /// How long it took.
        elapsed: Duration,
    },
    /// A request failed.
    ModelFailed {
        /// The kind of failure.
        kind: ModelErrorKind,
        /// What happened.
        message: String,
        /// When it is sent again; `None` when it is not.
        retry_in: Option<Duration>,
    },
    /// A request was put otherwise, as the provider would not take it as it was.
    ModelAdapted {
        /// The model, as `provider/name`.
        model: String,
        /// What is done otherwise.
        note: String,
        /// The same for the model itself, when it does so from now on; see
        /// [`ModelEvent::Adapted`](crate::ModelEvent::Adapted).
        change: Option<String>,
    },
    /// A conversation with a model was found to have no more than so many tokens.
    WindowLearnt {
        /// The model, as `provider/name`.
        model: String,
        /// How many.
        tokens: u64,
    },
    /// The conversation goes on with another model: the fallback, or the main one again.
    Switched {
        /// The model that answers now, as `provider/name`.
        model: String,
        /// The model that had the conversation.
        instead_of: String,
        /// Why that one does not answer, where it is known.
        why: Option<String>,
    },
    /// Another model than the one that was asked answers, or the provider calls it so. Said once for each in a row.
    ModelServed {
        /// The model that was asked, as `provider/name`.
        model: String,
        /// The one that answers, in the provider's words.
        served_by: String,
    },
    /// A request waits for its provider, for longer than before a quick retry. Said once in a wait, however often the
    /// provider is asked meanwhile, and again when it announces a much later end.
    Waiting {
        /// The model, as `provider/name`.
        model: String,
        /// Why.
        kind: ModelErrorKind,
        /// What happened.
        message: String,
        /// For how long from now: until the provider answers again, as it said, or for as long as may be waited.
        wait: Duration,
        /// Whether the provider said so.
        announced: bool,
        /// The other model that might have answered, and does not either.
        other: Option<OutOfOrder>,
    },
    /// The wait is over: a model answers, or it is waited no more.
    Resumed {
        /// The model that answers, or that did not, as `provider/name`.
        model: String,
        /// How long it took.
        waited: Duration,
        /// Whether it answers.
        answered: bool,
    },
    /// The conversation grew too long for the model, and is sent in short from now on.
    Compacted {
        /// The model, as `provider/name`.
        model: String,
        /// About how many tokens a request had.
        before: u64,
        /// About how many it has now.
        after: u64,
        /// How many the model takes, its reply included; `None` where nobody knows.
        window: Option<u64>,
    },
    /// A tool call begins.
    ToolStarted {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// Its arguments.
        arguments: Value,
        /// What was done to the call before.
        #[serde(default)]
        repair: Repair,
    },
    /// A tool call ended.
    ToolFinished {
        /// The call's id.
        call_id: String,
        /// The tool's name.
        tool: String,
        /// Whether it did what was asked.
        ok: bool,
        /// What the model reads, all of it.
        text: String,
        /// How long it took.
        elapsed: Duration,
    },
}

/// A model that does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfOrder {
    /// The model, as `provider/name`.
    pub model: String,
    /// Why.
    pub kind: ModelErrorKind,
    /// What happened.
    pub message: String,
}

/// Something that observes. It must be quick and cannot fail.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: RobotEvent);
}

/// A sink for nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn emit(&self, _event: RobotEvent) {}
}
