//! Sends one request: waits with deadlines, meters, and cuts at the budget. When it fails, `send` decides what follows.

mod fit;
mod send;

use super::Robot;
use crate::budget::Budget;
use crate::context::Context;
use crate::cost::Cost;
use crate::event::{EventSink, RobotEvent};
use crate::model::{
    FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelId, ModelReply, ModelRequest,
    ModelTimeouts, ReplyBuilder, Usage,
};
use crate::outage::{Limiter, Patience};
use crate::repetition::Watch;
use futures::StreamExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// A model that may be asked.
#[derive(Clone, Copy)]
struct Source<'a> {
    model: &'a dyn Model,
    limiter: &'a Limiter,
    is_spare: bool,
}

/// The parts of a robot that a request needs.
pub(super) struct Requester<'a> {
    main: Source<'a>,
    spare: Option<Source<'a>>,
    taken_over: &'a AtomicBool,
    /// Whether the fallback answered last.
    spare_answered: AtomicBool,
    spare_context: Mutex<Context>,
    sink: &'a dyn EventSink,
    budget: &'a Budget,
    /// Those of the model itself when `None`.
    timeouts: Option<ModelTimeouts>,
    cut_repetition: bool,
    patience: Patience,
    cancel: &'a CancellationToken,
    /// What the requests of this invocation cost, failed ones included.
    usage: Mutex<Usage>,
    /// The model that answered last, where it was another one than was asked.
    served_by: Mutex<Option<String>>,
}

