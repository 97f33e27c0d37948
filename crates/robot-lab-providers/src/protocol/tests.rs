//! What holds for every protocol: wherever a reply is split it is the same, and wherever it is cut it is none.

mod dialects;
mod recorded;

use super::{Decoder, Fault, Options, Protocol};
use robot_lab::{
    AssistantMessage, AssistantPart, FinishReason, Message, ModelEvent, ModelRequest, ToolCall, ToolPart,
    ToolResult, ToolSpec, Usage,
};
use serde_json::{Value, json};
use std::collections::VecDeque;

pub(super) const OPTIONS: Options = Options {
    num_ctx: 32_768,
    temperature: None,
    max_output_tokens: None,
    effort: None,
    other_thinking: false,
    echo: true,
    stream: true,
    ceiling: None,
    is_openrouter: false,
};

pub(super) fn bare_request() -> ModelRequest {
    ModelRequest {
        system: "be brief".into(),
        messages: vec![Message::User { text: "go".into() }],
        ..ModelRequest::default()
    }
}

/// A conversation with reasoning, this opaque part, a text, two calls, and their results, of which one is an error.
pub(super) fn conversation(opaque: Value) -> ModelRequest {
    let call = |id: &str, name: &str, arguments: Value| {
        AssistantPart::Call(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments,
        })
    };
    let result = |id: &str, text: &str, ok: bool| {
        Message::Tool(ToolResult {
            call_id: id.into(),
            parts: vec![ToolPart::text(text)],
            ok,
        })
    };
    let parts = vec![
        AssistantPart::Reasoning { text: "hm".into() },
        AssistantPart::Opaque { data: opaque },
        AssistantPart::Text {
            text: "Reading.".into(),
        },
        call("a", "read", json!({ "path": "x" })),
        call("b.1", "no such.name", json!("{\"path\": ")),
    ];
    let mut request = bare_request();
    request.messages.extend([
        Message::Assistant(AssistantMessage { parts }),
        result("a", "1", true),
        result("b.1", "no such tool", false),
    ]);
    request.tools = vec![ToolSpec {
        name: "read".into(),
        description: "Reads.".into(),
        parameters: json!({ "type": "object" }),
    }];
    request
}

/// Reads these bytes, so many at a time, to their end.
pub(super) fn read_all(
    mut decoder: Decoder,
    bytes: &[u8],
    at_a_time: usize,
) -> Result<Vec<ModelEvent>, Fault> {
    let mut out = VecDeque::new();
    for piece in bytes.chunks(at_a_time) {
        decoder.push(piece, &mut out)?;
    }
    let mut events: Vec<_> = out.into();
    events.extend(decoder.finish()?);
    Ok(events)
}

pub(super) fn read_text(protocol: Protocol, text: &str) -> Result<Vec<ModelEvent>, Fault> {
    read_all(
        protocol.decoder(&bare_request(), &OPTIONS),
        text.as_bytes(),
        usize::MAX,
    )
}

/// Reads these values as the events of a stream.
pub(super) fn read_events(protocol: Protocol, events: &[Value]) -> Result<Vec<ModelEvent>, Fault> {
    let frame = |event: &Value| match protocol {
        Protocol::Ollama => format!("{event}\n"),
        _ => format!("data: {event}\n\n"),
    };
    read_text(protocol, &events.iter().map(frame).collect::<String>())
}

