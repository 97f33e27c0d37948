//! Writes a request as the body of a chat completion.

use robot_lab::{AssistantMessage, AssistantPart, Message, ModelRequest, ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

/// The longest name of a tool that the format allows.
const MAX_NAME: usize = 64;

/// The body of a request, except for what the client adds: the stream options and the output limit.
pub(crate) fn body(model: &str, request: &ModelRequest) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    messages.extend(request.messages.iter().map(message));
    let mut body = json!({ "model": model, "messages": messages });
    if let Some(body) = body.as_object_mut()
        && !request.tools.is_empty()
    {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Tool(result) => {
            json!({ "role": "tool", "tool_call_id": result.call_id, "content": result.text() })
        }
        Message::Assistant(reply) => assistant(reply),
    }
}

/// Readable reasoning stays here: this format takes it back only as the opaque details that came with it.
fn assistant(reply: &AssistantMessage) -> Value {
    let text = reply.text();
    let calls: Vec<Value> = reply.calls().map(call).collect();
    let details: Vec<Value> = reply.parts.iter().flat_map(details).cloned().collect();
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    // A message of calls alone has no content, as the format itself writes it; any other message must have some.
    let content = if text.is_empty() && !calls.is_empty() {
        Value::Null
    } else {
        text.into()
    };
    message.insert("content".into(), content);
    if !details.is_empty() {
        message.insert("reasoning_details".into(), details.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    message.into()
}

/// The reasoning details in an opaque part; parts of other formats mean nothing to this one.
fn details(part: &AssistantPart) -> &[Value] {
    match part {
        AssistantPart::Opaque { data } => data
            .get("reasoning_details")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice),
        AssistantPart::Text { .. } | AssistantPart::Reasoning { .. } | AssistantPart::Call(_) => &[],
    }
}

fn call(call: &ToolCall) -> Value {
    // Some servers read the arguments of earlier calls again, and refuse the whole conversation when they are no JSON
    // object. The answer to the call tells the model what was wrong, so the text is kept only as a value.
    let arguments = match &call.arguments {
        Value::Object(_) => call.arguments.to_string(),
        Value::String(raw) => json!({ "invalid": raw }).to_string(),
        other => json!({ "invalid": other }).to_string(),
    };
    let function = json!({ "name": name(&call.name), "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

/// A name as the format allows it: a model may have made up one that would get the whole conversation refused.
fn name(name: &str) -> String {
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

fn tool(tool: &ToolSpec) -> Value {
    let mut parameters = tool.parameters.clone();
    if let Some(schema) = parameters.as_object_mut() {
        // A tool without parameters still needs the two keys.
        schema.entry("type").or_insert_with(|| "object".into());
        schema.entry("properties").or_insert_with(|| Map::new().into());
    }
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab::{ToolPart, ToolResult};

    fn part(id: &str, name: &str, arguments: Value) -> AssistantPart {
        AssistantPart::Call(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments,
        })
    }

    #[test]
    fn a_conversation_is_written_in_order() {
        let parts = vec![
            AssistantPart::Reasoning { text: "hm".into() },
            AssistantPart::Opaque {
                data: json!({ "reasoning_details": [{ "type": "t", "data": "=" }] }),
            },
            AssistantPart::Opaque {
                data: json!({ "signature": "of another provider" }),
            },
            part("a", "read", json!({ "path": "x" })),
            part("b", "no such.name", json!("{\"path\": ")),
        ];
        let result = |id: &str, text: &str| {
            Message::Tool(ToolResult {
                call_id: id.into(),
                parts: vec![ToolPart::text(text)],
                ok: true,
            })
        };
        let request = ModelRequest {
            system: "be brief".into(),
            messages: vec![
                Message::User { text: "go".into() },
                Message::Assistant(AssistantMessage { parts }),
                result("a", "1"),
                result("b", ""),
                Message::Assistant(AssistantMessage::default()),
            ],
            tools: vec![ToolSpec {
                name: "read".into(),
                description: "Reads.".into(),
                parameters: json!({ "type": "object" }),
            }],
            max_output_tokens: None,
        };
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": "go" },
                {
                    "role": "assistant",
                    "content": null,
                    "reasoning_details": [{ "type": "t", "data": "=" }],
                    "tool_calls": [
                        { "id": "a", "type": "function",
                          "function": { "name": "read", "arguments": "{\"path\":\"x\"}" } },
                        { "id": "b", "type": "function",
                          "function": { "name": "no_such_name", "arguments": "{\"invalid\":\"{\\\"path\\\": \"}" } },
                    ],
                },
                { "role": "tool", "tool_call_id": "a", "content": "1" },
                { "role": "tool", "tool_call_id": "b", "content": "" },
                { "role": "assistant", "content": "" },
            ],
            "tools": [{ "type": "function", "function": {
                "name": "read", "description": "Reads.",
                "parameters": { "type": "object", "properties": {} },
            } }],
        });
        assert_eq!(body("m", &request), expected);
    }
}
