//! What the world says to the machine.

use super::{Phase, StopReason, Submission};
use crate::eval::Score;
use crate::event::Key;
use crate::workspace::Oid;
use std::time::Duration;

/// What the world says.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Nothing is under way.
    Begin {
        /// Time since the start of the run.
        elapsed: Duration,
        /// Why the run was told to end, if it was.
        halt: Option<StopReason>,
    },
    /// A robot's turn is over.
    TurnEnded {
        /// Whose.
        key: Key,
        /// How.
        end: TurnEnd,
    },
    /// The workspace was turned into a tree, or cannot be one for these reasons.
    Snapshotted {
        /// Whose.
        key: Key,
        /// The tree, or why there is none; `Err` when a signal or the environment came between.
        result: Result<Result<Taken, Vec<String>>, StopReason>,
    },
    /// A tree was graded; `Err` when a signal or the environment came between.
    Graded {
        /// Whose.
        key: Key,
        /// The score.
        result: Result<Score, StopReason>,
    },
    /// The user's hooks were asked; `Err` when a signal or the environment came between.
    Hooked {
        /// Whose tree.
        key: Key,
        /// What they said.
        result: Result<Hooked, StopReason>,
        /// How long they took, in milliseconds.
        elapsed_ms: u64,
    },
    /// The commit is on the branch.
    Committed {
        /// Whose.
        key: Key,
        /// The commit.
        commit: Oid,
    },
    /// The commit is not on the branch.
    CommitFailed {
        /// Whose.
        key: Key,
        /// Why, and why the run ends.
        reason: StopReason,
    },
}

/// What the user's hooks say of a graded tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hooked {
    /// They let it through, with this message.
    Passed {
        /// The message, which the commit-msg hook may have changed.
        message: String,
    },
    /// The pre-commit hook changed the files, which are another tree now. No other hook was asked.
    Changed(Taken),
    /// One of them refused.
    Refused {
        /// Its name.
        hook: String,
        /// What it printed.
        output: String,
    },
}

/// A workspace as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The tree.
    pub tree: Oid,
    /// Locked files in which it differs from the base.
    pub tampered: Vec<String>,
}

/// How a robot's turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// With a submission.
    Submitted(Submission),
    /// Without one.
    Silent {
        /// Why it ended, in a word or two.
        stop: String,
    },
    /// At a limit of tool calls or time.
    Limit {
        /// Which.
        limit: String,
    },
    /// With an error that is neither permanent nor the environment's.
    Error {
        /// The kind, in a word or two.
        kind: String,
        /// What happened.
        message: String,
    },
    /// By a signal, a limit of the run, or the environment.
    Halted(StopReason),
}

/// An input that cannot come in this state: a fault of the driver.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("input {input:?} is impossible in phase {phase:?}")]
pub struct Illegal {
    /// Where the run stands.
    pub phase: Box<Phase>,
    /// What came.
    pub input: Box<Input>,
}
