//! Reads the events of a generation: whole parts, one after the other.

use super::{CALL, OF, SIGNATURE, TEXT};
use crate::protocol::decoder::{self, Draft, Fault};
use crate::protocol::{calls, tokens};
use robot_lab::{FinishReason, ModelEvent, ToolCall, Usage};
use serde_json::{Value, json};

/// One reply on its way.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Reader {
    /// Calls, and the signatures before them.
    rest: Vec<ModelEvent>,
    calls: usize,
}

impl decoder::Reader for Reader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Fault> {
        draft.start();
        draft.model(event.get("modelVersion"));
        draft.usage_at_once(event.get("usageMetadata").and_then(counts));
        if let Some(reason) = event
            .pointer("/promptFeedback/blockReason")
            .and_then(Value::as_str)
        {
            let message = format!("the request was blocked: {reason}");
            let error = json!({ "error": { "code": "content_filter", "message": message } });
            return Err(Fault::Reported(error));
        }
        let Some(candidate) = event.pointer("/candidates/0") else {
            return Ok(());
        };
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, draft)?;
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            draft.end(match reason {
                // The model stops also to have its calls answered.
                "STOP" if self.calls > 0 => FinishReason::ToolCalls,
                "STOP" => FinishReason::Stop,
                "FUNCTION_CALL" => FinishReason::ToolCalls,
                "MAX_TOKENS" => FinishReason::Length,
                "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                    FinishReason::ContentFilter
                }
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
                    let why = format!("the model wrote a tool call that cannot be read ({reason})");
                    return Err(Fault::malformed(why));
                }
                other => FinishReason::Other(other.into()),
            });
        }
        Ok(())
    }

    fn rest(self: Box<Self>) -> Result<Vec<ModelEvent>, Fault> {
        Ok(self.rest)
    }
}

impl Reader {
    fn part(&mut self, part: &Value, draft: &mut Draft) -> Result<(), Fault> {
        let signature = part
            .get(SIGNATURE)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty());
        if let Some(signature) = signature {
            draft.keep(signature.len());
        }
        let opaque = |of: &str| signature.map(|signature| json!({ SIGNATURE: signature, OF: of }));
        if let Some(call) = part.get("functionCall") {
            calls::check_number(self.calls)?;
            self.calls += 1;
            let call = whole_call(call)?;
            draft.call(call.name.len() + call.arguments.to_string().len());
            self.rest.extend(opaque(CALL).map(ModelEvent::Opaque));
            self.rest.push(ModelEvent::Call(call));
            return Ok(());
        }
        let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
        if part.get("thought") == Some(&Value::Bool(true)) {
            draft.reasoning(text);
        } else {
            draft.text(text);
        }
        if let Some(part) = opaque(TEXT) {
            draft.opaque(part);
        }
        Ok(())
    }
}

