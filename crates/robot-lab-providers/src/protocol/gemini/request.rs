//! Writes a request as the body of a generation.

use super::{CALL, OF, SIGNATURE};
use crate::effort::Effort;
use crate::protocol::Options;
use crate::protocol::calls::{as_object, identifier, schema};
use robot_lab::{AssistantMessage, AssistantPart, Message, ModelRequest, ToolResult, ToolSpec};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// What stands for a text that says nothing: a content without parts is refused.
const NOTHING: &str = "(empty)";

/// The body of a request. The model is named in the address.
pub(in crate::protocol) fn body(model: &str, request: &ModelRequest, options: &Options) -> Value {
    let mut body = Map::new();
    if !request.system.is_empty() {
        body.insert(
            "systemInstruction".into(),
            json!({ "parts": [{ "text": request.system }] }),
        );
    }
    body.insert(
        "contents".into(),
        contents(&request.messages, options.echo).into(),
    );
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".into(), json!([{ "functionDeclarations": tools }]));
    }
    let mut config = Map::new();
    if let Some(limit) = options.limit(request) {
        config.insert("maxOutputTokens".into(), limit.into());
    }
    if let Some(temperature) = options.temperature(request) {
        config.insert("temperature".into(), temperature.into());
    }
    if let Some(effort) = options.effort {
        let by_level = knows_levels(model) != options.other_thinking;
        config.insert("thinkingConfig".into(), thinking(effort, by_level));
    }
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    body.into()
}

/// How much to think: by level, or by tokens as models take it that came before levels.
fn thinking(effort: Effort, by_level: bool) -> Value {
    let mut config = if by_level {
        json!({ "thinkingLevel": effort.of_three() })
    } else {
        json!({ "thinkingBudget": effort.budget() })
    };
    if let Some(config) = config.as_object_mut().filter(|_| effort.thinks()) {
        config.insert("includeThoughts".into(), true.into());
    }
    config
}

fn knows_levels(model: &str) -> bool {
    !["gemini-1", "gemini-2"].iter().any(|part| model.contains(part))
}

/// The conversation with the sides taking turns: all results of a reply's calls belong in one content.
fn contents(messages: &[Message], echo: bool) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    // Results name the function, not only the call.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in messages {
        let (role, parts) = match message {
            Message::User { text } => ("user", vec![text_part(text)]),
            Message::Tool(answer) => {
                let name = names.get(answer.call_id.as_str()).copied().unwrap_or_default();
                ("user", vec![result(answer, name)])
            }
            Message::Assistant(reply) => {
                names.extend(reply.calls().map(|call| (call.id.as_str(), call.name.as_str())));
                ("model", assistant(reply, echo))
            }
        };
        match turns.last_mut() {
            // A reply without a word is no turn.
            _ if parts.is_empty() => {}
            Some((last, before)) if *last == role => before.extend(parts),
            _ => turns.push((role, parts)),
        }
    }
    let write = |(role, parts): (&str, Vec<Value>)| json!({ "role": role, "parts": parts });
    turns.into_iter().map(write).collect()
}

fn assistant(reply: &AssistantMessage, echo: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut signature: Option<Value> = None;
    for part in &reply.parts {
        match part {
            AssistantPart::Text { text } if text.is_empty() => {}
            AssistantPart::Text { text } => parts.push(json!({ "text": text })),
            // Its summary does not go back; its signature does.
            AssistantPart::Reasoning { .. } => {}
            AssistantPart::Opaque { .. } if !echo => {}
            AssistantPart::Opaque { data } => match (data.get(SIGNATURE), data.get(OF)) {
                (Some(signed), Some(of)) if of == CALL => signature = Some(signed.clone()),
                // Texts are joined, so a signature has a part of its own.
                (Some(signed), _) => parts.push(json!({ "text": "", SIGNATURE: signed })),
                // A part of another protocol.
                (None, _) => {}
            },
            AssistantPart::Call(call) => {
                let call = json!({
                    "id": call.id, "name": identifier(&call.name), "args": as_object(&call.arguments),
                });
                let mut part = json!({ "functionCall": call });
                if let (Some(part), Some(signed)) = (part.as_object_mut(), signature.take()) {
                    part.insert(SIGNATURE.into(), signed);
                }
                parts.push(part);
            }
        }
    }
    parts
}

