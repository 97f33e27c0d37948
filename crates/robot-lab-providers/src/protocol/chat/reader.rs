//! Reads the events of a chat completion.

use super::pieces::Pieces;
use crate::protocol::decoder::{self, Draft, Fault};
use crate::protocol::tokens::{count, usage};
use robot_lab::{Cost, FinishReason, ModelEvent, Usage};
use serde_json::{Value, json};

/// One reply on its way.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Reader {
    calls: Pieces,
    reasoning_details: Vec<Value>,
    /// Whether the model declined in words of its own.
    refused: bool,
    /// Whether the usage says what was charged, in US dollars.
    charges: bool,
}

impl decoder::Reader for Reader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Fault> {
        draft.start();
        draft.model(event.get("model"));
        for place in ["/usage", "/x_groq/usage", "/choices/0/usage"] {
            draft.usage(event.pointer(place).and_then(counts));
        }
        draft.charged(event.get("usage").filter(|_| self.charges).and_then(charged));
        match event.pointer("/choices/0") {
            Some(choice) if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 => {
                self.choice(choice, draft)
            }
            _ => Ok(()),
        }
    }

    fn rest(self: Box<Self>) -> Result<Vec<ModelEvent>, Fault> {
        let mut events = Vec::new();
        if !self.reasoning_details.is_empty() {
            events.push(ModelEvent::Opaque(
                json!({ "reasoning_details": self.reasoning_details }),
            ));
        }
        events.extend(self.calls.finish()?.into_iter().map(ModelEvent::Call));
        Ok(events)
    }
}

impl Reader {
    /// `charges`: whether the usage says what was charged, in US dollars.
    pub(in crate::protocol) fn new(charges: bool) -> Self {
        Self {
            charges,
            ..Self::default()
        }
    }

    fn choice(&mut self, choice: &Value, draft: &mut Draft) -> Result<(), Fault> {
        // A server that does not stream sends the whole message in one event.
        let delta = choice
            .get("delta")
            .or_else(|| choice.get("message"))
            .unwrap_or(&Value::Null);
        let list = |key: &str| delta.get(key).and_then(Value::as_array).into_iter().flatten();
        let reasoning = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|key| delta.get(key)?.as_str());
        draft.reasoning(reasoning.unwrap_or_default());
        for detail in list("reasoning_details") {
            self.detail(detail, draft);
        }
        draft.text(&content(delta));
        let refusal = delta.get("refusal").and_then(Value::as_str).unwrap_or_default();
        self.refused |= !refusal.is_empty();
        draft.text(refusal);
        for piece in list("tool_calls") {
            draft.call(self.calls.push(piece)?);
        }
        // As it was before a reply could have several.
        if let Some(function) = delta.get("function_call").filter(|call| call.is_object()) {
            draft.call(self.calls.push(&json!({ "index": 0, "function": function }))?);
        }
        if let Some(reason) = choice
            .get("finish_reason")
            .and_then(Value::as_str)
            .filter(|reason| !reason.is_empty())
        {
            draft.end(match reason {
                "error" => {
                    return Err(Fault::Reported(
                        choice.get("error").cloned().unwrap_or_else(|| json!({})),
                    ));
                }
                "stop" if self.refused => FinishReason::Refused,
                "stop" => FinishReason::Stop,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                "length" | "max_tokens" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                "refusal" => FinishReason::Refused,
                other => FinishReason::Other(other.into()),
            });
        }
        Ok(())
    }

    /// Keeps a piece of the opaque reasoning; pieces of one block are joined, as the provider wants it back.
    fn detail(&mut self, detail: &Value, draft: &mut Draft) {
        const GROWING: [&str; 3] = ["text", "summary", "data"];
        draft.keep(detail.to_string().len());
        if let Some(Value::Object(last)) = self.reasoning_details.last_mut()
            && let Value::Object(more) = detail
            && more.get("index").is_some()
            && last.get("index") == more.get("index")
            && last.get("type") == more.get("type")
        {
            for (key, value) in more {
                match (last.get_mut(key), value) {
                    (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&key.as_str()) => {
                        text.push_str(more);
                    }
                    (None | Some(Value::Null), value) => drop(last.insert(key.clone(), value.clone())),
                    _ => {}
                }
            }
        } else {
            self.reasoning_details.push(detail.clone());
        }
    }
}

