//! Reads the events of a response: items that are added, grow, and are done.
//!
//! Servers that copy the protocol leave out places, numbers and whole kinds of events, so each fact is taken from
//! wherever it comes first: from the pieces, from the item once it is done, or from the response at the end.

use super::{PHASE, REASONING};
use crate::protocol::decoder::{self, Draft, Fault};
use crate::protocol::{calls, tokens};
use robot_lab::{FinishReason, ModelEvent, Usage};
use serde_json::{Value, json};

/// One reply on its way.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Reader {
    items: Vec<Item>,
    /// Whether the model declined in words of its own.
    refused: bool,
    /// Whether readable reasoning has come, which a further part of it is set off from.
    reasoned: bool,
}

/// An item that may still grow.
#[derive(Debug)]
struct Item {
    id: String,
    place: Option<u64>,
    done: bool,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A text, and whether any of it has come in pieces.
    Text { begun: bool },
    /// Reasoning, which goes back as it came, and whether a summary of it has come in pieces.
    Reasoning { begun: bool, waiting: Option<Value> },
    /// A tool call.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// What means nothing here.
    Other,
}

impl Kind {
    /// Its type on the wire.
    fn name(&self) -> &'static str {
        match self {
            Self::Text { .. } => "message",
            Self::Reasoning { .. } => REASONING,
            Self::Call { .. } => "function_call",
            Self::Other => "",
        }
    }
}

/// Where an item is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Come {
    /// Where it begins.
    Added,
    /// Where it ends.
    Done,
    /// In the whole response.
    AtEnd,
}

impl decoder::Reader for Reader {
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Fault> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let delta = event.get("delta").and_then(Value::as_str).unwrap_or_default();
        let item = event.get("item").unwrap_or(&Value::Null);
        let place = event.get("output_index").and_then(Value::as_u64);
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                draft.start();
                draft.model(event.pointer("/response/model"));
            }
            "response.output_item.added" => {
                draft.start();
                self.item(item, place, Come::Added, draft)?;
            }
            "response.output_item.done" => {
                draft.start();
                let at = self.item(item, place, Come::Done, draft)?;
                self.done(at, item, draft);
            }
            "response.output_text.delta" => {
                self.begin_text(event, draft)?;
                draft.text(delta);
            }
            "response.refusal.delta" => {
                self.begin_text(event, draft)?;
                self.refused = true;
                draft.text(delta);
            }
            "response.reasoning_summary_part.added" if self.reasoned => draft.reasoning("\n\n"),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                draft.start();
                self.reasoned = true;
                if let Some(Item {
                    kind: Kind::Reasoning { begun, .. },
                    ..
                }) = self.find(event)
                {
                    *begun = true;
                }
                draft.reasoning(delta);
            }
            "response.function_call_arguments.delta" => self.arguments(event, delta, false, draft)?,
            "response.function_call_arguments.done" => {
                let whole = event.get("arguments").and_then(Value::as_str);
                self.arguments(event, whole.unwrap_or_default(), true, draft)?;
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.response(event.get("response").unwrap_or(&Value::Null), draft)?;
            }
            "error" => return Err(Fault::Reported(json!({ "error": event }))),
            // The whole response, in place of a stream.
            "" if event.get("output").is_some() => self.response(event, draft)?,
            // Says what others say too, or is new.
            _ => {}
        }
        Ok(())
    }

    fn rest(self: Box<Self>) -> Result<Vec<ModelEvent>, Fault> {
        let mut events = Vec::new();
        for item in self.items {
            match item.kind {
                Kind::Call { id, name, arguments } => {
                    // Cut before the first of them.
                    let arguments = match arguments {
                        nothing if nothing.is_empty() && !item.done => "{".into(),
                        written => calls::parse(written),
                    };
                    events.push(ModelEvent::Call(calls::whole(id, name, arguments)?));
                }
                Kind::Reasoning {
                    waiting: Some(item), ..
                } => events.push(ModelEvent::Opaque(item)),
                Kind::Reasoning { .. } | Kind::Text { .. } | Kind::Other => {}
            }
        }
        Ok(events)
    }
}

