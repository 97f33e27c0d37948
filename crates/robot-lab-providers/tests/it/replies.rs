//! What is sent, and what is made of replies that come, whole or not.

use crate::support::{EVENTS, RawServer, answer, model, request, send};
use futures::StreamExt as _;
use robot_lab::{
    AssistantMessage, AssistantPart, FinishReason, Message, Model as _, ModelErrorKind, ModelEvent,
    ModelRequest, ToolCall, ToolPart, ToolResult, ToolSpec, Usage,
};
use robot_lab_providers::{HttpModel, ModelConfig};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Call, ModelServer, Reply};

#[tokio::test]
async fn a_text_comes_in_pieces_with_its_usage() {
    let reply = Reply::text("Hello there, friend.")
        .with_reasoning("They greet.")
        .usage(120, 30)
        .cached(100);
    let outcome = answer(reply).await.whole();
    assert_eq!(
        (outcome.text().as_str(), outcome.reasoning().as_str()),
        ("Hello there, friend.", "They greet.")
    );
    assert!(
        outcome
            .events
            .iter()
            .filter(|event| matches!(event, ModelEvent::Text(_)))
            .count()
            > 1
    );
    let usage = Usage {
        input: 120,
        cached_input: 100,
        output: 30,
        ..Usage::default()
    };
    assert_eq!(outcome.usage(), Some(usage));
    assert_eq!(
        outcome.events.last(),
        Some(&ModelEvent::Finished(FinishReason::Stop))
    );
}

#[tokio::test]
async fn interleaved_calls_come_whole_and_in_order_at_the_end() {
    let calls = [
        Call::new("read", json!({ "path": "a.txt", "lines": [1, 2, 3] })).id("one"),
        Call::new("run", json!({ "command": "cargo test --all" })).id("two"),
        Call::raw("odd", "{\"path\": \"a.txt\",}").id("three"),
        Call::raw("none", "").id("four"),
    ];
    let outcome = answer(Reply::calls(calls).with_text("Look:").interleaved())
        .await
        .whole();
    let calls: Vec<_> = outcome
        .calls()
        .iter()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.clone()))
        .collect();
    let expected = [
        ("one", "read", json!({ "path": "a.txt", "lines": [1, 2, 3] })),
        ("two", "run", json!({ "command": "cargo test --all" })),
        ("three", "odd", json!("{\"path\": \"a.txt\",}")),
        ("four", "none", json!({})),
    ];
    assert_eq!(calls, expected);
    assert_eq!(
        outcome.events.last(),
        Some(&ModelEvent::Finished(FinishReason::ToolCalls))
    );

    let progress: usize = outcome
        .events
        .iter()
        .map(|event| {
            if let ModelEvent::CallProgress(bytes) = event {
                *bytes
            } else {
                0
            }
        })
        .sum();
    let written = "read".len() + "run".len() + "odd".len() + "none".len();
    let arguments: usize = expected
        .iter()
        .map(|(_, _, a)| a.as_str().map_or(a.to_string().len(), str::len))
        .sum();
    assert_eq!(progress, written + arguments - "{}".len());
    let first_call = outcome
        .events
        .iter()
        .position(|event| matches!(event, ModelEvent::Call(_)));
    let last_progress = outcome
        .events
        .iter()
        .rposition(|event| matches!(event, ModelEvent::CallProgress(_)));
    assert!(last_progress < first_call);
}

#[tokio::test]
async fn missing_usage_is_left_to_be_estimated() {
    let outcome = answer(Reply::text("hi").no_usage()).await.whole();
    assert_eq!(outcome.usage(), None);
}

#[tokio::test]
async fn an_empty_reply_is_a_reply() {
    let outcome = answer(Reply::text("")).await.whole();
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    assert_eq!(
        outcome.events,
        [ModelEvent::Usage(usage), ModelEvent::Finished(FinishReason::Stop)]
    );
}