/// The text of a delta: plain, or in parts.
fn content(delta: &Value) -> String {
    match delta.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => String::new(),
    }
}

/// The counts in a `usage` object. Cached tokens are among those of the prompt, and those of reasoning among those of
/// the completion; where a server counts them beside, its total says so.
fn counts(counts: &Value) -> Option<Usage> {
    let part = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|pointer| count(counts, pointer))
            .unwrap_or_default()
    };
    let (prompt, completion) = (
        count(counts, "/prompt_tokens")?,
        count(counts, "/completion_tokens")?,
    );
    let cached = part(&[
        "/prompt_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
        "/cache_read_input_tokens",
        "/cached_tokens",
    ]);
    let written = part(&[
        "/prompt_tokens_details/cache_write_tokens",
        "/cache_creation_input_tokens",
    ]);
    let reasoning = part(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]);
    let beyond = count(counts, "/total_tokens")
        .unwrap_or_default()
        .saturating_sub(prompt + completion);
    let cache = cached + written;
    let cache_beside = cache > prompt || (cache > 0 && (beyond == cache || beyond == cache + reasoning));
    let reasoning_beside =
        reasoning > 0 && (beyond == reasoning || (cache_beside && beyond == cache + reasoning));
    usage(Usage {
        input: prompt + if cache_beside { cache } else { 0 },
        cached_input: cached,
        cache_write: written,
        output: completion + if reasoning_beside { reasoning } else { 0 },
        reasoning,
        estimated: false,
    })
}

