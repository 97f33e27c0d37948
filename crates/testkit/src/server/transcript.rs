//! The check of chat requests against the rules by which real servers refuse them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::request::Request;

/// All that is wrong with a chat request.
pub(super) fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    if !request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/json"))
    {
        found.push("the content type is not application/json".to_owned());
    }
    let Some(body) = request.body.as_object() else {
        found.push("the body is not a JSON object".to_owned());
        return found;
    };
    if text(body.get("model")).is_none() {
        found.push("model is not a string with characters".to_owned());
    }
    match body.get("messages").and_then(Value::as_array) {
        Some(messages) if !messages.is_empty() => check_messages(messages, &mut found),
        _ => found.push("messages is not a list with members".to_owned()),
    }
    match body.get("tools") {
        Some(tools) => check_tools(tools, &mut found),
        None if body.contains_key("tool_choice") => found.push("tool_choice without tools".to_owned()),
        None => {}
    }
    if body.contains_key("stream_options") && !request.is_streaming() {
        found.push("stream_options without a stream".to_owned());
    }
    found
}

/// Follows the transcript: every call has one result, at once, and every result has a call.
fn check_messages(messages: &[Value], found: &mut Vec<String>) {
    let mut known = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let mut complain = |text: String| found.push(format!("messages[{index}]: {text}"));
        let role = text(message.get("role")).unwrap_or_default();
        if role != "tool" {
            for id in open.drain(..) {
                complain(format!(
                    "a message of role {role:?} comes before the result of call {id:?}"
                ));
            }
        }
        let content = match message.get("content") {
            Some(Value::String(_)) => true,
            Some(Value::Array(parts)) => !parts.is_empty(),
            _ => false,
        };
        match role {
            "system" | "developer" | "user" => {
                if !content {
                    complain("there is no content".to_owned());
                }
            }
            "assistant" => match message.get("tool_calls") {
                Some(Value::Array(calls)) if !calls.is_empty() => {
                    for call in calls {
                        match check_call(call) {
                            Err(why) => complain(why),
                            Ok(id) if !known.insert(id) => complain(format!("call {id:?} is not unique")),
                            Ok(id) => open.push(id),
                        }
                    }
                }
                None | Some(Value::Null) => {
                    if !content {
                        complain("there are neither content nor tool calls".to_owned());
                    }
                }
                Some(_) => complain("tool_calls is not a list with members".to_owned()),
            },
            "tool" => {
                if !content {
                    complain("there is no content".to_owned());
                }
                match text(message.get("tool_call_id")) {
                    None => complain("there is no tool_call_id".to_owned()),
                    Some(id) => match open.iter().position(|other| *other == id) {
                        Some(place) => {
                            open.remove(place);
                        }
                        None if known.contains(id) => complain(format!("call {id:?} has a result already")),
                        None => complain(format!("there is no call {id:?}")),
                    },
                }
            }
            other => complain(format!("there is no role {other:?}")),
        }
    }
    found.extend(
        open.iter()
            .map(|id| format!("messages end before the result of call {id:?}")),
    );
}

/// The id of a call that is formed well.
fn check_call(call: &Value) -> Result<&str, String> {
    let id = text(call.get("id")).ok_or("a call has no id")?;
    if call.get("type").is_none_or(|kind| kind != "function") {
        return Err(format!("call {id:?} is not of type function"));
    }
    if text(call.pointer("/function/name")).is_none() {
        return Err(format!("call {id:?} has no name"));
    }
    if !call.pointer("/function/arguments").is_some_and(Value::is_string) {
        return Err(format!("the arguments of call {id:?} are not a string"));
    }
    Ok(id)
}

fn check_tools(tools: &Value, found: &mut Vec<String>) {
    let Some(tools) = tools.as_array().filter(|tools| !tools.is_empty()) else {
        found.push("tools is not a list with members".to_owned());
        return;
    };
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let mut complain = |text: String| found.push(format!("tools[{index}]: {text}"));
        if tool.get("type").is_none_or(|kind| kind != "function") {
            complain("the type is not function".to_owned());
        }
        match text(tool.pointer("/function/name")) {
            None => complain("there is no name".to_owned()),
            Some(name) => {
                let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if name.len() > 64 || !name.chars().all(allowed) {
                    complain(format!("{name:?} is not a name for a tool"));
                }
                if !names.insert(name) {
                    complain(format!("{name:?} is not unique"));
                }
            }
        }
        match tool.pointer("/function/parameters").map(Value::as_object) {
            None => complain("there are no parameters".to_owned()),
            Some(None) => complain("the parameters are not an object".to_owned()),
            Some(Some(schema)) => check_schema(schema, &mut complain),
        }
    }
}

