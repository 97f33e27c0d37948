//! What turns a candidate into a score. The orchestrator owns it; the robot only sees what comes out.

mod code;
pub mod measure;
mod none;
mod score;

pub use code::{Code, Measure, MinDelta};
pub use none::Null;
pub use score::Score;

use crate::iteration::StopReason;
use crate::workspace::Oid;
use async_trait::async_trait;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// What an eval is told.
#[derive(Clone, Debug)]
pub struct EvalContext {
    /// A clean checkout of the candidate, in the directory that the user started from.
    pub work_dir: PathBuf,
    /// The commit before.
    pub previous_ref: Oid,
    /// Its score.
    pub previous_value: Option<f64>,
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

/// Grades candidates.
#[async_trait]
pub trait Eval: Send + Sync {
    /// The eval's name, for the log.
    fn name(&self) -> &str;

    /// Grades the candidate in `cx.work_dir`. `Err` means that nothing is known of the candidate: a signal or the
    /// environment came between, and the run ends.
    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason>;
}
