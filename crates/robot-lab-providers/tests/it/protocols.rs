//! What holds of every provider's protocol over a connection: whole replies, cut ones, refusals, headers.

use crate::support::{Outcome, model_of, request, send};
use futures::StreamExt as _;
use robot_lab::{FinishReason, Model as _, ModelErrorKind as Kind, ModelEvent, Usage};
use robot_lab_providers::{Exchange, ExchangeObserver, HttpModel, ModelConfig};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{Call, ModelServer, Reply};

const PROVIDERS: [&str; 5] = ["openai", "openai-responses", "anthropic", "gemini", "ollama"];
const TEXT: &str = "caf\u{e9} 👩‍🚀, naïve — ½";

/// A reply with all that a reply can have.
fn full() -> Reply {
    let calls = [
        Call::new("read", json!({ "path": TEXT, "lines": [1, 2] })).id("one"),
        Call::new("run", json!({ "command": "ls" })).id("two"),
    ];
    Reply::calls(calls)
        .with_text(TEXT)
        .with_reasoning("They greet.")
        .interleaved()
        .usage(120, 30)
}

async fn answer(provider: &str, reply: Reply) -> Outcome {
    let server = ModelServer::start([reply]);
    send(&model_of(provider, server.root_url()), request()).await
}

#[tokio::test]
async fn a_whole_reply_is_read_in_any_pieces() {
    for provider in PROVIDERS {
        for bytes in [1, 7, 1_000_000] {
            let outcome = answer(provider, full().chunk_bytes(bytes)).await.whole();
            assert_eq!(outcome.text(), TEXT, "{provider}");
            assert_eq!(outcome.reasoning(), "They greet.", "{provider}");
            let calls: Vec<_> = outcome
                .calls()
                .iter()
                .map(|call| (call.name.as_str(), call.arguments.clone()))
                .collect();
            let expected = [
                ("read", json!({ "path": TEXT, "lines": [1, 2] })),
                ("run", json!({ "command": "ls" })),
            ];
            assert_eq!(calls, expected, "{provider}");
            let usage = outcome.usage().unwrap();
            assert_eq!((usage.input, usage.output), (120, 30), "{provider}");
            let finished = ModelEvent::Finished(FinishReason::ToolCalls);
            assert_eq!(outcome.events.last(), Some(&finished), "{provider}");
        }
    }
}

#[tokio::test]
async fn case_117_every_kind_of_input_counts_as_the_provider_means_it() {
    for provider in ["openai", "openai-responses", "anthropic", "gemini"] {
        let outcome = answer(provider, Reply::text("hi").usage(181_000, 5).cached(180_000)).await;
        let usage = Usage {
            input: 181_000,
            cached_input: 180_000,
            output: 5,
            ..Usage::default()
        };
        assert_eq!(outcome.whole().usage(), Some(usage), "{provider}");
    }
}

#[tokio::test]
async fn a_reply_that_breaks_off_gives_no_call() {
    for provider in PROVIDERS {
        for events in 1..=4 {
            let outcome = answer(provider, full().truncate_after(events)).await;
            assert!(!outcome.refused, "{provider} {events}");
            assert_eq!(outcome.broken().kind, Kind::MalformedReply, "{provider} {events}");
            let outcome = answer(provider, full().cut_after(events)).await;
            assert_eq!(outcome.broken().kind, Kind::Network, "{provider} {events}");
        }
    }
}

#[tokio::test]
async fn errors_within_a_reply_are_classified_by_their_body() {
    for (provider, data) in [
        (
            "openai",
            json!({ "error": { "message": "Busy.", "type": "server_error" } }),
        ),
        (
            "openai-responses",
            json!({ "type": "error", "code": "server_error", "message": "Busy.", "param": null }),
        ),
        (
            "anthropic",
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Busy." } }),
        ),
        (
            "gemini",
            json!({ "error": { "code": 503, "message": "Busy.", "status": "UNAVAILABLE" } }),
        ),
        ("ollama", json!({ "error": "Busy." })),
    ] {
        let outcome = answer(provider, full().raw_event(data.to_string())).await;
        let error = outcome.broken();
        assert_eq!(error.kind, Kind::Overloaded, "{provider}");
        assert!(error.message.contains("Busy."), "{provider}: {}", error.message);
    }
}