/// Checks the top of the schema of a tool's parameters.
fn check_schema(schema: &Map<String, Value>, complain: &mut impl FnMut(String)) {
    if schema.get("type").is_none_or(|kind| kind != "object") {
        complain("the schema of the parameters is not that of an object".to_owned());
    }
    let properties = schema.get("properties");
    if properties.is_some_and(|properties| !properties.is_object()) {
        complain("the properties are not an object".to_owned());
    }
    let Some(required) = schema.get("required") else {
        return;
    };
    let Some(required) = required.as_array() else {
        complain("required is not a list".to_owned());
        return;
    };
    for name in required {
        let known = text(Some(name)).and_then(|name| properties?.get(name)).is_some();
        if !known {
            complain(format!("{name} is required and not a property"));
        }
    }
}

/// A string that is not empty.
fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_messages(messages: Value) -> Vec<String> {
        let mut found = Vec::new();
        check_messages(messages.as_array().unwrap(), &mut found);
        found
    }

    fn call(id: &str) -> Value {
        json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": "{}" } })
    }

    fn result(id: &str) -> Value {
        json!({ "role": "tool", "tool_call_id": id, "content": "" })
    }

    #[test]
    fn a_transcript_with_parallel_calls_is_valid() {
        let found = of_messages(json!([
            { "role": "system", "content": "s" },
            { "role": "user", "content": [{ "type": "text", "text": "u" }] },
            { "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] },
            result("b"),
            result("a"),
            { "role": "assistant", "content": "done" },
        ]));
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn broken_transcripts_are_reported() {
        let asks = json!({ "role": "assistant", "tool_calls": [call("a")] });
        let user = json!({ "role": "user", "content": "u" });
        for (messages, part) in [
            (json!([asks]), "end before the result of call \"a\""),
            (json!([asks, user]), "comes before the result of call \"a\""),
            (json!([asks, result("a"), result("a")]), "has a result already"),
            (json!([user, result("a")]), "there is no call \"a\""),
            (json!([asks, result("a"), asks, result("a")]), "is not unique"),
            (
                json!([{ "role": "assistant", "content": null }]),
                "neither content nor tool calls",
            ),
            (
                json!([{ "role": "assistant", "content": "x", "tool_calls": [] }]),
                "not a list with members",
            ),
            (json!([{ "role": "robot", "content": "x" }]), "no role \"robot\""),
            (json!([{ "role": "user" }]), "there is no content"),
        ] {
            let found = of_messages(messages.clone());
            assert!(
                found.iter().any(|text| text.contains(part)),
                "{messages}: {found:?}"
            );
        }
    }

    #[test]
    fn broken_tools_are_reported() {
        let tool = |name: &str, parameters: Value| json!({ "type": "function", "function": { "name": name, "parameters": parameters } });
        let good = json!({ "type": "object", "properties": { "p": {} }, "required": ["p"] });
        for (tools, part) in [
            (json!([]), "not a list with members"),
            (
                json!([tool("a", good.clone()), tool("a", good.clone())]),
                "is not unique",
            ),
            (json!([tool("a b", good.clone())]), "not a name for a tool"),
            (json!([tool("a", json!([]))]), "the parameters are not an object"),
            (
                json!([tool("a", json!({ "type": "string" }))]),
                "not that of an object",
            ),
            (
                json!([tool("a", json!({ "type": "object", "required": ["q"] }))]),
                "not a property",
            ),
            (
                json!([{ "type": "function", "function": { "name": "a" } }]),
                "no parameters",
            ),
        ] {
            let mut found = Vec::new();
            check_tools(&tools, &mut found);
            assert!(found.iter().any(|text| text.contains(part)), "{tools}: {found:?}");
        }
        let mut found = Vec::new();
        check_tools(&json!([tool("a", good)]), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
