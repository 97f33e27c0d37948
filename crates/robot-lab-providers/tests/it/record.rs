//! Exchanges that are kept in a file and played back.

use crate::support::{model, model_of, request, send};
use robot_lab::{Message, Model as _, ModelErrorKind, ModelEvent, ModelRequest};
use robot_lab_providers::{
    ExchangeObserver, HttpModel, ModelConfig, Playback, Recorder, Recording, RecordingError,
};
use serde_json::json;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use testkit::{Call, ModelServer, Reply};

const KEY: &str = "sk-very-secret-key";

/// A file in memory.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl File {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn asking(text: &str) -> ModelRequest {
    let messages = vec![Message::User { text: text.into() }];
    ModelRequest {
        messages,
        ..request()
    }
}

/// Records what a server of a provider says in a run with this id.
async fn record(provider: &str, replies: Vec<Reply>, id: &str) -> String {
    let count = replies.len();
    let server = ModelServer::start(replies);
    let file = File::default();
    let said = json!({ "provider": provider, "model": "test-model" });
    let recorder = Arc::new(Recorder::new(
        {
            let file = file.clone();
            move || Ok(file)
        },
        said,
        |text| text.replace("hush-hush", "[gone]"),
    ));
    let model = HttpModel::new(ModelConfig {
        base_url: Some(if provider == "openai" {
            server.base_url()
        } else {
            server.root_url()
        }),
        api_key: Some(KEY.into()),
        ..ModelConfig::new(provider, "test-model")
    })
    .unwrap()
    .observed_by(Arc::<Recorder>::clone(&recorder) as Arc<dyn ExchangeObserver>);
    for number in 0..count {
        drop(send(&model, asking(&format!("{number} in {id}: hush-hush {KEY}"))).await);
    }
    recorder.check().unwrap();
    file.text()
}

fn replaying(provider: &str, text: &str) -> HttpModel {
    model_of(provider, "http://127.0.0.1:1".into()).replaying(Playback::new(Recording::parse(text).unwrap()))
}

const THEN: &str = "/tmp/a/runs/20261201-015456-951905/checkouts/robot-0";
const NOW: &str = "/home/b/runs/20270101-000000-abcdef/checkouts/robot-0";

