//! Anthropic's messages: the events of a reply, and the check of requests.

use serde_json::{Value, json};

use super::openai::{call_id, pieces};
use super::reply::{Message, Reply};
use super::request::Request;

/// The events of a message, each with its name.
pub(super) fn events(message: &Message, request: &Request, serial: u64) -> Vec<Vec<u8>> {
    let counts = message.usage;
    let cached = counts.and_then(|counts| counts.cached).unwrap_or(0);
    let usage = match counts {
        Some(counts) => json!({
            "input_tokens": counts.prompt - cached, "cache_read_input_tokens": cached, "output_tokens": 1,
        }),
        None => json!({ "input_tokens": 0, "output_tokens": 0 }),
    };
    let mut events = vec![json!({ "type": "message_start", "message": {
        "id": format!("msg_{serial}"), "type": "message", "role": "assistant", "model": request.model(),
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    } })];
    let mut lanes: Vec<Vec<Value>> = Vec::new();
    let mut lane = |start: Value, deltas: Vec<Value>| {
        let index = lanes.len();
        let mut lane = vec![json!({ "type": "content_block_start", "index": index, "content_block": start })];
        let delta = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        lane.extend(deltas.into_iter().map(delta));
        lane.push(json!({ "type": "content_block_stop", "index": index }));
        lanes.push(lane);
    };
    if let Some(reasoning) = &message.reasoning {
        let mut deltas: Vec<Value> = pieces(reasoning)
            .into_iter()
            .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
            .collect();
        deltas.push(json!({ "type": "signature_delta", "signature": signature(reasoning) }));
        lane(
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
            deltas,
        );
    }
    if let Some(text) = message.text.as_deref().filter(|text| !text.is_empty()) {
        let delta = |piece| json!({ "type": "text_delta", "text": piece });
        lane(
            json!({ "type": "text", "text": "" }),
            pieces(text).into_iter().map(delta).collect(),
        );
    }
    let before_calls = usize::from(message.reasoning.is_some())
        + usize::from(message.text.as_deref().is_some_and(|text| !text.is_empty()));
    for (index, call) in message.calls.iter().enumerate() {
        let delta = |piece| json!({ "type": "input_json_delta", "partial_json": piece });
        lane(
            json!({ "type": "tool_use", "id": call_id(call, serial, index), "name": call.name, "input": {} }),
            pieces(&call.arguments).into_iter().map(delta).collect(),
        );
    }
    let calls = lanes.split_off(before_calls);
    events.extend(lanes.into_iter().flatten());
    if message.interleaved {
        let longest = calls.iter().map(Vec::len).max().unwrap_or(0);
        events.extend(
            (0..longest).flat_map(|turn| calls.iter().filter_map(move |lane| lane.get(turn).cloned())),
        );
    } else {
        events.extend(calls.into_iter().flatten());
    }
    let mut framed: Vec<Vec<u8>> = events
        .into_iter()
        .map(|data| event(data.to_string().as_bytes()))
        .collect();
    framed.extend(message.raw.iter().map(|data| event(data)));
    let usual = if message.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let reason = message.finish.as_deref().unwrap_or(usual);
    let written = counts.map_or(0, |counts| counts.completion);
    let end = json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": written },
    });
    framed.push(event(end.to_string().as_bytes()));
    framed.push(event(b"{\"type\":\"message_stop\"}"));
    framed
}

/// Puts data into the frame of an event, with the name that stands in it.
pub(super) fn event(data: &[u8]) -> Vec<u8> {
    let parsed: Value = serde_json::from_slice(data).unwrap_or_default();
    let name = parsed.get("type").and_then(Value::as_str).unwrap_or("message");
    [format!("event: {name}\ndata: ").as_bytes(), data, b"\n\n"].concat()
}

/// The error envelope under a status.
pub(super) fn error(status: u16, kind: &str, message: &str) -> Reply {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => kind,
    };
    Reply::status(status).body(json!({ "type": "error", "error": { "type": kind, "message": message } }))
}

/// The signature of a block of reasoning: a block that comes back with another one was changed.
fn signature(reasoning: &str) -> String {
    format!("signed-{}", reasoning.len())
}

/// All that is wrong with a request.
pub(super) fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    let body = &request.body;
    if request.header("anthropic-version").is_none() {
        found.push("there is no anthropic-version".to_owned());
    }
    if request.model().is_empty() {
        found.push("there is no model".to_owned());
    }
    if body
        .get("max_tokens")
        .and_then(Value::as_u64)
        .is_none_or(|n| n == 0)
    {
        found.push("max_tokens is required".to_owned());
    }
    let tools = body.get("tools").and_then(Value::as_array);
    for tool in tools.into_iter().flatten() {
        if tool.pointer("/input_schema/type") != Some(&json!("object")) {
            found.push(format!("a tool has no schema of an object: {tool}"));
        }
    }
    if request.messages().is_empty() {
        found.push("there are no messages".to_owned());
    }
    let mut before = "assistant";
    let mut open: Vec<&Value> = Vec::new();
    for (index, message) in request.messages().iter().enumerate() {
        let mut complain = |text: String| found.push(format!("messages[{index}]: {text}"));
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if role == before || !matches!(role, "user" | "assistant") {
            complain(format!("a turn of {role:?} after one of {before:?}"));
        }
        let content = message
            .get("content")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        if content.is_empty() {
            complain("there is no content".to_owned());
        }
        let mut results_may_come = true;
        for block in content {
            let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
            if text("type") == "tool_result" {
                let id = block.get("tool_use_id");
                match open.iter().position(|call| Some(*call) == id) {
                    Some(place) if results_may_come => {
                        open.remove(place);
                    }
                    _ => complain(format!("a result in the wrong place: {block}")),
                }
                continue;
            }
            results_may_come = false;
            match text("type") {
                "text" if text("text").trim().is_empty() => complain("a text is empty".to_owned()),
                "thinking" if text("signature") != signature(text("thinking")) => {
                    complain("the signature of a thinking block does not fit".to_owned());
                }
                "tool_use" => {
                    if !block.get("input").is_some_and(Value::is_object) || text("name").is_empty() {
                        complain(format!("a call is not well formed: {block}"));
                    }
                    open.extend(block.get("id"));
                }
                "text" | "thinking" | "redacted_thinking" => {}
                other => complain(format!("there is no block {other:?}")),
            }
        }
        if role == "user" && !open.is_empty() {
            complain(format!("calls without a result: {open:?}"));
            open.clear();
        }
        before = role;
    }
    found.extend(
        open.iter()
            .map(|id| format!("messages end before the result of {id}")),
    );
    found
}