/// The body of a recorded answer.
fn body(recorded: &'static str) -> &'static str {
    let (_, body) = recorded.split_once("\n\n").unwrap();
    body
}

/// Recorded replies with text or calls.
fn recorded() -> [(Protocol, &'static str); 9] {
    use Protocol::{Chat, Gemini, Messages, Ollama, Responses};
    [
        (
            Chat,
            include_str!("../../tests/fixtures/aimock-parallel-calls.txt"),
        ),
        (
            Chat,
            include_str!("../../tests/fixtures/llama-server-tool-stream.txt"),
        ),
        (
            Messages,
            include_str!("../../tests/fixtures/messages-aimock-parallel-calls.txt"),
        ),
        (
            Messages,
            include_str!("../../tests/fixtures/messages-llmock-parallel-calls.txt"),
        ),
        (
            Messages,
            include_str!("../../tests/fixtures/messages-llama-server-call.txt"),
        ),
        (
            Gemini,
            include_str!("../../tests/fixtures/gemini-aimock-call.txt"),
        ),
        (
            Ollama,
            include_str!("../../tests/fixtures/ollama-aimock-call.txt"),
        ),
        (
            Responses,
            include_str!("../../tests/fixtures/recorded/responses-aimock-1.txt"),
        ),
        (
            Responses,
            include_str!("../../tests/fixtures/recorded/responses-llama-call.txt"),
        ),
    ]
}

/// Replies of ours with all that a reply can have, and with characters of every width.
fn complete() -> [(Protocol, String); 5] {
    let frame = |events: &[Value]| {
        events
            .iter()
            .map(|event| format!("data: {event}\r\n\r\n"))
            .collect()
    };
    let lines = |events: &[Value]| events.iter().map(|event| format!("{event}\n")).collect();
    let text = "é 👩‍🚀 ½";
    [
        (
            Protocol::Chat,
            frame(&[
                json!({ "choices": [{ "delta": { "reasoning_content": text } }] }),
                json!({ "choices": [{ "delta": { "content": text } }] }),
                json!({ "choices": [{ "delta": { "tool_calls": [
                    { "index": 0, "id": "a", "function": { "name": "t", "arguments": "{\"x\":" } },
                    { "index": 1, "id": "b", "function": { "name": "t", "arguments": "{}" } },
                ] } }] }),
                json!({ "choices": [{ "delta": { "tool_calls": [
                    { "index": 0, "function": { "arguments": format!("\"{text}\"}}") } },
                ] } }] }),
                json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
            ]),
        ),
        (
            Protocol::Responses,
            frame(&[
                json!({ "type": "response.created", "response": { "status": "in_progress" } }),
                json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "reasoning", "id": "r" } }),
                json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "r", "delta": text }),
                json!({ "type": "response.output_item.done", "output_index": 0, "item": { "type": "reasoning", "id": "r", "encrypted_content": "=" } }),
                json!({ "type": "response.output_item.added", "output_index": 1, "item": { "type": "function_call", "id": "f", "call_id": "a", "name": "t", "arguments": "" } }),
                json!({ "type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "f", "delta": format!("{{\"x\":\"{text}\"}}") }),
                json!({ "type": "response.output_item.done", "output_index": 1, "item": { "type": "function_call", "id": "f", "call_id": "a", "name": "t", "arguments": format!("{{\"x\":\"{text}\"}}") } }),
                json!({ "type": "response.completed", "response": { "status": "completed", "usage": { "input_tokens": 9, "output_tokens": 7 } } }),
            ]),
        ),
        (
            Protocol::Messages,
            frame(&[
                json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9, "output_tokens": 1 } } }),
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": text } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "s" } }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "ping" }),
                json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": "a", "name": "t", "input": {} } }),
                json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": format!("{{\"x\":\"{text}\"}}") } }),
                json!({ "type": "content_block_stop", "index": 1 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 7 } }),
                json!({ "type": "message_stop" }),
            ]),
        ),
        (
            Protocol::Gemini,
            frame(&[
                json!({ "candidates": [{ "content": { "parts": [{ "text": text, "thought": true }] } }] }),
                json!({ "candidates": [{ "content": { "parts": [
                    { "functionCall": { "name": "t", "args": { "x": text } }, "thoughtSignature": "s" },
                    { "functionCall": { "name": "t", "args": {} } },
                ] } }], "usageMetadata": { "promptTokenCount": 9 } }),
                json!({ "candidates": [{ "finishReason": "STOP" }],
                        "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 7 } }),
            ]),
        ),
        (
            Protocol::Ollama,
            lines(&[
                json!({ "message": { "thinking": text, "content": "" }, "done": false }),
                json!({ "message": { "content": text, "tool_calls": [
                    { "function": { "name": "t", "arguments": { "x": text } } },
                    { "function": { "name": "t", "arguments": {} } },
                ] }, "done": false }),
                json!({ "message": { "content": "" }, "done": true, "done_reason": "stop",
                        "prompt_eval_count": 9, "eval_count": 7 }),
            ]),
        ),
    ]
}

/// All replies but the longest, of which there are others of their kind: tests read them once per byte.
fn replies() -> Vec<(Protocol, String)> {
    let recorded = recorded().map(|(protocol, text)| (protocol, body(text).to_owned()));
    let all = recorded.into_iter().chain(complete());
    all.filter(|(_, text)| text.len() < 3_000).collect()
}

fn read_bytes(protocol: Protocol, bytes: &[u8], at_a_time: usize) -> Result<Vec<ModelEvent>, Fault> {
    read_all(protocol.decoder(&bare_request(), &OPTIONS), bytes, at_a_time)
}

