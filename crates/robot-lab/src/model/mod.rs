//! The one interface to language models: a request goes in, a stream of events comes out.

mod error;
mod reply;
mod timeouts;
mod usage;

pub use error::{ModelError, ModelErrorKind};
pub use reply::{ModelReply, ReplyBuilder};
pub use timeouts::ModelTimeouts;
pub use usage::{Usage, estimate_tokens};

use crate::cost::Cost;
use crate::message::{Message, ToolCall};
use crate::tool::ToolSpec;
use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A language model behind one provider.
///
/// Implementations always stream; [`ReplyBuilder`] folds the events into a whole reply. Dropping the stream ends the
/// request.
#[async_trait]
pub trait Model: Send + Sync {
    /// Which model this is, for people and for logs.
    fn id(&self) -> &ModelId;

    /// Sends one request. An error here means that no part of a reply came; a reply that breaks off ends the stream
    /// with an error.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;

    /// How long to wait for it, where it knows better than the defaults.
    fn timeouts(&self) -> Option<ModelTimeouts> {
        None
    }

    /// Whether it is this model's turn to be asked, where one of several is. Only those that play a recording know; any
    /// other can be asked at any time.
    fn is_next(&self) -> bool {
        true
    }
}

/// The events of one reply, in order. The last is [`ModelEvent::Finished`], or an error.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A model's name and its provider's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelId {
    /// The provider, such as `openai`.
    pub provider: String,
    /// The model's name at the provider.
    pub name: String,
}

impl std::fmt::Display for ModelId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

/// One request: everything that the model sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The conversation so far, valid in the sense of [`Transcript`](crate::Transcript).
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// The most tokens that the reply may have; the provider's own limit when `None`.
    pub max_output_tokens: Option<u32>,
    /// How much chance there is in the reply; as the model was made when `None`. A model that takes none goes without.
    pub temperature: Option<f64>,
}

impl ModelRequest {
    /// Bytes of text in it, which its cost grows with.
    pub fn size(&self) -> usize {
        self.size_without_messages() + self.messages.iter().map(Message::size).sum::<usize>()
    }

    /// The same without the conversation.
    pub fn size_without_messages(&self) -> usize {
        let tools: usize = self
            .tools
            .iter()
            .map(|t| t.name.len() + t.description.len() + t.parameters.to_string().len())
            .sum();
        self.system.len() + tools
    }

    /// A rough count of the tokens that this request costs, for when the provider does not say.
    pub fn estimated_tokens(&self) -> u64 {
        estimate_tokens(self.size())
    }
}

/// One event of a reply on its way.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// More text.
    Text(String),
    /// More readable reasoning.
    Reasoning(String),
    /// A part that goes back to the provider unchanged.
    Opaque(Value),
    /// Arguments of a tool call on their way: their length in bytes counts as output before the call is whole.
    CallProgress(usize),
    /// A whole tool call.
    Call(ToolCall),
    /// What the request has cost so far. A later one replaces an earlier one.
    Usage(Usage),
    /// What the request has cost in money, where the provider says what it charged. A later one replaces an earlier one.
    Charged(Cost),
    /// The model that answers, in the provider's words, which may not be the one that was asked.
    Served(String),
    /// The request was sent with a part of it left out or put otherwise, as the provider would not take it.
    Adapted {
        /// Which, for people.
        note: String,
        /// Which, for the model itself, when it will do so from now on.
        change: Option<String>,
    },
    /// What came until here does not count, but for what it has cost: the same request is sent once more, in another
    /// way.
    Discarded,
    /// A reply to the request that was sent once more begins.
    Again,
    /// The reply is complete.
    Finished(FinishReason),
}

/// Why a model ended its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had nothing more to say.
    Stop,
    /// It wants its tool calls answered.
    ToolCalls,
    /// It ran into the limit of output tokens: what it was writing is cut.
    Length,
    /// The provider withheld the reply.
    ContentFilter,
    /// The model declined to do what it was asked.
    Refused,
    /// Anything else, in the provider's words.
    Other(String),
}
