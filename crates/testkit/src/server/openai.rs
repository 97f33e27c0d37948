//! The bodies and the events of OpenAI's chat completions.

use serde_json::{Value, json};

use super::reply::{Call, Message, Reply, Usage};
use super::request::Request;

/// A fixed time, so that answers are the same in every run.
const CREATED: u64 = 1_700_000_000;

/// The events of a message, each a whole `data:` line with the empty line after it.
pub(super) fn events(message: &Message, request: &Request, serial: u64) -> Vec<Vec<u8>> {
    let mut deltas = vec![json!({
        "role": "assistant",
        "content": message.text.as_ref().map(|_| ""),
    })];
    for piece in message.reasoning.as_deref().map(pieces).unwrap_or_default() {
        deltas.push(json!({ "reasoning_content": piece }));
    }
    for piece in message.text.as_deref().map(pieces).unwrap_or_default() {
        deltas.push(json!({ "content": piece }));
    }
    deltas.extend(call_deltas(message, serial));
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-{serial}"),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": request.model(),
            "choices": choices,
        })
    };
    let choice = |delta: Value, finish: Option<&str>| {
        chunk(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]))
    };
    let mut events: Vec<Vec<u8>> = deltas
        .into_iter()
        .map(|delta| event(choice(delta, None).to_string().as_bytes()))
        .collect();
    events.extend(message.raw.iter().map(|data| event(data)));
    events.push(event(
        choice(json!({}), Some(finish(message))).to_string().as_bytes(),
    ));
    if let Some(counts) = message.usage.filter(|_| request.wants_usage()) {
        let mut last = chunk(json!([]));
        last["usage"] = usage(counts);
        events.push(event(last.to_string().as_bytes()));
    }
    events.push(event(b"[DONE]"));
    events
}

/// The deltas of the tool calls: each call is announced, and its arguments follow in pieces.
fn call_deltas(message: &Message, serial: u64) -> Vec<Value> {
    let mut lanes: Vec<Vec<Value>> = Vec::new();
    for (index, call) in message.calls.iter().enumerate() {
        let mut lane = vec![json!({
            "index": index,
            "id": call_id(call, serial, index),
            "type": "function",
            "function": { "name": call.name, "arguments": "" },
        })];
        lane.extend(
            pieces(&call.arguments)
                .into_iter()
                .map(|piece| json!({ "index": index, "function": { "arguments": piece } })),
        );
        lanes.push(lane);
    }
    let order: Vec<Value> = if message.interleaved {
        let longest = lanes.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest)
            .flat_map(|turn| lanes.iter().filter_map(move |lane| lane.get(turn).cloned()))
            .collect()
    } else {
        lanes.into_iter().flatten().collect()
    };
    order
        .into_iter()
        .map(|call| json!({ "tool_calls": [call] }))
        .collect()
}

/// The whole answer in one body.
pub(super) fn body(message: &Message, request: &Request, serial: u64) -> Vec<u8> {
    let mut answer = json!({ "role": "assistant", "content": message.text, "refusal": null });
    if let Some(reasoning) = &message.reasoning {
        answer["reasoning_content"] = json!(reasoning);
    }
    if !message.calls.is_empty() {
        let calls = message.calls.iter().enumerate().map(|(index, call)| {
            json!({
                "id": call_id(call, serial, index),
                "type": "function",
                "function": { "name": call.name, "arguments": call.arguments },
            })
        });
        answer["tool_calls"] = calls.collect();
    }
    let mut body = json!({
        "id": format!("chatcmpl-{serial}"),
        "object": "chat.completion",
        "created": CREATED,
        "model": request.model(),
        "choices": [{ "index": 0, "message": answer, "logprobs": null, "finish_reason": finish(message) }],
    });
    if let Some(counts) = message.usage {
        body["usage"] = usage(counts);
    }
    body.to_string().into_bytes()
}

/// Puts data into the frame of an event.
pub(super) fn event(data: &[u8]) -> Vec<u8> {
    [b"data: ", data, b"\n\n"].concat()
}

/// The error envelope under a status.
pub(super) fn error(status: u16, kind: &str, code: &str, message: &str) -> Reply {
    Reply::status(status).body(json!({
        "error": { "message": message, "type": kind, "param": null, "code": code },
    }))
}

/// The refusal of a key, which does not repeat the key.
pub(super) fn wrong_key() -> Reply {
    error(
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided.",
    )
}

/// The body of a status that was given none.
pub(super) fn default_body(status: u16) -> Vec<u8> {
    let (kind, code) = match status {
        401 => ("invalid_request_error", "invalid_api_key"),
        429 => ("rate_limit_error", "rate_limit_exceeded"),
        400..=499 => ("invalid_request_error", "bad_request"),
        _ => ("server_error", "server_error"),
    };
    let message = format!("The test server answers with status {status}.");
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
        .to_string()
        .into_bytes()
}

/// The list of models.
pub(super) fn models() -> Reply {
    Reply::status(200).body(json!({
        "object": "list",
        "data": [{ "id": "test-model", "object": "model", "created": CREATED, "owned_by": "testkit" }],
    }))
}

fn usage(counts: Usage) -> Value {
    let mut usage = json!({
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.completion,
        "total_tokens": counts.prompt + counts.completion,
    });
    if let Some(cached) = counts.cached {
        usage["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    }
    usage
}

fn finish(message: &Message) -> &str {
    let usual = if message.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    message.finish.as_deref().unwrap_or(usual)
}

pub(super) fn call_id(call: &Call, serial: u64, index: usize) -> String {
    call.id
        .clone()
        .unwrap_or_else(|| format!("call_{serial}_{index}"))
}

/// Cuts a text into a few pieces at characters.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(6).max(4);
    characters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        for text in ["", "a", "größer", "0123456789", &"x".repeat(1000)] {
            let pieces = pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() <= 6);
        }
    }
}
