//! One run, from start to report.

mod assemble;
mod builder;
mod check;
mod checkouts;
mod dirty;
mod grader;
mod halt;
mod hints;
mod id;
mod learnt;
mod logged;
mod past;
mod price;
mod resume;
mod setup;
mod standing;
mod store;
mod trash;

pub use builder::RunBuilder;
pub use check::{Checked, checks};
pub use halt::Halt;
pub use id::{RunId, slug};
pub use learnt::Learnt;
pub use logged::{Began, Gate, LogError, Logged, LoggedIteration};
pub use past::{Past, PastError};
pub use setup::StartError;
pub use standing::Standing;
pub use store::{Hold, RunDir, RunFile, STATE_VERSION};
pub use trash::{Trash, TrashError, orphans};

use crate::driver::{DriveError, drive};
use crate::event::{Event, Redactor};
use crate::iteration::{RunState, StopKind, StopReason};
use crate::settings::{Place, Plan};
use crate::workspace::{DiffStat, Oid};
use crate::world::RealWorld;
use assemble::With;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long tidying up may take when somebody waits for the end.
const TIDY_TIME: Duration = Duration::from_millis(1_500);

/// A run that has not begun, or that has not gone on yet: see [`Run::builder`].
pub struct Run {
    place: Place,
    plan: Plan,
    past: Option<Past>,
    with: With,
    halt: Halt,
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
    /// The run repository, when something that was not committed is kept there.
    pub attempts: Option<PathBuf>,
    /// The workspace, when it holds what could not be kept otherwise.
    pub workspace: Option<PathBuf>,
    /// Records that observers did not see because they were too slow.
    pub missed: u64,
}

impl Run {
    /// Begins to build a new run. Without a verify command or an eval, every reported success that changes something is
    /// committed.
    pub fn builder(objective: impl Into<String>) -> RunBuilder {
        RunBuilder::new(Plan::new(objective), None)
    }

    /// Begins to build a run of an earlier process that goes on, by its own plan unless that is changed.
    pub fn resume(past: Past) -> RunBuilder {
        RunBuilder::new(past.plan().clone(), Some(past))
    }

    /// Runs until a limit, a stop condition, or the halt that it was built with. An error means that nothing began: no branch, no directory of
    /// a run, and the repository as it was.
    pub async fn run(self) -> Result<RunReport, StartError> {
        let Self {
            place,
            mut plan,
            past,
            with,
            halt,
        } = self;
        let halt = &halt;
        complete(&mut plan, &place);
        let policy = plan.deciding();
        let before = past.as_ref().map_or(Duration::ZERO, |past| {
            Duration::from_millis(past.state().elapsed_ms)
        });
        // Ends with this function, however it ends.
        let mut timer = JoinSet::new();
        if let Some(limit) = policy.max_time {
            let halt = halt.clone();
            let left = limit.saturating_sub(before);
            timer.spawn(async move {
                tokio::time::sleep(left).await;
                halt.stop(StopReason::max_time(limit));
            });
        }
        // These two are large, and the caller should not carry them.
        let (mut world, run_id) = match past {
            None => Box::pin(Self::set_up(place, plan, with, halt)).await?,
            Some(past) => Box::pin(Self::set_up_again(place, plan, past, with, halt)).await?,
        };
        let journal = Arc::clone(&world.journal);
        let reason = match Box::pin(drive(&journal, &policy, &mut world)).await {
            Ok(reason) => reason,
            Err(error) => {
                // The log does not tell what is in the workspace, so it stays.
                world.holds_work = true;
                broke_down(&world, error).await
            }
        };
        Ok(Box::pin(finish(world, run_id, reason)).await)
    }
}

/// Completes a plan before anything is done by it.
fn complete(plan: &mut Plan, place: &Place) {
    plan.bound();
    // It becomes the name of a branch, and is written in places that are not the log.
    let redactor = Redactor::new(place.secrets.iter().cloned());
    plan.objective = redactor.text(std::mem::take(&mut plan.objective));
    plan.instructions = plan.instructions.take().map(|text| redactor.text(text));
}

/// Why the run ends that the log cannot tell of.
async fn broke_down(world: &RealWorld, error: DriveError) -> StopReason {
    let mut reason = match error {
        DriveError::Log(_) => StopReason::environment(error),
        DriveError::Illegal(_) => StopReason::new(StopKind::Internal, error.to_string()),
    };
    let known = world.journal.state().parent;
    if let Some(branch) = &world.branch
        && let Ok(tip) = world.ledger.tip(branch).await
        && tip != known
    {
        let tip = tip.map_or_else(|| "nothing".into(), |tip| tip.to_string());
        reason.text.push_str(&format!(
            "; the log ends before the branch, which points to {tip}"
        ));
    }
    reason
}

/// Counts, tidies up, and writes the last record.
async fn finish(mut world: RealWorld, run_id: RunId, reason: StopReason) -> RunReport {
    let state = world.journal.state();
    let elapsed = world.elapsed();
    // The robot goes first, and with it everything that works in the workspace.
    world.session = None;
    let base = world.file.base.clone();
    let diff = match &state.parent {
        Some(tip) if state.commits > 0 => timeout(TIDY_TIME, world.zones.diff_stat(&base, tip))
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default(),
        _ => DiffStat::default(),
    };
    let workspace = world.holds_work.then(|| world.workspace.path().to_owned());
    if !world.plan.keep_workspace {
        tidy(&world).await;
    }
    // Where the log cannot be written, the reason says so already.
    world.journal.note(Event::Ended {
        iterations: state.iteration,
        commits: state.commits,
        discarded: state.discarded,
        input_tokens: state.usage.input,
        output_tokens: state.usage.output,
        estimated: state.usage.estimated,
        abort_reason: reason.text.clone(),
        elapsed: elapsed.as_secs_f64(),
        cost: state.known_cost(),
    });
    let state = world.journal.state();
    if let Err(failure) = world.save(&state, Some(reason.clone())) {
        world.journal.note(Event::Notice { message: failure });
    }
    let missed = world.journal.flush(Duration::from_secs(1));
    RunReport {
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
        attempts: world.kept.then(|| world.zones.work().run_git()),
        workspace,
        missed,
    }
}

/// Removes what is of no use once a run is over. What there is no time for stays, and harms nothing.
async fn tidy(world: &RealWorld) {
    let work = world.zones.work().clone();
    let mut paths = vec![
        work.visible_git(),
        work.tmp(),
        work.notes(),
        work.bench_cache(),
        world.bench.path().to_owned(),
    ];
    if !world.holds_work {
        paths.push(world.workspace.path().to_owned());
    }
    let remove = tokio::task::spawn_blocking(move || {
        paths
            .iter()
            .filter_map(|path| work.remove(path).err())
            .map(|error| error.to_string())
            .collect::<Vec<_>>()
    });
    let hard = world.halt.hard().clone();
    let limit = if world.halt.reason().is_some() {
        TIDY_TIME
    } else {
        Duration::from_secs(120)
    };
    let failures = tokio::select! {
        removed = timeout(limit, remove) => match removed {
            Ok(removed) => removed.unwrap_or_default(),
            // Whoever ends a run early knows that there is no time.
            Err(_) if world.halt.reason().is_some() => Vec::new(),
            Err(_) => vec![format!(
                "{} s were not enough; {:?} can be deleted",
                limit.as_secs(),
                world.zones.work().path().join("checkouts")
            )],
        },
        () = hard.cancelled() => Vec::new(),
    };
    for failure in failures {
        world.journal.note(Event::Notice {
            message: format!("a workspace was not removed: {failure}"),
        });
    }
}
