//! What a run decides, as pure functions over its records. Nothing here awaits or reads anything.
//!
//! - [`verdict`](verdict()) turns a score into a verdict: a truth table.
//! - [`decide`](decide()) turns an input into the records that are facts from now on.
//! - [`RunState::apply`] is the only way in which state changes, so that folding the log gives the state.
//! - [`effect_of`] is what a record announces; it is done after the record is written.

mod candidate;
mod decide;
mod effect;
mod input;
mod outcome;
mod state;
mod stop;
#[cfg(test)]
mod tests;
mod verdict;

pub use candidate::{Candidate, Step};
pub use decide::decide;
pub use effect::{Effect, effect_of};
pub use input::{Hooked, Illegal, Input, Taken, TurnEnd};
pub use state::{Phase, RunState};
pub use stop::{Policy, StopKind, StopReason};
pub use verdict::{Verdict, verdict};

use serde::{Deserialize, Serialize};

/// What a robot reports at the end of its work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Whether it claims progress.
    pub success: bool,
    /// One sentence.
    pub summary: String,
    /// What it changed.
    pub key_changes: Vec<String>,
    /// What later iterations should know.
    pub key_learnings: Vec<String>,
    /// Whether it judges the user's stop condition met.
    pub should_fully_stop: bool,
    /// The type of a conventional commit.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// The scope of a conventional commit.
    #[serde(default)]
    pub scope: Option<String>,
}
