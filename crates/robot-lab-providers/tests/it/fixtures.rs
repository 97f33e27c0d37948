//! Answers as they were received from servers that others wrote.

use crate::support::{Outcome, RawServer, model_of, request, send};
use robot_lab::{FinishReason, ModelErrorKind, ModelEvent, Usage};
use serde_json::json;
use std::time::Duration;

/// Plays a recorded answer. The head is sent without its framing: the body was recorded without it, and ends with
/// the connection; where the connection broke off, the framing says that more was to come.
async fn replay(recorded: &str, broke_off: bool) -> Outcome {
    replay_to("openai", recorded, broke_off).await
}

/// The same to a client of another provider.
async fn replay_to(provider: &str, recorded: &str, broke_off: bool) -> Outcome {
    let (head, body) = recorded.split_once("\n\n").unwrap();
    let framing = ["transfer-encoding", "content-length", "connection", "keep-alive"];
    let is_framing = |line: &&str| {
        framing
            .iter()
            .any(|name| line.to_ascii_lowercase().starts_with(name))
    };
    let mut head: Vec<String> = head
        .lines()
        .filter(|line| !is_framing(line))
        .map(str::to_owned)
        .collect();
    let body = body.trim_end_matches('\n');
    let length = body.len() + "\n\n".len();
    head.push("connection: close".into());
    head.push(format!(
        "content-length: {}",
        if broke_off { length + 1 } else { length }
    ));
    let answer = format!("{}\r\n\r\n{body}\n\n", head.join("\r\n"));
    let server = RawServer::writing(answer.into_bytes(), usize::MAX);
    send(&model_of(provider, server.base_url.clone()), request()).await
}

fn call_of(outcome: &Outcome) -> Vec<(String, serde_json::Value)> {
    outcome
        .calls()
        .into_iter()
        .map(|call| (call.name.clone(), call.arguments.clone()))
        .collect()
}

#[tokio::test]
async fn a_call_of_llama_server() {
    let outcome = replay(include_str!("../fixtures/llama-server-tool-stream.txt"), false)
        .await
        .whole();
    assert_eq!(
        call_of(&outcome),
        [("read_file".into(), json!({ "path": "src/main.rs" }))]
    );
    assert_eq!(outcome.calls()[0].id, "CTv74ffcXzivcUGFondS9g642pL35BMw");
    let usage = Usage {
        input: 268,
        cached_input: 267,
        output: 31,
        ..Usage::default()
    };
    assert_eq!(outcome.usage(), Some(usage));
    assert_eq!(
        outcome.events.last(),
        Some(&ModelEvent::Finished(FinishReason::ToolCalls))
    );
}

#[tokio::test]
async fn a_refusal_of_llama_server() {
    let outcome = replay(include_str!("../fixtures/llama-server-overflow.txt"), false).await;
    assert!(outcome.refused);
    let error = outcome.broken();
    assert_eq!(error.kind, ModelErrorKind::ContextLength);
    let said =
        "(400): request (9030 tokens) exceeds the available context size (8192 tokens), try increasing it";
    assert!(error.message.ends_with(said), "{}", error.message);
}

#[tokio::test]
async fn two_calls_of_aimock() {
    let outcome = replay(include_str!("../fixtures/aimock-parallel-calls.txt"), false)
        .await
        .whole();
    let expected = [
        ("run_shell".into(), json!({ "command": "cargo run -q" })),
        ("run_shell".into(), json!({ "command": "git diff --stat" })),
    ];
    assert_eq!(call_of(&outcome), expected);
    assert_eq!(
        outcome.usage(),
        Some(Usage {
            input: 30,
            output: 19,
            ..Usage::default()
        })
    );
}

#[tokio::test]
async fn a_text_of_aimock() {
    let outcome = replay(include_str!("../fixtures/aimock-text.txt"), false)
        .await
        .whole();
    assert_eq!(outcome.text(), "Answer after thinking.");
    assert_eq!(
        outcome.events.last(),
        Some(&ModelEvent::Finished(FinishReason::Stop))
    );
}

#[tokio::test]
async fn a_call_of_llmock_that_is_cut() {
    for (broke_off, kind) in [
        (true, ModelErrorKind::Network),
        (false, ModelErrorKind::MalformedReply),
    ] {
        let outcome = replay(include_str!("../fixtures/llmock-cut-call.txt"), broke_off).await;
        assert!(
            outcome
                .events
                .contains(&ModelEvent::CallProgress("read_file".len()))
        );
        assert_eq!(outcome.broken().kind, kind);
    }
}

#[tokio::test]
async fn a_text_of_llmock_with_a_malformed_event() {
    let outcome = replay(include_str!("../fixtures/llmock-malformed-event.txt"), false).await;
    assert_eq!(outcome.text(), "Hello! gpt-4o ");
    assert_eq!(outcome.broken().kind, ModelErrorKind::MalformedReply);
}

#[tokio::test]
async fn refusals_of_llmock_in_the_form_of_messages() {
    let limited = ModelErrorKind::RateLimited {
        retry_after: Some(Duration::from_secs(2)),
    };
    for (recorded, kind) in [
        (include_str!("../fixtures/messages-llmock-429.txt"), limited),
        (
            include_str!("../fixtures/messages-llmock-529.txt"),
            ModelErrorKind::Overloaded,
        ),
    ] {
        let outcome = replay_to("anthropic", recorded, false).await;
        assert!(outcome.refused);
        assert_eq!(outcome.broken().kind, kind);
    }
}

#[tokio::test]
async fn a_message_of_llmock_with_a_call_that_is_cut() {
    let recorded = include_str!("../fixtures/messages-llmock-tool-then-disconnect.txt");
    for (broke_off, kind) in [
        (true, ModelErrorKind::Network),
        (false, ModelErrorKind::MalformedReply),
    ] {
        let outcome = replay_to("anthropic", recorded, broke_off).await;
        let begun = ModelEvent::CallProgress("read_file".len());
        assert!(outcome.events.contains(&begun));
        let usage = Usage {
            input: 4,
            output: 1,
            ..Usage::default()
        };
        assert_eq!(outcome.usage(), Some(usage), "what it has cost is known");
        assert_eq!(outcome.broken().kind, kind);
    }
}

#[tokio::test]
async fn a_message_of_llmock_with_a_malformed_event() {
    let recorded = include_str!("../fixtures/messages-llmock-malformed.txt");
    let outcome = replay_to("anthropic", recorded, false).await;
    assert_eq!(outcome.broken().kind, ModelErrorKind::MalformedReply);
}
