//! Scripts, played through the same interface as any other model.

use crate::support::{request, send};
use robot_lab::model::ReplyBuilder;
use robot_lab::{Message, Model as _, ModelErrorKind, ModelEvent, ModelRequest, ToolPart, ToolResult};
use robot_lab_providers::ScriptModel;
use std::time::Duration;
use tokio::time::Instant;

fn saying(text: &str) -> ModelRequest {
    ModelRequest {
        messages: vec![Message::User { text: text.into() }],
        ..ModelRequest::default()
    }
}

#[tokio::test(start_paused = true)]
async fn turns_are_played_in_order_and_then_it_is_over() {
    let model = ScriptModel::from_yaml(
        r#"
        turns:
          - text: "Reading the tests first."
            calls:
              - tool: read
                args: { path: test.sh }
              - tool: broken
                args: '{"path": '
              - tool: bare
            usage: { input: 120, output: 30, cached_input: 100 }
            delay_ms: 150
          - error: { kind: overloaded, message: "try later", retry_after: 2 }
            delay_ms: 20
          - cut: true
            text: "half a"
            calls: [{ tool: read }]
          - {}
        "#,
    )
    .unwrap();
    assert_eq!(model.id().to_string(), "script/script");

    let started = Instant::now();
    let first = send(&model, request()).await.whole();
    assert_eq!(started.elapsed(), Duration::from_millis(150));
    assert_eq!(first.text(), "Reading the tests first.");
    assert!(
        first
            .events
            .iter()
            .filter(|event| matches!(event, ModelEvent::Text(_)))
            .count()
            > 1
    );
    let calls: Vec<_> = first
        .calls()
        .iter()
        .map(|call| call.arguments.to_string())
        .collect();
    assert_eq!(calls, [r#"{"path":"test.sh"}"#, r#""{\"path\": ""#, "{}"]);
    assert_eq!(
        first
            .usage()
            .map(|usage| (usage.input, usage.cached_input, usage.output)),
        Some((120, 100, 30))
    );

    let second = send(&model, request()).await;
    assert!(second.refused && started.elapsed() == Duration::from_millis(170));
    let error = second.broken();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ModelErrorKind::Overloaded, "try later")
    );

    let third = send(&model, request()).await;
    assert_eq!((third.text().as_str(), third.refused), ("half a", false));
    assert_eq!(third.broken().kind, ModelErrorKind::MalformedReply);

    let fourth = send(&model, request()).await.whole();
    assert_eq!((fourth.events.len(), fourth.usage()), (1, None));

    let over = send(&model, request()).await.broken();
    assert_eq!(over.kind, ModelErrorKind::OffScript);
    assert_eq!(
        over.message,
        "the script is used up after 4 turns; add turns to it"
    );
}

#[tokio::test]
async fn a_turn_without_usage_is_estimated_by_its_lengths() {
    let model = ScriptModel::from_yaml("turns: [{ text: '12345678', calls: [{ tool: abcd }] }]").unwrap();
    let mut reply = ReplyBuilder::new(7);
    for event in send(&model, request()).await.whole().events {
        reply.push(event);
    }
    let usage = reply.finish().unwrap().usage;
    assert_eq!((usage.input, usage.output, usage.estimated), (7, 4, true));
}

#[tokio::test]
async fn a_script_does_not_drift_unnoticed() {
    let model =
        ScriptModel::from_yaml("turns: [{ expect: tests, text: a }, { expect: '2 failed', text: b }]")
            .unwrap();
    for _ in 0..2 {
        let error = send(&model, saying("write the docs")).await.broken();
        assert_eq!(error.kind, ModelErrorKind::OffScript);
        let expected = "turn 1 of the script expects \"tests\" in the last message, which is \"write the docs\"; \
                        correct the script, or what leads to it";
        assert_eq!(error.message, expected);
    }
    assert_eq!(send(&model, saying("mend the tests")).await.whole().text(), "a");

    let mut answered = saying("mend the tests");
    let parts = vec![ToolPart::text("1 passed"), ToolPart::text("2 failed")];
    answered.messages.push(Message::Tool(ToolResult {
        call_id: "x".into(),
        parts,
        ok: true,
    }));
    assert_eq!(send(&model, answered).await.whole().text(), "b");
}

#[tokio::test]
async fn every_kind_of_error_has_its_name() {
    for kind in [
        "auth",
        "billing",
        "model_not_found",
        "overloaded",
        "timeout",
        "context_length",
        "content_filter",
        "bad_request",
        "malformed_reply",
        "network",
        "cancelled",
        "over_budget",
    ] {
        let model = ScriptModel::from_yaml(&format!("turns: [{{ error: {{ kind: {kind} }} }}]")).unwrap();
        let error = send(&model, request()).await.broken();
        assert_eq!(serde_json::to_value(&error.kind).unwrap(), kind);
        assert_eq!(error.message, "turn 1 of the script fails");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_at_the_same_time_get_a_turn_each() {
    let turns: String = (0..50).map(|n| format!("  - text: t{n}\n")).collect();
    let model = std::sync::Arc::new(ScriptModel::from_yaml(&format!("turns:\n{turns}")).unwrap());
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let model = model.clone();
            tokio::spawn(async move { send(model.as_ref(), request()).await.whole().text() })
        })
        .collect();
    let mut texts = Vec::new();
    for task in tasks {
        texts.push(task.await.unwrap());
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 50);
}
