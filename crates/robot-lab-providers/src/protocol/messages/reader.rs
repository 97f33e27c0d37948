//! Reads the events of a message: blocks that are opened, grow and are closed.

use crate::protocol::decoder::{self, Draft, Fault};
use crate::protocol::{calls, tokens};
use robot_lab::{FinishReason, ModelEvent, Usage};
use serde_json::{Map, Value, json};

/// One reply on its way.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Reader {
    blocks: Vec<Block>,
    counts: Counts,
    stop: Option<FinishReason>,
}

/// A block that may still grow.
#[derive(Debug)]
struct Block {
    index: u64,
    closed: bool,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Text, which is handed on as it comes, and whatever means nothing here.
    Other,
    /// Signed reasoning, or what stands for reasoning that is not shown.
    Thinking { block: Value, handed_on: bool },
    /// A tool call: what it began with, and the text of its arguments since.
    Call {
        id: String,
        name: String,
        input: Value,
        arguments: String,
    },
}

/// The token counts: each is the latest, and all of them add up.
#[derive(Debug, Default)]
struct Counts {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

impl decoder::Reader for Reader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Fault> {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => {
                draft.start();
                draft.model(event.pointer("/message/model"));
                self.counts.update(event.pointer("/message/usage"));
                draft.usage_at_once(self.counts.usage());
            }
            "content_block_start" => {
                draft.start();
                if let Some(block) = event.get("content_block") {
                    self.open(index, block, draft)?;
                }
            }
            "content_block_delta" => {
                draft.start();
                if let Some(delta) = event.get("delta") {
                    self.grow(index, delta, draft)?;
                }
            }
            "content_block_stop" => self.close(index, draft),
            "message_delta" => {
                self.counts.update(event.get("usage"));
                draft.usage(self.counts.usage());
                self.stop = event
                    .pointer("/delta/stop_reason")
                    .and_then(finish)
                    .or(self.stop.take());
            }
            // Only this says that the reply is whole.
            "message_stop" => {
                let reason = self
                    .stop
                    .take()
                    .ok_or_else(|| Fault::malformed("it ends without a reason"))?;
                let open = self.blocks.iter().any(|block| !block.closed);
                if open && reason != FinishReason::Length {
                    return Err(Fault::malformed("it ends within a block"));
                }
                draft.end(reason);
                draft.done();
            }
            // The whole message, in place of a stream.
            "message" => self.whole(event, draft)?,
            // Keeps the connection alive, or is new.
            _ => {}
        }
        Ok(())
    }

    fn rest(self: Box<Self>) -> Result<Vec<ModelEvent>, Fault> {
        let mut events = Vec::new();
        for block in self.blocks {
            match block.kind {
                Kind::Call {
                    id,
                    name,
                    input,
                    arguments,
                } => {
                    let arguments = match input {
                        // Some servers send the whole arguments at once.
                        Value::Object(whole) if arguments.is_empty() && !whole.is_empty() => whole.into(),
                        // Cut before the first of them.
                        _ if arguments.is_empty() && !block.closed => "{".into(),
                        _ => calls::parse(arguments),
                    };
                    events.push(ModelEvent::Call(calls::whole(id, name, arguments)?));
                }
                // A block that was cut has no valid signature.
                Kind::Thinking {
                    block: whole,
                    handed_on: false,
                } if block.closed => events.push(ModelEvent::Opaque(whole)),
                Kind::Thinking { .. } | Kind::Other => {}
            }
        }
        Ok(events)
    }
}

impl Reader {
    /// A message that came in one piece.
    fn whole(&mut self, message: &Value, draft: &mut Draft) -> Result<(), Fault> {
        draft.start();
        draft.model(message.get("model"));
        let blocks = message.get("content").and_then(Value::as_array);
        for (index, block) in (0..).zip(blocks.into_iter().flatten()) {
            self.open(index, block, draft)?;
            self.close(index, draft);
        }
        self.counts.update(message.get("usage"));
        draft.usage(self.counts.usage());
        let reason = message.get("stop_reason").and_then(finish);
        draft.end(reason.ok_or_else(|| Fault::malformed("it ends without a reason"))?);
        draft.done();
        Ok(())
    }