fn result(result: &ToolResult, name: &str) -> Value {
    let key = if result.ok { "output" } else { "error" };
    json!({ "functionResponse": {
        "id": result.call_id, "name": identifier(name), "response": { key: result.text() },
    } })
}

fn text_part(text: &str) -> Value {
    json!({ "text": if text.is_empty() { NOTHING } else { text } })
}

/// The schema goes where JSON Schema is understood as it is; the older field knows only a part of it.
fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "parametersJsonSchema": schema(tool) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{OPTIONS, bare_request, conversation as sample};

    fn body(request: &ModelRequest) -> Value {
        super::body("m", request, &OPTIONS)
    }

    #[test]
    fn thinking_is_asked_for_as_the_model_takes_it() {
        for (model, effort, other_thinking, expected) in [
            (
                "gemini-3-pro",
                Effort::High,
                false,
                json!({ "thinkingLevel": "high", "includeThoughts": true }),
            ),
            (
                "gemini-3-pro",
                Effort::None,
                false,
                json!({ "thinkingLevel": "low" }),
            ),
            (
                "gemini-3-pro",
                Effort::Low,
                true,
                json!({ "thinkingBudget": 4_096, "includeThoughts": true }),
            ),
            (
                "gemini-2.5-flash",
                Effort::None,
                false,
                json!({ "thinkingBudget": 0 }),
            ),
            (
                "gemini-2.5-pro",
                Effort::Xhigh,
                false,
                json!({ "thinkingBudget": 24_576, "includeThoughts": true }),
            ),
        ] {
            let options = Options {
                effort: Some(effort),
                temperature: Some(0.5),
                other_thinking,
                ..OPTIONS
            };
            let config = json!({ "temperature": 0.5, "thinkingConfig": expected });
            let written = super::body(model, &bare_request(), &options);
            assert_eq!(written["generationConfig"], config, "{model} {effort:?}");
        }
    }

    #[test]
    fn a_conversation_is_written_in_turns() {
        let mut request = sample(json!({ "thoughtSignature": "s=", "of": "call" }));
        request.max_output_tokens = Some(9);
        let expected = json!({
            "systemInstruction": { "parts": [{ "text": "be brief" }] },
            "contents": [
                { "role": "user", "parts": [{ "text": "go" }] },
                { "role": "model", "parts": [
                    { "text": "Reading." },
                    { "functionCall": { "id": "a", "name": "read", "args": { "path": "x" } }, "thoughtSignature": "s=" },
                    { "functionCall": { "id": "b.1", "name": "no_such_name", "args": { "invalid": "{\"path\": " } } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": "a", "name": "read", "response": { "output": "1" } } },
                    { "functionResponse": {
                        "id": "b.1", "name": "no_such_name", "response": { "error": "no such tool" },
                    } },
                ] },
            ],
            "tools": [{ "functionDeclarations": [{
                "name": "read", "description": "Reads.",
                "parametersJsonSchema": { "type": "object", "properties": {} },
            }] }],
            "generationConfig": { "maxOutputTokens": 9 },
        });
        assert_eq!(body(&request), expected);
    }

    #[test]
    fn signatures_of_texts_have_a_part_of_their_own_and_other_protocols_none() {
        let parts = |data: Value| body(&sample(data))["contents"][1]["parts"].clone();
        let signed = parts(json!({ "thoughtSignature": "s=", "of": "text" }));
        assert_eq!(signed[0], json!({ "text": "", "thoughtSignature": "s=" }));
        let other = parts(json!({ "type": "thinking", "thinking": "hm", "signature": "s" }));
        assert_eq!(other[0], json!({ "text": "Reading." }));
        assert_eq!(other[1].get("thoughtSignature"), None);
    }

    #[test]
    fn what_says_nothing_is_taken() {
        let mut request = bare_request();
        request.system.clear();
        request.messages = vec![
            Message::User { text: String::new() },
            Message::Assistant(AssistantMessage::default()),
            Message::User { text: "b".into() },
        ];
        let parts = json!([{ "text": NOTHING }, { "text": "b" }]);
        assert_eq!(
            body(&request),
            json!({ "contents": [{ "role": "user", "parts": parts }] })
        );
    }
}
