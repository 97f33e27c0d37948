//! What robots are kept from while they work. These are a courtesy that saves them an iteration; what counts is decided
//! by comparing trees.

mod checkpoints;
mod files;
mod grader_lock;
mod lint;
mod locked;
mod quality;
mod read_before_edit;
mod repeats;
mod write_guard;

pub(crate) use checkpoints::Checkpoints;
pub(crate) use files::Files;
pub(crate) use grader_lock::GraderLock;
pub(crate) use lint::Lint;
pub(crate) use locked::is_whole;
pub use locked::{LockError, Locked};
pub(crate) use quality::Quality;
pub(crate) use read_before_edit::ReadBeforeEdit;
pub(crate) use repeats::Repeats;
pub(crate) use write_guard::WriteGuard;

/// Which guards robots work under, besides those that all do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Those that weak models need.
    pub local: bool,
    /// Among them the one that keeps files from being written over.
    pub write: bool,
    /// The command that checks each file after a change.
    pub lint: Option<String>,
}