impl<'a> Requester<'a> {
    pub(super) fn new(robot: &'a Robot, cancel: &'a CancellationToken, spare_context: Context) -> Self {
        Self {
            main: Source {
                model: robot.model.as_ref(),
                limiter: &robot.limiter,
                is_spare: false,
            },
            spare: robot.fallback.as_ref().map(|(model, limiter)| Source {
                model: model.as_ref(),
                limiter,
                is_spare: true,
            }),
            taken_over: &robot.taken_over,
            spare_answered: AtomicBool::new(robot.taken_over.load(Ordering::SeqCst)),
            spare_context: Mutex::new(spare_context),
            sink: robot.sink.as_ref(),
            budget: &robot.budget,
            timeouts: robot.timeouts,
            cut_repetition: robot.cut_repetition,
            patience: robot.patience,
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

    /// Sends a request to this model, once. `begun` is called when something of a reply has come.
    async fn attempt(
        &self,
        model: &dyn Model,
        request: ModelRequest,
        begun: impl FnMut(),
    ) -> Result<ModelReply, Failure> {
        if self.budget.reached().is_some() {
            return Err(over_budget().into());
        }
        let mut sent = Sent {
            bytes: request.size(),
            at: Instant::now(),
        };
        let mut reply = ReplyBuilder::metered(self.budget.meter(), model.id(), sent.bytes);
        let result = tokio::select! {
            result = self.read(model, request, &mut reply, &mut sent, begun) => result,
            () = self.cancel.cancelled() => Err(cancelled().into()),
        };
        // A request that was refused outright cost nothing; one that broke off is booked by what came.
        if !reply.is_idle() && !result.as_ref().is_err_and(|failure| failure.refused) {
            let finish = result.as_ref().ok().and_then(|()| reply.finished().cloned());
            self.book(model, (reply.usage(), reply.charged()), finish, sent);
        }
        result?;
        Ok(reply.finish()?)
    }

    async fn read(
        &self,
        model: &dyn Model,
        request: ModelRequest,
        reply: &mut ReplyBuilder<'_>,
        sent: &mut Sent,
        mut begun: impl FnMut(),
    ) -> Result<(), Failure> {
        let ModelTimeouts {
            first_content: first,
            idle,
            total,
        } = self.timeouts.or_else(|| model.timeouts()).unwrap_or_default();
        let mut watch = self.cut_repetition.then(|| Watch::new(&request));
        let started = Instant::now();
        let end = after(started, total);
        let mut within = first;
        let mut deadline = after(started, first);
        let mut stream = match timeout_at(deadline.min(end), model.stream(request)).await {
            // Nothing of it came, and an outage of this kind is long: counted in full each time, it would end the run.
            Err(_elapsed) => {
                return Err(Failure {
                    error: timed_out("no answer", first.min(total)),
                    refused: true,
                    begun: false,
                });
            }
            Ok(Err(error)) => {
                return Err(Failure {
                    error,
                    refused: true,
                    begun: false,
                });
            }
            Ok(Ok(stream)) => stream,
        };
        let mut content = false;
        loop {
            let so_far = content;
            let failed = |error| Failure {
                error,
                refused: false,
                begun: so_far,
            };
            let event = match timeout_at(deadline.min(end), stream.next()).await {
                Err(_elapsed) if end <= deadline => return Err(failed(timed_out("no whole reply", total))),
                Err(_elapsed) if content => return Err(failed(timed_out("no more content", within))),
                Err(_elapsed) => return Err(failed(timed_out("no content", within))),
                Ok(None) => return Ok(()),
                Ok(Some(event)) => event.map_err(failed)?,
            };
            match &event {
                ModelEvent::Text(text) => self.sink.emit(RobotEvent::TextDelta { text: text.clone() }),
                ModelEvent::Reasoning(text) => {
                    self.sink.emit(RobotEvent::ReasoningDelta { text: text.clone() })
                }
                ModelEvent::Adapted { note, change } => self.sink.emit(RobotEvent::ModelAdapted {
                    model: model.id().to_string(),
                    note: note.clone(),
                    change: change.clone(),
                }),
                ModelEvent::Served(name) => self.served(model.id(), name),
                _ => {}
            }
            if is_content(&event) {
                if !content {
                    content = true;
                    begun();
                }
                within = idle;
                deadline = after(Instant::now(), idle);
            }
            // A report of usage may be the last word of a reply that is complete, and a complete reply is paid for,
            // whatever it cost. So only more output can cut it.
            let grows = !matches!(
                event,
                ModelEvent::Usage(_) | ModelEvent::Charged(_) | ModelEvent::Finished(_)
            );
            let discarded = matches!(event, ModelEvent::Discarded);
            if discarded {
                // The same request again, with its own times and its own bill.
                content = false;
                within = first;
                deadline = after(Instant::now(), first);
                watch = None;
            }
            let wrong = watch.as_mut().and_then(|watch| watch.take(&event));
            reply.push(event);
            if discarded {
                let spent = reply.take_discarded();
                let at = Instant::now();
                self.book(model, spent, None, std::mem::replace(sent, Sent { at, ..*sent }));
            }
            if let Some(why) = wrong {
                return Err(failed(ModelError::new(ModelErrorKind::Repetition, why)));
            }
            if grows && self.budget.exceeded_by(model.id(), reply.usage()).is_some() {
                return Err(failed(over_budget()));
            }
        }
    }

    /// Says which model answers, when it is another one than was asked and than answered before.
    fn served(&self, asked: &ModelId, name: &str) {
        let mut before = self
            .served_by
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let other = (name != asked.name).then(|| name.to_owned());
        if *before != other
            && let Some(served_by) = other.clone()
        {
            let model = asked.to_string();
            self.sink.emit(RobotEvent::ModelServed { model, served_by });
        }
        *before = other;
    }

    /// Books what a request has cost: its tokens, and what was charged if that is known.
    fn book(
        &self,
        model: &dyn Model,
        (usage, charged): (Usage, Option<Cost>),
        finish: Option<FinishReason>,
        sent: Sent,
    ) {
        self.budget.meter().learn(model.id(), sent.bytes, usage);
        let cost = self.budget.charge_as(model.id(), usage, charged);
        *self
            .usage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) += usage;
        let model = model.id().to_string();
        self.sink.emit(RobotEvent::ModelFinished {
            model,
            usage,
            cost,
            finish,
            elapsed: sent.at.elapsed(),
        });
    }
}

/// A request that was sent: how long it is, and when that was.
#[derive(Clone, Copy)]
struct Sent {
    bytes: usize,
    at: Instant,
}

/// Why no whole reply came.
struct Failure {
    error: ModelError,
    /// Whether the provider refused before it did any work.
    refused: bool,
    /// Whether something of a reply had come.
    begun: bool,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            refused: false,
            begun: false,
        }
    }
}

/// Whether something of a reply came, and not only a sign of life.
fn is_content(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => !text.is_empty(),
        ModelEvent::CallProgress(bytes) => *bytes > 0,
        ModelEvent::Opaque(_) | ModelEvent::Call(_) | ModelEvent::Finished(_) => true,
        ModelEvent::Usage(_)
        | ModelEvent::Charged(_)
        | ModelEvent::Served(_)
        | ModelEvent::Adapted { .. }
        | ModelEvent::Discarded
        | ModelEvent::Again => false,
    }
}

/// A time, or one that is never reached.
fn after(start: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3_600);
    start + wait.min(FAR)
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
    ModelError::new(ModelErrorKind::OverBudget, "the budget is spent")
}
