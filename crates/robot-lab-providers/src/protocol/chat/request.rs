//! Writes a request as the body of a chat completion.

use crate::protocol::Options;
use crate::protocol::calls::{as_object, identifier, schema};
use robot_lab::{AssistantMessage, AssistantPart, Message, ModelRequest, ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

/// How the names of Anthropic's models begin at OpenRouter.
const ANTHROPIC: &str = "anthropic/";
/// How many of the user's messages are marked; with the system prompt there are fewer marks than the four allowed.
const MARKED: usize = 2;

/// The body of a request.
pub(in crate::protocol) fn body(model: &str, request: &ModelRequest, options: &Options) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    messages.extend(request.messages.iter().map(|one| message(one, options.echo)));
    if options.is_openrouter && model.starts_with(ANTHROPIC) {
        mark(&mut messages);
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": options.stream,
    });
    if let Some(body) = body.as_object_mut() {
        if options.stream {
            body.insert("stream_options".into(), json!({ "include_usage": true }));
        }
        if !request.tools.is_empty() {
            body.insert("tools".into(), request.tools.iter().map(tool).collect());
        }
        if let Some(limit) = options.limit(request) {
            body.insert("max_tokens".into(), limit.into());
        }
        if let Some(temperature) = options.temperature(request) {
            body.insert("temperature".into(), temperature.into());
        }
        if let Some(effort) = options.effort {
            body.insert("reasoning_effort".into(), effort.name().into());
        }
    }
    body
}

/// Marks the system prompt, which covers the tools, and the latest messages of the user to be cached: OpenRouter hands
/// such marks on to Anthropic. It takes none on the results of tools.
fn mark(messages: &mut [Value]) {
    let is = |message: &Value, role: &str| message.get("role").and_then(Value::as_str) == Some(role);
    let system = messages.iter().position(|message| is(message, "system"));
    let all = messages.iter().enumerate().rev();
    let users = all.filter(|(_, message)| is(message, "user")).map(|(at, _)| at);
    let marked: Vec<usize> = users.take(MARKED).chain(system).collect();
    for at in marked {
        if let Some(content) = messages
            .get_mut(at)
            .and_then(|message| message.get_mut("content"))
            && let Some(text) = content.as_str().filter(|text| !text.trim().is_empty())
        {
            *content = json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
        }
    }
}

fn message(message: &Message, echo_reasoning: bool) -> Value {
    match message {
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Tool(result) => {
            json!({ "role": "tool", "tool_call_id": result.call_id, "content": result.text() })
        }
        Message::Assistant(reply) => assistant(reply, echo_reasoning),
    }
}

/// Readable reasoning stays here but for providers that demand it: most take it back only as the opaque details that
/// came with it, or not at all.
fn assistant(reply: &AssistantMessage, echo_reasoning: bool) -> Value {
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
    let reasoning: String = reply.parts.iter().filter_map(reasoning).collect();
    if echo_reasoning && !reasoning.is_empty() {
        message.insert("reasoning_content".into(), reasoning.into());
    }
    if !details.is_empty() {
        message.insert("reasoning_details".into(), details.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    message.into()
}

fn reasoning(part: &AssistantPart) -> Option<&str> {
    match part {
        AssistantPart::Reasoning { text } => Some(text),
        AssistantPart::Text { .. } | AssistantPart::Opaque { .. } | AssistantPart::Call(_) => None,
    }
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
    let arguments = as_object(&call.arguments).to_string();
    let function = json!({ "name": identifier(&call.name), "arguments": arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": schema(tool) });
    json!({ "type": "function", "function": function })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::protocol::tests::{OPTIONS, bare_request};
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
            max_output_tokens: Some(9),
            temperature: None,
        };
        let expected = json!({
            "model": "m",
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": 9,
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
        let silent = Options {
            echo: false,
            ..OPTIONS
        };
        assert_eq!(body("m", &request, &silent), expected);
        let mut echoed = expected;
        echoed["messages"][2]["reasoning_content"] = json!("hm");
        assert_eq!(body("m", &request, &OPTIONS), echoed);
    }

    #[test]
    fn prompts_for_anthropic_through_openrouter_are_marked_to_be_cached_and_no_others() {
        let said = |text: &str| Message::User { text: text.into() };
        let mut request = bare_request();
        request.messages = vec![
            said("one"),
            said("two"),
            said("three"),
            Message::Assistant(AssistantMessage {
                parts: vec![part("a", "read", json!({}))],
            }),
            Message::Tool(ToolResult {
                call_id: "a".into(),
                parts: vec![ToolPart::text("result")],
                ok: true,
            }),
            said(" "),
        ];
        let options = Options {
            is_openrouter: true,
            ..OPTIONS
        };
        let marked =
            |text: &str| json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
        let written = body("anthropic/claude-sonnet-4.5", &request, &options);
        let contents: Vec<&Value> = written["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| &message["content"])
            .collect();
        assert_eq!(contents[0], &marked("be brief"));
        assert_eq!(contents[1], "one");
        assert_eq!(contents[3], &marked("three"));
        assert_eq!((contents[5], contents[6]), (&json!("result"), &json!(" ")));
        assert_eq!(written.to_string().matches("cache_control").count(), 2);
        for (model, options) in [
            ("openai/gpt-5", options),
            ("anthropic/claude-sonnet-4.5", OPTIONS),
        ] {
            let written = body(model, &request, &options).to_string();
            assert!(!written.contains("cache_control"), "{model}: {written}");
        }
    }

    #[test]
    fn what_is_asked_for_is_named() {
        let asked = Options {
            effort: Some(Effort::Xhigh),
            temperature: Some(0.5),
            max_output_tokens: Some(7),
            stream: false,
            ..OPTIONS
        };
        let expected = json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "be brief" }, { "role": "user", "content": "go" }],
            "stream": false,
            "max_tokens": 7,
            "temperature": 0.5,
            "reasoning_effort": "xhigh",
        });
        assert_eq!(body("m", &bare_request(), &asked), expected);
    }
}