impl Reader {
    /// Which item is meant, by its id, its call, or its place; else the open one of its kind, for an item that is done.
    fn known(&self, item: &Value, place: Option<u64>, come: Come) -> Option<usize> {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, call, kind) = (text("id"), text("call_id"), text("type"));
        if !id.is_empty() {
            return self.items.iter().rposition(|known| known.id == id);
        }
        if !call.is_empty() {
            return self
                .items
                .iter()
                .rposition(|known| matches!(&known.kind, Kind::Call { id, .. } if id == call));
        }
        let same = |known: &Item| known.kind.name() == kind;
        match come {
            Come::Added => None,
            Come::Done => self.items.iter().rposition(|known| {
                same(known)
                    && !known.done
                    && (place.is_none() || known.place.is_none() || known.place == place)
            }),
            // All that came before is here again, in its order.
            Come::AtEnd => place
                .and_then(|place| usize::try_from(place).ok())
                .filter(|at| self.items.get(*at).is_some_and(same)),
        }
    }

    /// Where the item of an event is, opened if it is new.
    fn item(
        &mut self,
        item: &Value,
        place: Option<u64>,
        come: Come,
        draft: &mut Draft,
    ) -> Result<usize, Fault> {
        if let Some(known) = self.known(item, place, come) {
            return Ok(known);
        }
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("type") {
            "message" => Kind::Text { begun: false },
            REASONING => Kind::Reasoning {
                begun: false,
                waiting: None,
            },
            "function_call" => {
                draft.call(text("name").len() + text("arguments").len());
                Kind::Call {
                    id: text("call_id").into(),
                    name: text("name").into(),
                    arguments: text("arguments").into(),
                }
            }
            _ => Kind::Other,
        };
        calls::check_number(self.items.len())?;
        self.items.push(Item {
            id: text("id").into(),
            place,
            done: false,
            kind,
        });
        Ok(self.items.len() - 1)
    }

    /// The item that a piece belongs to: by its id, else by its place, else the last one.
    fn find(&mut self, event: &Value) -> Option<&mut Item> {
        let id = event.get("item_id").and_then(Value::as_str).unwrap_or_default();
        let place = event.get("output_index").and_then(Value::as_u64);
        let by_id = self
            .items
            .iter()
            .rposition(|item| !id.is_empty() && item.id == id);
        let by_place = || {
            self.items
                .iter()
                .rposition(|item| place.is_some() && item.place == place)
        };
        let at = by_id.or_else(by_place);
        match at {
            Some(at) => self.items.get_mut(at),
            None if id.is_empty() && place.is_none() => self.items.last_mut(),
            None => None,
        }
    }

    /// Notes that a text comes in pieces.
    fn begin_text(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Fault> {
        draft.start();
        match self.find(event) {
            Some(Item {
                kind: Kind::Text { begun },
                ..
            }) => *begun = true,
            Some(_) => {}
            // Its item was not announced.
            None => {
                calls::check_number(self.items.len())?;
                self.items.push(Item {
                    id: event
                        .get("item_id")
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .into(),
                    place: event.get("output_index").and_then(Value::as_u64),
                    done: false,
                    kind: Kind::Text { begun: true },
                });
            }
        }
        Ok(())
    }

    /// Takes more arguments of a call, or all of them.
    fn arguments(&mut self, event: &Value, text: &str, whole: bool, draft: &mut Draft) -> Result<(), Fault> {
        draft.start();
        match self.find(event) {
            Some(Item {
                kind: Kind::Call { arguments, .. },
                ..
            }) => {
                if whole {
                    replace(arguments, text, draft);
                } else {
                    arguments.push_str(text);
                    draft.call(text.len());
                }
                Ok(())
            }
            // The item comes later, with all of them.
            None if whole => Ok(()),
            _ => Err(Fault::malformed("it has arguments that belong to no tool call")),
        }
    }

    /// An item has ended: what it says now counts.
    fn done(&mut self, at: usize, item: &Value, draft: &mut Draft) {
        let after_a_call = self
            .items
            .iter()
            .any(|item| matches!(item.kind, Kind::Call { .. }));
        let Some(known) = self.items.get_mut(at).filter(|known| !known.done) else {
            return;
        };
        known.done = true;
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        match &mut known.kind {
            Kind::Text { begun } => {
                let begun = std::mem::replace(begun, true);
                let parts = item.get("content").and_then(Value::as_array);
                for part in parts.into_iter().flatten() {
                    let said = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
                    self.refused |= !said("refusal").is_empty();
                    if !begun {
                        draft.text(said("text"));
                        draft.text(said("refusal"));
                    }
                }
                if !text(PHASE).is_empty() {
                    draft.opaque(json!({ "type": PHASE, PHASE: text(PHASE) }));
                }
            }
            Kind::Reasoning { begun, waiting } => {
                let begun = std::mem::replace(begun, true);
                let list = |key: &str| item.get(key).and_then(Value::as_array).into_iter().flatten();
                for part in list("summary").chain(list("content")).filter(|_| !begun) {
                    draft.reasoning(part.get("text").and_then(Value::as_str).unwrap_or_default());
                }
                // Without its content it means nothing to a provider that keeps nothing.
                if !text("encrypted_content").is_empty() {
                    draft.keep(item.to_string().len());
                    if after_a_call {
                        *waiting = Some(item.clone());
                    } else {
                        draft.opaque(item.clone());
                    }
                }
            }
            Kind::Call { id, name, arguments } => {
                if id.is_empty() {
                    *id = text("call_id").into();
                }
                if name.is_empty() {
                    *name = text("name").into();
                }
                match item.get("arguments") {
                    Some(Value::String(whole)) => replace(arguments, whole, draft),
                    // Some servers send an object in place of its text.
                    Some(whole @ Value::Object(_)) => replace(arguments, &whole.to_string(), draft),
                    _ => {}
                }
            }
            Kind::Other => {}
        }
    }

    /// The end: what the whole response says, and how it ended.
    fn response(&mut self, response: &Value, draft: &mut Draft) -> Result<(), Fault> {
        let status = response
            .get("status")
            .and_then(Value::as_str)
            .unwrap_or("completed");
        draft.model(response.get("model"));
        draft.usage(response.get("usage").and_then(counts));
        if matches!(status, "failed" | "cancelled") {
            let error = response.get("error").filter(|error| error.is_object());
            let error = error.cloned().unwrap_or_else(
                || json!({ "code": "server_error", "message": format!("the response was {status}") }),
            );
            return Err(Fault::Reported(json!({ "error": error })));
        }
        draft.start();
        let output = response.get("output").and_then(Value::as_array);
        for (place, item) in (0..).zip(output.into_iter().flatten()) {
            let at = self.item(item, Some(place), Come::AtEnd, draft)?;
            self.done(at, item, draft);
        }
        let why = response
            .pointer("/incomplete_details/reason")
            .and_then(Value::as_str);
        let calls = self
            .items
            .iter()
            .any(|item| matches!(item.kind, Kind::Call { .. }));
        draft.end(match (status, why) {
            ("incomplete", Some("max_output_tokens" | "max_tokens") | None) => FinishReason::Length,
            ("incomplete", Some("content_filter")) => FinishReason::ContentFilter,
            ("incomplete", Some(other)) => FinishReason::Other(other.into()),
            _ if calls => FinishReason::ToolCalls,
            _ if self.refused => FinishReason::Refused,
            _ => FinishReason::Stop,
        });
        draft.done();
        Ok(())
    }
}