    fn open(&mut self, index: u64, block: &Value, draft: &mut Draft) -> Result<(), Fault> {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("type") {
            "tool_use" => {
                let input = block.get("input").cloned().unwrap_or_default();
                draft.call(text("name").len());
                if input.as_object().is_some_and(|input| !input.is_empty()) {
                    draft.call(input.to_string().len());
                }
                Kind::Call {
                    id: text("id").into(),
                    name: text("name").into(),
                    input,
                    arguments: String::new(),
                }
            }
            "thinking" | "redacted_thinking" => {
                draft.keep(block.to_string().len());
                draft.reasoning(text("thinking"));
                Kind::Thinking {
                    block: block.clone(),
                    handed_on: false,
                }
            }
            kind => {
                if kind == "text" {
                    draft.text(text("text"));
                }
                Kind::Other
            }
        };
        calls::check_number(self.blocks.len())?;
        self.blocks.push(Block {
            index,
            closed: false,
            kind,
        });
        Ok(())
    }

    fn grow(&mut self, index: u64, delta: &Value, draft: &mut Draft) -> Result<(), Fault> {
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = text("type");
        if kind == "text_delta" {
            draft.text(text("text"));
            return Ok(());
        }
        let block = self.blocks.iter_mut().rfind(|block| block.index == index);
        match (kind, block.map(|block| &mut block.kind)) {
            ("input_json_delta", Some(Kind::Call { arguments, .. })) => {
                arguments.push_str(text("partial_json"));
                draft.call(text("partial_json").len());
            }
            ("input_json_delta", _) => {
                return Err(Fault::malformed("it has arguments that belong to no tool call"));
            }
            ("thinking_delta", Some(Kind::Thinking { block, .. })) => {
                append(block, "thinking", text("thinking"));
                draft.reasoning(text("thinking"));
            }
            ("signature_delta", Some(Kind::Thinking { block, .. })) => {
                append(block, "signature", text("signature"));
                draft.keep(text("signature").len());
            }
            _ => {}
        }
        Ok(())
    }

    /// Blocks of reasoning are handed on where they stand between texts; but calls come last, so what stands between
    /// calls waits for them.
    fn close(&mut self, index: u64, draft: &mut Draft) {
        let after_a_call = self
            .blocks
            .iter()
            .any(|block| matches!(block.kind, Kind::Call { .. }));
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.index == index) else {
            return;
        };
        block.closed = true;
        if let Kind::Thinking { block, handed_on } = &mut block.kind
            && !after_a_call
            && !*handed_on
        {
            draft.opaque(block.clone());
            *handed_on = true;
        }
    }
}

/// Why a message ended.
fn finish(reason: &Value) -> Option<FinishReason> {
    Some(match reason.as_str()? {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::Refused,
        other => FinishReason::Other(other.into()),
    })
}

/// Adds to a text in a block.
fn append(block: &mut Value, key: &str, more: &str) {
    if let Some(block) = block.as_object_mut() {
        match block.get_mut(key) {
            Some(Value::String(text)) => text.push_str(more),
            _ => drop(block.insert(key.into(), more.into())),
        }
    }
}

impl Counts {
    /// Takes what an event reports; what it does not name stays.
    fn update(&mut self, usage: Option<&Value>) {
        let empty = json!(Map::new());
        let usage = usage.unwrap_or(&empty);
        for (count, name) in [
            (&mut self.input, "/input_tokens"),
            (&mut self.cache_read, "/cache_read_input_tokens"),
            (&mut self.cache_write, "/cache_creation_input_tokens"),
            (&mut self.output, "/output_tokens"),
        ] {
            *count = tokens::count(usage, name).unwrap_or(0).max(*count);
        }
    }

