//! Gets one request answered: asks the model or its fallback, waits for them as long as it may, and says so.

use super::{Failure, Requester, Source, after, cancelled};
use crate::event::{EventSink, OutOfOrder, RobotEvent};
use crate::message::{AssistantPart, Message};
use crate::model::{Model, ModelError, ModelErrorKind, ModelReply, ModelRequest};
use crate::outage::{Blocked, Next, Pass, Trouble, Why, next};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// A rate limit that ends so soon is waited for, in place of asking the fallback.
const SHORT: Duration = Duration::from_secs(60);
/// How often one wait is told of. Each time says of a much later end, so this is more than any wait needs.
const MAX_TOLD: u32 = 16;

/// What a request has gone through so far.
#[derive(Default)]
struct Effort<'a> {
    /// With the model, and with its fallback.
    trouble: [Trouble; 2],
    /// When it first had to wait for longer than before a quick retry.
    since: Option<Instant>,
    hold: Option<Hold<'a>>,
    /// Why neither model answers, as far as it is known: of the model, and of its fallback.
    why: [Option<Why>; 2],
    /// Whether the fallback cannot take this request.
    without_spare: bool,
    /// Whether it failed after the end of the patience, and only the other model is left to be asked.
    over: bool,
}

/// A wait that is under way and was told of.
struct Hold<'a> {
    sink: &'a dyn EventSink,
    model: String,
    began: Instant,
    /// The latest end that was told.
    ends: Instant,
    told: u32,
    /// Whether it was told that the other model does not answer either.
    told_of_both: bool,
    answered: bool,
}

impl<'a> Requester<'a> {
    /// Sends a request until it is answered, may not be sent again, is no longer waited for, or the caller cancels.
    pub(in crate::robot) async fn send(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let mut effort = Effort::default();
        loop {
            let (source, mut pass) = self.admit(&mut effort).await?;
            let model = source.model.id().to_string();
            let mut begun = || {
                pass.answered();
                self.taken_over.store(source.is_spare, Ordering::SeqCst);
                if let Some(hold) = effort.hold.take() {
                    hold.answered_by(&model);
                }
                self.answers(source, &effort.why);
            };
            let whole = self.marked_for(source.model, request.clone());
            let mut sent = self.fitted(source, whole.clone());
            let failure = loop {
                let request = match sent {
                    Ok(request) => request,
                    Err(error) => {
                        break Failure {
                            error,
                            refused: true,
                            begun: false,
                        };
                    }
                };
                match self.attempt(source.model, request.clone(), &mut begun).await {
                    Ok(reply) => return Ok(self.marked_by(source.model, reply)),
                    Err(Failure { error, .. })
                        if source.is_spare && error.kind == ModelErrorKind::ContextLength =>
                    {
                        sent = self.shortened(source, request, &whole.messages, error);
                    }
                    Err(failure) => break failure,
                }
            };
            if let Some(error) = self.failed(&mut effort, source, pass, failure).await {
                return Err(error);
            }
        }
    }

    /// Decides after a failure. `None`: it is sent again, after what was waited here or at the limiter.
    async fn failed(
        &self,
        effort: &mut Effort<'a>,
        source: Source<'a>,
        mut pass: Pass<'_>,
        failure: Failure,
    ) -> Option<ModelError> {
        let Failure { error, begun, .. } = failure;
        if matches!(error.kind, ModelErrorKind::Cancelled | ModelErrorKind::OverBudget) {
            return Some(error);
        }
        let [main, spare] = &mut effort.trouble;
        let trouble = if source.is_spare { spare } else { main };
        trouble.count(&error.kind, begun);
        let trouble = *trouble;
        let why = Why {
            kind: error.kind.clone(),
            message: error.message.clone(),
            announced: false,
        };
        if let Some(known) = effort.why.get_mut(usize::from(source.is_spare)) {
            *known = Some(why.clone());
        }
        let row = source.limiter.failures().saturating_add(1);
        let dice = fastrand::f64();
        let asked = error.retry_after;
        match next(&self.patience, &error.kind, asked, begun, trouble, row, dice) {
            Next::GiveUp => {
                // It is there, and says no.
                pass.answered();
                self.tell(&error, None);
                let is_final = matches!(error.kind, ModelErrorKind::Repetition | ModelErrorKind::OffScript);
                if !source.is_spare || is_final {
                    return Some(error);
                }
                if error.kind.is_permanent() && error.kind != ModelErrorKind::BadRequest {
                    source.limiter.refuse(why);
                }
                effort.without_spare = true;
                self.taken_over.store(false, Ordering::SeqCst);
                None
            }
            Next::TooManyBroken => {
                drop(pass);
                self.tell(&error, None);
                let count = trouble.broken;
                let message = format!(
                    "{count} replies to one request broke off or made no sense; the last one: {}",
                    error.message
                );
                Some(ModelError::new(ModelErrorKind::MalformedReply, message))
            }
            Next::Again(wait) => {
                pass.failed();
                self.tell(&error, Some(wait));
                tokio::select! {
                    () = sleep(wait) => None,
                    () = self.cancel.cancelled() => Some(cancelled()),
                }
            }
            Next::Close { wait, announced } => {
                let now = Instant::now();
                let end = after(*effort.since.get_or_insert(now), self.patience.max_wait);
                let left = end.saturating_duration_since(now);
                // The last try is at the end of the patience.
                let wait = if announced || left.is_zero() {
                    wait
                } else {
                    wait.min(left)
                };
                pass.failed_for(wait, Why { announced, ..why });
                let alone = self.spare_for(effort).is_none();
                (left.is_zero() && (std::mem::replace(&mut effort.over, true) || alone))
                    .then(|| self.out_of_patience(effort, source, now))
            }
        }
    }

