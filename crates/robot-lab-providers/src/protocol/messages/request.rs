//! Writes a request as the body of a message.

use crate::effort::Effort;
use crate::protocol::Options;
use crate::protocol::calls::{as_object, identifier, schema};
use robot_lab::{AssistantMessage, AssistantPart, Message, ModelRequest, ToolResult, ToolSpec};
use serde_json::{Map, Value, json};

/// What stands for a text that says nothing: empty ones are refused.
const NOTHING: &str = "(empty)";
/// The most tokens of a reply when none are said: the protocol demands a number, and refuses one that is too large
/// for the model. Every model since the fourth generation allows this many.
const MAX_TOKENS: u32 = 32_000;
/// How many ends of turns are marked; with the system prompt there are fewer marks than the four that are allowed.
const MARKED_ENDS: usize = 2;

/// The body of a request.
///
/// The end of the conversation and what stands before it, tools and system prompt, are marked to be cached: the next
/// request repeats all of it. So is the end that the request before this one marked, so that what it wrote to the cache
/// is found however much came since: a cache is looked for only a few blocks back from a mark.
pub(in crate::protocol) fn body(model: &str, request: &ModelRequest, options: &Options) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    let limit = options
        .limit(request)
        .unwrap_or_else(|| options.at_most(max_tokens(model)));
    body.insert("max_tokens".into(), limit.into());
    body.insert("stream".into(), options.stream.into());
    let thinks = think(&mut body, model, limit, options);
    // A model that thinks takes no temperature but its own.
    if let (Some(temperature), false) = (options.temperature(request), thinks) {
        body.insert("temperature".into(), temperature.into());
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    let mut system: Vec<Value> = text(&request.system).into_iter().collect();
    // The mark on the system prompt covers the tools, which stand before it.
    mark(system.last_mut().or(tools.last_mut()));
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    let mut messages = conversation(&request.messages, options.echo);
    let ends = messages.iter_mut().rev().filter(|turn| turn.role == "user");
    for turn in ends.take(MARKED_ENDS) {
        mark(turn.content.last_mut());
    }
    let messages: Vec<Value> = messages.into_iter().map(Turn::write).collect();
    body.insert("messages".into(), messages.into());
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    body.into()
}

/// Asks for thinking, and says whether it did: by effort, or by so many tokens where the model is older than that. None
/// is what a model does that is not asked.
fn think(body: &mut Map<String, Value>, model: &str, limit: u32, options: &Options) -> bool {
    let Some(effort) = options.effort.filter(|effort| effort.thinks()) else {
        return false;
    };
    if knows_effort(model) != options.other_thinking {
        let name = match effort {
            Effort::None | Effort::Minimal => Effort::Low.name(),
            other => other.name(),
        };
        body.insert("thinking".into(), json!({ "type": "adaptive" }));
        body.insert("output_config".into(), json!({ "effort": name }));
        return true;
    }
    // Thinking is a part of the reply, of which something must be left for the rest.
    let budget = effort.budget().min(limit / 2);
    if budget < Effort::Minimal.budget() {
        return false;
    }
    let thinking = json!({ "type": "enabled", "budget_tokens": budget });
    body.insert("thinking".into(), thinking);
    true
}

/// Whether a model is asked for effort and not for tokens of thinking: those of Anthropic's that came after 4.5.
fn knows_effort(model: &str) -> bool {
    let older = ["claude-3", "-4-0", "-4-1", "-4-2", "-4-5"];
    model.contains("claude") && !older.iter().any(|part| model.contains(part))
}

/// The limit of models that came before the present ones; they refuse a larger number.
fn max_tokens(model: &str) -> u32 {
    match model {
        _ if model.contains("claude-3-5") => 8_192,
        _ if model.contains("claude-3-7") => MAX_TOKENS,
        _ if model.contains("claude-3-") => 4_096,
        _ => MAX_TOKENS,
    }
}

/// All that one side says before the other does.
struct Turn {
    role: &'static str,
    content: Vec<Value>,
}

impl Turn {
    fn write(self) -> Value {
        json!({ "role": self.role, "content": self.content })
    }
}