    /// Tokens that were read from the cache or written to it are not among the others.
    fn usage(&self) -> Option<Usage> {
        tokens::usage(Usage {
            input: self.input + self.cache_read + self.cache_write,
            cached_input: self.cache_read,
            cache_write: self.cache_write,
            output: self.output,
            reasoning: 0,
            estimated: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;
    use crate::protocol::tests::read_events;
    use robot_lab::ToolCall;

    fn read(events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
        read_events(Protocol::Messages, events)
    }

    fn start(index: u64, block: Value) -> Value {
        json!({ "type": "content_block_start", "index": index, "content_block": block })
    }

    fn delta(index: u64, delta: Value) -> Value {
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    }

    fn stop(index: u64) -> Value {
        json!({ "type": "content_block_stop", "index": index })
    }

    fn end(reason: &str) -> [Value; 2] {
        [
            json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 7 } }),
            json!({ "type": "message_stop" }),
        ]
    }

    fn call(index: u64, name: &str) -> Value {
        start(
            index,
            json!({ "type": "tool_use", "id": name, "name": name, "input": {} }),
        )
    }

    fn arguments(index: u64, text: &str) -> Value {
        delta(index, json!({ "type": "input_json_delta", "partial_json": text }))
    }

    /// The parts without the counts of bytes on their way.
    fn parts(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        let is_part =
            |event: &ModelEvent| !matches!(event, ModelEvent::CallProgress(_) | ModelEvent::Usage(_));
        events.into_iter().filter(is_part).collect()
    }

    fn whole_call(id: &str, arguments: Value) -> ModelEvent {
        ModelEvent::Call(ToolCall {
            id: id.into(),
            name: id.into(),
            arguments,
        })
    }

    #[test]
    fn signed_reasoning_is_kept_block_by_block_and_in_its_place() {
        let mut events = vec![
            start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
            delta(0, json!({ "type": "thinking_delta", "thinking": "fir" })),
            delta(0, json!({ "type": "thinking_delta", "thinking": "st" })),
            delta(0, json!({ "type": "signature_delta", "signature": "s1" })),
            stop(0),
            start(1, json!({ "type": "redacted_thinking", "data": "=" })),
            stop(1),
            start(2, json!({ "type": "text", "text": "" })),
            delta(2, json!({ "type": "text_delta", "text": "hello" })),
            stop(2),
            call(3, "a"),
            stop(3),
            start(
                4,
                json!({ "type": "thinking", "thinking": "more", "signature": "s" }),
            ),
            delta(4, json!({ "type": "signature_delta", "signature": "2" })),
            stop(4),
            call(5, "b"),
            stop(5),
        ];
        events.extend(end("tool_use"));
        let expected = vec![
            ModelEvent::Reasoning("fir".into()),
            ModelEvent::Reasoning("st".into()),
            ModelEvent::Opaque(json!({ "type": "thinking", "thinking": "first", "signature": "s1" })),
            ModelEvent::Opaque(json!({ "type": "redacted_thinking", "data": "=" })),
            ModelEvent::Text("hello".into()),
            ModelEvent::Reasoning("more".into()),
            whole_call("a", json!({})),
            ModelEvent::Opaque(json!({ "type": "thinking", "thinking": "more", "signature": "s2" })),
            whole_call("b", json!({})),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ];
        assert_eq!(read(&events).map(parts), Ok(expected));
    }

