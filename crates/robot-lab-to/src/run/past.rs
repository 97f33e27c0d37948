//! A run of an earlier process: found, held, and read from its log.

use super::{Began, Learnt, RunDir, RunId};
use crate::event::{Event, LOG_VERSION, Record};
use crate::iteration::{RunState, StopKind};
use crate::log::{ReadLog, read_log};
use crate::settings::{Place, Plan};
use crate::workspace::{FindGitError, Git, Ledger, Oid, StartError as RepositoryError};
use jiff::Timestamp;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A run that may go on. It is held until this is dropped or the run ends.
#[derive(Debug)]
pub struct Past {
    pub(super) id: RunId,
    pub(super) dir: RunDir,
    pub(super) file: File,
    pub(super) log: ReadLog,
    pub(super) plan: Plan,
    pub(super) branch: String,
    pub(super) base: Oid,
    pub(super) started: Timestamp,
}

/// Why a run cannot go on. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// There is no usable git.
    #[error(transparent)]
    Git(#[from] FindGitError),
    /// The repository cannot be used.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// No run of that id.
    #[error("there is no run {wanted} in {}; `robot-to runs` lists them", run_dir.display())]
    NoSuchRun {
        /// The id.
        wanted: String,
        /// Where it was looked for.
        run_dir: PathBuf,
    },
    /// Nothing to go on with.
    #[error("there is no run to resume in {}; all of them are complete, or there are none", run_dir.display())]
    NoneLeft {
        /// Where was looked.
        run_dir: PathBuf,
    },
    /// Another process has it.
    #[error("the run {id} is held by another process; it goes on there")]
    Held {
        /// The run.
        id: RunId,
    },
    /// A newer format.
    #[error(
        "the run {id} is of log version {found}, newer than {LOG_VERSION}; it was left as it is; use a newer robot-to"
    )]
    Newer {
        /// The run.
        id: RunId,
        /// Its version.
        found: u32,
    },
    /// The state was written by a newer program.
    #[error("the run {id} cannot go on: {why}")]
    State {
        /// The run.
        id: RunId,
        /// Which version it is of, and what to do.
        why: io::Error,
    },
    /// The log does not tell how the run began.
    #[error("the run {id} cannot go on: {why}; it was left as it is")]
    Unreadable {
        /// The run.
        id: RunId,
        /// Why.
        why: String,
    },
}

impl Past {
    /// Finds a run and holds it: the one of this id, or the latest that is not complete.
    pub async fn open(place: &Place, wanted: Option<&str>) -> Result<Self, PastError> {
        let git = Git::find(&place.host).await?;
        let run_dir = Ledger::find_top(&git, &place.repo).await?.join(&place.run_dir);
        let io = |id: &RunId, error: io::Error| PastError::Unreadable {
            id: id.clone(),
            why: error.to_string(),
        };
        let no_such = |wanted: &str| PastError::NoSuchRun {
            wanted: wanted.to_owned(),
            run_dir: run_dir.clone(),
        };
        let mut runs = RunDir::list(&run_dir).map_err(|_| no_such(wanted.unwrap_or_default()))?;
        if let Some(wanted) = wanted {
            let found = runs
                .into_iter()
                .find(|(id, _)| id.as_str() == wanted)
                .ok_or_else(|| no_such(wanted))?;
            return Self::hold(found.0, found.1);
        }
        while let Some((id, dir)) = runs.pop() {
            let log = match read_log(&dir.log()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                log => log.map_err(|error| io(&id, error))?,
            };
            // One that died while it was set up has nothing to go on with.
            let began = Began::of(&log.records).is_some();
            if began && !is_complete(&log.records) {
                return Self::hold(id, dir);
            }
        }
        Err(PastError::NoneLeft { run_dir })
    }

    fn hold(id: RunId, dir: RunDir) -> Result<Self, PastError> {
        let unreadable = |why: String| PastError::Unreadable { id: id.clone(), why };
        let Some(file) = dir.hold_log().map_err(|error| unreadable(error.to_string()))? else {
            return Err(PastError::Held { id });
        };
        let log = read_log(&dir.log()).map_err(|error| unreadable(error.to_string()))?;
        let Some(began) = Began::of(&log.records) else {
            return Err(unreadable(format!(
                "it ended before it had begun; start a new one, and clean this one away with `robot-to clean {id}`"
            )));
        };
        if began.version > LOG_VERSION {
            let found = began.version;
            return Err(PastError::Newer { id, found });
        }
        if let Err(why) = dir.check_version() {
            return Err(PastError::State { id, why });
        }
        Ok(Self {
            id,
            dir,
            file,
            plan: began.plan.clone(),
            branch: began.branch.to_owned(),
            base: began.base.clone(),
            started: began.started,
            log,
        })
    }

    /// The run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The plan that it went by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What it has learnt of the servers of its models, as far as that counts by this plan.
    pub fn learnt(&self, plan: &Plan) -> Learnt {
        Learnt::of(&self.log.records, plan)
    }

    /// The state that it ended in.
    pub fn state(&self) -> RunState {
        RunState::fold(&self.log.records)
    }
}

/// Whether a run has done what was asked.
pub(super) fn is_complete(records: &[Record]) -> bool {
    records.iter().rev().find_map(|record| match &record.event {
        Event::Aborted { kind, .. } => Some(matches!(
            kind,
            StopKind::TargetMet | StopKind::StopCondition | StopKind::NothingToDo
        )),
        Event::RunResumed { .. } => Some(false),
        _ => None,
    }) == Some(true)
}
