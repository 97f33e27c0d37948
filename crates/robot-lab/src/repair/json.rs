//! The arguments of a call as an object: JSON as it is, else JSON with slips, else what is wrong and where.

use super::reader::Reader;
use super::{Flaw, MAX_REPAIRED};
use serde_json::{Map, Value};

/// Arguments that could be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Read {
    /// The arguments.
    pub(crate) object: Map<String, Value>,
    /// Whether they were no JSON object as they were written.
    pub(crate) repaired: bool,
}

/// Reads arguments. Valid JSON is taken as it is; an object that was encoded twice is unwrapped once.
pub(crate) fn read(text: &str) -> Result<Read, Flaw> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Read {
            object,
            repaired: false,
        }),
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(object)) => Ok(Read {
                object,
                repaired: true,
            }),
            Ok(other) => Err(Flaw::kind(&other)),
            Err(_) => lenient(&inner),
        },
        Ok(other) => Err(Flaw::kind(&other)),
        Err(_) => lenient(text),
    }
}

/// One object with slips, and nothing but words or a fence around it.
fn lenient(text: &str) -> Result<Read, Flaw> {
    if text.len() > MAX_REPAIRED {
        let what =
            format!("not valid JSON, and longer than the {MAX_REPAIRED} bytes that are looked at closely");
        return Err(Flaw::at(text, 0, &what));
    }
    let begin = text.find(['{', '[', '}', ']']).unwrap_or(text.len());
    let mut reader = Reader::new(text, begin);
    let object = reader.whole_object()?;
    let after = reader.rest();
    if let Some(more) = after.find(['{', '[', '}', ']']) {
        return Err(Flaw::at(
            text,
            reader.at() + more,
            "expected nothing after the object",
        ));
    }
    Ok(Read {
        object,
        repaired: true,
    })
}

#[cfg(test)]
mod tests;
