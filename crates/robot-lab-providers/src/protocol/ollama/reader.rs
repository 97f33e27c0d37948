//! Reads the lines of a chat: pieces of text, whole calls, and a last line with the counts.

use crate::protocol::decoder::{self, Draft, Fault};
use crate::protocol::{calls, tokens};
use robot_lab::{FinishReason, ModelEvent, ModelRequest, ToolCall, Usage};
use serde_json::{Value, json};

/// One reply on its way.
#[derive(Debug)]
pub(in crate::protocol) struct Reader {
    calls: Vec<ToolCall>,
    /// What the request has, about.
    expected: u64,
    /// What was asked for.
    num_ctx: u64,
}

impl Reader {
    /// A reader of the reply to this request.
    pub(in crate::protocol) fn new(request: &ModelRequest, num_ctx: u32) -> Self {
        Self {
            calls: Vec::new(),
            expected: request.estimated_tokens(),
            num_ctx: num_ctx.into(),
        }
    }

    /// Older servers leave out the beginning of a conversation that does not fit, and say nothing. It shows in the
    /// count of what was read.
    fn check_all_was_read(&self, read: u64) -> Result<(), Fault> {
        if read == 0 || read > self.num_ctx || self.expected <= self.num_ctx {
            return Ok(());
        }
        Err(Fault::Overflow(format!(
            "about {} tokens were sent and {read} of them read, as the context has {}",
            self.expected, self.num_ctx
        )))
    }
}

impl decoder::Reader for Reader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Fault> {
        draft.start();
        draft.model(event.get("model"));
        let message = event.get("message").unwrap_or(&Value::Null);
        let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
        draft.reasoning(text("thinking"));
        draft.text(text("content"));
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            calls::check_number(self.calls.len())?;
            let call = whole_call(call)?;
            draft.call(call.name.len() + call.arguments.to_string().len());
            self.calls.push(call);
        }
        if event.get("done") != Some(&Value::Bool(true)) {
            return Ok(());
        }
        let usage = counts(event);
        self.check_all_was_read(usage.map_or(0, |usage| usage.input))?;
        draft.usage(usage);
        draft.end(match event.get("done_reason").and_then(Value::as_str) {
            // The model stops also to have its calls answered.
            None | Some("stop" | "") if !self.calls.is_empty() => FinishReason::ToolCalls,
            None | Some("stop" | "") => FinishReason::Stop,
            Some("length") => FinishReason::Length,
            Some(other) => FinishReason::Other(other.into()),
        });
        draft.done();
        Ok(())
    }

    fn rest(self: Box<Self>) -> Result<Vec<ModelEvent>, Fault> {
        Ok(self.calls.into_iter().map(ModelEvent::Call).collect())
    }
}

fn whole_call(call: &Value) -> Result<ToolCall, Fault> {
    let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let arguments = match call.pointer("/function/arguments") {
        None | Some(Value::Null) => json!({}),
        Some(Value::String(text)) => calls::parse(text.clone()),
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        Some(other) => other.to_string().into(),
    };
    calls::whole(text("/id").into(), text("/function/name").into(), arguments)
}

fn counts(event: &Value) -> Option<Usage> {
    let count = |pointer: &str| tokens::count(event, pointer).unwrap_or(0);
    tokens::usage(Usage {
        input: count("/prompt_eval_count"),
        cached_input: count("/prompt_eval_cached_count"),
        output: count("/eval_count"),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{OPTIONS, bare_request, read_all, read_events};
    use crate::protocol::{Options, Protocol};
    use robot_lab::Message;

    fn read(events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
        read_events(Protocol::Ollama, events)
    }

    fn message(message: Value) -> Value {
        json!({ "message": message, "done": false })
    }

    fn end(reason: &str, read: u64) -> Value {
        json!({ "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": reason,
                "prompt_eval_count": read, "prompt_eval_cached_count": 20, "eval_count": 5 })
    }

    fn usage(input: u64) -> ModelEvent {
        ModelEvent::Usage(Usage {
            input,
            cached_input: 20,
            output: 5,
            ..Usage::default()
        })
    }

    #[test]
    fn thinking_text_and_calls_come_in_any_line() {
        let call = |n: u64| json!({ "function": { "name": "t", "arguments": { "n": n } } });
        let mut with_id = call(1);
        with_id["id"] = json!("one");
        let events = [
            message(json!({ "thinking": "hm", "content": "" })),
            message(json!({ "content": "a", "tool_calls": [with_id, call(2)] })),
            message(json!({ "content": "b" })),
            end("stop", 28),
        ];
        let whole = |id: &str, n: u64| {
            ModelEvent::Call(ToolCall {
                id: id.into(),
                name: "t".into(),
                arguments: json!({ "n": n }),
            })
        };
        let expected = vec![
            ModelEvent::Reasoning("hm".into()),
            ModelEvent::Text("a".into()),
            ModelEvent::CallProgress(8),
            ModelEvent::CallProgress(8),
            ModelEvent::Text("b".into()),
            whole("one", 1),
            whole("", 2),
            usage(28),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ];
        assert_eq!(read(&events), Ok(expected));
    }

    #[test]
    fn reasons_are_mapped() {
        for (reason, expected) in [
            ("stop", FinishReason::Stop),
            ("length", FinishReason::Length),
            ("load", FinishReason::Other("load".into())),
        ] {
            let expected = vec![usage(28), ModelEvent::Finished(expected)];
            assert_eq!(read(&[end(reason, 28)]), Ok(expected));
        }
        let not_counted = json!({ "message": { "content": "a" }, "done": true, "prompt_eval_count": 0 });
        let expected = vec![
            ModelEvent::Text("a".into()),
            ModelEvent::Finished(FinishReason::Stop),
        ];
        assert_eq!(read(&[not_counted]), Ok(expected));
    }

    #[test]
    fn without_the_last_line_a_reply_is_cut() {
        let call = json!({ "function": { "name": "t", "arguments": {} } });
        assert_eq!(
            read(&[message(json!({ "content": "", "tool_calls": [call] }))]),
            Err(Fault::Cut)
        );
        let error = json!({ "error": "the model runner stopped" });
        assert_eq!(
            read(&[message(json!({ "content": "a" })), error.clone()]),
            Err(Fault::Reported(error))
        );
    }

    #[test]
    fn a_conversation_that_was_not_read_to_its_end_is_noticed() {
        let mut request = bare_request();
        request.messages = vec![Message::User {
            text: "x".repeat(4_000),
        }];
        for (num_ctx, was_read, noticed) in [
            (900, 512, true),
            (900, 1_000, false),
            (2_000, 512, false),
            (900, 0, false),
        ] {
            let line = format!("{}\n", end("stop", was_read));
            let options = Options { num_ctx, ..OPTIONS };
            let decoder = Protocol::Ollama.decoder(&request, &options);
            let read = read_all(decoder, line.as_bytes(), usize::MAX);
            assert_eq!(
                matches!(read, Err(Fault::Overflow(_))),
                noticed,
                "{num_ctx} {was_read}"
            );
        }
    }
}
