//! What a run is doing, or how it ended: what its log and the time tell.

use super::Began;
use crate::event::{Event, Record};
use crate::iteration::StopKind;
use crate::view::{RunView, Waiting};
use jiff::Timestamp;
use std::time::Duration;

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A process is at work on it, and does this.
    Running(&'static str),
    /// A process waits for a provider.
    Waiting(Waiting),
    /// A process sends a request again after a failure.
    Retrying {
        /// What failed.
        kind: String,
        /// How long it is until then.
        left: Duration,
    },
    /// It is over.
    Ended {
        /// Why, in words.
        reason: String,
        /// Why, where the log says it.
        kind: Option<StopKind>,
    },
    /// Its process ended without a word. It can be resumed.
    CutOff,
    /// Its process ended while the run was set up. There is nothing to resume.
    NeverBegan,
}

impl Standing {
    /// Reads it from the records. `held`: whether a process has the run.
    #[must_use]
    pub fn of(records: &[Record], held: bool, now: Timestamp) -> Self {
        let mut backwards = records.iter().rev();
        let says_nothing =
            |record: &&Record| matches!(record.event, Event::Notice { .. } | Event::Reopened {});
        let last = backwards.find(|record| !says_nothing(record));
        if let Some(Event::Ended { abort_reason, .. }) = last.map(|record| &record.event) {
            // The end of an earlier process is not this one's.
            let here = backwards.take_while(|record| !matches!(record.event, Event::RunResumed { .. }));
            let kind = here.into_iter().find_map(|record| match &record.event {
                Event::Aborted { kind, .. } => Some(*kind),
                _ => None,
            });
            let reason = abort_reason.clone();
            return Self::Ended { reason, kind };
        }
        if !held {
            return match Began::of(records) {
                Some(_) => Self::CutOff,
                None => Self::NeverBegan,
            };
        }
        let mut view = RunView::default();
        for record in records {
            view.apply(record);
        }
        if let Some(waiting) = view.waiting {
            return Self::Waiting(waiting);
        }
        if let Some(record) = last
            && let Event::ModelFailed {
                kind,
                retry_in_ms: Some(ms),
                ..
            } = &record.event
        {
            let since = now.as_millisecond().saturating_sub(record.ts.as_millisecond());
            let left = ms.saturating_sub(u64::try_from(since).unwrap_or(0));
            if left > 0 {
                let (kind, left) = (kind.clone(), Duration::from_millis(left));
                return Self::Retrying { kind, left };
            }
        }
        Self::Running(if view.doing.is_empty() {
            "setting up"
        } else {
            view.doing
        })
    }

    /// In a word or two.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Running(_) => "running",
            Self::Waiting(_) | Self::Retrying { .. } => "waiting",
            Self::Ended { .. } => "ended",
            Self::CutOff => "cut off",
            Self::NeverBegan => "never began",
        }
    }
}
