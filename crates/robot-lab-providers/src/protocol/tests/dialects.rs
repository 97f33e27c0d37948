//! The ways in which servers write the same thing. Each is read alike, wherever its bytes are split.

use super::{OPTIONS, bare_request, read_all};
use crate::protocol::Protocol;
use robot_lab::{FinishReason, ModelEvent, Usage};
use serde_json::{Value, json};

/// What a reply says.
#[derive(Debug, Default, PartialEq)]
struct Meaning {
    text: String,
    reasoning: String,
    /// Id, name and arguments.
    calls: Vec<(String, String, Value)>,
    usage: Option<(u64, u64, u64)>,
    finish: Option<FinishReason>,
}

impl Meaning {
    fn of(events: &[ModelEvent]) -> Self {
        let mut meaning = Self::default();
        for event in events {
            match event {
                ModelEvent::Text(more) => meaning.text.push_str(more),
                ModelEvent::Reasoning(more) => meaning.reasoning.push_str(more),
                ModelEvent::Call(call) => {
                    let call = (call.id.clone(), call.name.clone(), call.arguments.clone());
                    meaning.calls.push(call);
                }
                ModelEvent::Usage(Usage {
                    input,
                    cached_input,
                    output,
                    ..
                }) => meaning.usage = Some((*input, *cached_input, *output)),
                ModelEvent::Finished(finish) => meaning.finish = Some(finish.clone()),
                _ => {}
            }
        }
        meaning
    }

    fn call(mut self, id: &str, name: &str, arguments: Value) -> Self {
        self.calls.push((id.into(), name.into(), arguments));
        self
    }

    fn usage(self, input: u64, cached: u64, output: u64) -> Self {
        Self {
            usage: Some((input, cached, output)),
            ..self
        }
    }
}

fn calls() -> Meaning {
    Meaning {
        finish: Some(FinishReason::ToolCalls),
        ..Meaning::default()
    }
}

fn said(text: &str) -> Meaning {
    Meaning {
        text: text.into(),
        finish: Some(FinishReason::Stop),
        ..Meaning::default()
    }
}

/// Lines of a stream, each an event, with its end.
fn events(lines: &[&str]) -> String {
    let events: String = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
    events + "data: [DONE]\n\n"
}

const TWO: &str = r#"{"choices":[{"index":0,"delta":{"tool_calls":[
{"index":0,"id":"a","function":{"name":"t","arguments":"{\"n\":1}"}},
{"index":1,"id":"b","function":{"name":"u","arguments":"{}"}}]}}]}"#;
const END: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const HI: &str = r#"{"choices":[{"index":0,"delta":{"content":"größe 👩‍🚀"}}]}"#;

/// One piece of a call, as a delta.
fn piece(piece: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{piece}]}}}}]}}"#)
}

