//! Tool calls: what all protocols have in common about names, arguments and schemas.

use super::Fault;
use robot_lab::{ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

/// More calls than any reply can mean.
pub(super) const MAX_CALLS: usize = 256;
/// The longest name of a tool that every protocol allows.
const MAX_NAME: usize = 64;

/// Refuses one more call than a reply may have.
pub(super) fn check_number(calls: usize) -> Result<(), Fault> {
    if calls < MAX_CALLS {
        return Ok(());
    }
    Err(Fault::malformed(format!(
        "it has more than {MAX_CALLS} tool calls"
    )))
}

/// A whole call, once the reply is known to be complete.
pub(super) fn whole(id: String, name: String, arguments: Value) -> Result<ToolCall, Fault> {
    if name.is_empty() {
        return Err(Fault::malformed("it has a tool call without a name"));
    }
    Ok(ToolCall { id, name, arguments })
}

/// An object when that is what the text says, else the text itself. No text at all stands for no arguments.
pub(super) fn parse(arguments: String) -> Value {
    if arguments.trim().is_empty() {
        return Map::new().into();
    }
    match serde_json::from_str(&arguments) {
        Ok(Value::Object(object)) => object.into(),
        Ok(_) | Err(_) => arguments.into(),
    }
}

/// The arguments of an earlier call as an object. Some servers read them again, and refuse the whole conversation
/// when they are none. The answer to the call tells the model what was wrong, so the text is kept only as a value.
pub(super) fn as_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        other => json!({ "invalid": other }),
    }
}

/// A name or an id as every protocol allows it: a model may have made up one that would get the whole conversation
/// refused.
pub(super) fn identifier(name: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(allowed).take(MAX_NAME).collect();
    if name.is_empty() { "_".into() } else { name }
}

/// The schema of a tool's parameters. A tool without parameters still needs the two keys.
pub(super) fn schema(tool: &ToolSpec) -> Value {
    let mut parameters = tool.parameters.clone();
    if let Some(schema) = parameters.as_object_mut() {
        schema.entry("type").or_insert_with(|| "object".into());
        schema.entry("properties").or_insert_with(|| Map::new().into());
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_the_text_as_it_was_written() {
        for (written, expected) in [
            ("", json!({})),
            (" \n", json!({})),
            ("{\"a\":[1]}", json!({ "a": [1] })),
            ("{\"a\": 1,}", json!("{\"a\": 1,}")),
            ("[]", json!("[]")),
            ("null", json!("null")),
            ("\"{}\"", json!("\"{}\"")),
            ("{\"a\": \"cut o", json!("{\"a\": \"cut o")),
        ] {
            assert_eq!(parse(written.into()), expected, "{written}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.clone()), json!(deep));
    }

    #[test]
    fn names_are_made_harmless() {
        for (name, expected) in [("read", "read"), ("no such.name", "no_such_name"), ("", "_")] {
            assert_eq!(identifier(name), expected);
        }
        assert_eq!(identifier(&"é".repeat(100)).len(), MAX_NAME);
    }
}
