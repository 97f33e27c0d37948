//! What a robot can do: tools, their schemas and their outcomes.

mod args;
mod toolset;

pub use args::{Typed, TypedTool};
pub use toolset::{Toolset, ToolsetError};

use crate::message::{ToolCall, ToolPart};
use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Something that a model can ask for by name.
///
/// Most tools implement [`TypedTool`], which derives the schema from a struct and checks the arguments.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description and parameters, as the model sees them.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call. What the model should read, failures included, is an outcome; `Err` ends the invocation.
    async fn call(&self, call: &ToolCall, cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort>;
}

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name, unique in a toolset.
    pub name: String,
    /// What the tool does.
    pub description: String,
    /// A JSON schema for an object of arguments.
    pub parameters: Value,
}

/// What a tool may know about the invocation that it runs in.
#[derive(Debug, Clone, Copy)]
pub struct ToolCx<'a> {
    /// Cancelled when the invocation must end; a tool that waits watches it.
    pub cancel: &'a CancellationToken,
}

/// How one tool call went. All of it goes to the model.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// Done.
    Done(Vec<ToolPart>),
    /// Done, and the invocation ends here: later calls of the same reply are refused, and no further request is made.
    Finished(Vec<ToolPart>),
    /// Not done, because a rule forbids it.
    Refused(String),
    /// Not done, because it did not work.
    Failed(String),
    /// Not done, because the call itself is wrong: an unknown tool, arguments that do not fit.
    BadCall(String),
}

impl ToolOutcome {
    /// Done, with a text for the model.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Done(vec![ToolPart::text(text)])
    }

    /// Whether the tool did what was asked.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Finished(_))
    }

    /// What the model reads.
    pub fn into_parts(self) -> Vec<ToolPart> {
        match self {
            Self::Done(parts) | Self::Finished(parts) => parts,
            Self::Refused(text) => vec![ToolPart::text(format!("refused: {text}"))],
            Self::Failed(text) | Self::BadCall(text) => vec![ToolPart::text(format!("error: {text}"))],
        }
    }
}

/// Ends the invocation from inside a tool or a hook: something that the model cannot mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Abort(pub String);
