//! Writes a request as the body of a response.

use super::{PHASE, REASONING};
use crate::protocol::Options;
use crate::protocol::calls::{as_object, identifier, schema};
use robot_lab::{AssistantMessage, AssistantPart, Message, ModelRequest, ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

/// The body of a request. Nothing is kept at the provider: the conversation is here, its reasoning encrypted.
pub(in crate::protocol) fn body(model: &str, request: &ModelRequest, options: &Options) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    if !request.system.is_empty() {
        body.insert("instructions".into(), request.system.clone().into());
    }
    let items = request.messages.iter().flat_map(|one| items(one, options.echo));
    body.insert("input".into(), items.collect());
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    body.insert("stream".into(), options.stream.into());
    body.insert("store".into(), false.into());
    body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    if let Some(effort) = options.effort {
        let mut reasoning = json!({ "effort": effort.name() });
        if let Some(reasoning) = reasoning.as_object_mut().filter(|_| effort.thinks()) {
            reasoning.insert("summary".into(), "auto".into());
        }
        body.insert("reasoning".into(), reasoning);
    }
    if let Some(temperature) = options.temperature(request) {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(limit) = options.limit(request) {
        body.insert("max_output_tokens".into(), limit.into());
    }
    body.into()
}

fn items(message: &Message, echo: bool) -> Vec<Value> {
    match message {
        Message::User { text } => vec![said("user", text)],
        Message::Tool(result) => vec![json!({
            "type": "function_call_output", "call_id": result.call_id, "output": result.text(),
        })],
        Message::Assistant(reply) => assistant(reply, echo),
    }
}

fn said(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

/// Readable reasoning is a summary, which stays here: its item goes back.
fn assistant(reply: &AssistantMessage, echo: bool) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for part in &reply.parts {
        match part {
            AssistantPart::Text { text } if text.is_empty() => {}
            AssistantPart::Text { text } => items.push(said("assistant", text)),
            AssistantPart::Reasoning { .. } => {}
            AssistantPart::Opaque { data } => match data.get("type").and_then(Value::as_str) {
                Some(REASONING) if echo => items.push(data.clone()),
                Some(PHASE) => {
                    let last = items.last_mut().and_then(Value::as_object_mut);
                    if let (Some(text), Some(phase)) =
                        (last.filter(|item| item.contains_key("role")), data.get(PHASE))
                    {
                        text.insert(PHASE.into(), phase.clone());
                    }
                }
                // A part of another protocol.
                _ => {}
            },
            AssistantPart::Call(call) => items.push(written(call)),
        }
    }
    items
}

fn written(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": identifier(&call.name),
        "arguments": as_object(&call.arguments).to_string(),
    })
}

/// Left alone, the provider holds a model to a schema by rules that ordinary schemas do not meet.
fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description, "parameters": schema(tool),
        "strict": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::protocol::tests::{OPTIONS, bare_request, conversation};

    #[test]
    fn a_conversation_is_written_as_items() {
        let item = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "=" });
        let mut request = conversation(item.clone());
        request.max_output_tokens = Some(9);
        let expected = json!({
            "model": "m",
            "instructions": "be brief",
            "input": [
                { "role": "user", "content": "go" },
                item,
                { "role": "assistant", "content": "Reading." },
                { "type": "function_call", "call_id": "a", "name": "read", "arguments": "{\"path\":\"x\"}" },
                { "type": "function_call", "call_id": "b.1", "name": "no_such_name",
                  "arguments": "{\"invalid\":\"{\\\"path\\\": \"}" },
                { "type": "function_call_output", "call_id": "a", "output": "1" },
                { "type": "function_call_output", "call_id": "b.1", "output": "no such tool" },
            ],
            "tools": [{
                "type": "function", "name": "read", "description": "Reads.",
                "parameters": { "type": "object", "properties": {} }, "strict": false,
            }],
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 9,
        });
        assert_eq!(body("m", &request, &OPTIONS), expected);
    }

    #[test]
    fn the_phase_of_a_text_goes_back_and_parts_of_other_protocols_stay_here() {
        let request = |opaque: Value| {
            let mut request = bare_request();
            let parts = vec![
                AssistantPart::Text { text: "a".into() },
                AssistantPart::Opaque { data: opaque },
            ];
            request
                .messages
                .push(Message::Assistant(AssistantMessage { parts }));
            body("m", &request, &OPTIONS)["input"].clone()
        };
        let phased = request(json!({ "type": "phase", "phase": "commentary" }));
        assert_eq!(
            phased[1],
            json!({ "role": "assistant", "content": "a", "phase": "commentary" })
        );
        for other in [
            json!({ "type": "thinking", "thinking": "hm" }),
            json!({ "thoughtSignature": "s" }),
        ] {
            assert_eq!(request(other).as_array().unwrap().len(), 2);
        }
    }

    #[test]
    fn what_is_asked_for_is_named() {
        let asked = Options {
            effort: Some(Effort::High),
            temperature: Some(0.5),
            max_output_tokens: Some(7),
            stream: false,
            ..OPTIONS
        };
        let written = body("m", &bare_request(), &asked);
        assert_eq!(
            written["reasoning"],
            json!({ "effort": "high", "summary": "auto" })
        );
        assert_eq!(
            (
                &written["temperature"],
                &written["max_output_tokens"],
                &written["stream"]
            ),
            (&json!(0.5), &json!(7), &json!(false))
        );
        let none = Options {
            effort: Some(Effort::None),
            ..OPTIONS
        };
        assert_eq!(
            body("m", &bare_request(), &none)["reasoning"],
            json!({ "effort": "none" })
        );
    }
}