/// The conversation with the sides taking turns. The results of a reply's calls come first in the turn after it.
fn conversation(messages: &[Message], echo: bool) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            Message::User { text: said } => ("user", vec![text(said).unwrap_or_else(|| block(NOTHING))]),
            Message::Tool(answer) => ("user", vec![result(answer)]),
            Message::Assistant(reply) => ("assistant", assistant(reply, echo)),
        };
        match turns.last_mut() {
            // A reply without a word is no turn.
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(Turn { role, content }),
        }
    }
    turns
}

/// Readable reasoning goes back only in the opaque block that it came with, which is signed.
fn assistant(reply: &AssistantMessage, echo: bool) -> Vec<Value> {
    let write = |part: &AssistantPart| match part {
        AssistantPart::Text { text: said } => text(said),
        AssistantPart::Reasoning { .. } => None,
        AssistantPart::Opaque { data } => (echo && is_thinking(data)).then(|| data.clone()),
        AssistantPart::Call(call) => Some(json!({
            "type": "tool_use",
            "id": identifier(&call.id),
            "name": identifier(&call.name),
            "input": as_object(&call.arguments),
        })),
    };
    reply.parts.iter().filter_map(write).collect()
}

/// Whether an opaque part is one of this protocol; parts of others mean nothing to it.
fn is_thinking(part: &Value) -> bool {
    let kind = part.get("type").and_then(Value::as_str);
    matches!(kind, Some("thinking" | "redacted_thinking"))
}

fn result(result: &ToolResult) -> Value {
    let said = result.text();
    let mut block = json!({ "type": "tool_result", "tool_use_id": identifier(&result.call_id) });
    if let Some(block) = block.as_object_mut() {
        // An error must have a text.
        if !result.ok {
            block.insert("is_error".into(), true.into());
        }
        if !said.is_empty() || !result.ok {
            let content = if said.is_empty() { NOTHING.into() } else { said };
            block.insert("content".into(), content.into());
        }
    }
    block
}

fn tool(tool: &ToolSpec) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": schema(tool) })
}

/// A block with this text, if it says anything.
fn text(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| block(text))
}

fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn mark(block: Option<&mut Value>) {
    if let Some(block) = block.and_then(Value::as_object_mut) {
        block.insert("cache_control".into(), json!({ "type": "ephemeral" }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{OPTIONS, bare_request, conversation as sample};

    fn body(model: &str, request: &ModelRequest) -> Value {
        super::body(model, request, &OPTIONS)
    }

    fn marked(mut block: Value) -> Value {
        mark(Some(&mut block));
        block
    }

    #[test]
    fn a_conversation_is_written_in_turns() {
        let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "s=" });
        let expected = json!({
            "model": "claude-x",
            "max_tokens": 32_000,
            "stream": true,
            "system": [marked(block("be brief"))],
            "messages": [
                { "role": "user", "content": [marked(block("go"))] },
                { "role": "assistant", "content": [
                    thinking,
                    block("Reading."),
                    { "type": "tool_use", "id": "a", "name": "read", "input": { "path": "x" } },
                    { "type": "tool_use", "id": "b_1", "name": "no_such_name", "input": { "invalid": "{\"path\": " } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "1" },
                    marked(json!({ "type": "tool_result", "tool_use_id": "b_1", "is_error": true, "content": "no such tool" })),
                ] },
            ],
            "tools": [{
                "name": "read", "description": "Reads.",
                "input_schema": { "type": "object", "properties": {} },
            }],
        });
        assert_eq!(body("claude-x", &sample(thinking)), expected);
    }

    #[test]
    fn parts_of_other_protocols_and_empty_texts_stay_here() {
        let other = json!({ "reasoning_details": [{ "type": "x" }] });
        let mut request = sample(other);
        request
            .messages
            .push(Message::Assistant(AssistantMessage::default()));
        request.messages.push(Message::User { text: " ".into() });
        let written = body("m", &request);
        let turns = written["messages"].as_array().unwrap();
        assert_eq!(turns.len(), 3, "{written}");
        assert_eq!(turns[1]["content"][0], block("Reading."));
        assert_eq!(
            turns[2]["content"][0]["type"], "tool_result",
            "results come first"
        );
        assert_eq!(turns[2]["content"][2], marked(block(NOTHING)));
    }

    #[test]
    fn an_error_without_a_text_and_a_result_without_one_are_taken() {
        let answer = |ok: bool| {
            result(&ToolResult {
                call_id: "a".into(),
                parts: vec![],
                ok,
            })
        };
        assert_eq!(answer(true), json!({ "type": "tool_result", "tool_use_id": "a" }));
        assert_eq!(answer(false)["content"], NOTHING);
    }

    #[test]
    fn the_limit_of_a_reply_is_one_that_the_model_takes() {
        for (model, limit) in [
            ("claude-3-haiku-20240307", 4_096),
            ("claude-3-5-sonnet-latest", 8_192),
            ("claude-3-7-sonnet-latest", 32_000),
            ("claude-opus-5", 32_000),
            ("qwen", 32_000),
        ] {
            assert_eq!(body(model, &bare_request())["max_tokens"], limit, "{model}");
        }
        let mut request = bare_request();
        request.max_output_tokens = Some(9);
        assert_eq!(body("m", &request)["max_tokens"], 9);
    }

    #[test]
    fn the_end_that_was_marked_before_is_marked_again() {
        let mut request = sample(json!({}));
        let marks = |request: &ModelRequest| -> Vec<Value> {
            let written = body("m", request);
            let turns = written["messages"].as_array().unwrap().iter();
            let blocks = turns.flat_map(|turn| turn["content"].as_array().unwrap().clone());
            let is_marked = |block: &Value| block.get("cache_control").is_some();
            blocks.filter(is_marked).collect()
        };
        let before = marks(&request);
        request.messages.push(Message::Assistant(AssistantMessage {
            parts: vec![AssistantPart::Text { text: "so".into() }],
        }));
        request.messages.push(Message::User { text: "on".into() });
        let after = marks(&request);
        assert_eq!((before.len(), after.len()), (2, 2));
        assert_eq!(before[1], after[0]);
    }

    #[test]
    fn thinking_is_asked_for_as_the_model_takes_it() {
        let ask = |model: &str, effort, other_thinking, limit| {
            let options = Options {
                effort: Some(effort),
                temperature: Some(0.5),
                max_output_tokens: limit,
                other_thinking,
                ..OPTIONS
            };
            let body = super::body(model, &bare_request(), &options);
            let part = |key: &str| body.get(key).cloned().unwrap_or_default();
            (part("thinking"), part("output_config"), part("temperature"))
        };
        let adaptive = |effort: &str| {
            (
                json!({ "type": "adaptive" }),
                json!({ "effort": effort }),
                json!(null),
            )
        };
        let budget = |tokens: u32| {
            let thinking = json!({ "type": "enabled", "budget_tokens": tokens });
            (thinking, json!(null), json!(null))
        };
        let nothing = (json!(null), json!(null), json!(0.5));
        for (model, effort, other, limit, expected) in [
            ("claude-opus-4-7", Effort::High, false, None, adaptive("high")),
            ("claude-opus-5", Effort::Minimal, false, None, adaptive("low")),
            ("claude-opus-5", Effort::Low, true, None, budget(4_096)),
            ("claude-sonnet-4-5", Effort::Medium, false, None, budget(10_240)),
            (
                "claude-sonnet-4-20250514",
                Effort::Low,
                false,
                None,
                budget(4_096),
            ),
            ("claude-haiku-4-5", Effort::Low, true, None, adaptive("low")),
            ("MiniMax-M2", Effort::Xhigh, false, Some(8_192), budget(4_096)),
            ("MiniMax-M2", Effort::Low, false, Some(1_000), nothing.clone()),
            ("claude-opus-5", Effort::None, false, None, nothing),
        ] {
            assert_eq!(ask(model, effort, other, limit), expected, "{model} {effort:?}");
        }
    }

    #[test]
    fn without_a_system_prompt_the_tools_are_marked() {
        let mut request = sample(json!({}));
        request.system.clear();
        let written = body("m", &request);
        assert_eq!(written.get("system"), None);
        assert!(written["tools"][0].get("cache_control").is_some());
    }
}
