//! What becomes of configurations that are wrong, refusals and servers that are not there.

use crate::support::{EVENTS, RawServer, answer, model, request, send};
use robot_lab::ModelErrorKind as Kind;
use robot_lab_providers::{ConfigError, HttpModel, ModelConfig, key_variable, known_providers};
use serde_json::json;
use std::time::Duration;
use testkit::{ModelServer, Reply};

#[test]
fn configurations_are_checked_before_anything_is_sent() {
    let config = || ModelConfig::new("openai", "m");
    let error = |config| HttpModel::new(config).unwrap_err().to_string();
    let unknown = error(ModelConfig::new("acme", "m"));
    let known = known_providers().collect::<Vec<_>>().join(", ");
    assert_eq!(
        unknown,
        format!("there is no provider \"acme\"; use one of: {known}")
    );
    assert_eq!(
        error(ModelConfig::new("openai", " ")),
        "no model is named; name one that the provider has"
    );
    assert_eq!(
        error(config()),
        "there is no key for openai; set OPENAI_API_KEY, or a base URL of a server that needs none"
    );
    assert!(
        error(ModelConfig {
            base_url: Some("localhost:8080".into()),
            ..config()
        })
        .contains("\"localhost:8080\"")
    );
    let key = Some("sk 1".into());
    assert!(matches!(
        HttpModel::new(ModelConfig {
            api_key: key,
            ..config()
        }),
        Err(ConfigError::BadKey { .. })
    ));
    for header in [("a b", "c"), ("a", "b\nc")] {
        let headers = vec![(header.0.into(), header.1.into())];
        let config = ModelConfig {
            headers,
            api_key: Some("k".into()),
            ..config()
        };
        assert!(matches!(
            HttpModel::new(config),
            Err(ConfigError::BadHeader { .. })
        ));
    }
    let shown = format!(
        "{:?}",
        HttpModel::new(ModelConfig {
            api_key: Some("sk-1".into()),
            ..config()
        })
        .unwrap()
    );
    assert!(
        shown.contains("https://api.openai.com/v1/") && !shown.contains("sk-1"),
        "{shown}"
    );
}

#[test]
fn the_table_of_providers_is_public() {
    assert_eq!(
        known_providers().next(),
        Some("openai"),
        "the default comes first"
    );
    assert_eq!(key_variable("openai"), Some("OPENAI_API_KEY"));
    assert_eq!(key_variable("acme"), None);
}

#[tokio::test]
async fn statuses_become_kinds() {
    let coded = |code: &str| json!({ "error": { "message": "No.", "type": "x", "code": code } });
    let limited = |retry_after: Option<u64>| Kind::RateLimited {
        retry_after: retry_after.map(Duration::from_millis),
    };
    for (reply, kind) in [
        (Reply::status(400).body(coded("other")), Kind::BadRequest),
        (
            Reply::status(400).body(coded("context_length_exceeded")),
            Kind::ContextLength,
        ),
        (Reply::status(401), Kind::Auth),
        (Reply::status(402), Kind::Billing),
        (Reply::status(403), Kind::Auth),
        (Reply::status(404), Kind::ModelNotFound),
        (Reply::status(408), Kind::Timeout),
        (Reply::status(413), Kind::BadRequest),
        (Reply::status(429), limited(None)),
        (
            Reply::status(429).body(coded("insufficient_quota")),
            Kind::Billing,
        ),
        (
            Reply::status(429).header("retry-after", "1.5"),
            limited(Some(1_500)),
        ),
        (
            Reply::status(429)
                .header("retry-after", "2")
                .header("retry-after-ms", "250"),
            limited(Some(250)),
        ),
        (Reply::status(429).header("retry-after", "-3"), limited(None)),
        (
            Reply::status(429)
                .header("date", "Mon, 30 Nov 2026 16:39:14 GMT")
                .header("retry-after", "Mon, 30 Nov 2026 17:39:14 GMT"),
            limited(Some(3_600_000)),
        ),
        (Reply::status(500).raw_body("oops"), Kind::Overloaded),
        (Reply::status(503), Kind::Overloaded),
        (Reply::status(529), Kind::Overloaded),
        (
            Reply::status(307).header("location", "http://127.0.0.1:1/else"),
            Kind::BadRequest,
        ),
    ] {
        let shown = format!("{reply:?}");
        let outcome = answer(reply).await;
        assert!(outcome.refused, "{shown}");
        assert_eq!(outcome.broken().kind, kind, "{shown}");
    }
}