/// What came, and what it means.
fn table() -> Vec<(&'static str, Protocol, String, Meaning)> {
    use Protocol::{Chat, Gemini, Messages, Ollama, Responses};
    let pieces = |all: &[&str]| {
        let pieces: Vec<String> = all.iter().map(|one| piece(one)).collect();
        let mut lines: Vec<&str> = pieces.iter().map(String::as_str).collect();
        lines.push(END);
        events(&lines)
    };
    let both = || {
        calls()
            .call("a", "t", json!({ "n": 1 }))
            .call("b", "u", json!({}))
    };
    let one = |id: &str| calls().call(id, "t", json!({ "n": 1 }));
    let two = TWO.replace('\n', "");
    let hi = "größe 👩‍🚀";
    vec![
        ("several calls in one delta", Chat, events(&[&two, END]), both()),
        (
            "no ids",
            Chat,
            pieces(&[
                r#"{"index":0,"function":{"name":"t","arguments":"{\"n\":1}"}}"#,
                r#"{"index":1,"function":{"name":"u","arguments":"{}"}}"#,
            ]),
            calls().call("", "t", json!({ "n": 1 })).call("", "u", json!({})),
        ),
        (
            "no indexes",
            Chat,
            pieces(&[
                r#"{"id":"a","function":{"name":"t","arguments":"{\"n\""}}"#,
                r#"{"function":{"arguments":":1}"}}"#,
                r#"{"id":"b","function":{"name":"u","arguments":"{}"}}"#,
            ]),
            both(),
        ),
        (
            "neither ids nor indexes",
            Chat,
            pieces(&[
                r#"{"function":{"name":"t","arguments":"{\"n\":1}"}}"#,
                r#"{"function":{"name":"t","arguments":"{\"n\":2}"}}"#,
                r#"{"function":{"name":"u","arguments":"{}"}}"#,
            ]),
            calls()
                .call("", "t", json!({ "n": 1 }))
                .call("", "t", json!({ "n": 2 }))
                .call("", "u", json!({})),
        ),
        (
            "the same index for each call, and no ids",
            Chat,
            pieces(&[
                r#"{"index":0,"function":{"name":"t","arguments":"{\"n\":1}"}}"#,
                r#"{"index":0,"function":{"name":"u","arguments":"{}"}}"#,
            ]),
            calls().call("", "t", json!({ "n": 1 })).call("", "u", json!({})),
        ),
        (
            "the name in each piece",
            Chat,
            pieces(&[
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":""}}"#,
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":"{\"n\""}}"#,
                r#"{"index":0,"id":"a","function":{"name":"t","arguments":":1}"}}"#,
            ]),
            one("a"),
        ),
        (
            "the name in each piece, and no ids",
            Chat,
            pieces(&[
                r#"{"function":{"name":"t","arguments":"{\"n\""}}"#,
                r#"{"function":{"name":"t","arguments":":1}"}}"#,
            ]),
            one(""),
        ),
        (
            "empty and null parts",
            Chat,
            events(&[
                r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null}}],"usage":null,"error":null}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"","refusal":null,"reasoning_content":null}}]}"#,
                r#"{"choices":[]}"#,
                &two,
                r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"tool_calls","logprobs":null}]}"#,
            ]),
            both(),
        ),
        (
            "arguments as an object",
            Chat,
            pieces(&[r#"{"index":0,"id":"a","function":{"name":"t","arguments":{"n":1}}}"#]),
            one("a"),
        ),
        (
            "arguments encoded twice, which are handed on as they were written",
            Chat,
            pieces(&[r#"{"index":0,"id":"a","function":{"name":"t","arguments":"\"{\\\"n\\\":1}\""}}"#]),
            calls().call("a", "t", json!("\"{\\\"n\\\":1}\"")),
        ),
        (
            "one call in the form before there could be several",
            Chat,
            events(&[
                r#"{"choices":[{"delta":{"function_call":{"name":"t","arguments":""}}}]}"#,
                r#"{"choices":[{"delta":{"function_call":{"arguments":"{\"n\":1}"}}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
            ]),
            one(""),
        ),
        (
            "the reason before the index, and with the last piece",
            Chat,
            events(&[
                r#"{"choices":[{"finish_reason":"tool_calls","index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"t","arguments":"{\"n\":1}"}}]}}],"timings":{"n":1}}"#,
            ]),
            one("a"),
        ),
        (
            "lines that end in a return and a feed",
            Chat,
            events(&[HI, STOP]).replace('\n', "\r\n"),
            said(hi),
        ),
        (
            "comments, names, ids and no space",
            Chat,
            format!(": ping\n\nevent: x\nid: 1\nretry: 3\ndata:{HI}\n\n:\n\ndata:{STOP}\n\ndata:[DONE]\n\n"),
            said(hi),
        ),
        (
            "an event in several lines",
            Chat,
            events(&[&HI.replace("\"delta\"", "\n\"delta\"").replace('\n', "\ndata: "), STOP]),
            said(hi),
        ),
        (
            "no mark of the end",
            Chat,
            format!("data: {HI}\n\ndata: {STOP}"),
            said(hi),
        ),
        (
            "counts beside the last choice, and an empty reason before",
            Chat,
            events(&[
                r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#,
                r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"cached_tokens":4}}]}"#,
            ]),
            said("a").usage(9, 4, 2),
        ),
        (
            "counts of their own kind, after the end",
            Chat,
            events(&[HI, STOP, r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":9,"completion_tokens":2}}}"#]),
            said(hi).usage(9, 0, 2),
        ),
        (
            "counts in each event, which grow",
            Chat,
            events(&[
                r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#,
                r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
            ]),
            said("ab").usage(9, 0, 2),
        ),
        (
            "a message in one piece",
            Chat,
            r#"{"choices":[{"index":0,"message":{"content":null,"reasoning":"hm","tool_calls":[{"id":"a","function":{"name":"t","arguments":"{\"n\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#.into(),
            Meaning { reasoning: "hm".into(), ..one("a").usage(9, 0, 2) },
        ),
        (
            "responses without places, numbers and the end of arguments",
            Responses,
            [
                r#"{"type":"response.created","response":{"status":"in_progress"}}"#,
                r#"{"type":"response.output_item.added","item":{"id":"x","type":"function_call","call_id":"a","name":"t","arguments":""}}"#,
                r#"{"type":"response.function_call_arguments.delta","item_id":"x","delta":"{\"n\""}"#,
                r#"{"type":"response.output_item.done","item":{"id":"x","type":"function_call","call_id":"a","name":"t","arguments":"{\"n\":1}"}}"#,
                r#"{"type":"response.completed","response":{"status":"completed","output":[{"id":"x","type":"function_call","call_id":"a","name":"t","arguments":"{\"n\":1}"}],"usage":{"input_tokens":9,"output_tokens":2}}}"#,
            ].map(|event| format!("event: {}\ndata: {event}\n\n", "x")).concat(),
            one("a").usage(9, 0, 2),
        ),
        (
            "responses without any id, said once more at the end",
            Responses,
            [
                r#"{"type":"response.output_item.added","item":{"type":"message"}}"#,
                r#"{"type":"response.output_text.delta","delta":"größe "}"#,
                r#"{"type":"response.output_text.delta","delta":"👩‍🚀"}"#,
                r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"größe 👩‍🚀"}]}}"#,
                r#"{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"größe 👩‍🚀"}]}]}}"#,
            ].map(|event| format!("data: {event}\n\n")).concat(),
            said(hi),
        ),
        (
            "a message of blocks without input, whose counts come twice",
            Messages,
            [
                r#"{"type":"message_start","message":{"usage":{"input_tokens":1,"cache_read_input_tokens":8,"output_tokens":0}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
                r#"{"type":"message_stop"}"#,
            ].map(|event| format!("event: x\ndata: {event}\n\n")).concat(),
            one("a").usage(9, 8, 2),
        ),
        (
            "a generation that ends with its calls and has no ids",
            Gemini,
            [
                r#"{"candidates":[{"content":{"parts":[{"text":"größe 👩‍🚀"},{"text":"hm","thought":true}]}}]}"#,
                r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","args":{"n":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2}}"#,
            ].map(|event| format!("data: {event}\r\n\r\n")).concat(),
            Meaning { text: hi.into(), reasoning: "hm".into(), ..one("").usage(9, 0, 2) },
        ),
        (
            "lines with calls before the last, whose arguments are a text",
            Ollama,
            [
                r#"{"message":{"content":"größe 👩‍🚀"},"done":false}"#,
                r#"{"message":{"content":"","tool_calls":[{"function":{"name":"t","arguments":"{\"n\":1}"}}]},"done":false}"#,
                r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":2}"#,
            ].map(|line| format!("{line}\n")).concat(),
            Meaning { text: hi.into(), ..one("").usage(9, 0, 2) },
        ),
    ]
}

#[test]
fn case_152_each_dialect_means_the_same_at_every_split() {
    let table = table();
    assert!(table.len() >= 24);
    for (name, protocol, text, expected) in table {
        let decoder = || protocol.decoder(&bare_request(), &OPTIONS);
        let whole = read_all(decoder(), text.as_bytes(), usize::MAX).unwrap();
        assert_eq!(Meaning::of(&whole), expected, "{name}: {text}");
        for at in 1..text.len() {
            let (first, second) = text.as_bytes().split_at(at);
            let mut decoder = decoder();
            let mut out = std::collections::VecDeque::new();
            decoder.push(first, &mut out).unwrap();
            decoder.push(second, &mut out).unwrap();
            out.extend(decoder.finish().unwrap());
            assert_eq!(
                Meaning::of(out.make_contiguous()),
                expected,
                "{name}, split at {at}"
            );
        }
        let bytes = read_all(decoder(), text.as_bytes(), 1).unwrap();
        assert_eq!(Meaning::of(&bytes), expected, "{name}, byte by byte");
    }
}
