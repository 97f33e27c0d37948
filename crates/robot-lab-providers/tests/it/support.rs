//! What the tests share: models for a server, whole replies, and a server that writes exactly the given bytes.

use futures::StreamExt as _;
use robot_lab::{Message, Model, ModelError, ModelEvent, ModelRequest, ToolCall, Usage};
use robot_lab_providers::{HttpModel, ModelConfig};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;
use testkit::ModelServer;

pub(crate) fn model(base_url: String) -> HttpModel {
    model_of("openai", base_url)
}

pub(crate) fn model_of(provider: &str, base_url: String) -> HttpModel {
    HttpModel::new(ModelConfig {
        base_url: Some(base_url),
        ..ModelConfig::new(provider, "test-model")
    })
    .unwrap()
}

pub(crate) fn request() -> ModelRequest {
    let messages = vec![Message::User { text: "go".into() }];
    ModelRequest {
        system: "be brief".into(),
        messages,
        ..ModelRequest::default()
    }
}

/// Everything that came of one request.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// But for the model's name.
    pub(crate) events: Vec<ModelEvent>,
    pub(crate) error: Option<ModelError>,
    /// Whether the error came in place of a stream.
    pub(crate) refused: bool,
    /// The model that the reply says it is from.
    pub(crate) served_by: Option<String>,
}

impl Outcome {
    pub(crate) fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            ModelEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn reasoning(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            ModelEvent::Reasoning(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn calls(&self) -> Vec<&ToolCall> {
        let calls = self.events.iter().filter_map(|event| match event {
            ModelEvent::Call(call) => Some(call),
            _ => None,
        });
        calls.collect()
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        self.events.iter().rev().find_map(|event| match event {
            ModelEvent::Usage(usage) => Some(*usage),
            _ => None,
        })
    }

    /// The error of a reply that broke off: nothing of a call, and no end, may be seen.
    #[track_caller]
    pub(crate) fn broken(self) -> ModelError {
        let whole = |event: &ModelEvent| matches!(event, ModelEvent::Call(_) | ModelEvent::Finished(_));
        assert!(!self.events.iter().any(whole), "{self:?}");
        assert_short(self.error.expect("an error"))
    }

    /// A reply that is whole.
    #[track_caller]
    pub(crate) fn whole(self) -> Self {
        assert_eq!(self.error, None);
        assert!(
            matches!(self.events.last(), Some(ModelEvent::Finished(_))),
            "{self:?}"
        );
        self
    }
}

#[track_caller]
fn assert_short(error: ModelError) -> ModelError {
    let message = &error.message;
    assert!(
        message.chars().count() <= 300 && message.starts_with(char::is_lowercase),
        "{message}"
    );
    error
}

pub(crate) async fn send(model: &dyn Model, request: ModelRequest) -> Outcome {
    let mut outcome = Outcome {
        events: Vec::new(),
        error: None,
        refused: false,
        served_by: None,
    };
    match model.stream(request).await {
        Err(error) => (outcome.error, outcome.refused) = (Some(error), true),
        Ok(mut stream) => {
            while let Some(event) = stream.next().await {
                assert_eq!(outcome.error, None, "something follows an error");
                match event {
                    Ok(ModelEvent::Served(model)) => {
                        assert_eq!(outcome.served_by.replace(model), None, "it is named twice");
                    }
                    Ok(event) => {
                        if event == ModelEvent::Discarded {
                            outcome.served_by = None;
                        }
                        outcome.events.push(event);
                    }
                    Err(error) => outcome.error = Some(error),
                }
            }
        }
    }
    outcome
}

/// The outcome of one request to a server with this one reply.
pub(crate) async fn answer(reply: testkit::Reply) -> Outcome {
    let server = ModelServer::start([reply]);
    send(&model(server.base_url()), request()).await
}

/// A server for one connection that writes these bytes, so many at a time, and closes it.
pub(crate) struct RawServer {
    pub(crate) base_url: String,
    /// Says when the client has closed the connection, for [`RawServer::holding`].
    closed: mpsc::Receiver<()>,
}

impl RawServer {
    pub(crate) fn writing(bytes: Vec<u8>, at_a_time: usize) -> Self {
        Self::start(bytes, at_a_time, false)
    }

    /// Writes these bytes and then waits for the client to close the connection.
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        Self::start(bytes, usize::MAX, true)
    }

    fn start(bytes: Vec<u8>, at_a_time: usize, hold: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, closed) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = Vec::new();
            while !is_whole(&request) {
                let mut buffer = [0; 4096];
                let read = stream.read(&mut buffer).unwrap();
                assert!(read > 0, "the request broke off");
                request.extend_from_slice(&buffer[..read]);
            }
            for piece in bytes.chunks(at_a_time) {
                stream.write_all(piece).unwrap();
            }
            if hold && matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_)) {
                sender.send(()).unwrap();
            }
        });
        Self { base_url, closed }
    }

    pub(crate) fn wait_until_closed(&self) {
        self.closed
            .recv_timeout(Duration::from_secs(20))
            .expect("the client closes the connection");
    }
}

/// Whether a request has come with all of its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().unwrap())
    });
    body.len() >= length.unwrap_or(0)
}

/// The head of an answer with a stream of events that ends with the connection.
pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
