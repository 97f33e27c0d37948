//! How a run is told to end early: once gently, a second time at once.

use crate::iteration::StopReason;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// A handle that ends a run from outside. The first reason counts.
#[derive(Clone, Debug, Default)]
pub struct Halt {
    soft: CancellationToken,
    hard: CancellationToken,
    reason: Arc<Mutex<Option<StopReason>>>,
}

impl Halt {
    /// A run that goes on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run within about five seconds: what is under way is kept, and the summary printed.
    pub fn stop(&self, reason: StopReason) {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(reason);
        self.soft.cancel();
    }

    /// Ends the run within a second: what is under way is not kept.
    pub fn stop_now(&self, reason: StopReason) {
        self.stop(reason);
        self.hard.cancel();
    }

    /// Why the run was told to end.
    pub fn reason(&self) -> Option<StopReason> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn soft(&self) -> &CancellationToken {
        &self.soft
    }

    pub(crate) fn hard(&self) -> &CancellationToken {
        &self.hard
    }
}
