//! Writes a request as the body of a chat.

use crate::effort::Effort;
use crate::protocol::Options;
use crate::protocol::calls::{as_object, identifier, schema};
use robot_lab::{AssistantMessage, AssistantPart, Message, ModelRequest, ToolCall, ToolSpec};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// How long the model stays loaded after a request: longer than the server's five minutes, as a change may be graded
/// for a while between two requests, and loading takes time.
const KEEP_ALIVE: &str = "30m";

/// The body of a request. The server is told to refuse what does not fit, where it knows how to.
pub(in crate::protocol) fn body(model: &str, request: &ModelRequest, asked: &Options) -> Value {
    let mut options = json!({ "num_ctx": asked.num_ctx });
    if let Some(options) = options.as_object_mut() {
        if let Some(limit) = asked.limit(request) {
            options.insert("num_predict".into(), limit.into());
        }
        if let Some(temperature) = asked.temperature(request) {
            options.insert("temperature".into(), temperature.into());
        }
    }
    let mut body = json!({
        "model": model,
        "messages": messages(request, asked.echo),
        "stream": asked.stream,
        "options": options,
        "keep_alive": KEEP_ALIVE,
        "truncate": false,
        "shift": false,
    });
    if let Some(body) = body.as_object_mut() {
        if !request.tools.is_empty() {
            body.insert("tools".into(), request.tools.iter().map(tool).collect());
        }
        if let Some(effort) = asked.effort {
            body.insert("think".into(), think(model, effort));
        }
    }
    body
}

/// Most models think or do not; those of one family think more or less, and always.
fn think(model: &str, effort: Effort) -> Value {
    if model.contains("gpt-oss") {
        effort.of_three().into()
    } else {
        effort.thinks().into()
    }
}

fn messages(request: &ModelRequest, echo: bool) -> Vec<Value> {
    let mut written = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        written.push(json!({ "role": "system", "content": request.system }));
    }
    // Results name the tool, not only the call.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in &request.messages {
        written.push(match message {
            Message::User { text } => json!({ "role": "user", "content": text }),
            Message::Tool(result) => {
                let name = names.get(result.call_id.as_str()).copied().unwrap_or_default();
                let content = if result.ok {
                    result.text()
                } else {
                    format!("error: {}", result.text())
                };
                json!({
                    "role": "tool", "tool_name": identifier(name), "tool_call_id": result.call_id, "content": content,
                })
            }
            Message::Assistant(reply) => {
                names.extend(reply.calls().map(|call| (call.id.as_str(), call.name.as_str())));
                assistant(reply, echo)
            }
        });
    }
    written
}

/// Templates decide which reasoning the model sees again, so all of it goes back.
fn assistant(reply: &AssistantMessage, echo: bool) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), reply.text().into());
    let thinking: String = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Reasoning { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if echo && !thinking.is_empty() {
        message.insert("thinking".into(), thinking.into());
    }
    let calls: Vec<Value> = reply.calls().map(call).collect();
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    message.into()
}

fn call(call: &ToolCall) -> Value {
    let function = json!({ "name": identifier(&call.name), "arguments": as_object(&call.arguments) });
    json!({ "id": call.id, "function": function })
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": schema(tool) });
    json!({ "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{OPTIONS, bare_request, conversation};

    fn body(model: &str, request: &ModelRequest, num_ctx: u32) -> Value {
        super::body(model, request, &Options { num_ctx, ..OPTIONS })
    }

    #[test]
    fn what_is_asked_for_is_named() {
        for (model, effort, expected) in [
            ("qwen", Effort::None, json!(false)),
            ("qwen", Effort::Low, json!(true)),
            ("gpt-oss:20b", Effort::None, json!("low")),
            ("gpt-oss:20b", Effort::Xhigh, json!("high")),
        ] {
            let asked = Options {
                effort: Some(effort),
                temperature: Some(0.5),
                stream: false,
                ..OPTIONS
            };
            let written = super::body(model, &bare_request(), &asked);
            assert_eq!(written["think"], expected, "{model} {effort:?}");
            assert_eq!(written["options"]["temperature"], 0.5);
            assert_eq!(written["stream"], false);
        }
    }

    #[test]
    fn a_conversation_is_written_in_order() {
        let mut request = conversation(json!({ "type": "thinking" }));
        request.max_output_tokens = Some(9);
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": "go" },
                { "role": "assistant", "content": "Reading.", "thinking": "hm", "tool_calls": [
                    { "id": "a", "function": { "name": "read", "arguments": { "path": "x" } } },
                    { "id": "b.1", "function": { "name": "no_such_name", "arguments": { "invalid": "{\"path\": " } } },
                ] },
                { "role": "tool", "tool_name": "read", "tool_call_id": "a", "content": "1" },
                { "role": "tool", "tool_name": "no_such_name", "tool_call_id": "b.1", "content": "error: no such tool" },
            ],
            "stream": true,
            "options": { "num_ctx": 1024, "num_predict": 9 },
            "keep_alive": "30m",
            "truncate": false,
            "shift": false,
            "tools": [{ "type": "function", "function": {
                "name": "read", "description": "Reads.",
                "parameters": { "type": "object", "properties": {} },
            } }],
        });
        assert_eq!(body("m", &request, 1024), expected);
    }

    #[test]
    fn without_tools_none_are_named() {
        let written = body("m", &bare_request(), 1);
        assert_eq!(written.get("tools"), None);
        assert_eq!(written["options"], json!({ "num_ctx": 1 }));
    }
}
