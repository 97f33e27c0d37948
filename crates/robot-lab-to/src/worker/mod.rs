//! Who does the work of a candidate. The loop knows only this much of it, so that our own robot can be replaced.

mod extras;
mod robot;
mod steps;
mod submit_only;

pub use extras::{Extras, RobotCx};
pub use robot::RobotWorker;
pub use steps::Steps;

use crate::guard::Locked;
use crate::iteration::{StopKind, StopReason, TurnEnd};
use async_trait::async_trait;
use robot_lab::{Budget, EventSink};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Where a candidate is made.
#[derive(Clone)]
pub struct Seat {
    /// The iteration.
    pub iteration: u32,
    /// The workspace.
    pub workspace: PathBuf,
    /// The directory of the workspace that the user started from, relative to it.
    pub start: PathBuf,
    /// The user's checkout; a path in it means the same file in the workspace.
    pub user_top: PathBuf,
    /// Who observes.
    pub events: Arc<dyn EventSink>,
    /// What is charged.
    pub budget: Arc<Budget>,
    /// Where files are kept as they were before a robot changed them.
    pub checkpoints: PathBuf,
    /// What robots may not change.
    pub locked: Arc<Locked>,
    /// The files that are there, for robots that are shown some; empty for others.
    pub files: Vec<PathBuf>,
    /// What the verify command says before any work, where it fails.
    pub failing: Option<String>,
}

/// Makes candidates.
#[async_trait]
pub trait Worker: Send + Sync {
    /// What works, for people: such as `openai/gpt-5.5`.
    fn name(&self) -> String;

    /// Begins a candidate, with a fresh memory.
    async fn open(&self, system: &str, seat: Seat) -> Result<Box<dyn Session>, WorkerError>;
}

/// A candidate's robot, which remembers until the candidate is done.
#[async_trait]
pub trait Session: Send + Sync {
    /// Says something to the robot and lets it work until its turn is over. `cancel` ends the turn, with
    /// [`TurnEnd::Limit`] for want of a better reason.
    async fn turn(&mut self, message: &str, cancel: &CancellationToken) -> TurnEnd;

    /// As [`turn`](Self::turn), with everything but the submission refused.
    async fn order(&mut self, message: &str, cancel: &CancellationToken) -> TurnEnd;
}

/// A worker that cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The workspace cannot be opened.
    #[error("the workspace cannot be opened: {0}")]
    Workspace(#[from] std::io::Error),
    /// Two tools share a name.
    #[error(transparent)]
    Tools(#[from] robot_lab::ToolsetError),
}

impl From<WorkerError> for StopReason {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Workspace(_) => Self::environment(error),
            WorkerError::Tools(_) => Self::new(StopKind::Configuration, error.to_string()),
        }
    }
}