#[tokio::test]
async fn the_reason_of_the_end_is_handed_on() {
    for (reason, expected) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
        ("recitation", FinishReason::Other("recitation".into())),
    ] {
        let cut = Call::raw("write", "{\"path\": \"a\", \"content\": \"half");
        let outcome = answer(Reply::calls([cut]).finish(reason)).await.whole();
        assert_eq!(
            outcome.calls()[0].arguments,
            json!("{\"path\": \"a\", \"content\": \"half")
        );
        assert_eq!(outcome.events.last(), Some(&ModelEvent::Finished(expected)));
    }
}

#[tokio::test]
async fn case_154_a_call_of_two_megabytes_is_read_in_time() {
    let content = "0123456789abcdef".repeat(128 * 1024);
    let outcome = answer(Reply::calls([Call::new("write", json!({ "content": content }))]))
        .await
        .whole();
    assert_eq!(
        outcome.calls()[0].arguments["content"].as_str().unwrap().len(),
        content.len()
    );
}

/// Wherever a reply with calls ends too early, however it ends: an error, and nothing of a call.
#[tokio::test]
async fn a_reply_that_breaks_off_gives_no_call() {
    let reply = || {
        let calls = [
            Call::new("write", json!({ "path": "a" })),
            Call::new("run", json!({ "command": "rm a" })),
        ];
        Reply::calls(calls).with_text("I will.")
    };
    let whole = answer(reply()).await.whole();
    // Of the events, the finish reason, the usage and `[DONE]` are the last three.
    let deltas = whole
        .events
        .iter()
        .filter(|e| matches!(e, ModelEvent::Text(_) | ModelEvent::CallProgress(_)))
        .count();
    let least = deltas + 1;
    for events in 1..=least {
        let truncated = answer(reply().truncate_after(events)).await;
        assert!(!truncated.refused, "{events}");
        assert_eq!(
            truncated.broken().kind,
            ModelErrorKind::MalformedReply,
            "{events}"
        );
        let cut = answer(reply().cut_after(events)).await.broken();
        assert!(matches!(cut.kind, ModelErrorKind::Network), "{events}: {cut:?}");
    }
}

#[tokio::test]
async fn after_the_end_of_the_reply_nothing_is_missed() {
    // Without `[DONE]`, and broken before it: the model had ended its reply.
    assert_eq!(
        answer(Reply::text("hi").truncate_after(100)).await.whole().text(),
        "hi"
    );
    let end = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 10000\r\n\r\n";
    let server = RawServer::writing(format!("{head}{end}").into_bytes(), usize::MAX);
    assert_eq!(
        send(&model(server.base_url.clone()), request())
            .await
            .whole()
            .text(),
        "hi"
    );
}

#[tokio::test]
async fn nonsense_and_errors_within_a_reply_end_it() {
    let with = |data: &str| Reply::calls([Call::new("run", json!({}))]).raw_event(data);
    for (data, kind) in [
        (
            "{\"choices\":[{\"index\":0,\"delta\":{\"tool_",
            ModelErrorKind::MalformedReply,
        ),
        ("nonsense", ModelErrorKind::MalformedReply),
        (
            "{\"error\":{\"message\":\"Busy.\",\"type\":\"server_error\"}}",
            ModelErrorKind::Overloaded,
        ),
        (
            "{\"error\":{\"message\":\"Busy.\",\"code\":429}}",
            ModelErrorKind::RateLimited { retry_after: None },
        ),
    ] {
        let outcome = answer(with(data)).await;
        assert!(!outcome.refused);
        assert_eq!(outcome.broken().kind, kind, "{data}");
    }
    for harmless in ["{\"error\":null,\"choices\":[]}", "{}", "{\"object\":\"ping\"}"] {
        assert_eq!(
            answer(with(harmless)).await.whole().calls().len(),
            1,
            "{harmless}"
        );
    }
}

#[tokio::test]
async fn dropping_a_reply_ends_the_request() {
    let delta = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let server = RawServer::holding(format!("{EVENTS}{delta}").into_bytes());
    let mut stream = model(server.base_url.clone()).stream(request()).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok(ModelEvent::Text("a".into()))));
    drop(stream);
    tokio::task::spawn_blocking(move || server.wait_until_closed())
        .await
        .unwrap();
}