fn whole_call(call: &Value) -> Result<ToolCall, Fault> {
    let text = |key: &str| {
        call.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let arguments = match call.get("args") {
        None | Some(Value::Null) => json!({}),
        Some(Value::String(text)) => calls::parse(text.clone()),
        Some(arguments @ Value::Object(_)) => arguments.clone(),
        Some(other) => other.to_string().into(),
    };
    calls::whole(text("id"), text("name"), arguments)
}

/// Cached tokens are among those of the prompt; those of reasoning are not among those of the candidates.
fn counts(counts: &Value) -> Option<Usage> {
    let count = |pointer: &str| tokens::count(counts, pointer).unwrap_or(0);
    let reasoning = count("/thoughtsTokenCount");
    tokens::usage(Usage {
        input: count("/promptTokenCount") + count("/toolUsePromptTokenCount"),
        cached_input: count("/cachedContentTokenCount"),
        cache_write: 0,
        output: count("/candidatesTokenCount") + reasoning,
        reasoning,
        estimated: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;
    use crate::protocol::tests::read_events;

    fn read(events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
        read_events(Protocol::Gemini, events)
    }

    fn parts(parts: Value) -> Value {
        json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }] })
    }

    fn end(reason: &str) -> Value {
        json!({ "candidates": [{ "content": { "parts": [{ "text": "" }] }, "finishReason": reason }] })
    }

    fn call(id: &str, arguments: Value) -> ModelEvent {
        ModelEvent::Call(ToolCall {
            id: id.into(),
            name: "t".into(),
            arguments,
        })
    }

    #[test]
    fn thoughts_texts_calls_and_signatures_come_apart() {
        let events = [
            parts(json!([{ "text": "hm", "thought": true }])),
            parts(json!([{ "text": "a" }, { "text": "", "thoughtSignature": "s0" }])),
            parts(json!([
                { "functionCall": { "id": "1", "name": "t", "args": { "n": 1 } }, "thoughtSignature": "s1" },
                { "functionCall": { "name": "t" } },
            ])),
            end("STOP"),
        ];
        let expected = vec![
            ModelEvent::Reasoning("hm".into()),
            ModelEvent::Text("a".into()),
            ModelEvent::Opaque(json!({ "thoughtSignature": "s0", "of": "text" })),
            ModelEvent::CallProgress(8),
            ModelEvent::CallProgress(3),
            ModelEvent::Opaque(json!({ "thoughtSignature": "s1", "of": "call" })),
            call("1", json!({ "n": 1 })),
            call("", json!({})),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ];
        assert_eq!(read(&events), Ok(expected));
    }

    #[test]
    fn reasoning_is_beside_the_output_and_the_cache_within_the_input() {
        let usage = |candidates: u64| {
            json!({ "usageMetadata": {
                "promptTokenCount": 100, "cachedContentTokenCount": 80, "toolUsePromptTokenCount": 5,
                "candidatesTokenCount": candidates, "thoughtsTokenCount": 30, "totalTokenCount": 0,
            } })
        };
        let counted = |output: u64| {
            ModelEvent::Usage(Usage {
                input: 105,
                cached_input: 80,
                output,
                reasoning: 30,
                ..Usage::default()
            })
        };
        let events = read(&[usage(0), usage(12), end("STOP")]).unwrap();
        assert_eq!(
            events,
            [counted(30), counted(42), ModelEvent::Finished(FinishReason::Stop)]
        );
    }

    #[test]
    fn reasons_are_mapped() {
        for (reason, expected) in [
            ("STOP", FinishReason::Stop),
            ("MAX_TOKENS", FinishReason::Length),
            ("SAFETY", FinishReason::ContentFilter),
            ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
            ("LANGUAGE", FinishReason::Other("LANGUAGE".into())),
        ] {
            assert_eq!(read(&[end(reason)]), Ok(vec![ModelEvent::Finished(expected)]));
        }
        assert!(matches!(
            read(&[end("MALFORMED_FUNCTION_CALL")]),
            Err(Fault::Malformed(_))
        ));
        assert!(matches!(
            read(&[end("FUNCTION_CALL")]),
            Err(Fault::Lost { announced: true, .. })
        ));
    }

    #[test]
    fn a_blocked_prompt_is_reported_and_a_reply_without_reason_is_cut() {
        let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" } });
        assert!(matches!(read(&[blocked]), Err(Fault::Reported(_))));
        let call = parts(json!([{ "functionCall": { "name": "t", "args": {} } }]));
        assert_eq!(read(&[call]), Err(Fault::Cut));
        let nameless = parts(json!([{ "functionCall": { "args": {} } }]));
        assert!(matches!(read(&[nameless]), Err(Fault::Malformed(_))));
    }

    #[test]
    fn arguments_that_are_no_object_are_kept_as_text() {
        let events = [
            parts(json!([
                { "functionCall": { "name": "t", "args": "{\"n\":1}" } },
                { "functionCall": { "name": "t", "args": [1] } },
            ])),
            end("STOP"),
        ];
        let events = read(&events).unwrap();
        assert!(events.contains(&call("", json!({ "n": 1 }))) && events.contains(&call("", json!("[1]"))));
    }
}