/// Puts a whole text in the place of its pieces, which are counted already.
fn replace(text: &mut String, whole: &str, draft: &mut Draft) {
    if !whole.is_empty() {
        draft.call(whole.len().saturating_sub(text.len()));
        whole.clone_into(text);
    }
}

/// Cached tokens are among those of the input, and those of reasoning among those of the output.
fn counts(counts: &Value) -> Option<Usage> {
    let part = |pointer: &str| tokens::count(counts, pointer).unwrap_or_default();
    tokens::usage(Usage {
        input: tokens::count(counts, "/input_tokens")?,
        cached_input: part("/input_tokens_details/cached_tokens"),
        cache_write: part("/input_tokens_details/cache_write_tokens"),
        output: tokens::count(counts, "/output_tokens")?,
        reasoning: part("/output_tokens_details/reasoning_tokens"),
        estimated: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;
    use crate::protocol::tests::read_events;
    use robot_lab::ToolCall;

    fn read(events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
        read_events(Protocol::Responses, events)
    }

    fn end(response: Value) -> Value {
        let mut event = json!({ "type": "response.completed", "response": { "status": "completed" } });
        for (key, value) in response.as_object().unwrap() {
            event["response"][key] = value.clone();
        }
        event
    }

    fn added(place: u64, item: Value) -> Value {
        json!({ "type": "response.output_item.added", "output_index": place, "item": item })
    }

    fn done(place: u64, item: Value) -> Value {
        json!({ "type": "response.output_item.done", "output_index": place, "item": item })
    }

    fn item(id: &str, arguments: &str) -> Value {
        json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "t", "arguments": arguments })
    }

    fn arguments(id: &str, delta: &str) -> Value {
        let id = format!("fc_{id}");
        json!({ "type": "response.function_call_arguments.delta", "item_id": id, "delta": delta })
    }

    fn call(id: &str, arguments: Value) -> ModelEvent {
        ModelEvent::Call(ToolCall {
            id: id.into(),
            name: "t".into(),
            arguments,
        })
    }

    /// The events without those of calls on their way.
    fn parts(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        let part = |event: &ModelEvent| !matches!(event, ModelEvent::CallProgress(_));
        events.into_iter().filter(part).collect()
    }

    #[test]
    fn items_that_grow_by_turns_come_whole_and_in_order() {
        let sealed =
            |id: &str| json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": id });
        let text = json!({ "type": "message", "id": "m", "phase": "commentary",
                           "content": [{ "type": "output_text", "text": "ab" }] });
        let events = [
            json!({ "type": "response.created", "response": { "model": "gpt-x" } }),
            added(0, json!({ "type": "reasoning", "id": "r0" })),
            json!({ "type": "response.reasoning_summary_part.added", "item_id": "r0" }),
            json!({ "type": "response.reasoning_summary_text.delta", "item_id": "r0", "delta": "one" }),
            json!({ "type": "response.reasoning_summary_part.added", "item_id": "r0" }),
            json!({ "type": "response.reasoning_summary_text.delta", "item_id": "r0", "delta": "two" }),
            done(0, sealed("r0")),
            added(1, json!({ "type": "message", "id": "m" })),
            json!({ "type": "response.output_text.delta", "item_id": "m", "delta": "a" }),
            added(2, item("x", "")),
            arguments("x", "{\"n\":"),
            json!({ "type": "response.output_text.delta", "item_id": "m", "delta": "b" }),
            added(3, item("y", "")),
            arguments("y", "{}"),
            arguments("x", "1}"),
            done(1, text.clone()),
            done(3, item("y", "{}")),
            added(4, json!({ "type": "reasoning", "id": "r4" })),
            done(4, sealed("r4")),
            added(5, item("z", "")),
            json!({ "type": "response.function_call_arguments.done", "item_id": "fc_z", "arguments": "{\"n\":3}" }),
            done(2, item("x", "{\"n\":1}")),
            json!({ "type": "response.web_search_call.searching", "item_id": "w" }),
            end(
                json!({ "output": [sealed("r0"), text, item("x", "{\"n\":1}"), item("y", "{}"), sealed("r4")] }),
            ),
        ];
        let reasoning = |text: &str| ModelEvent::Reasoning(text.into());
        let expected = vec![
            ModelEvent::Served("gpt-x".into()),
            reasoning("one"),
            reasoning("\n\n"),
            reasoning("two"),
            ModelEvent::Opaque(sealed("r0")),
            ModelEvent::Text("a".into()),
            ModelEvent::Text("b".into()),
            ModelEvent::Opaque(json!({ "type": "phase", "phase": "commentary" })),
            call("x", json!({ "n": 1 })),
            call("y", json!({})),
            ModelEvent::Opaque(sealed("r4")),
            call("z", json!({ "n": 3 })),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ];
        assert_eq!(read(&events).map(parts), Ok(expected));
    }

    #[test]
    fn a_response_in_one_piece_or_only_at_its_end_is_the_same() {
        let response = json!({
            "object": "response", "status": "completed", "model": "m", "error": null,
            "output": [
                { "type": "reasoning", "id": "r", "summary": [{ "type": "summary_text", "text": "hm" }] },
                { "type": "message", "content": [{ "type": "output_text", "text": "a" }] },
                { "type": "function_call", "call_id": "x", "name": "t", "arguments": { "n": 1 } },
                { "type": "function_call", "call_id": "y", "name": "t", "arguments": "{}" },
            ],
            "usage": { "input_tokens": 9, "output_tokens": 7, "input_tokens_details": { "cached_tokens": 4 },
                       "output_tokens_details": { "reasoning_tokens": 5 } },
        });
        let usage = Usage {
            input: 9,
            cached_input: 4,
            output: 7,
            reasoning: 5,
            ..Usage::default()
        };
        let expected = vec![
            ModelEvent::Served("m".into()),
            ModelEvent::Reasoning("hm".into()),
            ModelEvent::Text("a".into()),
            call("x", json!({ "n": 1 })),
            call("y", json!({})),
            ModelEvent::Usage(usage),
            ModelEvent::Finished(FinishReason::ToolCalls),
        ];
        let streamed = json!({ "type": "response.completed", "response": response });
        for event in [response, streamed] {
            assert_eq!(read(&[event]).map(parts), Ok(expected.clone()));
        }
    }

    #[test]
    fn reasons_are_mapped() {
        let incomplete = |reason: &str| {
            json!({ "type": "response.incomplete", "response": {
                "status": "incomplete", "incomplete_details": { "reason": reason } } })
        };
        let refused =
            json!({ "type": "message", "id": "m", "content": [{ "type": "refusal", "refusal": "no" }] });
        for (event, expected) in [
            (end(json!({})), FinishReason::Stop),
            (incomplete("max_output_tokens"), FinishReason::Length),
            (incomplete("content_filter"), FinishReason::ContentFilter),
            (incomplete("odd"), FinishReason::Other("odd".into())),
            (end(json!({ "output": [refused] })), FinishReason::Refused),
        ] {
            let read = read(&[event]).unwrap();
            assert_eq!(read.last(), Some(&ModelEvent::Finished(expected)));
        }
        let events = [
            json!({ "type": "response.refusal.delta", "item_id": "m", "delta": "no" }),
            end(json!({})),
        ];
        let expected = vec![
            ModelEvent::Text("no".into()),
            ModelEvent::Finished(FinishReason::Refused),
        ];
        assert_eq!(read(&events), Ok(expected));
    }

    #[test]
    fn a_call_that_is_cut_by_the_limit_is_marked_as_no_object() {
        for (written, expected) in [("{\"path\": \"a", json!("{\"path\": \"a")), ("", json!("{"))] {
            let incomplete = json!({ "type": "response.incomplete", "response": { "status": "incomplete" } });
            let events = [added(0, item("x", "")), arguments("x", written), incomplete];
            let expected = vec![call("x", expected), ModelEvent::Finished(FinishReason::Length)];
            assert_eq!(read(&events).map(parts), Ok(expected));
        }
    }

    #[test]
    fn failures_are_reported_and_what_does_not_end_is_cut() {
        let error = json!({ "code": "rate_limit_exceeded", "message": "slow" });
        let failed = json!({ "type": "response.failed", "response": { "status": "failed", "error": error, "usage": null } });
        let created = json!({ "type": "response.created", "response": {} });
        let reported = Err(Fault::Reported(json!({ "error": error })));
        assert_eq!(read(&[created.clone(), failed]), reported);
        let event = json!({ "type": "error", "code": "server_error", "message": "m", "sequence_number": 3 });
        let reported = Err(Fault::Reported(json!({ "error": event })));
        assert_eq!(read(&[created.clone(), event]), reported);
        assert_eq!(read(&[created, added(0, item("x", "{}"))]), Err(Fault::Cut));
        for events in [
            vec![arguments("x", "{}")],
            vec![
                added(0, json!({ "type": "function_call", "id": "a", "call_id": "a" })),
                end(json!({})),
            ],
            (0..=300).map(|n| added(n, item(&n.to_string(), ""))).collect(),
        ] {
            assert!(
                matches!(read(&events), Err(Fault::Malformed(_))),
                "{:?}",
                events.first()
            );
        }
    }
}
