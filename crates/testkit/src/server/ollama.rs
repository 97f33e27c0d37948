//! Ollama's own chat: the lines of a reply, and the check of requests.

use serde_json::{Value, json};

use super::openai::pieces;
use super::reply::{Message, Reply};
use super::request::Request;

/// The lines of a message. Calls come whole and without an id, as older servers write them.
pub(super) fn events(message: &Message, request: &Request, serial: u64) -> Vec<Vec<u8>> {
    let line = |data: &Value| format!("{data}\n").into_bytes();
    let chunk = |message: Value| {
        line(&json!({
            "model": request.model(), "created_at": format!("2026-11-30T00:00:{:02}Z", serial % 60),
            "message": message, "done": false,
        }))
    };
    let mut events = Vec::new();
    for piece in message.reasoning.as_deref().map(pieces).unwrap_or_default() {
        events.push(chunk(
            json!({ "role": "assistant", "content": "", "thinking": piece }),
        ));
    }
    for piece in message.text.as_deref().map(pieces).unwrap_or_default() {
        events.push(chunk(json!({ "role": "assistant", "content": piece })));
    }
    for call in &message.calls {
        let arguments: Value =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        let function = json!({ "name": call.name, "arguments": arguments });
        events.push(chunk(
            json!({ "role": "assistant", "content": "", "tool_calls": [{ "function": function }] }),
        ));
    }
    events.extend(message.raw.iter().map(|data| [data.as_slice(), b"\n"].concat()));
    let mut end = json!({
        "model": request.model(), "message": { "role": "assistant", "content": "" },
        "done": true, "done_reason": message.finish.as_deref().unwrap_or("stop"),
    });
    if let Some(counts) = message.usage {
        end["prompt_eval_count"] = json!(counts.prompt);
        end["eval_count"] = json!(counts.completion);
    }
    events.push(line(&end));
    events
}

/// The error under a status.
pub(super) fn error(status: u16, message: &str) -> Reply {
    Reply::status(status).body(json!({ "error": message }))
}

/// All that is wrong with a request.
pub(super) fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    if request.model().is_empty() {
        found.push("there is no model".to_owned());
    }
    if request
        .body
        .pointer("/options/num_ctx")
        .and_then(Value::as_u64)
        .is_none()
    {
        found.push("no context length is asked for, so the tools may be dropped".to_owned());
    }
    if request.messages().is_empty() {
        found.push("there are no messages".to_owned());
    }
    let mut open: Vec<&Value> = Vec::new();
    for (index, message) in request.messages().iter().enumerate() {
        let mut complain = |text: String| found.push(format!("messages[{index}]: {text}"));
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if !message.get("content").is_some_and(Value::is_string) {
            complain("there is no content".to_owned());
        }
        if role != "tool" && !open.is_empty() {
            complain(format!("calls without a result: {open:?}"));
            open.clear();
        }
        match role {
            "system" | "user" => {}
            "assistant" => {
                let calls = message.get("tool_calls").and_then(Value::as_array);
                for call in calls.into_iter().flatten() {
                    if !call.pointer("/function/arguments").is_some_and(Value::is_object) {
                        complain(format!("the arguments are no object: {call}"));
                    }
                    open.extend(call.pointer("/function/name"));
                }
            }
            "tool" => {
                let name = message.get("tool_name");
                match open.first() {
                    Some(call) if Some(*call) == name => drop(open.remove(0)),
                    _ => complain(format!("a result of {name:?}, but {open:?} are open")),
                }
            }
            other => complain(format!("there is no role {other:?}")),
        }
    }
    found.extend(
        open.iter()
            .map(|name| format!("messages end before the result of {name}")),
    );
    found
}