    fn tell(&self, error: &ModelError, retry_in: Option<Duration>) {
        self.sink.emit(RobotEvent::ModelFailed {
            kind: error.kind.clone(),
            message: error.message.clone(),
            retry_in,
        });
    }

    /// The fallback, if it may be asked.
    fn spare_for(&self, effort: &Effort<'_>) -> Option<Source<'a>> {
        self.spare
            .filter(|spare| !effort.without_spare && spare.limiter.refusal().is_none())
    }

    /// Tells of it when this model answers in place of the other one.
    fn answers(&self, source: Source<'_>, why: &[Option<Why>; 2]) {
        let before = self.spare_answered.swap(source.is_spare, Ordering::SeqCst);
        if let Some(spare) = self.spare.filter(|_| before != source.is_spare) {
            let other = if source.is_spare { self.main } else { spare };
            self.sink.emit(RobotEvent::Switched {
                model: source.model.id().to_string(),
                instead_of: other.model.id().to_string(),
                why: Self::why_not(other, why).map(|why| why.message),
            });
        }
    }

    /// Why a model does not answer.
    fn why_not(source: Source<'_>, known: &[Option<Why>; 2]) -> Option<Why> {
        let own = known.get(usize::from(source.is_spare)).cloned().flatten();
        let refusal = || source.limiter.refusal().cloned();
        let blocked = || {
            source
                .limiter
                .blocked()
                .filter(|blocked| blocked.until > Instant::now())
        };
        own.or_else(refusal).or_else(|| Some(blocked()?.why))
    }

    /// The model that does not answer either, besides this one.
    fn other_than(&self, is_spare: bool, effort: &Effort<'_>) -> Option<OutOfOrder> {
        let other = if is_spare { self.main } else { self.spare? };
        let Why { kind, message, .. } = Self::why_not(other, &effort.why)?;
        Some(OutOfOrder {
            model: other.model.id().to_string(),
            kind,
            message,
        })
    }

    /// Waits until a model may be asked: the one that has the conversation, else the other, else whichever is first.
    async fn admit<'s>(&'s self, effort: &mut Effort<'a>) -> Result<(Source<'a>, Pass<'s>), ModelError>
    where
        'a: 's,
    {
        let spare = self.spare_for(effort);
        let (first, second) = match spare {
            // A recording knows which one was asked.
            Some(spare) if !self.main.model.is_next() => (spare, None),
            Some(spare) if !spare.model.is_next() => (self.main, None),
            Some(spare) if self.taken_over.load(Ordering::SeqCst) => (spare, Some(self.main)),
            spare => (self.main, spare),
        };
        if let Some(pass) = first.limiter.try_enter() {
            return Ok((first, pass));
        }
        let now = Instant::now();
        let blocked = first.limiter.blocked();
        let end = after(*effort.since.get_or_insert(now), self.patience.max_wait);
        let soon = |blocked: &Blocked| {
            blocked.why.announced
                && blocked.until <= end
                && blocked.until.saturating_duration_since(now) <= SHORT
        };
        let second = second.filter(|_| !blocked.as_ref().is_some_and(soon));
        if let Some(second) = second
            && let Some(pass) = second.limiter.try_enter()
        {
            return Ok((second, pass));
        }
        let others = second.and_then(|second| Some((second, second.limiter.blocked()?)));
        let ours = blocked.map(|blocked| (first, blocked));
        let soonest = [ours, others].into_iter().flatten().min_by_key(|(_, b)| b.until);
        if let Some((source, blocked)) = soonest {
            if now >= end || (blocked.why.announced && blocked.until > end) {
                return Err(self.out_of_patience(effort, source, now));
            }
            self.hold(effort, source, &blocked, end, now);
        }
        let by_second = async {
            match second {
                Some(second) => (second, second.limiter.enter().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled()),
            pass = first.limiter.enter() => Ok((first, pass)),
            entered = by_second => Ok(entered),
            () = sleep_until(end) => Err(self.out_of_patience(effort, first, Instant::now())),
        }
    }

    /// The error of a request that is no longer waited for: not for this model, and for no other.
    fn out_of_patience(&self, effort: &Effort<'a>, source: Source<'_>, now: Instant) -> ModelError {
        let waited = effort
            .since
            .map_or(Duration::ZERO, |since| now.duration_since(since));
        let announced = source.limiter.blocked().filter(|blocked| blocked.why.announced);
        let mut error = match (announced, Self::why_not(source, &effort.why)) {
            (Some(Blocked { until, why }), _) => {
                let left = until.saturating_duration_since(now);
                let used = match waited.as_secs() {
                    0 => String::new(),
                    _ => format!(", and {} are over", spell(waited)),
                };
                let message = format!(
                    "{}; the end of that is in {}, and {} may be waited{used}",
                    why.message,
                    spell(left),
                    spell(self.patience.max_wait)
                );
                ModelError::new(why.kind, message).retry_after(Some(left))
            }
            (None, Some(why)) => ModelError::new(why.kind, format!("{}{}", why.message, after_wait(waited))),
            (None, None) => ModelError::new(
                ModelErrorKind::Overloaded,
                format!("other requests are waited for{}", after_wait(waited)),
            ),
        };
        if let Some(other) = self.other_than(source.is_spare, effort) {
            let (model, why) = (other.model, other.message);
            error.message = format!("{}; {model} does not answer either: {why}", error.message);
        }
        self.tell(&error, None);
        error
    }

    /// Tells of a wait that begins, or ends much later than was told.
    fn hold(
        &self,
        effort: &mut Effort<'a>,
        source: Source<'_>,
        blocked: &Blocked,
        end: Instant,
        now: Instant,
    ) {
        let ends = if blocked.why.announced { blocked.until } else { end };
        let other = self.other_than(source.is_spare, effort);
        if let Some(hold) = &effort.hold {
            let later = ends.saturating_duration_since(hold.ends);
            let much = now.saturating_duration_since(hold.began).max(SHORT);
            let is_later = blocked.why.announced && later >= much;
            let is_both = other.is_some() && !hold.told_of_both;
            if !(is_later || is_both) || hold.told >= MAX_TOLD {
                return;
            }
        }
        let told_of_both = other.is_some();
        let model = source.model.id().to_string();
        self.sink.emit(RobotEvent::Waiting {
            model: model.clone(),
            kind: blocked.why.kind.clone(),
            message: blocked.why.message.clone(),
            wait: ends.saturating_duration_since(now),
            announced: blocked.why.announced,
            other,
        });
        let hold = effort.hold.get_or_insert_with(|| Hold {
            sink: self.sink,
            model,
            began: now,
            ends,
            told: 0,
            told_of_both: false,
            answered: false,
        });
        hold.ends = ends;
        hold.told += 1;
        hold.told_of_both |= told_of_both;
    }

    /// The request with those opaque parts alone that are this model's own; no other could make anything of them.
    fn marked_for(&self, model: &dyn Model, mut request: ModelRequest) -> ModelRequest {
        if self.spare.is_none() {
            return request;
        }
        let id = model.id().to_string();
        for message in &mut request.messages {
            if let Message::Assistant(reply) = message {
                reply.parts.retain_mut(|part| match part {
                    AssistantPart::Opaque { data } if data.get(OF) == Some(&json!(id)) => {
                        *data = data.get(PART).cloned().unwrap_or(Value::Null);
                        true
                    }
                    AssistantPart::Opaque { .. } => false,
                    _ => true,
                });
            }
        }
        request
    }

    /// The reply with each opaque part marked as this model's.
    fn marked_by(&self, model: &dyn Model, mut reply: ModelReply) -> ModelReply {
        if self.spare.is_some() {
            let id = model.id().to_string();
            for part in &mut reply.message.parts {
                if let AssistantPart::Opaque { data } = part {
                    *data = json!({ OF: id, PART: data.take() });
                }
            }
        }
        reply
    }
}

/// The keys of an opaque part that is marked with its model.
const OF: &str = "model";
const PART: &str = "part";

impl Hold<'_> {
    /// The wait is over, since this model answers.
    fn answered_by(mut self, model: &str) {
        model.clone_into(&mut self.model);
        self.answered = true;
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.sink.emit(RobotEvent::Resumed {
            model: std::mem::take(&mut self.model),
            waited: self.began.elapsed(),
            answered: self.answered,
        });
    }
}

/// How long was waited, if that is worth a word.
fn after_wait(waited: Duration) -> String {
    match waited.as_secs() {
        0 => String::new(),
        _ => format!("; waited {} for it", spell(waited)),
    }
}

/// A time as people say it: `45 s`, `12 min`, `5 h 3 min`, `30 d`.
fn spell(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 if minutes > 0 => format!("{hours} h {minutes} min"),
        7_200..172_800 => format!("{hours} h"),
        _ => format!("{} d", hours / 24),
    }
}
