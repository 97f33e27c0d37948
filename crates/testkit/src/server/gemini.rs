//! Google's `streamGenerateContent`: the events of a reply, and the check of requests.

use serde_json::{Value, json};

use super::openai::{event, pieces};
use super::reply::{Message, Reply};
use super::request::Request;

/// The signature that the first call of a reply has, and must have when it comes back.
const SIGNATURE: &str = "c2lnbmVk";

/// The events of a message. Calls come whole; the first is signed.
pub(super) fn events(message: &Message, serial: u64) -> Vec<Vec<u8>> {
    let counts = |written: u64, reasoned: u64| {
        message.usage.map(|counts| {
            json!({
                "promptTokenCount": counts.prompt,
                "cachedContentTokenCount": counts.cached.unwrap_or(0),
                "candidatesTokenCount": written,
                "thoughtsTokenCount": reasoned,
                "totalTokenCount": counts.prompt + written + reasoned,
            })
        })
    };
    let chunk = |part: Value| {
        let mut chunk =
            json!({ "candidates": [{ "content": { "role": "model", "parts": [part] }, "index": 0 }] });
        if let Some(counts) = counts(0, 0) {
            chunk["usageMetadata"] = counts;
        }
        event(chunk.to_string().as_bytes())
    };
    let mut events = Vec::new();
    for piece in message.reasoning.as_deref().map(pieces).unwrap_or_default() {
        events.push(chunk(json!({ "text": piece, "thought": true })));
    }
    for piece in message.text.as_deref().map(pieces).unwrap_or_default() {
        events.push(chunk(json!({ "text": piece })));
    }
    for (index, call) in message.calls.iter().enumerate() {
        let arguments: Value =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        let mut function = json!({ "name": call.name, "args": arguments });
        if let Some(id) = &call.id {
            function["id"] = json!(id);
        }
        let mut part = json!({ "functionCall": function });
        if index == 0 {
            part["thoughtSignature"] = json!(format!("{SIGNATURE}{serial}"));
        }
        events.push(chunk(part));
    }
    events.extend(message.raw.iter().map(|data| event(data)));
    let reason = message.finish.as_deref().unwrap_or("STOP");
    let mut end = json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": "" }] }, "finishReason": reason, "index": 0 }],
    });
    let reasoned = u64::from(message.reasoning.is_some());
    let written = message
        .usage
        .map_or(0, |counts| counts.completion.saturating_sub(reasoned));
    if let Some(counts) = counts(written, reasoned) {
        end["usageMetadata"] = counts;
    }
    events.push(event(end.to_string().as_bytes()));
    events
}

/// The error envelope under a status.
pub(super) fn error(status: u16, code: &str, message: &str) -> Reply {
    let name = match status {
        400 => "INVALID_ARGUMENT",
        401 | 403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => code,
    };
    Reply::status(status).body(json!({ "error": { "code": status, "message": message, "status": name } }))
}

/// All that is wrong with a request.
pub(super) fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    if !request.path.ends_with("?alt=sse") {
        found.push(format!("no stream of events is asked for: {}", request.path));
    }
    let contents = request
        .body
        .get("contents")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    if contents.is_empty() {
        found.push("there are no contents".to_owned());
    }
    let mut before = "model";
    let mut open: Vec<(&Value, &Value)> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let mut complain = |text: String| found.push(format!("contents[{index}]: {text}"));
        let role = content.get("role").and_then(Value::as_str).unwrap_or_default();
        if role == before || !matches!(role, "user" | "model") {
            complain(format!("a turn of {role:?} after one of {before:?}"));
        }
        let parts = content
            .get("parts")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        if parts.is_empty() {
            complain("there are no parts".to_owned());
        }
        let mut first_call = true;
        for part in parts {
            if let Some(call) = part.get("functionCall") {
                if !call.get("args").is_some_and(Value::is_object) || call.get("name").is_none() {
                    complain(format!("a call is not well formed: {call}"));
                }
                let signed = part.get("thoughtSignature").and_then(Value::as_str);
                if first_call != signed.is_some_and(|signed| signed.starts_with(SIGNATURE)) {
                    complain(format!("a call has not got its own signature: {part}"));
                }
                first_call = false;
                open.push((
                    call.get("id").unwrap_or(&Value::Null),
                    call.get("name").unwrap_or(&Value::Null),
                ));
            } else if let Some(answer) = part.get("functionResponse") {
                let key = (
                    answer.get("id").unwrap_or(&Value::Null),
                    answer.get("name").unwrap_or(&Value::Null),
                );
                match open.iter().position(|call| *call == key) {
                    Some(place) if answer.get("response").is_some_and(Value::is_object) => {
                        open.remove(place);
                    }
                    _ => complain(format!("a result is not well formed or has no call: {answer}")),
                }
            } else if part.get("text").is_none() {
                complain(format!("a part is of no kind: {part}"));
            }
        }
        if role == "user" && !open.is_empty() {
            complain(format!("calls without a result: {open:?}"));
            open.clear();
        }
        before = role;
    }
    found
}
