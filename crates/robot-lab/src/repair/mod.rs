//! What models get wrong about tool calls, and what can be done about it without a guess: arguments that are almost
//! JSON, names that are almost a tool's, values in quotes, and calls that were written as text.
//!
//! Everything here is pure. A call that cannot be repaired is left as it was written, and answered by whoever runs it.

mod json;
mod names;
mod reader;
mod schema;
mod settle;
mod text;

pub(crate) use names::{Known, find as find_name};
pub(crate) use schema::signature;
pub(crate) use settle::{Settled, settle};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The deepest nesting of values that are repaired.
const MAX_DEPTH: usize = 64;
/// The longest arguments, and the longest answer, that are looked at for repairs, in bytes.
const MAX_REPAIRED: usize = 4 * 1024 * 1024;
/// Characters that are shown of what stands before a flaw.
const SHOWN: usize = 40;

/// What was done to a tool call before it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repair {
    /// The arguments were not as the schema has them, and only one thing could be meant.
    pub arguments: bool,
    /// The name that the model wrote, where the tool has another.
    pub name: Option<String>,
    /// The call was written as text.
    pub text: bool,
}

/// Why arguments cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Flaw(String);

impl Flaw {
    /// Something about the byte `at` of a text.
    fn at(text: &str, at: usize, what: &str) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let in_line = before.rsplit('\n').next().unwrap_or_default();
        let column = in_line.chars().count() + 1;
        let from = in_line
            .char_indices()
            .rev()
            .nth(SHOWN - 1)
            .map_or(0, |(at, _)| at);
        let shown = in_line.get(from..).unwrap_or_default().trim_start();
        let after = if shown.is_empty() {
            String::new()
        } else {
            format!(", after `{shown}`")
        };
        Self(format!(
            "the arguments are not valid JSON: {what} (line {line} column {column}{after})"
        ))
    }

    /// A value that is no object.
    fn kind(value: &Value) -> Self {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Self(format!("the arguments must be a JSON object, not {kind}"))
    }
}

/// The arguments of a call as an object, or why they are none.
pub(crate) fn arguments(written: &Value) -> Result<serde_json::Map<String, Value>, Flaw> {
    match written {
        Value::Object(object) => Ok(object.clone()),
        Value::String(text) => json::read(text).map(|read| read.object),
        other => Err(Flaw::kind(other)),
    }
}
