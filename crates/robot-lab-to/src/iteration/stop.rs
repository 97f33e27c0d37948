//! When a run ends: the limits, and the typed reasons.

use super::RunState;
use crate::commit_message::CommitFormat;
use robot_lab::{Cost, counted};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Iterations in a row without a change after which there is nothing to do.
const NO_CHANGE_LIMIT: u32 = 3;

/// The numbers that a run decides by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Whether a candidate must be better than its parent to be committed.
    pub require_improvement: bool,
    /// Turns in which the same robot may repair a failed gate.
    pub max_verify_repairs: u32,
    /// Turns in which a robot that did not submit is asked to.
    pub max_submit_nudges: u32,
    /// Failures in a row that end the run.
    pub max_consecutive_failures: u32,
    /// Iterations that end the run.
    pub max_iterations: Option<u32>,
    /// Tokens, read and written, that end the run.
    pub max_tokens: Option<u64>,
    /// Money that ends the run.
    pub max_cost: Option<Cost>,
    /// Time that ends the run.
    pub max_time: Option<Duration>,
    /// Iterations in a row without an improvement that end the run.
    pub stop_on_plateau: Option<u32>,
    /// How the first line of a commit looks.
    pub commit_format: CommitFormat,
    /// A condition that the robot judges; met in a committed iteration, it ends the run.
    pub stop_when: Option<String>,
}

impl Policy {
    /// Whether something bounds the run besides failures.
    pub fn has_limit(&self) -> bool {
        self.max_iterations.is_some()
            || self.max_tokens.is_some()
            || self.max_cost.is_some()
            || self.max_time.is_some()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            require_improvement: true,
            max_verify_repairs: 2,
            max_submit_nudges: 1,
            max_consecutive_failures: 3,
            max_iterations: None,
            max_tokens: None,
            max_cost: None,
            max_time: None,
            stop_on_plateau: None,
            commit_format: CommitFormat::Default,
            stop_when: None,
        }
    }
}

/// The kinds of end. Programs tell ends apart by these, people by the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// The measured target is reached.
    TargetMet,
    /// The user's stop condition is met.
    StopCondition,
    /// Several iterations in a row changed nothing.
    NothingToDo,
    /// The limit of iterations.
    MaxIterations,
    /// The limit of tokens.
    MaxTokens,
    /// The limit of money.
    MaxCost,
    /// The limit of time.
    MaxTime,
    /// Too many failures in a row.
    Failures,
    /// The user's hooks refused a commit, and too many failures in a row.
    CommitRejected,
    /// Too many iterations in a row without improvement.
    Plateau,
    /// A setting or the repository does not fit.
    Configuration,
    /// The run branch was moved or deleted by somebody else.
    BranchMoved,
    /// The provider refuses for good: a key, a model, a request.
    Permanent,
    /// Disk, network, or a provider in trouble.
    Environment,
    /// A signal.
    Interrupted,
    /// A fault of ours.
    Internal,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReason {
    /// The kind.
    pub kind: StopKind,
    /// The reason, for people.
    pub text: String,
}

impl StopReason {
    /// A reason of this kind.
    pub fn new(kind: StopKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    /// A signal.
    pub fn interrupted() -> Self {
        Self::new(StopKind::Interrupted, "interrupted")
    }

    /// The measured target.
    pub fn target_met(detail: &str) -> Self {
        Self::new(StopKind::TargetMet, format!("target met: {detail}"))
    }

    /// The limit of time.
    pub fn max_time(limit: Duration) -> Self {
        Self::new(
            StopKind::MaxTime,
            format!("max time reached ({} s)", limit.as_secs()),
        )
    }

    /// The limit of tokens.
    pub fn max_tokens(limit: u64) -> Self {
        Self::new(StopKind::MaxTokens, format!("max tokens reached ({limit})"))
    }

    /// The limit of money.
    pub fn max_cost(limit: Cost) -> Self {
        Self::new(StopKind::MaxCost, format!("max cost reached ({limit})"))
    }

    /// Trouble outside the run.
    pub fn environment(what: impl std::fmt::Display) -> Self {
        Self::new(StopKind::Environment, format!("environment: {what}"))
    }
}

/// The limit that a run between two iterations has reached, if any.
pub(super) fn due(state: &RunState, elapsed: Duration, policy: &Policy) -> Option<StopReason> {
    if let Some(reason) = &state.pending_stop {
        return Some(reason.clone());
    }
    if state.failures_in_a_row >= policy.max_consecutive_failures {
        let text = format!("{} consecutive failures", state.failures_in_a_row);
        return Some(if state.rejected {
            StopReason::new(StopKind::CommitRejected, format!("commit rejected: {text}"))
        } else {
            StopReason::new(StopKind::Failures, text)
        });
    }
    if state.no_change_in_a_row >= NO_CHANGE_LIMIT {
        let text = format!(
            "nothing to do: {} without a change",
            counted(state.no_change_in_a_row, "iteration")
        );
        return Some(StopReason::new(StopKind::NothingToDo, text));
    }
    if let Some(n) = policy.stop_on_plateau
        && state.since_improvement >= n
    {
        let text = format!(
            "plateau: {} without improvement",
            counted(state.since_improvement, "iteration")
        );
        return Some(StopReason::new(StopKind::Plateau, text));
    }
    if let Some(n) = policy.max_iterations
        && state.finished() >= n
    {
        return Some(StopReason::new(
            StopKind::MaxIterations,
            format!("max iterations reached ({n})"),
        ));
    }
    if let Some(n) = policy.max_tokens
        && state.usage.total() >= n
    {
        return Some(StopReason::max_tokens(n));
    }
    if let Some(limit) = policy.max_cost
        && state.cost >= limit
    {
        return Some(StopReason::max_cost(limit));
    }
    policy
        .max_time
        .filter(|limit| elapsed >= *limit)
        .map(StopReason::max_time)
}
