//! OpenAI's responses: the events of a reply, and the check of requests.

use serde_json::{Value, json};

use super::anthropic;
use super::openai::{call_id, pieces};
use super::reply::Message;
use super::request::Request;

/// The events of a message, each with its name.
pub(super) fn events(message: &Message, request: &Request, serial: u64) -> Vec<Vec<u8>> {
    let head = json!({ "id": format!("resp_{serial}"), "object": "response", "status": "in_progress",
                       "model": request.model(), "output": [] });
    let mut events = vec![
        json!({ "type": "response.created", "response": head }),
        json!({ "type": "response.in_progress", "response": head }),
    ];
    let items = items(message, serial);
    let calls = items.iter().position(|item| item["type"] == "function_call");
    let mut lanes: Vec<Vec<Value>> = items
        .iter()
        .enumerate()
        .map(|(index, item)| lane(index, item))
        .collect();
    let calls = lanes.split_off(calls.unwrap_or(lanes.len()));
    events.extend(lanes.into_iter().flatten());
    if message.interleaved {
        let longest = calls.iter().map(Vec::len).max().unwrap_or(0);
        events.extend(
            (0..longest).flat_map(|turn| calls.iter().filter_map(move |lane| lane.get(turn).cloned())),
        );
    } else {
        events.extend(calls.into_iter().flatten());
    }
    let mut framed: Vec<Vec<u8>> = Vec::new();
    for (number, mut event) in events.into_iter().enumerate() {
        event["sequence_number"] = json!(number);
        framed.push(anthropic::event(event.to_string().as_bytes()));
    }
    framed.extend(message.raw.iter().map(|data| anthropic::event(data)));
    let response = response(message, request, serial);
    let kind = format!("response.{}", response["status"].as_str().unwrap_or_default());
    let end = json!({ "type": kind, "response": response });
    framed.push(anthropic::event(end.to_string().as_bytes()));
    framed
}

/// The whole answer in one body.
pub(super) fn body(message: &Message, request: &Request, serial: u64) -> Vec<u8> {
    response(message, request, serial).to_string().into_bytes()
}

/// The response as it is at its end.
fn response(message: &Message, request: &Request, serial: u64) -> Value {
    let mut response = json!({ "id": format!("resp_{serial}"), "object": "response", "model": request.model(),
                               "status": "completed", "error": null, "incomplete_details": null,
                               "output": items(message, serial) });
    match message.finish.as_deref() {
        None | Some("stop" | "tool_calls") => {}
        Some(reason) => {
            response["status"] = json!("incomplete");
            response["incomplete_details"] = json!({ "reason": reason });
        }
    }
    if let Some(counts) = message.usage {
        response["usage"] = json!({
            "input_tokens": counts.prompt,
            "input_tokens_details": { "cached_tokens": counts.cached.unwrap_or(0) },
            "output_tokens": counts.completion,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": counts.prompt + counts.completion,
        });
    }
    response
}

/// What the model says, item by item.
fn items(message: &Message, serial: u64) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(reasoning) = &message.reasoning {
        items.push(json!({
            "type": "reasoning", "id": format!("rs_{serial}"), "encrypted_content": sealed(reasoning),
            "summary": [{ "type": "summary_text", "text": reasoning }],
        }));
    }
    if let Some(text) = message.text.as_deref().filter(|text| !text.is_empty()) {
        items.push(json!({
            "type": "message", "id": format!("msg_{serial}"), "status": "completed", "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }));
    }
    for (index, call) in message.calls.iter().enumerate() {
        items.push(json!({
            "type": "function_call", "id": format!("fc_{serial}_{index}"), "status": "completed",
            "call_id": call_id(call, serial, index), "name": call.name, "arguments": call.arguments,
        }));
    }
    items
}

/// The events of one item.
fn lane(index: usize, item: &Value) -> Vec<Value> {
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let piece = |kind: &str, delta: String| json!({ "type": kind, "item_id": item["id"], "output_index": index, "content_index": 0, "delta": delta });
    let in_pieces = |kind: &str, text: &Value| -> Vec<Value> {
        let text = pieces(text.as_str().unwrap_or_default());
        text.into_iter().map(|text| piece(kind, text)).collect()
    };
    let deltas = match item["type"].as_str() {
        Some("reasoning") => {
            begun["summary"] = json!([]);
            in_pieces(
                "response.reasoning_summary_text.delta",
                &item["summary"][0]["text"],
            )
        }
        Some("message") => {
            begun["content"] = json!([]);
            in_pieces("response.output_text.delta", &item["content"][0]["text"])
        }
        _ => {
            begun["arguments"] = json!("");
            in_pieces("response.function_call_arguments.delta", &item["arguments"])
        }
    };
    let mut lane =
        vec![json!({ "type": "response.output_item.added", "output_index": index, "item": begun })];
    lane.extend(deltas);
    lane.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    lane
}

/// What stands for encrypted reasoning: an item that comes back with another one was changed.
fn sealed(reasoning: &str) -> String {
    format!("sealed-{}", reasoning.len())
}

/// All that is wrong with a request.
pub(super) fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    let body = &request.body;
    if request.model().is_empty() {
        found.push("there is no model".to_owned());
    }
    if body.get("store") != Some(&json!(false)) {
        found.push("the conversation would be kept".to_owned());
    }
    let input = body.get("input").and_then(Value::as_array);
    let input = input.filter(|items| !items.is_empty());
    if input.is_none() {
        found.push("input is not a list with members".to_owned());
    }
    let mut known: Vec<&Value> = Vec::new();
    let mut open: Vec<&Value> = Vec::new();
    for (index, item) in input.into_iter().flatten().enumerate() {
        let mut complain = |text: String| found.push(format!("input[{index}]: {text}"));
        let text = |key: &str| item.get(key).is_some_and(Value::is_string);
        let kind = item.get("type").and_then(Value::as_str);
        if kind.is_none_or(|kind| kind == "message") && !open.is_empty() {
            complain(format!("calls without a result: {open:?}"));
            open.clear();
        }
        match kind {
            None | Some("message") => {
                let role = item.get("role").and_then(Value::as_str);
                if !matches!(role, Some("user" | "assistant" | "system" | "developer")) {
                    complain(format!("there is no role {role:?}"));
                }
                if !text("content") {
                    complain("there is no content".to_owned());
                }
            }
            Some("reasoning") => {
                let summary = item.pointer("/summary/0/text").and_then(Value::as_str);
                if item.get("encrypted_content") != Some(&json!(sealed(summary.unwrap_or_default()))) {
                    complain("the reasoning was changed".to_owned());
                }
            }
            Some("function_call") => {
                let id = &item["call_id"];
                if !text("call_id") || !text("name") || !text("arguments") {
                    complain(format!("the call {id} lacks a part"));
                }
                if known.contains(&id) {
                    complain(format!("call {id} is not unique"));
                }
                known.push(id);
                open.push(id);
            }
            Some("function_call_output") => {
                let id = &item["call_id"];
                if !text("output") {
                    complain(format!("the result of {id} has no output"));
                }
                match open.iter().position(|other| *other == id) {
                    Some(place) => drop(open.remove(place)),
                    None => complain(format!("no open call {id}")),
                }
            }
            Some(other) => complain(format!("there is no item {other:?}")),
        }
    }
    found.extend(
        open.iter()
            .map(|id| format!("input ends before the result of call {id}")),
    );
    for tool in body.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let object = tool.pointer("/parameters/type") == Some(&json!("object"));
        if tool["type"] != "function" || !tool["name"].is_string() || !object {
            found.push(format!("{tool} is no tool"));
        }
    }
    found
}
