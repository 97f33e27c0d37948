//! Everything that a run does before its first token, and takes back: for whoever wants to know how it would begin.

use super::price::{check_price, price_notices};
use super::setup::{Traces, check, check_places, create_dir, first_records, notices, prepare};
use super::{Run, RunId, StartError, complete};
use crate::eval::Score;
use crate::event::{Event, Record};
use crate::iteration::{RunState, StopReason};
use crate::settings::Plan;
use crate::workspace::{Git, Ledger, Oid};
use crate::world::RealWorld;
use std::path::{Path, PathBuf};

/// Where the records of a check are while it lasts, below the directory for private copies: none of them is in the
/// user's repository.
const RECORDS: &str = "checks";

/// The records of checks below this directory for private copies. One that no process holds was killed.
#[must_use]
pub fn checks(work_root: &Path) -> PathBuf {
    work_root.join(RECORDS)
}

/// How a run would begin.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The git that is used, and its version.
    pub git: (PathBuf, (u32, u32)),
    /// The top of the checkout.
    pub top: PathBuf,
    /// The directory in it that commands run in; empty at the top.
    pub subdir: PathBuf,
    /// The commit that the run would start from.
    pub base: Oid,
    /// The model.
    pub model: String,
    /// The plan that it would go by.
    pub plan: Plan,
    /// What the user would be told before the first iteration.
    pub notices: Vec<String>,
    /// Files that no robot may change.
    pub locked: Vec<PathBuf>,
    /// What the eval says of the base commit.
    pub baseline: Score,
    /// Why the run would end before its first iteration.
    pub ends: Option<StopReason>,
    /// The system prompt.
    pub system: String,
    /// The first message.
    pub message: String,
}

impl Run {
    /// Sets a new run up and grades its base commit, as [`run`](Self::run) does, and then takes all of it away again.
    /// No branch and no run directory is made, no request is sent, and nothing in the user's repository changes. An
    /// error is one with which the run would not begin.
    pub async fn check(self) -> Result<Checked, StartError> {
        let Self {
            mut place,
            mut plan,
            with,
            halt,
            ..
        } = self;
        let halt = &halt;
        complete(&mut plan, &place);
        check(&plan)?;
        check_price(&plan, with.model.id())?;
        if let Some(fallback) = &with.fallback {
            check_price(&plan, fallback.id())?;
        }
        let git = Git::find(&place.host).await?;
        let ledger = Ledger::discover(&git, &place.repo).await?;
        let run_dir = ledger.top().join(&place.run_dir);
        check_places(&place, &ledger, &run_dir)?;
        writable(&run_dir)?;
        place.run_dir = checks(&place.work_dir);
        let (id, dir) = create_dir(&place.run_dir, || RunId::new(with.clock.now()))?;
        let mut traces = Traces {
            ledger: ledger.clone(),
            branch: None,
            excluded: false,
            run_dir: place.run_dir.clone(),
            dir,
            work: None,
            dirty: None,
        };
        let mut told = notices(&plan, &ledger);
        let fallback = with.fallback.as_ref().map(|model| model.id());
        told.extend(price_notices(&plan, with.model.id(), fallback));
        let prepared = tokio::select! {
            prepared = prepare(place, plan, with, halt, &git, ledger, &id, &mut traces) => prepared,
            () = halt.soft().cancelled() => {
                Err(StartError::Halted(halt.reason().unwrap_or_else(StopReason::interrupted)))
            }
        };
        let checked = match prepared {
            Ok((world, base_tree, baseline)) => tell(&git, world, base_tree, baseline, told),
            Err(error) => Err(error),
        };
        traces.remove().await;
        checked
    }
}

fn tell(
    git: &Git,
    world: RealWorld,
    base_tree: Oid,
    baseline: Score,
    notices: Vec<String>,
) -> Result<Checked, StartError> {
    let (started, eval) = first_records(&world, base_tree, &baseline);
    let first = Event::IterationStarted {
        parent: world.file.base.clone(),
        from: None,
    };
    let events = [(0, started), (0, eval), (1, first)];
    let mut state = RunState::default();
    let mut ends = None;
    for (seq, (iteration, event)) in (1..).zip(events) {
        // The baseline may end a run, before its first iteration.
        ends = state.pending_stop.clone();
        state.apply(&Record {
            seq,
            ts: world.journal.now(),
            iteration,
            event,
        });
    }
    Ok(Checked {
        git: (git.binary().to_owned(), git.version()),
        top: world.ledger.top().to_owned(),
        subdir: world.ledger.subdir().to_owned(),
        base: world.file.base.clone(),
        model: world.file.model.clone(),
        notices,
        locked: world.locked.files().map(Path::to_owned).collect(),
        baseline,
        ends,
        message: world.first_message(&state)?,
        system: world.system.clone(),
        plan: world.plan,
    })
}

/// Whether a directory could be made here, or written to when it is there.
fn writable(dir: &Path) -> Result<(), StartError> {
    let known = dir.ancestors().find(|known| known.exists()).unwrap_or(dir);
    rustix::fs::access(known, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).map_err(|error| {
        StartError::Io {
            path: dir.to_owned(),
            source: error.into(),
        }
    })
}
