//! What all who use one key share: when a provider says no to one of them, all wait, in a queue, and come back one by
//! one.

use super::breaker::{Admission, Breaker, Permit};
use crate::model::ModelErrorKind;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The furthest time that is slept to; whoever waits looks again then.
const FAR: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Lets requests to one provider through, or holds them up: one for each key and model, shared by all robots that use
/// them.
#[derive(Debug)]
pub struct Limiter {
    epoch: Instant,
    inner: Mutex<Inner>,
    changed: Notify,
    /// Whoever holds it is next. It is fair: first come, first served.
    turn: tokio::sync::Mutex<()>,
    /// Why the provider refuses for good, if it does.
    refusal: OnceLock<Why>,
}

#[derive(Debug)]
struct Inner {
    breaker: Breaker,
    /// Why it was opened last.
    why: Option<Why>,
}

/// Why nobody asks for a while.
#[derive(Clone, Debug)]
pub(crate) struct Why {
    /// The kind of failure.
    pub(crate) kind: ModelErrorKind,
    /// What happened.
    pub(crate) message: String,
    /// Whether the provider said how long.
    pub(crate) announced: bool,
}

/// A request that may not go out yet.
#[derive(Clone, Debug)]
pub(crate) struct Blocked {
    /// When it may.
    pub(crate) until: Instant,
    /// Why.
    pub(crate) why: Why,
}

impl Default for Limiter {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            inner: Mutex::new(Inner {
                breaker: Breaker::new(),
                why: None,
            }),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
            refusal: OnceLock::new(),
        }
    }
}

impl Limiter {
    /// One that lets everything through, until a request fails.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a request through if it need not wait.
    pub(crate) fn try_enter(&self) -> Option<Pass<'_>> {
        // A queue goes first, unless there is nothing to wait for any more.
        let turn = self.turn.try_lock();
        if turn.is_err() && !self.lock().breaker.is_closed() {
            return None;
        }
        match self.ask() {
            Admission::Go(permit) => Some(self.pass(permit)),
            Admission::NotBefore(_) | Admission::Busy => None,
        }
    }

    /// Waits in the queue until a request may go out.
    pub(crate) async fn enter(&self) -> Pass<'_> {
        let _turn = self.turn.lock().await;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            match self.ask() {
                Admission::Go(permit) => return self.pass(permit),
                Admission::NotBefore(until) => {
                    tokio::select! {
                        () = sleep_until(self.at(until)) => {}
                        () = changed => {}
                    }
                }
                Admission::Busy => changed.await,
            }
        }
    }

    /// Why a request has to wait now; `None` when it never came to that.
    pub(crate) fn blocked(&self) -> Option<Blocked> {
        let inner = self.lock();
        let mut why = inner.why.clone()?;
        let until = match inner.breaker.open_until() {
            Some(until) => self.at(until),
            // It waits for those before it.
            None => {
                why.announced = false;
                Instant::now()
            }
        };
        Some(Blocked { until, why })
    }

    /// How often in a row requests failed.
    pub(crate) fn failures(&self) -> u32 {
        self.lock().breaker.failures()
    }

    /// Why the provider refuses for good, if it does.
    pub(crate) fn refusal(&self) -> Option<&Why> {
        self.refusal.get()
    }

    /// The provider refuses for good. What it said first stays.
    pub(crate) fn refuse(&self, why: Why) {
        self.refusal.get_or_init(|| why);
    }

    fn ask(&self) -> Admission {
        let now = self.epoch.elapsed();
        self.lock().breaker.ask(now)
    }

    fn pass(&self, permit: Permit) -> Pass<'_> {
        Pass {
            limiter: self,
            permit: Some(permit),
        }
    }

    /// A time of the breaker's as one of the clock's.
    fn at(&self, since: Duration) -> Instant {
        let far = Instant::now() + FAR;
        self.epoch.checked_add(since).map_or(far, |at| at.min(far))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request on its way. Dropped without a word, it says nothing of the provider.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    limiter: &'a Limiter,
    permit: Option<Permit>,
}

impl Pass<'_> {
    /// The provider answers.
    pub(crate) fn answered(&mut self) {
        if let Some(permit) = &mut self.permit {
            self.limiter.lock().breaker.answered(permit);
            self.limiter.changed.notify_waiters();
        }
    }

    /// The request failed, and may be sent again soon.
    pub(crate) fn failed(mut self) {
        if let Some(permit) = self.permit.take() {
            self.limiter.lock().breaker.failed(permit, None);
            self.limiter.changed.notify_waiters();
        }
    }

    /// The request failed, and nobody asks again for so long.
    pub(crate) fn failed_for(mut self, wait: Duration, why: Why) {
        if let Some(permit) = self.permit.take() {
            let until = self.limiter.epoch.elapsed().saturating_add(wait);
            let mut inner = self.limiter.lock();
            inner.breaker.failed(permit, Some(until));
            inner.why = Some(why);
            drop(inner);
            self.limiter.changed.notify_waiters();
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.limiter.lock().breaker.released(permit);
            self.limiter.changed.notify_waiters();
        }
    }
}
