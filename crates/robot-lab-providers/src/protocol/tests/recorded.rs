//! Counts of recorded replies, exactly as they stand in the raw text.

use super::{OPTIONS, bare_request, body, read_all};
use crate::protocol::Protocol;
use robot_lab::{ModelEvent, Usage};

/// Input, cached input, cache writes, output, reasoning.
type Counts = Option<[u64; 5]>;

macro_rules! recorded {
    ($($protocol:ident $file:literal $counts:expr;)*) => {
        [$((Protocol::$protocol, $file, include_str!(concat!("../../../tests/fixtures/recorded/", $file, ".txt")), $counts)),*]
    };
}

fn usage_of(protocol: Protocol, text: &str) -> Counts {
    let events = read_all(
        protocol.decoder(&bare_request(), &OPTIONS),
        text.as_bytes(),
        usize::MAX,
    );
    let counts = events.unwrap().into_iter().rev().find_map(|event| match event {
        ModelEvent::Usage(usage) => Some(usage),
        _ => None,
    })?;
    let Usage {
        input,
        cached_input,
        cache_write,
        output,
        reasoning,
        estimated,
    } = counts;
    assert!(!estimated);
    Some([input, cached_input, cache_write, output, reasoning])
}

#[test]
fn case_117_what_recorded_replies_cost_is_exact() {
    let recorded: [(Protocol, &str, &str, Counts); 34] = recorded![
        Chat "chat-aimock-0" Some([120, 0, 0, 18, 0]);
        Chat "chat-aimock-1" Some([30, 0, 0, 21, 0]);
        Chat "chat-aimock-2" Some([30, 0, 0, 19, 0]);
        Chat "chat-aimock-3" Some([400, 0, 0, 12, 0]);
        Chat "chat-llmock-0" Some([13, 0, 0, 8, 0]);
        Chat "chat-llmock-1" Some([24, 0, 0, 18, 0]);
        Chat "chat-llmock-2" Some([24, 0, 0, 13, 0]);
        Chat "chat-llmock-3" Some([26, 0, 0, 9, 0]);
        Chat "chat-llama-text" Some([36, 35, 0, 3, 0]);
        Chat "chat-llama-result" Some([320, 271, 0, 23, 0]);
        Chat "chat-llama-whole-length" Some([39, 24, 0, 5, 0]);
        Messages "messages-aimock-0" Some([120, 0, 0, 18, 0]);
        // It counts nothing here, so the cost is estimated.
        Messages "messages-aimock-1" None;
        Messages "messages-aimock-2" None;
        Messages "messages-aimock-3" Some([400, 0, 0, 12, 0]);
        Messages "messages-aimock-whole" Some([120, 0, 0, 18, 0]);
        Messages "messages-llmock-0" Some([13, 0, 0, 8, 0]);
        Messages "messages-llmock-1" Some([24, 0, 0, 18, 0]);
        Messages "messages-llmock-2" Some([32, 0, 0, 13, 0]);
        Messages "messages-llmock-3" Some([35, 0, 0, 9, 0]);
        Messages "messages-llmock-whole" Some([32, 0, 0, 13, 0]);
        // Cached tokens are beside the others: 1 and 35.
        Messages "messages-llama-text" Some([36, 35, 0, 3, 0]);
        Responses "responses-aimock-0" Some([120, 0, 0, 18, 0]);
        Responses "responses-aimock-1" None;
        Responses "responses-aimock-2" Some([400, 0, 0, 12, 0]);
        Responses "responses-aimock-whole" None;
        Responses "responses-llmock-0" Some([13, 0, 0, 8, 0]);
        Responses "responses-llmock-1" Some([24, 0, 0, 18, 0]);
        Responses "responses-llmock-2" Some([24, 0, 0, 13, 0]);
        Responses "responses-llmock-3" Some([26, 0, 0, 9, 0]);
        Responses "responses-llmock-whole" Some([24, 0, 0, 13, 0]);
        Responses "responses-llama-text" Some([36, 35, 0, 3, 0]);
        Responses "responses-llama-call" Some([268, 267, 0, 31, 0]);
        Gemini "gemini-aimock-whole" Some([120, 0, 0, 18, 0]);
    ];
    let mut sum = [0_u64; 5];
    for (protocol, name, text, expected) in recorded {
        let counts = usage_of(protocol, body(text));
        assert_eq!(counts, expected, "{name}");
        for (sum, count) in sum.iter_mut().zip(counts.unwrap_or_default()) {
            *sum += count;
        }
    }
    assert_eq!(sum, [2_929, 667, 0, 404, 0]);
}

/// Replies of servers that count in ways of their own, as their documents show them.
#[test]
fn case_117_counts_beside_and_within_are_told_apart_by_their_total() {
    let chat = |usage: &str| {
        let event = format!(
            r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        usage_of(Protocol::Chat, &format!("data: {event}\n\n"))
    };
    for (usage, expected) in [
        // DeepSeek: hits and misses are the prompt.
        (
            r#"{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,"prompt_cache_hit_tokens":896,"prompt_cache_miss_tokens":104,"completion_tokens_details":{"reasoning_tokens":30}}"#,
            [1000, 896, 0, 50, 30],
        ),
        // OpenRouter: within, with writes.
        (
            r#"{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,"prompt_tokens_details":{"cached_tokens":600,"cache_write_tokens":200},"cost":0.01}"#,
            [1000, 600, 200, 50, 0],
        ),
        // A gateway that takes over Anthropic's counts: beside.
        (
            r#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":1050,"cache_read_input_tokens":700,"cache_creation_input_tokens":200}"#,
            [1000, 700, 200, 50, 0],
        ),
        // The same without a total: a part cannot be larger than the whole.
        (
            r#"{"prompt_tokens":100,"completion_tokens":50,"cache_read_input_tokens":900}"#,
            [1000, 900, 0, 50, 0],
        ),
        // xAI: the prompt's within, reasoning beside.
        (
            r#"{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1050,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":30}}"#,
            [1000, 5, 0, 50, 30],
        ),
        // All within, and no total.
        (
            r#"{"prompt_tokens":1000,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":30}}"#,
            [1000, 5, 0, 50, 30],
        ),
    ] {
        assert_eq!(chat(usage), Some(expected), "{usage}");
    }
}
