//! What one robot makes in one iteration, and how far it has come.

use super::Submission;
use crate::event::Key;
use crate::workspace::Oid;
use serde::{Deserialize, Serialize};

/// What one robot makes in one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The candidate, and its robot's present turn.
    pub key: Key,
    /// What is being done.
    pub step: Step,
    /// Nudges so far.
    pub nudges: u32,
    /// Repairs so far.
    pub repairs: u32,
    /// Whether it was ordered to submit.
    pub ordered: bool,
    /// What its robot reported last.
    pub submission: Option<Submission>,
    /// Its tree at the last snapshot.
    pub tree: Option<Oid>,
    /// What the gate said last, when it failed.
    pub gate_failure: Option<GateFailed>,
    /// What an accepting eval said.
    pub accepted: Option<Accepted>,
    /// Whether the tree is what the pre-commit hook made of it, so that it is not asked again.
    #[serde(default)]
    pub hooked: bool,
    /// The refused change of an earlier iteration that this one starts from.
    #[serde(default)]
    pub carried: Option<GateFailed>,
}

/// A failed gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateFailed {
    /// The tree that failed; `None` when the workspace could not become one.
    pub tree: Option<Oid>,
    /// One line.
    pub detail: String,
    /// What it printed.
    pub output: String,
    /// The hook that refused, when it was not the eval.
    #[serde(default)]
    pub hook: Option<String>,
}

/// The part of an accepting score that the commit needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// Better than the parent.
    pub improved: bool,
    /// The target is reached.
    pub met_target: bool,
    /// The measured value.
    pub value: Option<f64>,
    /// One line.
    pub detail: String,
}

/// What is being done for a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The robot's first turn.
    Working,
    /// A turn that asks it to submit.
    Nudging,
    /// A last turn in which it may only submit.
    Ordered,
    /// A turn in which it repairs.
    Repairing,
    /// The workspace is turned into a tree.
    Snapshotting,
    /// The tree is graded.
    Grading,
    /// The user's hooks are asked.
    Hooking,
}

impl GateFailed {
    /// A hook that refused a tree.
    pub(super) fn refused(tree: Option<Oid>, hook: &str, output: Option<String>) -> Self {
        Self {
            tree,
            detail: format!("{hook} refuses the commit"),
            output: output.unwrap_or_default(),
            hook: Some(hook.to_owned()),
        }
    }
}

impl Candidate {
    pub(super) fn new(iteration: u32, number: u32) -> Self {
        Self {
            key: Key {
                iteration,
                candidate: number,
                attempt: 1,
            },
            step: Step::Working,
            nudges: 0,
            repairs: 0,
            ordered: false,
            submission: None,
            tree: None,
            gate_failure: None,
            accepted: None,
            hooked: false,
            carried: None,
        }
    }
}

impl Candidate {
    pub(super) fn begin(&mut self, attempt: u32, step: Step) {
        self.key.attempt = attempt;
        self.step = step;
        self.hooked = false;
    }
}
