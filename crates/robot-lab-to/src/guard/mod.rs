//! What robots are kept from while they work. These are a courtesy that saves them an iteration; what counts is decided
//! by comparing trees.

mod answer_limit;
mod checkpoints;
mod early_check;
mod files;
mod grader_lock;
mod lint;
mod locked;
mod quality;
mod read_before_edit;
mod repeats;
mod write_guard;

pub(crate) use answer_limit::{AnswerLimit, limited};
pub(crate) use checkpoints::Checkpoints;
pub(crate) use early_check::{Checked, EarlyCheck, StopAtGreen, submission};
pub(crate) use files::Files;
pub(crate) use grader_lock::GraderLock;
pub(crate) use lint::Lint;
pub(crate) use locked::is_whole;
pub use locked::{LockError, Locked};
pub(crate) use quality::Quality;
pub(crate) use read_before_edit::ReadBeforeEdit;
pub(crate) use repeats::Repeats;
pub(crate) use write_guard::WriteGuard;

/// What is checked after each change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early {
    /// The command that grades.
    pub command: String,
    /// What it is for.
    pub objective: String,
}

/// Which guards robots work under, besides those that all do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Those that weak models need.
    pub local: bool,
    /// Among them the one that keeps files from being written over.
    pub write: bool,
    /// The command that checks each file after a change.
    pub lint: Option<String>,
    /// The command that is run after each change, where it is quick, and the objective, which is what was done once it
    /// holds.
    pub early: Option<Early>,
}
