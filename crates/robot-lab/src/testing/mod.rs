//! Fakes that check their caller, for tests of robots and of what is built on them (feature `testing`).

use crate::event::{EventSink, RobotEvent};
use crate::message::{Message, ToolCall, Transcript};
use crate::model::{
    FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelId, ModelRequest, ModelStream, Usage,
};
use async_trait::async_trait;
use futures::StreamExt as _;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One answer of a [`FakeModel`].
#[derive(Clone, Debug)]
pub struct FakeReply(Vec<Result<ModelEvent, ModelError>>, Option<ModelError>);

impl FakeReply {
    /// A text, and nothing to do.
    pub fn text(text: &str) -> Self {
        Self(vec![Ok(ModelEvent::Text(text.into()))], None).finished(FinishReason::Stop)
    }

    /// Tool calls, by name and arguments.
    pub fn calls<const N: usize>(calls: [(&str, Value); N]) -> Self {
        let calls = calls.into_iter().map(|(name, arguments)| {
            Ok(ModelEvent::Call(ToolCall {
                id: String::new(),
                name: name.into(),
                arguments,
            }))
        });
        Self(calls.collect(), None).finished(FinishReason::ToolCalls)
    }

    /// A request that is refused.
    pub fn error(kind: ModelErrorKind, message: &str) -> Self {
        Self(Vec::new(), Some(ModelError::new(kind, message)))
    }

    /// Exactly these events.
    pub fn events(events: Vec<Result<ModelEvent, ModelError>>) -> Self {
        Self(events, None)
    }

    /// With this usage, reported at the end.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        let usage = Usage {
            input,
            output,
            ..Usage::default()
        };
        let at = self.0.len().saturating_sub(1);
        self.0.insert(at, Ok(ModelEvent::Usage(usage)));
        self
    }

    /// The answer, as a [`Model`] gives it.
    pub fn stream(self) -> Result<ModelStream, ModelError> {
        match self.1 {
            Some(error) => Err(error),
            None => Ok(futures::stream::iter(self.0).boxed()),
        }
    }

    fn finished(mut self, reason: FinishReason) -> Self {
        self.0.push(Ok(ModelEvent::Finished(reason)));
        self
    }
}

/// A model that answers from a script, keeps the requests, and panics when it is sent a conversation that no provider
/// accepts, or is asked more often than scripted.
pub struct FakeModel {
    id: ModelId,
    script: Mutex<VecDeque<FakeReply>>,
    requests: Mutex<Vec<ModelRequest>>,
    /// What a caller did wrong. A robot survives a model that panics, and the test must not.
    wrong: Mutex<Option<String>>,
}

impl FakeModel {
    /// A model with these answers.
    pub fn script(replies: impl IntoIterator<Item = FakeReply>) -> Self {
        Self {
            id: ModelId {
                provider: "fake".into(),
                name: "scripted".into(),
            },
            script: Mutex::new(replies.into_iter().collect()),
            requests: Mutex::new(Vec::new()),
            wrong: Mutex::new(None),
        }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        lock(&self.requests).clone()
    }

    /// Answers that nobody asked for yet.
    pub fn left(&self) -> usize {
        lock(&self.script).len()
    }
}

/// Checks that a provider would accept this conversation: in order, and with nothing unanswered.
///
/// # Panics
/// When it would not.
#[expect(clippy::panic, reason = "a test helper fails its test by panicking")]
pub fn assert_valid(messages: &[Message]) {
    if let Err(why) = check(messages) {
        panic!("{why}")
    }
}

fn check(messages: &[Message]) -> Result<(), String> {
    match Transcript::try_from(messages.to_vec()) {
        Ok(transcript) => match transcript.pending().first() {
            None => Ok(()),
            Some(call) => Err(format!("the request leaves call {} unanswered", call.id)),
        },
        Err(error) => Err(format!("the request is not a valid conversation: {error}")),
    }
}

impl FakeModel {
    #[expect(clippy::panic, reason = "a fake fails its test by panicking")]
    fn fail(&self, why: String) -> ! {
        *lock(&self.wrong) = Some(why.clone());
        panic!("{why}")
    }
}

impl Drop for FakeModel {
    #[expect(clippy::panic, reason = "a fake fails its test by panicking")]
    fn drop(&mut self) {
        if let Some(why) = lock(&self.wrong).take()
            && !std::thread::panicking()
        {
            panic!("{why}")
        }
    }
}

#[async_trait]
impl Model for FakeModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        if let Err(why) = check(&request.messages) {
            self.fail(why)
        }
        lock(&self.requests).push(request);
        let Some(reply) = lock(&self.script).pop_front() else {
            self.fail("the model was asked more often than scripted".into())
        };
        reply.stream()
    }
}

/// A sink that keeps everything.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Vec<RobotEvent>>);

impl Recorder {
    /// The events so far.
    pub fn events(&self) -> Vec<RobotEvent> {
        lock(&self.0).clone()
    }
}

impl EventSink for Recorder {
    fn emit(&self, event: RobotEvent) {
        lock(&self.0).push(event);
    }
}
