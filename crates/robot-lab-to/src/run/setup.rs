//! Sets a new run up: finds the repository, makes the zones, grades the base, and only then makes the branch.

use super::assemble::{Parts, WORKSPACE, With, assemble, work_dir};
use super::dirty::commit_dirty;
use super::price::{check_price, price_notices};
use super::{Halt, Run, RunDir, RunId, hints, slug};
use crate::eval::{Goal, Score};
use crate::event::{Event, Key, LOG_VERSION, Redactor};
use crate::iteration::{StopKind, StopReason};
use crate::log::Journal;
use crate::notes;
use crate::prompt::MAX_INSTRUCTIONS;
use crate::settings::{Place, Plan};
use crate::workspace::{self, Branch, CommitSpec, Git, Ledger, Oid, RunRepo, WorkDir};
use crate::world::{RealWorld, Unfurnished};
use robot_lab::counted;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest objective, and longest command, in bytes.
const MAX_OBJECTIVE: usize = 20_000;
const MAX_COMMAND: usize = 20_000;

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
    #[error("{} cannot be used; nothing of the run is left", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A signal or the environment came between.
    #[error("{}; nothing of the run is left", .0.text)]
    Halted(StopReason),
    /// The disk is too full.
    #[error(
        "{} has {free} MiB free, and a run here needs {needed} MiB to begin; nothing of it is left; make room, or choose \
         another place with {flag}", path.display()
    )]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// What moves it.
        flag: &'static str,
        /// What is free, in MiB.
        free: u64,
        /// What is needed, in MiB.
        needed: u64,
    },
    /// The locked files cannot be resolved.
    #[error("{0}; nothing was changed")]
    Lock(#[from] crate::guard::LockError),
    /// A fault of ours.
    #[error(transparent)]
    Prompt(#[from] crate::prompt::PromptError),
}

/// What exists of a run before it begins, so that it can be taken away again.
pub(super) struct Traces {
    pub(super) ledger: Ledger,
    pub(super) branch: Option<Branch>,
    /// Whether the line in `info/exclude` is new.
    pub(super) excluded: bool,
    pub(super) run_dir: PathBuf,
    pub(super) dir: RunDir,
    pub(super) work: Option<WorkDir>,
    /// The commit of the uncommitted changes, which the user's repository does not have yet, and its parent.
    pub(super) dirty: Option<(Oid, Oid)>,
}

impl Run {
    /// Sets a new run up, or leaves nothing behind.
    pub(super) async fn set_up(
        place: Place,
        mut plan: Plan,
        with: With,
        halt: &Halt,
    ) -> Result<(RealWorld, RunId), StartError> {
        check(&plan)?;
        check_price(&plan, with.model.id())?;
        if let Some(fallback) = &with.fallback {
            check_price(&plan, fallback.id())?;
        }
        let git = Git::find(&place.host).await?;
        let ledger = Ledger::discover(&git, &place.repo).await?;
        plan.subdir = ledger.subdir().to_str().map(str::to_owned);
        let run_dir = ledger.top().join(&place.run_dir);
        check_places(&place, &ledger, &run_dir)?;
        let (id, dir) = create_dir(&run_dir, || RunId::new(with.clock.now()))?;
        let mut traces = Traces {
            ledger: ledger.clone(),
            branch: None,
            excluded: false,
            run_dir,
            dir,
            work: None,
            dirty: None,
        };
        let prepared = tokio::select! {
            prepared = prepare(place, plan, with, halt, &git, ledger, &id, &mut traces) => prepared,
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
}

#[expect(
    clippy::too_many_arguments,
    reason = "it is one step of `set_up`, which can be given up half-way"
)]
pub(super) async fn prepare(
    place: Place,
    plan: Plan,
    with: With,
    halt: &Halt,
    git: &Git,
    mut ledger: Ledger,
    id: &RunId,
    traces: &mut Traces,
) -> Result<(RealWorld, Oid, Score), StartError> {
    let dir = traces.dir.clone();
    traces.excluded = ledger
        .exclude_line(&traces.run_dir)
        .map_err(at(&traces.run_dir))?;
    let log = dir.create_log().map_err(at(&dir.log()))?;
    let redactor = Redactor::new(place.secrets.iter().cloned());
    let journal = Journal::new(
        log,
        Arc::clone(&with.clock),
        redactor,
        with.observers.clone(),
        halt.clone(),
    );
    let told = notices(&plan, &ledger).into_iter();
    let fallback = with.fallback.as_ref().map(|model| model.id());
    for message in told.chain(price_notices(&plan, with.model.id(), fallback)) {
        journal
            .append(Event::Notice { message })
            .map_err(at(&dir.log()))?;
    }
    let work = WorkDir::create(&work_dir(&place.work_dir, id)).map_err(at(&place.work_dir))?;
    traces.work = Some(work.clone());
    let head = ledger.base().clone();
    let zones = RunRepo::create(git, &ledger, &work, &head).await?;
    let filters = zones
        .foreign_filters(&head)
        .await
        .map_err(workspace::ZoneError::from)?
        .join(", ");
    if !filters.is_empty() && plan.include_dirty {
        return Err(StartError::Configuration(format!(
            "--include-dirty would commit files without the filter {filters} that .gitattributes gives them, such as \
             secrets in clear; commit them yourself, and leave it out"
        )));
    }
    if !filters.is_empty() {
        journal.note(Event::Notice {
            message: format!(
                "the filter {filters} of .gitattributes is not run: its files are seen and committed as git stores them"
            ),
        });
    }
    if plan.sign {
        // Before anything else is signed: its error says what to do.
        let tree = zones.tree_of(&head).await.map_err(workspace::ZoneError::from)?;
        try_to_sign(&zones, &ledger, &head, &tree).await?;
    }
    if plan.include_dirty {
        let (at, cancel) = (journal.now().as_second(), halt.soft().child_token());
        let made = commit_dirty(&plan, &ledger, &zones, WORKSPACE, id, at, &cancel).await?;
        if let Some((commit, paths)) = made {
            let are = if paths == 1 { "is" } else { "are" };
            journal.note(Event::Notice {
                message: format!(
                    "{} {are} the commit {} on top of {}, which the run starts from; your checkout stays as it is",
                    counted(paths, "uncommitted change"),
                    commit.short(),
                    head.short()
                ),
            });
            ledger.start_from(commit.clone());
            traces.ledger = ledger.clone();
            traces.dirty = Some((commit, head));
        }
    }
    let base = ledger.base().clone();
    let base_tree = zones.tree_of(&base).await.map_err(workspace::ZoneError::from)?;
    let started = journal.now();
    let mut world = assemble(Parts {
        place,
        plan,
        with,
        halt: halt.clone(),
        journal: Arc::new(journal),
        dir,
        id: id.clone(),
        base,
        branch: None,
        started,
        ledger,
        zones,
    })
    .await?;
    let ready = world.furnish_all(&world.file.base.clone()).await;
    ready.map_err(not_ready)?;
    match world.baseline(&base_tree).await {
        Ok(baseline) => {
            world.try_hooks(&base_tree).await.map_err(not_begun)?;
            Ok((world, base_tree, baseline))
        }
        Err(mut reason) => {
            if reason.kind == StopKind::Configuration
                && let Some(hint) = hints::missing(&world.plan, &world.ledger).await
            {
                reason.text = format!("{}; {hint}", reason.text.trim_end());
            }
            Err(not_begun(reason))
        }
    }
}

/// Signs a commit that nothing will point to, so that a key that cannot be used ends the run before it begins.
pub(super) async fn try_to_sign(
    zones: &RunRepo,
    ledger: &Ledger,
    base: &Oid,
    base_tree: &Oid,
) -> Result<(), StartError> {
    let spec = CommitSpec {
        tree: base_tree.clone(),
        parent: base.clone(),
        message: b"robot-to: can this be signed?\n".to_vec(),
        identity: ledger.identity().clone(),
        at: 0,
        sign: true,
    };
    zones.commit_tree(&spec).await.map(drop).map_err(|error| {
        StartError::Configuration(format!(
            "commits cannot be signed without asking anybody: {error}; see `git config --get-regexp '^(user.signingkey|gpg)'`, \
             or leave out --sign"
        ))
    })
}

/// Makes the branch, and writes the first records of the run.
async fn begin(
    world: &mut RealWorld,
    base_tree: Oid,
    baseline: &Score,
    traces: &mut Traces,
) -> Result<(), StartError> {
    let run_id = world.file.run_id.clone();
    let log = world.dir.log();
    let notes = notes::header(&run_id, &world.journal.redact(world.plan.objective.clone()));
    notes::append(&world.dir.notes(), &notes).map_err(at(&world.dir.notes()))?;
    if let Some((commit, head)) = &traces.dirty {
        world.ledger.take_objects(&world.zones, commit, head).await?;
    }
    let branch = world
        .ledger
        .create_branch(&format!("{}-{run_id}", slug(&world.plan.objective)))
        .await?;
    traces.branch = Some(branch.clone());
    world.file.branch = branch.name().to_owned();
    let (started, eval) = first_records(world, base_tree, baseline);
    world.branch = Some(branch);
    world.journal.append(started).map_err(at(&log))?;
    world.journal.append(eval).map_err(at(&log))?;
    if !baseline.gate_ok
        && let Some(message) = hints::missing(&world.plan, &world.ledger).await
    {
        world.journal.note(Event::Notice { message });
    }
    let state = world.journal.state();
    world
        .save(&state, None)
        .map_err(|failure| StartError::Halted(StopReason::environment(failure)))
}

/// What a run begins with: its plan, and the score of the base commit.
pub(super) fn first_records(world: &RealWorld, base_tree: Oid, baseline: &Score) -> (Event, Event) {
    let started = Event::RunStarted {
        version: LOG_VERSION,
        run_id: world.file.run_id.clone(),
        objective: world.plan.objective.clone(),
        branch: world.file.branch.clone(),
        base: world.file.base.clone(),
        base_tree: base_tree.clone(),
        model: world.file.model.clone(),
        eval: world.eval.name().to_owned(),
        hooks: world.hooks.names(),
        plan: Box::new(world.plan.clone()),
    };
    let key = Key {
        iteration: 0,
        candidate: 0,
        attempt: 0,
    };
    (started, Event::eval(key, base_tree, baseline))
}

impl Traces {
    /// Takes everything away that was made. What cannot be removed harms nothing.
    pub(super) async fn remove(self) {
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
pub(super) fn check_places(place: &Place, ledger: &Ledger, run_dir: &Path) -> Result<(), StartError> {
    let real = |path: &Path| {
        path.ancestors()
            .find_map(|known| {
                let rest = path.strip_prefix(known).ok()?;
                Some(known.canonicalize().ok()?.join(rest))
            })
            .unwrap_or_else(|| path.to_owned())
    };
    let work = real(&place.work_dir);
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

pub(super) fn check(plan: &Plan) -> Result<(), StartError> {
    let configuration = |text: &str| Err(StartError::Configuration(text.into()));
    if plan.objective.trim().is_empty() {
        return configuration("the objective is empty; say what should be better");
    }
    if plan.objective.len() > MAX_OBJECTIVE {
        return configuration(
            "the objective is longer than 20000 bytes; put the details into a file of the repository",
        );
    }
    if plan
        .verify_command
        .as_ref()
        .is_some_and(|command| command.trim().is_empty())
    {
        return configuration("the verify command is empty; leave it out to grade by the robot's word alone");
    }
    if plan.goal != Goal::default() && !plan.is_scored() {
        return configuration(
            "a target, a direction or a smallest change needs a number: give a measure command or an eval that has a value",
        );
    }
    if plan
        .setup
        .as_ref()
        .is_some_and(|command| command.trim().is_empty())
    {
        return configuration("the setup command is empty; leave it out when nothing is to be set up");
    }
    let measure = plan.measure.as_ref().map(|measure| &measure.command);
    for (what, text) in [
        ("verify command", plan.verify_command.as_ref()),
        ("measure command", measure),
        ("setup command", plan.setup.as_ref()),
        ("stop condition", plan.policy.stop_when.as_ref()),
    ] {
        if text.is_some_and(|text| text.len() > MAX_COMMAND) {
            return Err(StartError::Configuration(format!(
                "the {what} is longer than {MAX_COMMAND} bytes; put it into a file of the repository"
            )));
        }
    }
    if plan
        .instructions
        .as_ref()
        .is_some_and(|text| text.len() > MAX_INSTRUCTIONS)
    {
        return Err(StartError::Configuration(format!(
            "the instructions are longer than {MAX_INSTRUCTIONS} bytes; put the details into a file of the repository"
        )));
    }
    Ok(())
}

pub(super) fn create_dir(
    run_dir: &Path,
    mut id: impl FnMut() -> RunId,
) -> Result<(RunId, RunDir), StartError> {
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
pub(super) fn notices(plan: &Plan, ledger: &Ledger) -> Vec<String> {
    let mut notices = Vec::new();
    match ledger.dirty_paths() {
        _ if plan.include_dirty => {}
        0 => {}
        1 => notices.push("1 uncommitted change is not part of the run; it stays as it is".into()),
        n => notices.push(format!(
            "{n} uncommitted changes are not part of the run; they stay as they are"
        )),
    }
    let policy = &plan.policy;
    match policy.stop_on_plateau {
        _ if policy.has_limit() => {}
        Some(n) if plan.is_scored() => notices.push(format!(
            "no limit of iterations, tokens, cost or time: the run ends after {} in a row without improvement",
            counted(n, "iteration")
        )),
        _ => notices.push(format!(
            "no limit of iterations, tokens, cost or time: the run ends after {} in a row, when there is nothing to \
             do, or when you stop it",
            counted(policy.max_consecutive_failures, "failure")
        )),
    }
    notices
}

pub(super) fn not_begun(reason: StopReason) -> StartError {
    match reason.kind {
        StopKind::Configuration => StartError::Configuration(reason.text),
        _ => StartError::Halted(reason),
    }
}

pub(super) fn not_ready(failed: Unfurnished) -> StartError {
    not_begun(failed.into_reason(|text| StopReason::new(StopKind::Configuration, text)))
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> StartError {
    let path = path.to_owned();
    move |source| StartError::Io { path, source }
}
