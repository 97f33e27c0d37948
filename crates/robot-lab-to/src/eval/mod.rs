//! What turns a candidate into a score. The orchestrator owns it; the robot only sees what comes out.
//!
//! [`Null`] takes every success, [`Code`] goes by commands that exit 0 and print numbers, [`CommandEval`] asks a
//! program, and [`from_fn`] a closure; anything else is an [`Eval`] of one's own. An [`EvalRegistry`] knows them by
//! name. Those that are not ours are kept from harming a run: one that panics, or does not come back, gives no score,
//! and what has no score never wins.

mod answer;
mod closure;
mod code;
mod combined;
mod command;
mod commands;
mod goal;
mod guarded;
pub mod measure;
mod none;
mod registry;
mod score;

pub use closure::{FromFn, from_fn};
pub use code::{Code, Measure};
pub(crate) use combined::Combined;
pub use command::{CommandEval, Program};
pub use goal::{Goal, MinDelta};
pub(crate) use guarded::{Guarded, said as panic_said};
pub use none::Null;
pub(crate) use registry::{CODE, COMMAND, NULL};
pub use registry::{EvalError, EvalRegistry, EvalSetup};
pub use score::{Provenance, Score};

use crate::iteration::StopReason;
use crate::workspace::Oid;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What an eval is told.
#[derive(Clone, Debug)]
pub struct EvalContext {
    /// A clean checkout of the candidate: its top.
    pub bench: PathBuf,
    /// The directory in it that the user started from.
    pub work_dir: PathBuf,
    /// The commit before.
    pub previous_ref: Oid,
    /// Its score.
    pub previous_value: Option<f64>,
    /// By what a value is judged.
    pub goal: Goal,
    /// What the user wants.
    pub objective: String,
    /// The iteration; 0 for the baseline.
    pub iteration: u32,
    /// The run.
    pub run_id: String,
    /// The candidate.
    pub tree: Oid,
    /// Cancelled when the run must end.
    pub cancel: CancellationToken,
}

impl EvalContext {
    /// The score of a candidate that holds and has this value, by the goal of the run and the value before.
    pub fn score(&self, value: f64) -> Score {
        self.goal.score(value, self.previous_value)
    }
}

/// Grades candidates.
#[async_trait]
pub trait Eval: Send + Sync {
    /// The eval's name, for the log.
    fn name(&self) -> &str;

    /// Grades the candidate in `cx.work_dir`. `Err` means that nothing is known of the candidate: a signal or the
    /// environment came between, and the run ends.
    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason>;

    /// The files that it grades by, as git pathspecs from the top of the repository. They are locked: a candidate that
    /// changes one is discarded as tampered with. One that matches nothing keeps the run from beginning.
    fn protected_paths(&self) -> Vec<String> {
        Vec::new()
    }
}

#[async_trait]
impl<E: Eval + ?Sized> Eval for Arc<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        (**self).score(cx).await
    }

    fn protected_paths(&self) -> Vec<String> {
        (**self).protected_paths()
    }
}