#[tokio::test]
async fn the_request_has_all_that_the_model_should_see() {
    let server = ModelServer::start([Reply::text("done")]).require_key("sk-secret-key");
    let config = ModelConfig {
        base_url: Some(server.base_url()),
        api_key: Some("sk-secret-key".into()),
        headers: vec![("X-Title".into(), "tests".into())],
        // Neither is a setting: a model may be named so.
        ..ModelConfig::new("openai", "vendor::model-high")
    };
    let model = HttpModel::new(config).unwrap();
    let call = |id: &str, arguments: Value| {
        AssistantPart::Call(ToolCall {
            id: id.into(),
            name: "read".into(),
            arguments,
        })
    };
    let parts = vec![
        AssistantPart::Reasoning { text: "hm".into() },
        AssistantPart::Text {
            text: "Reading.".into(),
        },
        AssistantPart::Opaque {
            data: json!({ "reasoning_details": [{ "type": "x", "data": "=" }] }),
        },
        call("a", json!({ "path": "x" })),
        call("b", json!("{\"path\": ")),
    ];
    let result = |id: &str| {
        Message::Tool(ToolResult {
            call_id: id.into(),
            parts: vec![ToolPart::text("1")],
            ok: true,
        })
    };
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let request = ModelRequest {
        system: "be brief".into(),
        messages: vec![
            Message::User { text: "go".into() },
            Message::Assistant(AssistantMessage { parts }),
            result("a"),
            result("b"),
        ],
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads.".into(),
            parameters: parameters.clone(),
        }],
        max_output_tokens: Some(99),
        temperature: None,
    };
    send(&model, request).await.whole();

    let seen = server.requests().remove(0);
    assert_eq!(seen.header("x-title"), Some("tests"));
    let expected = json!({
        "model": "vendor::model-high",
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": 99,
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "go" },
            {
                "role": "assistant",
                "content": "Reading.",
                "reasoning_details": [{ "type": "x", "data": "=" }],
                "tool_calls": [
                    { "id": "a", "type": "function",
                      "function": { "name": "read", "arguments": "{\"path\":\"x\"}" } },
                    { "id": "b", "type": "function", "function": { "name": "read", "arguments": "{\"invalid\":\"{\\\"path\\\": \"}" } },
                ],
            },
            { "role": "tool", "tool_call_id": "a", "content": "1" },
            { "role": "tool", "tool_call_id": "b", "content": "1" },
        ],
        "tools": [{ "type": "function", "function": {
            "name": "read", "description": "Reads.", "parameters": parameters,
        } }],
    });
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn a_server_of_ones_own_needs_no_key_and_any_way_to_write_its_address_will_do() {
    let server = ModelServer::answering(|_| Reply::text("hi"));
    let bare = server.base_url().trim_end_matches("/v1/").to_owned();
    for suffix in ["", "/", "/v1", "/v1/", "/v1/chat/completions"] {
        send(&model(format!("{bare}{suffix}")), request()).await.whole();
    }
    for seen in server.requests() {
        assert_eq!(seen.header("authorization"), None);
        assert!(seen.header("user-agent").unwrap().starts_with("robot-lab/"));
    }
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn a_header_of_the_user_replaces_the_own_one() {
    let server = ModelServer::start([Reply::text("hi")]).require_key("other");
    let config = ModelConfig {
        base_url: Some(server.base_url()),
        headers: vec![("authorization".into(), "Bearer other".into())],
        ..ModelConfig::new("openai", "m")
    };
    send(&HttpModel::new(config).unwrap(), request()).await.whole();
    let seen = server.requests().remove(0);
    assert_eq!(
        seen.headers
            .iter()
            .filter(|(name, _)| name == "authorization")
            .count(),
        1
    );
}

#[tokio::test]
async fn keep_alive_comments_are_no_content() {
    let reply = Reply::text("hi").pings(5, Duration::from_millis(5));
    let outcome = answer(reply).await.whole();
    assert_eq!(outcome.events.len(), 3, "{outcome:?}");
}