#[tokio::test]
async fn case_126_bytes_that_keep_a_connection_alive_are_no_content() {
    for provider in PROVIDERS {
        let reply = Reply::text("hi").no_usage().pings(3, Duration::from_millis(1));
        let expected = [
            ModelEvent::Text("hi".into()),
            ModelEvent::Finished(FinishReason::Stop),
        ];
        assert_eq!(
            answer(provider, reply).await.whole().events,
            expected,
            "{provider}"
        );
    }
}

#[tokio::test]
async fn the_key_is_in_its_header_and_refusals_have_their_kind() {
    for provider in PROVIDERS {
        let limited = Reply::status(429).header("retry-after", "3");
        let server =
            ModelServer::start([Reply::text("hi"), Reply::status(529), limited]).require_key("sk-right-key");
        let with = |key: &str| {
            let config = ModelConfig {
                base_url: Some(server.root_url()),
                api_key: Some(key.into()),
                ..ModelConfig::new(provider, "m")
            };
            HttpModel::new(config).unwrap()
        };
        send(&with("sk-right-key"), request()).await.whole();
        let kind = |outcome: Outcome| {
            assert!(outcome.refused, "{provider}");
            outcome.broken().kind
        };
        assert_eq!(
            kind(send(&with("sk-right-key"), request()).await),
            Kind::Overloaded
        );
        let waits = Kind::RateLimited {
            retry_after: Some(Duration::from_secs(3)),
        };
        assert_eq!(kind(send(&with("sk-right-key"), request()).await), waits);
        assert_eq!(
            kind(send(&with("sk-wrong-key"), request()).await),
            Kind::Auth,
            "{provider}"
        );
        let seen = server.requests();
        let holders = |key: &str| {
            seen.iter()
                .flat_map(|one| &one.headers)
                .filter(|(_, value)| value.contains(key))
                .count()
        };
        assert_eq!(
            (holders("sk-right-key"), holders("sk-wrong-key")),
            (3, 1),
            "{provider}: in one header each"
        );
    }
}

#[derive(Default)]
struct Seen(Mutex<Vec<Exchange>>);

impl ExchangeObserver for Seen {
    fn exchange(&self, exchange: Exchange) {
        self.0.lock().unwrap().push(exchange);
    }
}

#[tokio::test]
async fn an_observer_sees_every_exchange_however_it_ends_and_no_key() {
    let seen = Arc::new(Seen::default());
    let server = ModelServer::start([
        Reply::text("hi").raw_event("{\"your key\":\"sk-very-secret\"}"),
        Reply::status(400).raw_body("sk-very-secret is wrong"),
        Reply::text("a b c d e f g h i j k l").stall_after(3, Duration::from_secs(60)),
    ]);
    let config = ModelConfig {
        base_url: Some(format!("{}?key=sk-very-secret", server.base_url())),
        api_key: Some("sk-very-secret".into()),
        ..ModelConfig::new("openai", "m")
    };
    let model = HttpModel::new(config).unwrap().observed_by(seen.clone());
    send(&model, request()).await.whole();
    send(&model, request()).await.broken();
    let mut dropped = model.stream(request()).await.unwrap();
    dropped.next().await.unwrap().unwrap();
    drop(dropped);
    let address = format!("{}chat/completions", server.base_url());
    // What is dropped ends in a task of its own.
    let half = |number: u64| 2 * number as usize;
    for _ in 0..2_000 {
        if seen.0.lock().unwrap().len() >= half(3) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seen = seen.0.lock().unwrap();
    assert_eq!(seen.len(), half(3), "{seen:?}");
    assert!(!format!("{seen:?}").contains("sk-very"), "{seen:?}");
    for (index, exchange) in seen.iter().enumerate() {
        let expected = index as u64 / 2 + 1;
        match exchange {
            Exchange::Request {
                number,
                address: to,
                body,
                ..
            } => {
                assert_eq!((index % 2, *number, to), (0, expected, &address));
                assert!(body.contains("be brief"), "{body}");
            }
            Exchange::Answer {
                number,
                status,
                body,
                bytes,
                ..
            } => {
                let status_of = if expected == 2 { 400 } else { 200 };
                assert_eq!((index % 2, *number, *status), (1, expected, Some(status_of)));
                assert!(
                    *bytes > 0 && (expected == 3 || body.contains("[redacted]")),
                    "{body}"
                );
            }
        }
    }
}
