//! What a provider in trouble sends: signs of life without content, bodies that are too large or too deep, counts that
//! cannot be right, and refusals that come from a wrong clock.

use crate::support::{EVENTS, RawServer, answer, model, request, send};
use robot_lab::robot::ModelTimeouts;
use robot_lab::{Backoff, Model, ModelErrorKind as Kind, Patience, Robot, RunError};
use robot_lab_providers::{HttpModel, ModelConfig};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use testkit::{ModelServer, Reply};
use tokio_util::sync::CancellationToken;

/// Why a robot gives up that does not wait, and gets this reply whenever it asks.
async fn impatient(reply: Reply, timeouts: ModelTimeouts) -> String {
    let server = ModelServer::answering(move |_| reply.clone());
    let model: Arc<dyn Model> = Arc::new(model(server.base_url()));
    let nothing = Backoff {
        first: Duration::ZERO,
        cap: Duration::ZERO,
    };
    let mut robot = Robot::builder("tester", model)
        .timeouts(timeouts)
        .patience(Patience {
            max_retries: 0,
            max_wait: Duration::ZERO,
            quick: nothing,
            slow: nothing,
        })
        .build();
    match robot.run("go", &CancellationToken::new()).await {
        Err(RunError::Model(error)) => error.message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn case_126_a_stream_of_pings_ends_at_the_deadline_for_content() {
    let timeouts = ModelTimeouts {
        first_content: Duration::from_secs(1),
        ..ModelTimeouts::default()
    };
    let pings = Reply::text("hi").pings(600, Duration::from_millis(50));
    let said = impatient(pings, timeouts).await;
    assert!(said.starts_with("no answer from the model in 1 s"), "{said}");
}

#[tokio::test]
async fn f56_a_stream_that_stands_still_and_one_that_drips_are_told_apart() {
    let stalled = Reply::text("a word and another one").stall_after(3, Duration::from_secs(60));
    let timeouts = ModelTimeouts {
        idle: Duration::from_secs(1),
        ..ModelTimeouts::default()
    };
    let said = impatient(stalled, timeouts).await;
    assert!(said.ends_with("no more content from the model in 1 s"), "{said}");
    let timeouts = ModelTimeouts {
        total: Duration::from_secs(1),
        ..ModelTimeouts::default()
    };
    let drip = Reply::text("a word and another one, and then some".repeat(9))
        .stall_after(2, Duration::from_secs(60));
    let said = impatient(drip, timeouts).await;
    assert!(said.ends_with("no whole reply from the model in 1 s"), "{said}");
    let said = impatient(Reply::hang(), timeouts).await;
    assert!(said.starts_with("no answer from the model in 1 s"), "{said}");
}

#[test]
fn a_model_on_this_machine_has_time_for_a_long_prompt_and_what_is_set_counts_everywhere() {
    let seconds = Duration::from_secs;
    let of = |base: &str, silence| {
        let config = ModelConfig {
            base_url: Some(base.into()),
            silence,
            ..ModelConfig::new("openai", "m")
        };
        let timeouts = HttpModel::new(config).unwrap().timeouts();
        timeouts.map(|timeouts| (timeouts.first_content, timeouts.idle, timeouts.total))
    };
    let (here, there) = ("http://127.0.0.1:8080", "https://models.example/v1");
    assert_eq!(of(here, None), Some((seconds(900), seconds(120), seconds(3_600))));
    assert_eq!(of(there, None), None, "as a robot waits for any");
    for base in [here, there] {
        let (short, long) = (seconds(30), seconds(7_200));
        assert_eq!(of(base, Some(short)), Some((short, short, seconds(3_600))));
        assert_eq!(of(base, Some(long)), Some((long, long, long)));
    }
}

#[tokio::test]
async fn f57_bodies_that_are_too_deep_too_large_or_packed_are_malformed() {
    let deep = format!("{{\"choices\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let packed = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff].repeat(1_000);
    for reply in [
        Reply::text("a").raw_event(deep),
        Reply::text("a").raw_event("{\"choices\":[]} and more"),
        Reply::status(200)
            .header("content-encoding", "gzip")
            .raw_body(packed),
        Reply::status(200).raw_body("x".repeat(50_000_000)),
    ] {
        let error = answer(reply).await.broken();
        assert_eq!(error.kind, Kind::MalformedReply, "{}", error.message);
    }
    // Endless, in one event and in many.
    let text = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let many = text(&"x".repeat(1_000_000)).repeat(40);
    let one = format!("data: {}", "x".repeat(40_000_000));
    for body in [many, one] {
        let server = RawServer::writing(format!("{EVENTS}{body}").into_bytes(), 1 << 20);
        let error = send(&model(server.base_url.clone()), request()).await.broken();
        assert!(
            matches!(error.kind, Kind::MalformedReply | Kind::ContextLength),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn f62_counts_that_cannot_be_right_are_left_to_be_estimated() {
    for usage in [
        json!({ "prompt_tokens": -5, "completion_tokens": -1 }),
        json!({ "prompt_tokens": 9_000_000_000_000u64, "completion_tokens": 8_000_000_000_000u64 }),
        json!({ "prompt_tokens": "many", "completion_tokens": null }),
        json!({ "prompt_tokens": 1e300 }),
    ] {
        let counted = json!({ "choices": [], "usage": usage }).to_string();
        let outcome = answer(Reply::text("hi").no_usage().raw_event(counted))
            .await
            .whole();
        assert_eq!(outcome.usage(), None, "{usage}");
    }
}

#[tokio::test]
async fn f67_a_refused_key_names_a_clock_that_is_wrong() {
    let refused = |date: &str| Reply::status(401).header("date", date);
    let error = answer(refused("Mon, 30 Nov 2020 16:39:14 GMT")).await.broken();
    assert_eq!(error.kind, Kind::Auth);
    for part in [
        "the clock of this machine is ",
        " min ahead of the server's: set it right first",
    ] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    let error = answer(refused("Wed, 01 Jan 2200 00:00:00 GMT")).await.broken();
    assert!(
        error.message.contains(" min behind the server's"),
        "{}",
        error.message
    );
    let error = answer(Reply::status(401)).await.broken();
    assert!(!error.message.contains("clock"), "{}", error.message);
}

#[tokio::test]
async fn case_125_what_a_provider_in_trouble_asks_for_is_handed_on_whatever_the_kind() {
    for (reply, kind) in [
        (Reply::status(529).header("retry-after", "7"), Kind::Overloaded),
        (
            Reply::status(503).header("retry-after-ms", "7000"),
            Kind::Overloaded,
        ),
        (
            Reply::status(429).header("x-ratelimit-reset-requests", "7s"),
            Kind::RateLimited {
                retry_after: Some(Duration::from_secs(7)),
            },
        ),
        (
            Reply::status(429).body(json!({ "error": { "message": "Please try again in 7s." } })),
            Kind::RateLimited {
                retry_after: Some(Duration::from_secs(7)),
            },
        ),
        (
            Reply::status(429).body(json!({ "error": { "message": "m", "code": 429,
                "metadata": { "headers": { "Retry-After": "7" } } } })),
            Kind::RateLimited {
                retry_after: Some(Duration::from_secs(7)),
            },
        ),
        (
            Reply::events([json!({ "error": { "code": 429, "message": "try again in 7s" } }).to_string()]),
            Kind::RateLimited {
                retry_after: Some(Duration::from_secs(7)),
            },
        ),
    ] {
        let error = answer(reply).await.broken();
        assert_eq!(
            (error.kind, error.retry_after),
            (kind, Some(Duration::from_secs(7))),
            "{}",
            error.message
        );
    }
}