/// What OpenRouter charged. Of a request that another account pays for besides, nobody says all of it.
fn charged(usage: &Value) -> Option<Cost> {
    let whole = usage.get("is_byok").and_then(Value::as_bool) != Some(true);
    let cost = usage.get("cost").and_then(Value::as_f64).filter(|_| whole)?;
    // A number with a sign or without an end is none.
    format!("{cost:.12}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{OPTIONS, bare_request, read_all, read_events, read_text};
    use crate::protocol::{Options, Protocol};

    fn read(events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
        read_events(Protocol::Chat, events)
    }

    fn delta(delta: Value) -> Value {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }], "error": null, "usage": null })
    }

    fn end(reason: &str) -> Value {
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
    }

    #[test]
    fn text_in_parts_refusals_and_whole_messages_are_text() {
        let events = [
            delta(json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] })),
            delta(json!({ "content": null, "refusal": "no" })),
            json!({ "choices": [{ "message": { "content": "c" }, "finish_reason": "stop" }] }),
        ];
        let text = |text: &str| ModelEvent::Text(text.into());
        let expected = vec![
            text("ab"),
            text("no"),
            text("c"),
            ModelEvent::Finished(FinishReason::Refused),
        ];
        assert_eq!(read(&events), Ok(expected));
    }

    #[test]
    fn other_choices_than_the_first_are_left_out() {
        let other =
            json!({ "choices": [{ "index": 1, "delta": { "content": "b" }, "finish_reason": "stop" }] });
        assert_eq!(read(&[delta(json!({ "content": "a" })), other]), Err(Fault::Cut));
    }

    #[test]
    fn opaque_reasoning_is_joined_block_by_block() {
        let events = [
            delta(json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "text": "a" }] })),
            delta(json!({ "reasoning_details": [
                { "type": "reasoning.text", "index": 0, "text": "b", "signature": "s" },
                { "type": "reasoning.encrypted", "index": 1, "data": "=" },
            ] })),
            end("stop"),
        ];
        let opaque = json!({ "reasoning_details": [
            { "type": "reasoning.text", "index": 0, "text": "ab", "signature": "s" },
            { "type": "reasoning.encrypted", "index": 1, "data": "=" },
        ] });
        let expected = vec![
            ModelEvent::Opaque(opaque),
            ModelEvent::Finished(FinishReason::Stop),
        ];
        assert_eq!(read(&events), Ok(expected));
    }

    #[test]
    fn usage_never_shrinks() {
        let usage = |output: u64| json!({ "choices": [], "usage": { "prompt_tokens": 9, "completion_tokens": output } });
        let events = read(&[end("stop"), usage(4), usage(7), usage(1)]).unwrap();
        let expected = Usage {
            input: 9,
            output: 7,
            ..Usage::default()
        };
        assert_eq!(
            events,
            [
                ModelEvent::Usage(expected),
                ModelEvent::Finished(FinishReason::Stop)
            ]
        );
    }

    #[test]
    fn announced_calls_that_never_came_are_an_error() {
        let lost = Fault::Lost {
            announced: true,
            usage: None,
            charged: None,
        };
        assert_eq!(read(&[end("tool_calls")]), Err(lost));
    }

    #[test]
    fn nonsense_is_an_error() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        for data in ["null", "[]", "{\"choices\":[", "{} {}", "\"\\ud83d\"", &deep] {
            let read = read_text(Protocol::Chat, &format!("data: {data}\n\n"));
            assert!(matches!(read, Err(Fault::Malformed(_))), "{:.20}", data);
        }
        assert_eq!(read(&[json!({ "choices": 5, "usage": [] })]), Err(Fault::Cut));
    }

    #[test]
    fn a_reply_without_end_is_refused() {
        let large = delta(json!({ "content": "x".repeat(12 * 1024 * 1024) }));
        let events = [large.clone(), large.clone(), large, end("stop")];
        assert!(matches!(read(&events), Err(Fault::Malformed(_))));
    }

    #[test]
    fn counts_that_cannot_be_right_are_left_out() {
        for wrong in [
            json!(null),
            json!({}),
            json!({ "prompt_tokens": 5 }),
            json!({ "prompt_tokens": -5, "completion_tokens": 3 }),
            json!({ "prompt_tokens": 0, "completion_tokens": 0 }),
            json!({ "prompt_tokens": 5, "completion_tokens": 4_000_000_000_000_u64 }),
            json!({ "prompt_tokens": "5", "completion_tokens": 3 }),
        ] {
            assert_eq!(counts(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_openrouter_charged_is_read_exactly_and_from_nobody_else() {
        let read = |usage: &str, is_openrouter| {
            let event = format!(
                r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
            );
            let options = Options {
                is_openrouter,
                ..OPTIONS
            };
            let decoder = Protocol::Chat.decoder(&bare_request(), &options);
            let events = read_all(decoder, format!("data: {event}\n\n").as_bytes(), usize::MAX).unwrap();
            events.into_iter().find_map(|event| match event {
                ModelEvent::Charged(cost) => Some(cost.exact()),
                _ => None,
            })
        };
        let usage =
            |more: &str| format!(r#"{{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196{more}}}"#);
        for (more, charged) in [
            (r#","cost":0.00095"#, Some("0.00095")),
            (
                r#","cost":1.5e-7,"cost_details":{"upstream_inference_cost":null}"#,
                Some("0.00000015"),
            ),
            (r#","cost":0"#, Some("0")),
            (r#","cost":0.01,"is_byok":false"#, Some("0.01")),
            (
                r#","cost":0.01,"is_byok":true,"cost_details":{"upstream_inference_cost":0.2}"#,
                None,
            ),
            (r#","cost":-1"#, None),
            (r#","cost":1e300"#, None),
            (r#","cost":"0.5""#, None),
            (r#","cost":null"#, None),
            ("", None),
        ] {
            assert_eq!(read(&usage(more), true).as_deref(), charged, "{more}");
            assert_eq!(read(&usage(more), false), None, "{more}");
        }
    }

    #[test]
    fn parts_are_counted_and_never_exceed_the_whole() {
        let given = json!({
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": { "cached_tokens": 80, "cache_write_tokens": 7 },
            "completion_tokens_details": { "reasoning_tokens": 50 },
        });
        let expected = Usage {
            input: 100,
            cached_input: 80,
            cache_write: 7,
            output: 20,
            reasoning: 20,
            estimated: false,
        };
        assert_eq!(counts(&given), Some(expected));
        let hits = json!({ "prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4 });
        assert_eq!(counts(&hits).unwrap().cached_input, 4);
    }
}
