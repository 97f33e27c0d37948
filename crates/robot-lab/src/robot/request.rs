//! Sends one request: waits with deadlines, meters, cuts at the budget, and tries again when that may help.

use super::Robot;
use crate::budget::TokenBudget;
use crate::event::{EventSink, RobotEvent};
use crate::model::{
    FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelReply, ModelRequest, ReplyBuilder,
    Usage,
};
use crate::repetition::Watch;
use futures::StreamExt as _;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long to wait for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// Until the first content of a reply. Local models read a long prompt for minutes.
    pub first_content: Duration,
    /// Between two pieces of content. Keep-alive bytes do not count.
    pub idle: Duration,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            first_content: Duration::from_secs(300),
            idle: Duration::from_secs(120),
        }
    }
}

/// How often a failed request is sent again, and after how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Further attempts after the first.
    pub max_retries: u32,
    /// Wait before the first of them; it doubles each time.
    pub first_delay: Duration,
    /// The longest wait, also when the provider asks for more: then the request fails at once.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// How long to wait before attempt `attempt + 1` after this failure; `None` to give up.
    fn delay(&self, attempt: u32, kind: &ModelErrorKind) -> Option<Duration> {
        if attempt >= self.max_retries || !kind.is_retryable() {
            return None;
        }
        let doubled = self
            .first_delay
            .saturating_mul(2u32.saturating_pow(attempt))
            .min(self.max_delay);
        match kind {
            ModelErrorKind::RateLimited {
                retry_after: Some(asked),
            } if *asked > self.max_delay => None,
            ModelErrorKind::RateLimited {
                retry_after: Some(asked),
            } => Some(doubled.max(*asked)),
            _ => Some(doubled),
        }
    }
}

/// The parts of a robot that a request needs.
pub(super) struct Requester<'a> {
    model: &'a dyn Model,
    sink: &'a dyn EventSink,
    budget: &'a TokenBudget,
    timeouts: ModelTimeouts,
    retry: RetryPolicy,
    cut_repetition: bool,
    cancel: &'a CancellationToken,
    /// What the requests of this invocation cost, failed ones included.
    usage: Mutex<Usage>,
    /// The model that answered last, where it was another one than was asked.
    served_by: Mutex<Option<String>>,
}

impl<'a> Requester<'a> {
    pub(super) fn new(robot: &'a Robot, cancel: &'a CancellationToken) -> Self {
        Self {
            model: robot.model.as_ref(),
            sink: robot.sink.as_ref(),
            budget: &robot.budget,
            timeouts: robot.timeouts,
            retry: robot.retry,
            cut_repetition: robot.cut_repetition,
            cancel,
            usage: Mutex::new(Usage::default()),
            served_by: Mutex::new(None),
        }
    }

    pub(super) fn usage(&self) -> Usage {
        *self
            .usage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sends a request until it is answered, may not be sent again, or the caller cancels.
    pub(super) async fn send(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let mut attempt = 0;
        loop {
            let error = match self.attempt(&request).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let retry_in = self.retry.delay(attempt, &error.kind);
            if !matches!(error.kind, ModelErrorKind::Cancelled | ModelErrorKind::OverBudget) {
                let (kind, message) = (error.kind.clone(), error.message.clone());
                self.sink.emit(RobotEvent::ModelFailed {
                    kind,
                    message,
                    retry_in,
                });
            }
            let Some(delay) = retry_in else { return Err(error) };
            attempt += 1;
            tokio::select! {
                () = sleep(delay) => {}
                () = self.cancel.cancelled() => return Err(cancelled()),
            }
        }
    }

    async fn attempt(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        if self.budget.is_spent() {
            return Err(over_budget());
        }
        let started = Instant::now();
        let mut reply = ReplyBuilder::new(request.estimated_tokens());
        let result = tokio::select! {
            result = self.read(request.clone(), &mut reply) => result,
            () = self.cancel.cancelled() => Err(cancelled().into()),
        };
        // A request that was refused outright cost nothing; one that broke off is booked by what came.
        let nothing_sent = result.as_ref().is_err_and(|failure| failure.refused);
        let usage = if nothing_sent {
            Usage::default()
        } else {
            reply.usage()
        };
        let finished = match result {
            Ok(()) => reply.finish(),
            Err(failure) => Err(failure.error),
        };
        self.book(usage, finished.as_ref().ok().map(|r| r.finish.clone()), started);
        finished
    }

    async fn read(&self, request: ModelRequest, reply: &mut ReplyBuilder) -> Result<(), Failure> {
        let first = self.timeouts.first_content;
        let mut watch = self.cut_repetition.then(|| Watch::new(&request));
        let opened = timeout(first, self.model.stream(request)).await;
        let mut stream = match opened {
            Err(_elapsed) => return Err(timed_out("no answer", first).into()),
            Ok(Err(error)) => return Err(Failure { error, refused: true }),
            Ok(Ok(stream)) => stream,
        };
        let mut wait = first;
        loop {
            let event = match timeout(wait, stream.next()).await {
                Err(_elapsed) => return Err(timed_out("no content", wait).into()),
                Ok(None) => return Ok(()),
                Ok(Some(event)) => event.map_err(Failure::from)?,
            };
            match &event {
                ModelEvent::Text(text) => self.sink.emit(RobotEvent::TextDelta { text: text.clone() }),
                ModelEvent::Reasoning(text) => {
                    self.sink.emit(RobotEvent::ReasoningDelta { text: text.clone() })
                }
                ModelEvent::Adapted(note) => self.sink.emit(RobotEvent::ModelAdapted { note: note.clone() }),
                ModelEvent::Served(name) => self.served(name),
                _ => {}
            }
            // A report of usage may be the last word of a reply that is complete, and a complete reply is paid for,
            // whatever it cost. So only more output can cut it.
            let grows = !matches!(event, ModelEvent::Usage(_) | ModelEvent::Finished(_));
            let wrong = watch.as_mut().and_then(|watch| watch.take(&event));
            reply.push(event);
            if let Some(why) = wrong {
                return Err(ModelError::new(ModelErrorKind::Repetition, why).into());
            }
            if grows && self.budget.is_exceeded_by(reply.usage()) {
                return Err(over_budget().into());
            }
            wait = self.timeouts.idle;
        }
    }

    /// Says which model answers, when it is another one than was asked and than answered before.
    fn served(&self, name: &str) {
        let mut before = self
            .served_by
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let asked = self.model.id();
        let other = (name != asked.name).then(|| name.to_owned());
        if *before != other
            && let Some(served_by) = other.clone()
        {
            let model = asked.to_string();
            self.sink.emit(RobotEvent::ModelServed { model, served_by });
        }
        *before = other;
    }

    fn book(&self, usage: Usage, finish: Option<FinishReason>, started: Instant) {
        self.budget.charge(usage);
        *self
            .usage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) += usage;
        let model = self.model.id().to_string();
        self.sink.emit(RobotEvent::ModelFinished {
            model,
            usage,
            finish,
            elapsed: started.elapsed(),
        });
    }
}

/// Why no whole reply came, and whether the provider refused before it did any work.
struct Failure {
    error: ModelError,
    refused: bool,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            refused: false,
        }
    }
}

fn timed_out(what: &str, after: Duration) -> ModelError {
    ModelError::new(
        ModelErrorKind::Timeout,
        format!("{what} from the model in {} s", after.as_secs()),
    )
}

fn cancelled() -> ModelError {
    ModelError::new(ModelErrorKind::Cancelled, "cancelled")
}

fn over_budget() -> ModelError {
    ModelError::new(ModelErrorKind::OverBudget, "the token budget is spent")
}
