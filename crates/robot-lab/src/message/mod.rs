//! What a conversation is made of: messages, tool calls and their results.

mod transcript;

pub use transcript::{Transcript, TranscriptError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the user, or the program in the user's place, says.
    User {
        /// The text of the message.
        text: String,
    },
    /// One whole reply of the model.
    Assistant(AssistantMessage),
    /// The answer to one tool call of the reply before it.
    Tool(ToolResult),
}

impl Message {
    /// Bytes of text in it.
    pub fn size(&self) -> usize {
        match self {
            Self::User { text } => text.len(),
            Self::Tool(result) => result.text().len(),
            Self::Assistant(reply) => reply.parts.iter().map(AssistantPart::size).sum(),
        }
    }
}

impl AssistantPart {
    fn size(&self) -> usize {
        match self {
            Self::Text { text } | Self::Reasoning { text } => text.len(),
            Self::Opaque { data } => data.to_string().len(),
            Self::Call(call) => call.name.len() + call.arguments.to_string().len(),
        }
    }
}

/// One reply of a model: text, reasoning and tool calls, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The parts of the reply.
    pub parts: Vec<AssistantPart>,
}

/// A part of a model's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantPart {
    /// Text for the reader.
    Text {
        /// The text.
        text: String,
    },
    /// Readable reasoning. It is shown and logged, and sent back only where the provider asks for it.
    Reasoning {
        /// The text of the reasoning.
        text: String,
    },
    /// A part that only the provider understands (a signature, encrypted reasoning). It goes back unchanged.
    Opaque {
        /// The provider's own value.
        data: Value,
    },
    /// A request to run a tool.
    Call(ToolCall),
}

impl AssistantMessage {
    /// All text parts, joined.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AssistantPart::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AssistantPart::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// A model's request to run one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the result must carry. Unique within a transcript.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments: an object when they were valid JSON, else the text that the model wrote, as a JSON string.
    pub arguments: Value,
}

/// The answer to one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// What the model reads.
    pub parts: Vec<ToolPart>,
    /// Whether the tool did what was asked.
    pub ok: bool,
}

/// A part of what a tool answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A structured value. Models that take only text get it as JSON.
    Structured {
        /// The value.
        value: Value,
    },
}

impl ToolPart {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

impl ToolResult {
    /// The parts as one text: texts as they are, structured values as JSON, one line between two parts.
    pub fn text(&self) -> String {
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|part| match part {
                ToolPart::Text { text } => text.clone(),
                ToolPart::Structured { value } => value.to_string(),
            })
            .collect();
        parts.join("\n")
    }
}