#[test]
fn case_152_a_reply_is_the_same_wherever_it_is_split() {
    for (protocol, text) in replies() {
        let whole = read_bytes(protocol, text.as_bytes(), usize::MAX).unwrap();
        assert!(
            whole.iter().any(|event| matches!(event, ModelEvent::Call(_))),
            "{protocol:?}: {text}"
        );
        for at in 0..text.len() {
            let (first, second) = text.as_bytes().split_at(at);
            let mut decoder = protocol.decoder(&bare_request(), &OPTIONS);
            let mut out = VecDeque::new();
            decoder.push(first, &mut out).unwrap();
            decoder.push(second, &mut out).unwrap();
            let mut events: Vec<_> = out.into();
            events.extend(decoder.finish().unwrap());
            assert_eq!(events, whole, "{protocol:?} split at {at}: {text}");
        }
        assert_eq!(
            read_bytes(protocol, text.as_bytes(), 1).as_ref(),
            Ok(&whole),
            "byte by byte"
        );
    }
}

#[test]
fn a_reply_that_is_cut_is_whole_with_all_its_calls_or_none() {
    for (protocol, text) in replies() {
        let calls = |events: &[ModelEvent]| -> Vec<ToolCall> {
            let call = |event: &ModelEvent| match event {
                ModelEvent::Call(call) => Some(call.clone()),
                _ => None,
            };
            events.iter().filter_map(call).collect()
        };
        let whole = calls(&read_bytes(protocol, text.as_bytes(), usize::MAX).unwrap());
        // The last thing that must have come: the event with which the model ends its reply.
        let mark = match protocol {
            Protocol::Chat => "\"finish_reason\":\"tool_calls\"",
            Protocol::Responses => "\"usage\"",
            Protocol::Messages => "message_stop\"}",
            Protocol::Gemini => "\"finishReason\"",
            Protocol::Ollama => "\"done\":true",
        };
        let least = text.rfind(mark).unwrap();
        for at in 0..text.len() {
            let read = read_bytes(protocol, &text.as_bytes()[..at], usize::MAX);
            match read {
                Ok(events) => {
                    assert!(at > least, "{protocol:?} cut at {at} counts as whole: {text}");
                    assert_eq!(calls(&events), whole, "{protocol:?} cut at {at}");
                }
                Err(Fault::Cut | Fault::Malformed(_)) => {}
                Err(fault) => panic!("{protocol:?} cut at {at}: {fault:?}"),
            }
        }
    }
}

