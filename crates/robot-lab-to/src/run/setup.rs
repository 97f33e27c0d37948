//! Sets a run up: finds the repository, makes the zones, grades the base, and only then makes the branch.

use super::{Halt, Run, RunDir, RunFile, RunId, STATE_VERSION, slug};
use crate::eval::{Code, Null, Score};
use crate::event::{Event, Key, LOG_VERSION, Redactor};
use crate::iteration::{RunState, StopKind, StopReason};
use crate::log::Journal;
use crate::notes;
use crate::prompt::{Facts, Prompts};
use crate::settings::Settings;
use crate::shell::Shell;
use crate::worker::{RobotWorker, Worker};
use crate::workspace::{self, Branch, Checkout, Git, Ledger, Oid, RunRepo, WorkDir};
use crate::world::RealWorld;
use robot_exec::{Env, Exec};
use robot_lab::TokenBudget;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::time::Instant;

/// Longest objective, in bytes.
const MAX_OBJECTIVE: usize = 20_000;

/// Why a run did not begin. The repository is as it was.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting does not fit.
    #[error("{0}; nothing was changed")]
    Configuration(String),
    /// There is no usable git.
    #[error(transparent)]
    Git(#[from] workspace::FindGitError),
    /// The repository cannot be used.
    #[error(transparent)]
    Repository(#[from] workspace::StartError),
    /// The run branch cannot be made.
    #[error(transparent)]
    Branch(#[from] workspace::BranchError),
    /// The run's own repositories cannot be made.
    #[error(transparent)]
    Zone(#[from] workspace::ZoneError),
    /// A file or directory cannot be made.
    #[error("{}: {source}; nothing of the run is left", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A signal or the environment came between.
    #[error("{}; nothing of the run is left", .0.text)]
    Halted(StopReason),
    /// A fault of ours.
    #[error(transparent)]
    Prompt(#[from] crate::prompt::PromptError),
}

/// What exists of a run before it begins, so that it can be taken away again.
struct Traces {
    ledger: Ledger,
    branch: Option<Branch>,
    /// Whether the line in `info/exclude` is new.
    excluded: bool,
    run_dir: PathBuf,
    dir: RunDir,
    work: Option<WorkDir>,
}

impl Run {
    /// Sets the run up, or leaves nothing behind.
    pub(super) async fn set_up(self, halt: &Halt) -> Result<(RealWorld, RunId), StartError> {
        check(&self.settings)?;
        let git = Git::find(&self.settings.host).await?;
        let ledger = Ledger::discover(&git, &self.settings.repo).await?;
        let run_dir = ledger.top().join(&self.settings.run_dir);
        check_places(&self.settings, &ledger, &run_dir)?;
        let (id, dir) = create_dir(&run_dir, || RunId::new(self.clock.now()))?;
        let mut traces = Traces {
            ledger: ledger.clone(),
            branch: None,
            excluded: false,
            run_dir,
            dir,
            work: None,
        };
        let prepared = tokio::select! {
            prepared = self.prepare(halt, &git, ledger, &id, &mut traces) => prepared,
            () = halt.soft().cancelled() => {
                Err(StartError::Halted(halt.reason().unwrap_or_else(StopReason::interrupted)))
            }
        };
        let begun = match prepared {
            Ok((mut world, base_tree, baseline)) => begin(&mut world, base_tree, &baseline, &mut traces)
                .await
                .map(|()| (world, id)),
            Err(error) => Err(error),
        };
        if begun.is_err() {
            traces.remove().await;
        }
        begun
    }

    async fn prepare(
        self,
        halt: &Halt,
        git: &Git,
        ledger: Ledger,
        id: &RunId,
        traces: &mut Traces,
    ) -> Result<(RealWorld, Oid, Score), StartError> {
        let Self {
            settings,
            model,
            eval,
            observers,
            clock,
        } = self;
        let dir = traces.dir.clone();
        traces.excluded = ledger
            .exclude_line(&traces.run_dir)
            .map_err(at(&traces.run_dir))?;
        let log = dir.create_log().map_err(at(&dir.log()))?;
        let redactor = Redactor::new(settings.secrets.iter().cloned());
        let journal = Arc::new(Journal::new(log, clock, redactor, observers, halt.clone()));
        for message in notices(&settings, &ledger) {
            journal
                .append(Event::Notice { message })
                .map_err(at(&dir.log()))?;
        }

        let work_path = settings.work_dir.join("runs").join(id.as_str());
        let work = WorkDir::create(&work_path).map_err(at(&work_path))?;
        traces.work = Some(work.clone());
        let base = ledger.base().clone();
        let zones = RunRepo::create(git, &ledger, &work, &base).await?;
        let workspace = Checkout::create(&zones, "robot-0").await?;
        let bench = Checkout::create(&zones, "bench").await?;
        let base_tree = zones.tree_of(&base).await.map_err(workspace::ZoneError::from)?;

        let tools = shell(&settings, find_bash(&settings));
        let eval = eval.unwrap_or_else(|| match (&settings.verify_command, &settings.measure) {
            (None, None) => Arc::new(Null),
            (verify, measure) => Arc::new(Code {
                shell: shell(&settings, "/bin/sh".into()),
                verify: verify.clone(),
                verify_timeout: settings.verify_timeout,
                measure: measure.clone(),
            }),
        });
        let worker: Arc<dyn Worker> = Arc::new(RobotWorker {
            model,
            shell: tools,
            max_tool_calls: settings.max_tool_calls,
            max_retries: settings.max_retries,
        });
        let prompts = Prompts::new()?;
        let system = prompts.system(&Facts {
            objective: &settings.objective,
            verify_command: settings.verify_command.as_deref(),
            measure: settings
                .measure
                .as_ref()
                .map(|measure| (measure.command.as_str(), measure.minimize)),
            stop_when: settings.policy.stop_when.as_deref(),
        })?;
        let now = journal.now();
        let file = RunFile {
            version: STATE_VERSION,
            run_id: id.to_string(),
            objective: settings.objective.clone(),
            branch: String::new(),
            base: base.clone(),
            model: worker.name(),
            verify_command: settings.verify_command.clone(),
            started: now,
            updated: now,
            reason: None,
            state: RunState::default(),
        };
        let budget = Arc::new(TokenBudget::new(settings.policy.max_tokens, 0));
        let mut world = RealWorld {
            settings,
            journal,
            halt: halt.clone(),
            started: Instant::now(),
            deadline: Instant::now(),
            dir,
            file,
            ledger,
            zones,
            branch: None,
            workspace,
            bench,
            worker,
            eval,
            budget,
            prompts,
            system,
            failing: None,
            session: None,
            worked: false,
            kept: false,
            holds_work: false,
        };
        let baseline = world.baseline(&base_tree).await.map_err(not_begun)?;
        Ok((world, base_tree, baseline))
    }
}

/// Makes the branch, and writes the first records of the run.
async fn begin(
    world: &mut RealWorld,
    base_tree: Oid,
    baseline: &Score,
    traces: &mut Traces,
) -> Result<(), StartError> {
    let base = world.file.base.clone();
    let run_id = world.file.run_id.clone();
    let log = world.dir.log();
    let notes = notes::header(&run_id, &world.journal.redact(world.settings.objective.clone()));
    notes::append(&world.dir.notes(), &notes).map_err(at(&world.dir.notes()))?;
    let branch = world
        .ledger
        .create_branch(&format!("{}-{run_id}", slug(&world.settings.objective)))
        .await?;
    traces.branch = Some(branch.clone());
    world.file.branch = branch.name().to_owned();
    let started = Event::RunStarted {
        version: LOG_VERSION,
        run_id,
        objective: world.settings.objective.clone(),
        branch: branch.name().to_owned(),
        base,
        base_tree: base_tree.clone(),
        model: world.file.model.clone(),
        eval: world.eval.name().to_owned(),
        minimize: world
            .settings
            .measure
            .as_ref()
            .is_some_and(|measure| measure.minimize),
    };
    world.branch = Some(branch);
    world.journal.append(started).map_err(at(&log))?;
    let eval = Event::eval(
        Key {
            iteration: 0,
            candidate: 0,
            attempt: 0,
        },
        base_tree,
        baseline,
    );
    world.journal.append(eval).map_err(at(&log))?;
    let state = world.journal.state();
    world
        .save(&state, None)
        .map_err(|failure| StartError::Halted(StopReason::environment(failure)))
}

impl Traces {
    /// Takes everything away that was made. What cannot be removed harms nothing.
    async fn remove(self) {
        if let Some(branch) = &self.branch {
            drop(self.ledger.remove_branch(branch).await);
        }
        drop(self.dir.remove());
        // These two go only when no other run is in them.
        drop(std::fs::remove_dir(self.run_dir.join("runs")));
        let last = std::fs::remove_dir(&self.run_dir).is_ok();
        if self.excluded && last {
            drop(self.ledger.remove_exclude_line(&self.run_dir));
        }
        if let Some(work) = self.work {
            drop(work.remove_all());
        }
    }
}

/// Refuses places that a run would spoil, or be spoilt by.
fn check_places(settings: &Settings, ledger: &Ledger, run_dir: &Path) -> Result<(), StartError> {
    let real = |path: &Path| {
        path.ancestors()
            .find_map(|known| {
                let rest = path.strip_prefix(known).ok()?;
                Some(known.canonicalize().ok()?.join(rest))
            })
            .unwrap_or_else(|| path.to_owned())
    };
    let work = real(&settings.work_dir);
    for inside in [ledger.top(), ledger.git_dir()] {
        if work.starts_with(real(inside)) {
            return Err(StartError::Configuration(format!(
                "the work directory {} is inside the repository; choose one outside it with --work-dir",
                work.display()
            )));
        }
    }
    let others = std::fs::read_dir(run_dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    if others.into_iter().any(|entry| entry.file_name() != "runs") {
        return Err(StartError::Configuration(format!(
            "the run directory {} holds other things, and all of it would be hidden from git; choose one of its own \
             with --run-dir",
            run_dir.display()
        )));
    }
    Ok(())
}

fn check(settings: &Settings) -> Result<(), StartError> {
    let configuration = |text: &str| Err(StartError::Configuration(text.into()));
    if settings.objective.trim().is_empty() {
        return configuration("the objective is empty; say what should be better");
    }
    if settings.objective.len() > MAX_OBJECTIVE {
        return configuration(
            "the objective is longer than 20000 bytes; put the details into a file of the repository",
        );
    }
    if settings
        .verify_command
        .as_ref()
        .is_some_and(|command| command.trim().is_empty())
    {
        return configuration("the verify command is empty; leave it out to grade by the robot's word alone");
    }
    Ok(())
}

fn create_dir(run_dir: &Path, mut id: impl FnMut() -> RunId) -> Result<(RunId, RunDir), StartError> {
    let mut tries = 0;
    loop {
        let id = id();
        match RunDir::create(run_dir, &id) {
            Ok(dir) => return Ok((id, dir)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 10 => tries += 1,
            Err(source) => {
                return Err(StartError::Io {
                    path: run_dir.to_owned(),
                    source,
                });
            }
        }
    }
}

/// What the user should know before the first iteration.
fn notices(settings: &Settings, ledger: &Ledger) -> Vec<String> {
    let mut notices = Vec::new();
    match ledger.dirty_paths() {
        0 => {}
        1 => notices.push("1 uncommitted change is not part of the run; it stays as it is".into()),
        n => notices.push(format!(
            "{n} uncommitted changes are not part of the run; they stay as they are"
        )),
    }
    let policy = &settings.policy;
    match policy.stop_on_plateau {
        _ if policy.has_limit() => {}
        Some(n) if settings.measure.is_some() => notices.push(format!(
            "no limit of iterations, tokens or time: the run ends after {n} iterations in a row without improvement"
        )),
        _ => notices.push(format!(
            "no limit of iterations, tokens or time: the run ends after {} failures in a row, when there is nothing to \
             do, or when you stop it",
            policy.max_consecutive_failures
        )),
    }
    notices
}

fn shell(settings: &Settings, program: OsString) -> Shell {
    let host = settings
        .host
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    Shell::new(
        Exec::new(&settings.helper),
        Env::allow_listed(host, &settings.env),
        program,
    )
}

/// The user's bash, or the system's shell where there is none.
fn find_bash(settings: &Settings) -> OsString {
    let path = settings.host.get("PATH").unwrap_or_default();
    let found = std::env::split_paths(path)
        .map(|dir| dir.join("bash"))
        .find(|bash| bash.is_absolute() && bash.is_file());
    found.map_or_else(|| "/bin/sh".into(), PathBuf::into_os_string)
}

fn not_begun(reason: StopReason) -> StartError {
    match reason.kind {
        StopKind::Configuration => StartError::Configuration(reason.text),
        _ => StartError::Halted(reason),
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StartError {
    let path = path.to_owned();
    move |source| StartError::Io { path, source }
}
