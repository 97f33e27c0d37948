//! Reads the events of a chat completion, one after the other, and tells a whole reply from one that broke off.

use super::{calls::Calls, usage};
use robot_lab::{FinishReason, ModelEvent, Usage};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// The most that a reply may hold, in bytes of text and arguments.
const MAX_REPLY: usize = 32 * 1024 * 1024;

/// Why a reply is of no use.
#[derive(Debug, PartialEq)]
pub(crate) enum Fault {
    /// The server reports this error in place of a reply, or in the middle of one.
    Reported(Value),
    /// The reply cannot be understood; the text completes "the reply is malformed: ".
    Malformed(String),
    /// The reply ended before its end.
    Cut,
}

impl Fault {
    pub(super) fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }
}

/// One reply on its way.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    calls: Calls,
    reasoning_details: Vec<Value>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    bytes: usize,
    started: bool,
    done: bool,
}

impl Decoder {
    /// Whether any event of a reply has come.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// Whether the model is known to have ended its reply.
    pub(crate) fn finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether the server has said that nothing follows.
    pub(crate) fn done(&self) -> bool {
        self.done
    }

    /// Reads the data of one event.
    pub(crate) fn push(&mut self, data: &str, out: &mut VecDeque<ModelEvent>) -> Result<(), Fault> {
        if self.done {
            return Ok(());
        }
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|error| Fault::malformed(format!("an event is not valid JSON ({error})")))?;
        if !chunk.is_object() {
            return Err(Fault::malformed("an event is not a JSON object"));
        }
        if let Some(error) = reported(&chunk) {
            return Err(Fault::Reported(error));
        }
        self.started = true;
        if let Some(usage) = chunk.get("usage").and_then(usage::read) {
            // Counts of a reply only grow; a later one that does not is an error of the server.
            let grown = self.usage.is_none_or(|before| usage.total() >= before.total());
            self.usage = if grown { Some(usage) } else { self.usage };
        }
        match chunk.pointer("/choices/0") {
            Some(choice) if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 => {
                self.choice(choice, out)
            }
            _ => Ok(()),
        }
    }

    fn choice(&mut self, choice: &Value, out: &mut VecDeque<ModelEvent>) -> Result<(), Fault> {
        // A server that does not stream sends the whole message in one event.
        let delta = choice
            .get("delta")
            .or_else(|| choice.get("message"))
            .unwrap_or(&Value::Null);
        let before = out.len();
        let reasoning = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|key| delta.get(key)?.as_str());
        push_text(
            reasoning.unwrap_or_default().to_owned(),
            ModelEvent::Reasoning,
            out,
        );
        for detail in delta
            .get("reasoning_details")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.detail(detail);
        }
        push_text(content(delta), ModelEvent::Text, out);
        for piece in delta
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let bytes = self.calls.push(piece)?;
            if bytes > 0 {
                out.push_back(ModelEvent::CallProgress(bytes));
            }
        }
        self.bytes += out.iter().skip(before).map(size).sum::<usize>();
        if self.bytes > MAX_REPLY {
            return Err(Fault::malformed(format!("it is longer than {MAX_REPLY} bytes")));
        }
        if let Some(reason) = choice
            .get("finish_reason")
            .and_then(Value::as_str)
            .filter(|reason| !reason.is_empty())
        {
            if reason == "error" {
                return Err(Fault::Reported(
                    choice.get("error").cloned().unwrap_or_else(|| json!({})),
                ));
            }
            self.finish = Some(match reason {
                "stop" => FinishReason::Stop,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                "length" | "max_tokens" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                other => FinishReason::Other(other.chars().take(60).collect()),
            });
        }
        Ok(())
    }

    /// Keeps a piece of the opaque reasoning; pieces of one block are joined, as the provider wants it back.
    fn detail(&mut self, detail: &Value) {
        const GROWING: [&str; 3] = ["text", "summary", "data"];
        self.bytes += detail.to_string().len();
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

    /// The end of the stream: what remains to be said of a whole reply, or why it is none. Tool calls are only here.
    pub(crate) fn finish(self) -> Result<Vec<ModelEvent>, Fault> {
        let Some(finish) = self.finish else {
            return Err(match self.started {
                true => Fault::Cut,
                false => Fault::malformed("the answer is no stream of events; check the base URL"),
            });
        };
        if finish == FinishReason::ToolCalls && self.calls.is_empty() {
            return Err(Fault::malformed("it announces tool calls and has none"));
        }
        let mut events = Vec::new();
        if !self.reasoning_details.is_empty() {
            events.push(ModelEvent::Opaque(
                json!({ "reasoning_details": self.reasoning_details }),
            ));
        }
        events.extend(self.calls.finish()?.into_iter().map(ModelEvent::Call));
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push(ModelEvent::Finished(finish));
        Ok(events)
    }
}

/// The error that an event reports, if it does.
fn reported(chunk: &Value) -> Option<Value> {
    match chunk.get("error") {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::Object(nothing)) if nothing.is_empty() => {}
        Some(_) => return Some(chunk.clone()),
    }
    (chunk.get("object").and_then(Value::as_str) == Some("error")).then(|| chunk.clone())
}

fn push_text(text: String, event: fn(String) -> ModelEvent, out: &mut VecDeque<ModelEvent>) {
    if !text.is_empty() {
        out.push_back(event(text));
    }
}

/// The text of a delta: plain, in parts, or as a refusal.
fn content(delta: &Value) -> String {
    match delta.get("content") {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => delta
            .get("refusal")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
    }
}

fn size(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::CallProgress(bytes) => *bytes,
        ModelEvent::Opaque(_) | ModelEvent::Call(_) | ModelEvent::Usage(_) | ModelEvent::Finished(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
        let (mut decoder, mut out) = (Decoder::default(), VecDeque::new());
        for event in events {
            decoder.push(&event.to_string(), &mut out)?;
        }
        let mut events: Vec<_> = out.into();
        events.extend(decoder.finish()?);
        Ok(events)
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
            ModelEvent::Finished(FinishReason::Stop),
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
        assert!(matches!(read(&[end("tool_calls")]), Err(Fault::Malformed(_))));
    }

    #[test]
    fn nonsense_is_an_error() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        for data in ["", "null", "[]", "{\"choices\":[", "{} {}", "\"\\ud83d\"", &deep] {
            let pushed = Decoder::default().push(data, &mut VecDeque::new());
            assert!(matches!(pushed, Err(Fault::Malformed(_))), "{:.20}", data);
        }
        let mut decoder = Decoder::default();
        decoder
            .push("{\"choices\": 5, \"usage\": []}", &mut VecDeque::new())
            .unwrap();
        assert_eq!(decoder.finish(), Err(Fault::Cut));
    }

    #[test]
    fn a_reply_without_end_is_refused() {
        let (mut decoder, mut out) = (Decoder::default(), VecDeque::new());
        let large = delta(json!({ "content": "x".repeat(MAX_REPLY / 2) })).to_string();
        decoder.push(&large, &mut out).unwrap();
        decoder.push(&large, &mut out).unwrap();
        assert!(matches!(decoder.push(&large, &mut out), Err(Fault::Malformed(_))));
    }
}