#[test]
fn a_reply_in_one_piece_is_read_in_every_protocol_although_a_stream_was_asked_for() {
    let arguments = json!({ "path": "x" });
    let chat = json!({ "object": "chat.completion", "choices": [{
        "index": 0,
        "message": { "role": "assistant", "content": "a", "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "read", "arguments": arguments.to_string() } },
        ] },
        "finish_reason": "tool_calls",
    }], "usage": { "prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16 } });
    let responses = json!({ "object": "response", "status": "completed", "output": [
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" }] },
        { "type": "function_call", "call_id": "c1", "name": "read", "arguments": arguments.to_string() },
    ], "usage": { "input_tokens": 9, "output_tokens": 7, "total_tokens": 16 } });
    let messages = json!({ "type": "message", "role": "assistant", "content": [
        { "type": "text", "text": "a" },
        { "type": "tool_use", "id": "c1", "name": "read", "input": arguments },
    ], "stop_reason": "tool_use", "usage": { "input_tokens": 9, "output_tokens": 7 } });
    let gemini = json!({ "candidates": [{ "content": { "parts": [
        { "text": "a" },
        { "functionCall": { "id": "c1", "name": "read", "args": arguments } },
    ] }, "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 7 } });
    // As it comes where the parameter that asks for events is lost: all of them in a list.
    let listed = json!([
        { "candidates": [{ "content": { "parts": [{ "text": "a" }] } }] },
        { "candidates": [{ "content": { "parts": [
            { "functionCall": { "id": "c1", "name": "read", "args": arguments } },
        ] }, "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 7 } },
    ]);
    let ollama = json!({ "message": { "role": "assistant", "content": "a", "tool_calls": [
        { "id": "c1", "function": { "name": "read", "arguments": arguments } },
    ] }, "done": true, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 7 });
    for (protocol, body) in [
        (Protocol::Chat, chat),
        (Protocol::Responses, responses),
        (Protocol::Messages, messages),
        (Protocol::Gemini, gemini),
        (Protocol::Gemini, listed),
        (Protocol::Ollama, ollama),
    ] {
        let pretty = serde_json::to_string_pretty(&body).unwrap();
        for text in [body.to_string(), format!("{body}\n"), pretty] {
            for at_a_time in [1, 7, usize::MAX] {
                let mut read = read_bytes(protocol, text.as_bytes(), at_a_time).unwrap();
                read.retain(|event| !matches!(event, ModelEvent::CallProgress(_)));
                // Where a reply reports it early, it is said twice.
                read.dedup();
                let usage = Usage {
                    input: 9,
                    output: 7,
                    ..Usage::default()
                };
                let said: Vec<_> = read
                    .iter()
                    .filter(|event| **event != ModelEvent::Usage(usage))
                    .cloned()
                    .collect();
                let call = ToolCall {
                    id: "c1".into(),
                    name: "read".into(),
                    arguments: arguments.clone(),
                };
                let expected = [
                    ModelEvent::Text("a".into()),
                    ModelEvent::Call(call),
                    ModelEvent::Finished(FinishReason::ToolCalls),
                ];
                assert_eq!(said, expected, "{protocol:?}: {text}");
                assert!(read.contains(&ModelEvent::Usage(usage)), "{protocol:?}: {text}");
            }
        }
        let mut cut = body.to_string();
        cut.pop();
        let cut = read_text(protocol, &cut);
        assert!(cut.is_err(), "{protocol:?}: {cut:?}");
    }
}

#[test]
fn case_124_an_error_in_place_of_a_stream_is_reported() {
    let error = json!({ "error": { "message": "No.", "code": 402 } });
    for protocol in [
        Protocol::Chat,
        Protocol::Responses,
        Protocol::Messages,
        Protocol::Gemini,
        Protocol::Ollama,
    ] {
        let list = json!([error]).to_string();
        for text in [error.to_string(), format!("{error}\n"), list] {
            assert_eq!(
                read_text(protocol, &text),
                Err(Fault::Reported(error.clone())),
                "{protocol:?}"
            );
        }
        for nothing in ["", "\n\n", "<html>", "{malformed json: <<<chaos>>>}"] {
            let read = read_text(protocol, nothing);
            assert!(
                matches!(read, Err(Fault::Malformed(_))),
                "{protocol:?} {nothing}: {read:?}"
            );
        }
    }
}

/// The calls, the text and the counts of a reply.
type Meant<'a> = (&'a [(&'a str, Value)], &'a str, Option<Usage>);

#[test]
fn recorded_replies_are_read_as_they_were_meant() {
    let usage = |input: u64, cached_input: u64, output: u64| {
        Some(Usage {
            input,
            cached_input,
            output,
            ..Usage::default()
        })
    };
    let read_file = [("read_file", json!({ "path": "src/main.rs" }))];
    let two = [
        ("run_shell", json!({ "command": "cargo run -q" })),
        ("run_shell", json!({ "command": "git diff --stat" })),
    ];
    let write = [(
        "write_file",
        json!({ "path": "src/main.rs", "content": "fn main() { println!(\"helo\"); }" }),
    )];
    let expected: [Meant; 9] = [
        (&two, "", usage(30, 0, 19)),
        (&read_file, "", usage(268, 267, 31)),
        (&two, "", None),
        (&two, "", usage(32, 0, 13)),
        (&write, "", usage(363, 335, 40)),
        (&read_file, "Let me look at the file.", usage(120, 0, 18)),
        (&read_file, "Let me look at the file.", None),
        (&two, "", None),
        (&read_file, "", usage(268, 267, 31)),
    ];
    for ((protocol, recorded), (calls, text, usage)) in recorded().into_iter().zip(expected) {
        let events = read_bytes(protocol, body(recorded).as_bytes(), usize::MAX).unwrap();
        let mut read = (Vec::new(), String::new(), None);
        for event in &events {
            match event {
                ModelEvent::Call(call) => read.0.push((call.name.as_str(), call.arguments.clone())),
                ModelEvent::Text(more) => read.1.push_str(more),
                ModelEvent::Usage(usage) => read.2 = Some(*usage),
                _ => {}
            }
        }
        assert_eq!(
            (read.0.as_slice(), read.1.as_str(), read.2),
            (calls, text, usage),
            "{protocol:?}"
        );
        assert_eq!(
            events.last(),
            Some(&ModelEvent::Finished(FinishReason::ToolCalls)),
            "{protocol:?}"
        );
    }
}
