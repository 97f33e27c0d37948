//! One run, from start to report.

mod halt;
mod id;
mod setup;
mod store;

pub use halt::Halt;
pub use id::{RunId, slug};
pub use setup::StartError;
pub use store::{RunDir, RunFile, STATE_VERSION};

use crate::clock::{Clock, SystemClock};
use crate::driver::{DriveError, drive};
use crate::eval::Eval;
use crate::event::Event;
use crate::iteration::{RunState, StopKind, StopReason};
use crate::log::Observer;
use crate::settings::Settings;
use crate::workspace::{DiffStat, Oid};
use crate::world::RealWorld;
use robot_lab::Model;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A run that has not begun.
pub struct Run {
    settings: Settings,
    model: Arc<dyn Model>,
    eval: Option<Arc<dyn Eval>>,
    observers: Vec<Arc<dyn Observer>>,
    clock: Arc<dyn Clock>,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// The model.
    pub model: String,
    /// Why it ended.
    pub reason: StopReason,
    /// The run branch.
    pub branch: String,
    /// Where it began.
    pub base: Oid,
    /// The state at the end.
    pub state: RunState,
    /// How long it took.
    pub elapsed: Duration,
    /// What the branch changes, against where it began.
    pub diff: DiffStat,
    /// The notes.
    pub notes: PathBuf,
    /// The log.
    pub log: PathBuf,
    /// The run repository, where discarded attempts are kept.
    pub attempts: PathBuf,
}

impl Run {
    /// A run of this model. Without a verify command every reported success that changes something is committed.
    pub fn new(settings: Settings, model: Arc<dyn Model>) -> Self {
        Self {
            settings,
            model,
            eval: None,
            observers: Vec::new(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Grades with this eval in place of the verify command.
    #[must_use]
    pub fn eval(mut self, eval: Arc<dyn Eval>) -> Self {
        self.eval = Some(eval);
        self
    }

    /// Adds somebody who watches.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Runs until a limit, a stop condition, or `halt`. An error means that nothing began: no branch, no directory of
    /// a run, and the repository as it was.
    pub async fn run(mut self, halt: &Halt) -> Result<RunReport, StartError> {
        self.settings.bound();
        let policy = self.settings.policy.clone();
        let (mut world, run_id) = self.set_up(halt).await?;
        let timer = policy.max_time.map(|limit| {
            let halt = halt.clone();
            let left = limit.saturating_sub(world.started.elapsed());
            tokio::spawn(async move {
                tokio::time::sleep(left).await;
                halt.stop(StopReason::max_time(limit));
            })
        });
        let journal = Arc::clone(&world.journal);
        let reason = match drive(&journal, &policy, &mut world).await {
            Ok(reason) => reason,
            Err(error @ DriveError::Log(_)) => StopReason::environment(error),
            Err(error @ DriveError::Illegal(_)) => StopReason::new(StopKind::Internal, error.to_string()),
        };
        if let Some(timer) = timer {
            timer.abort();
        }
        Ok(finish(world, run_id, reason).await)
    }
}

/// Writes the last records, removes what is of no use any more, and counts.
async fn finish(mut world: RealWorld, run_id: RunId, reason: StopReason) -> RunReport {
    let state = world.journal.state();
    let elapsed = world.started.elapsed();
    let ended = Event::Ended {
        iterations: state.iteration,
        commits: state.commits,
        discarded: state.discarded,
        input_tokens: state.usage.input,
        output_tokens: state.usage.output,
        estimated: state.usage.estimated,
        abort_reason: reason.text.clone(),
        elapsed: elapsed.as_secs_f64(),
    };
    // Where the log cannot be written, the reason says so already.
    world.journal.note(ended);
    if let Err(failure) = world.save(&state, Some(reason.clone())) {
        world.journal.note(Event::Notice { message: failure });
    }
    let base = world.file.base.clone();
    let diff = match &state.parent {
        Some(tip) if state.commits > 0 => world.zones.diff_stat(&base, tip).await.unwrap_or_default(),
        _ => DiffStat::default(),
    };
    let report = RunReport {
        run_id,
        model: world.file.model.clone(),
        reason,
        branch: world.file.branch.clone(),
        base,
        state,
        elapsed,
        diff,
        notes: world.dir.notes(),
        log: world.dir.log(),
        attempts: world.zones.work().run_git(),
    };
    // The robot goes first, and with it everything that works in the workspace.
    world.session = None;
    // A second signal leaves no time for it; `clean` finds them later.
    if !world.settings.keep_workspace && !world.halt.hard().is_cancelled() {
        for checkout in [world.workspace, world.bench] {
            if let Err(error) = checkout.remove().await {
                let message = format!("a workspace was not removed: {}", crate::world::chain(&error));
                world.journal.note(Event::Notice { message });
            }
        }
    }
    report
}