    #[test]
    fn calls_may_come_interleaved_or_at_once() {
        let mut events = vec![
            call(0, "a"),
            call(1, "b"),
            arguments(1, "{\"n\":"),
            arguments(0, "{\"n\": 1"),
            arguments(1, "2}"),
            arguments(0, "}"),
            stop(1),
            stop(0),
            start(
                2,
                json!({ "type": "tool_use", "id": "c", "name": "c", "input": { "n": 3 } }),
            ),
            stop(2),
            start(3, json!({ "type": "tool_use", "id": "d", "name": "d" })),
            arguments(3, ""),
            stop(3),
        ];
        events.extend(end("tool_use"));
        let expected = vec![
            whole_call("a", json!({ "n": 1 })),
            whole_call("b", json!({ "n": 2 })),
            whole_call("c", json!({ "n": 3 })),
            whole_call("d", json!({})),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ];
        assert_eq!(read(&events).map(parts), Ok(expected));
    }

    #[test]
    fn counts_add_up_and_the_latest_counts() {
        let mut events = vec![json!({ "type": "message_start", "message": { "usage": {
            "input_tokens": 9, "cache_creation_input_tokens": 4202, "cache_read_input_tokens": 100, "output_tokens": 1,
        } } })];
        events.extend(end("end_turn"));
        let usage = |output: u64| {
            ModelEvent::Usage(Usage {
                input: 4311,
                cached_input: 100,
                cache_write: 4202,
                output,
                ..Usage::default()
            })
        };
        let expected = vec![usage(1), usage(7), ModelEvent::Finished(FinishReason::Stop)];
        assert_eq!(read(&events), Ok(expected));
    }

    #[test]
    fn a_call_that_is_cut_by_the_limit_is_marked_as_no_object() {
        for (written, expected) in [("{\"path\": \"a", json!("{\"path\": \"a")), ("", json!("{"))] {
            let mut events = vec![call(0, "a"), arguments(0, written)];
            events.extend(end("max_tokens"));
            let expected = vec![
                whole_call("a", expected),
                ModelEvent::Finished(FinishReason::Length),
            ];
            assert_eq!(read(&events).map(parts), Ok(expected));
        }
    }

    #[test]
    fn reasons_are_mapped() {
        for (reason, expected) in [
            ("end_turn", FinishReason::Stop),
            ("stop_sequence", FinishReason::Stop),
            ("max_tokens", FinishReason::Length),
            ("model_context_window_exceeded", FinishReason::Length),
            ("refusal", FinishReason::Refused),
            ("pause_turn", FinishReason::Other("pause_turn".into())),
        ] {
            let read = read(&end(reason)).unwrap();
            assert_eq!(read.last(), Some(&ModelEvent::Finished(expected)));
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let begun = json!({ "type": "message_start", "message": {} });
        let [delta_of_end, end_of_all] = end("tool_use");
        for events in [
            vec![begun.clone(), end_of_all.clone()],
            vec![call(0, "a"), delta_of_end.clone(), end_of_all.clone()],
            vec![call(0, ""), stop(0), delta_of_end.clone(), end_of_all.clone()],
            vec![arguments(0, "{}")],
        ] {
            assert!(matches!(read(&events), Err(Fault::Malformed(_))), "{events:?}");
        }
        assert!(matches!(
            read(&[begun.clone(), delta_of_end.clone(), end_of_all]),
            Err(Fault::Lost { announced: true, .. })
        ));
        assert_eq!(
            read(&[call(0, "a"), stop(0), delta_of_end]),
            Err(Fault::Cut),
            "no end"
        );
        assert_eq!(read(&[begun, json!({ "type": "ping" })]), Err(Fault::Cut));
        assert!(
            matches!(read(&[json!({ "type": "ping" })]), Err(Fault::Malformed(_))),
            "a ping is no part of a reply"
        );
        let many: Vec<Value> = (0..=calls::MAX_CALLS as u64).map(|n| call(n, "a")).collect();
        assert!(matches!(read(&many), Err(Fault::Malformed(_))));
    }

    #[test]
    fn an_error_event_is_reported() {
        let error =
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        assert_eq!(read(&[call(0, "a"), error.clone()]), Err(Fault::Reported(error)));
    }
}