#[tokio::test]
async fn what_was_recorded_comes_back_in_the_words_of_the_run_that_plays_it() {
    for provider in ["openai", "anthropic", "gemini", "ollama"] {
        let replies = vec![
            Reply::text(format!("I am in {THEN}"))
                .with_calls([Call::new("read", json!({ "path": format!("{THEN}/a.txt") }))]),
            Reply::status(429).header("retry-after", "7"),
            Reply::text("done"),
        ];
        let text = record(provider, replies, THEN).await;
        assert!(!text.contains(KEY) && !text.contains("hush"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        let model = replaying(provider, &text);
        let ask = |number: u32| asking(&format!("{number} in {NOW}: [gone] [redacted]"));
        let first = send(&model, ask(0)).await.whole();
        assert_eq!(first.text(), format!("I am in {NOW}"), "{provider}");
        assert_eq!(
            first.calls()[0].arguments,
            json!({ "path": format!("{NOW}/a.txt") }),
            "{provider}"
        );
        let limited = send(&model, ask(1)).await.broken();
        let kind = ModelErrorKind::RateLimited { retry_after: None };
        assert_eq!(
            (limited.kind, limited.retry_after),
            (kind, None),
            "there is nobody to wait for"
        );
        let other = send(&model, asking("something else")).await.broken();
        assert_eq!(other.kind, ModelErrorKind::OffScript, "{other}");
        assert!(
            other
                .message
                .contains("request 3 is not the one that was recorded"),
            "{other}"
        );
        assert_eq!(
            send(&model, ask(2)).await.whole().text(),
            "done",
            "a refusal uses nothing up"
        );
        let more = send(&model, ask(3)).await.broken();
        assert!(
            more.message.contains("has 3 exchanges, and this is one more"),
            "{more}"
        );
    }
}

#[tokio::test]
async fn of_two_models_that_were_recorded_each_answers_in_its_turn() {
    let server = ModelServer::start([
        Reply::status(529),
        Reply::text("from the spare"),
        Reply::text("back"),
    ]);
    let file = File::default();
    let open = {
        let file = file.clone();
        move || Ok(file)
    };
    let recorder: Arc<dyn ExchangeObserver> = Arc::new(Recorder::new(open, json!({}), |text| text));
    let named = |name: &str, base: String| {
        HttpModel::new(ModelConfig {
            base_url: Some(base),
            api_key: Some(KEY.into()),
            ..ModelConfig::new("openai", name)
        })
        .unwrap()
    };
    let live = |name| named(name, server.base_url()).observed_by(Arc::clone(&recorder));
    let (main, spare) = (live("main"), live("spare"));
    for model in [&main, &spare, &main] {
        drop(send(model, request()).await);
    }
    let playback = Playback::new(Recording::parse(&file.text()).unwrap());
    let played = |name| named(name, "http://127.0.0.1:1".into()).replaying(playback.clone());
    let (main, spare) = (played("main"), played("spare"));
    assert!(main.is_next() && !spare.is_next());
    let early = send(&spare, request()).await.broken();
    let said = "request 1 was sent to openai/main when it was recorded, and goes to openai/spare now";
    assert!(early.message.starts_with(said), "{early}");
    assert_eq!(
        send(&main, request()).await.broken().kind,
        ModelErrorKind::Overloaded
    );
    assert!(spare.is_next() && !main.is_next());
    assert_eq!(send(&spare, request()).await.whole().text(), "from the spare");
    assert_eq!(send(&main, request()).await.whole().text(), "back");
    assert!(main.is_next() && spare.is_next(), "at its end it knows no more");
}

#[tokio::test]
async fn a_reply_that_broke_off_breaks_off_again() {
    let text = record("openai", vec![Reply::text("one two three").cut_after(1)], THEN).await;
    let model = replaying("openai", &text);
    let outcome = send(&model, asking(&format!("0 in {NOW}: [gone] [redacted]"))).await;
    assert_eq!(outcome.broken().kind, ModelErrorKind::MalformedReply);
}

#[tokio::test]
async fn nobody_there_is_recorded_too() {
    let file = File::default();
    let recorder = Recorder::new(
        {
            let file = file.clone();
            move || Ok(file)
        },
        json!({}),
        |text| text,
    );
    let absent = model("http://127.0.0.1:1".into()).observed_by(Arc::new(recorder));
    assert_eq!(
        send(&absent, request()).await.broken().kind,
        ModelErrorKind::Network
    );
    let again = send(&replaying("openai", &file.text()), request()).await;
    assert_eq!(again.broken().kind, ModelErrorKind::Network);
}

#[test]
fn files_that_are_no_recordings_are_told() {
    let first = r#"{"recording":1,"model":{"provider":"openai"}}"#;
    let line = r#"{"address":"a","request":"{}","status":200,"headers":[],"answer":""}"#;
    for (text, expected) in [
        (String::new(), RecordingError::NoRecording),
        ("turns: []\n".into(), RecordingError::NoRecording),
        (r#"{"recording":2,"model":{}}"#.into(), RecordingError::Version(2)),
    ] {
        assert_eq!(Recording::parse(&text), Err(expected), "{text}");
    }
    let damaged = Recording::parse(&format!("{first}\n{{\n{line}\n"));
    assert!(
        matches!(damaged, Err(RecordingError::Line { number: 2, .. })),
        "{damaged:?}"
    );
    let torn = Recording::parse(&format!("{first}\n{line}\n{{\"addr")).unwrap();
    assert_eq!(torn, Recording::parse(&format!("{first}\n{line}\n")).unwrap());
    assert_eq!(torn.model(), &json!({ "provider": "openai" }));
}

#[tokio::test]
async fn deltas_of_a_played_reply_are_whole() {
    let text = record("openai", vec![Reply::text("one two three four five")], THEN).await;
    let outcome = send(
        &replaying("openai", &text),
        asking(&format!("0 in {NOW}: [gone] [redacted]")),
    )
    .await;
    let texts = outcome
        .events
        .iter()
        .filter(|event| matches!(event, ModelEvent::Text(_)));
    assert_eq!(texts.count(), 1, "{:?}", outcome.events);
}