#[tokio::test]
async fn a_key_that_is_echoed_is_not_repeated() {
    let echo = "Incorrect API key provided: sk-very-secret. Bearer sk-very-secret, hush-hush";
    let server = ModelServer::start([
        Reply::status(401).body(json!({ "error": { "message": echo } })),
        Reply::text("x").raw_event(json!({ "error": { "message": echo } }).to_string()),
    ]);
    let config = ModelConfig {
        base_url: Some(server.base_url()),
        api_key: Some("sk-very-secret".into()),
        headers: vec![("x-token".into(), "hush-hush".into())],
        ..ModelConfig::new("openai", "m")
    };
    let model = HttpModel::new(config).unwrap();
    for _ in 0..2 {
        let message = send(&model, request()).await.broken().message;
        assert!(
            message.ends_with("provided: [redacted]. Bearer [redacted], [redacted]"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn an_error_in_place_of_the_first_event_has_cost_nothing() {
    let outcome = answer(Reply::events(["{\"error\":{\"message\":\"No.\",\"code\":402}}"])).await;
    assert!(outcome.refused);
    assert_eq!(outcome.broken().kind, Kind::Billing);
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_an_error() {
    let nothing: [&str; 0] = [];
    for reply in [
        Reply::status(200).raw_body("{malformed json: <<<chaos>>>}"),
        Reply::status(200).raw_body("<html>"),
        Reply::events(nothing),
    ] {
        let outcome = answer(reply).await;
        assert!(outcome.refused);
        let error = outcome.broken();
        assert_eq!(error.kind, Kind::MalformedReply);
        assert!(error.message.contains("no stream of events"), "{}", error.message);
    }
}

#[tokio::test]
async fn case_124_an_error_under_a_status_of_success_is_classified_by_its_body() {
    let body = json!({ "error": { "message": "No.", "code": "insufficient_quota" } });
    let pretty = serde_json::to_string_pretty(&body).unwrap();
    for body in [body.to_string(), pretty] {
        let outcome = answer(Reply::status(200).raw_body(body)).await;
        assert!(outcome.refused, "it has cost nothing");
        assert_eq!(outcome.broken().kind, Kind::Billing);
    }
}

#[tokio::test]
async fn a_refusal_without_end_is_read_in_part() {
    let body = json!({ "error": { "message": "x".repeat(10_000_000) } });
    let outcome = answer(Reply::status(400).body(body)).await;
    assert_eq!(outcome.broken().kind, Kind::BadRequest);
}

#[tokio::test]
async fn invalid_utf8_is_a_malformed_reply() {
    let server = RawServer::writing(
        [EVENTS.as_bytes(), b"data: {\"a\":\"\xff\"}\n\n"].concat(),
        usize::MAX,
    );
    let error = send(&model(server.base_url.clone()), request()).await.broken();
    assert_eq!(error.kind, Kind::MalformedReply);
}

#[tokio::test]
async fn a_server_that_is_not_there_or_goes_away_is_a_network_error() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = RawServer::writing(Vec::new(), 1);
    let half = RawServer::writing(b"HTTP/1.1 200".to_vec(), usize::MAX);
    for url in [
        format!("http://{closed}"),
        gone.base_url.clone(),
        half.base_url.clone(),
    ] {
        let outcome = send(&model(url), request()).await;
        assert!(outcome.refused);
        let error = outcome.broken();
        assert_eq!(error.kind, Kind::Network);
        assert!(error.message.starts_with("openai: "), "{}", error.message);
    }
}
