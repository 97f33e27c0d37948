//! The real world of a run: robots in a workspace, grading in a bench, commits in the user's repository.

use crate::driver::World;
use crate::eval::{Eval, EvalContext, Score};
use crate::event::{Event, Key, Record};
use crate::iteration::{Effect, Input, RunState, StopKind, StopReason, TurnEnd};
use crate::log::{Journal, RobotEvents};
use crate::notes;
use crate::prompt::{Prompts, Situation, Standing};
use crate::run::{Halt, RunDir, RunFile};
use crate::settings::Settings;
use crate::worker::{Seat, Session, Worker};
use crate::workspace::{
    AcceptError, Branch, Checkout, CommitSpec, Ledger, Oid, RunRepo, Snapshot, SnapshotRules, ZoneError,
};
use async_trait::async_trait;
use futures::FutureExt as _;
use robot_lab::TokenBudget;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a robot has to submit once it is ordered to.
const ORDER_TIME: Duration = Duration::from_secs(120);
/// How long a robot may take to end its turn once it is cancelled: a little longer than its tools may.
const TURN_GRACE: Duration = Duration::from_millis(3_500);
/// How long an eval may take to end once the run must.
const EVAL_GRACE: Duration = Duration::from_secs(3);
/// How long it may take to keep what an iteration made: after a signal, and otherwise.
const HURRIED_KEEP: Duration = Duration::from_secs(2);
const KEEP: Duration = Duration::from_secs(120);
/// The furthest deadline.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// What a run works with, once it is set up.
pub(crate) struct RealWorld {
    pub(crate) settings: Settings,
    pub(crate) journal: Arc<Journal>,
    pub(crate) halt: Halt,
    pub(crate) started: Instant,
    pub(crate) dir: RunDir,
    pub(crate) file: RunFile,
    pub(crate) ledger: Ledger,
    pub(crate) zones: RunRepo,
    /// Made when the run begins.
    pub(crate) branch: Option<Branch>,
    pub(crate) workspace: Checkout,
    pub(crate) bench: Checkout,
    pub(crate) worker: Arc<dyn Worker>,
    pub(crate) eval: Arc<dyn Eval>,
    pub(crate) budget: Arc<TokenBudget>,
    pub(crate) prompts: Prompts,
    pub(crate) system: String,
    /// What the baseline printed, while the parent still is the base and the gate fails there.
    pub(crate) failing: Option<String>,
    pub(crate) session: Option<Box<dyn Session>>,
    pub(crate) deadline: Instant,
    /// Whether a robot has worked in the workspace since it was prepared.
    pub(crate) worked: bool,
    /// Whether something was kept in the run repository.
    pub(crate) kept: bool,
    /// Whether the workspace holds what could not be kept otherwise, so that it stays.
    pub(crate) holds_work: bool,
}

/// What the robot is told in a turn.
enum Say {
    Turn(String),
    Order(String),
}

#[async_trait]
impl World for RealWorld {
    fn begin(&self) -> Input {
        Input::Begin {
            elapsed: self.started.elapsed(),
            halt: self.halt.reason(),
        }
    }

    async fn perform(&mut self, record: &Record, effect: Effect, state: &RunState) -> Option<Input> {
        match effect {
            Effect::Work(key) => {
                self.deadline = Instant::now() + self.settings.iteration_timeout.min(FAR);
                let end = match self.open(key, state).await {
                    Ok(message) => self.turn(key, Say::Turn(message)).await,
                    Err(reason) => TurnEnd::Halted(reason),
                };
                Some(Input::TurnEnded { key, end })
            }
            Effect::Nudge(key) => Some(self.say(key, self.prompts.nudge().map(Say::Turn)).await),
            Effect::Repair { key, output } => {
                let text = self.prompts.repair(&nonce(), &output).map(Say::Turn);
                Some(self.say(key, text).await)
            }
            Effect::Order { key, limit } => {
                self.deadline = Instant::now() + ORDER_TIME;
                Some(self.say(key, self.prompts.order(&limit).map(Say::Order)).await)
            }
            Effect::Snapshot(key) => Some(Input::Snapshotted {
                key,
                result: self.snapshot(state).await,
            }),
            Effect::Grade { key, tree } => Some(Input::Graded {
                key,
                result: self.grade(&tree, state).await,
            }),
            Effect::Commit {
                key,
                tree,
                parent,
                message,
            } => {
                let commit = self.commit(&tree, &parent, message, record).await;
                Some(match commit {
                    Ok(commit) => Input::Committed { key, commit },
                    Err(reason) => Input::CommitFailed { key, reason },
                })
            }
            Effect::Conclude => {
                self.conclude(record, state).await;
                None
            }
            Effect::Finish => None,
        }
    }
}

impl RealWorld {
    /// Grades the base commit, before a token is spent.
    pub(crate) async fn baseline(&mut self, tree: &Oid) -> Result<Score, StopReason> {
        let base = Some(self.file.base.clone());
        let state = RunState {
            parent: base,
            run_id: self.file.run_id.clone(),
            ..RunState::default()
        };
        let score = self.grade(tree, &state).await?;
        self.failing = (!score.gate_ok).then(|| score.output.clone().unwrap_or_default());
        Ok(score)
    }

    /// Brings the workspace to the parent, and a fresh robot into it. Answers the first message.
    async fn open(&mut self, key: Key, state: &RunState) -> Result<String, StopReason> {
        let parent = parent(state)?;
        let halt = self.halt.clone();
        let soft = halt.soft();
        self.session = None;
        self.worked = false;
        self.branch_is_at(&parent).await?;
        tokio::select! {
            prepared = self.workspace.prepare(&parent, &parent) => prepared.map_err(zone)?,
            () = soft.cancelled() => return Err(self.halted()),
        }
        let seat = Seat {
            workspace: self.workspace.path().to_owned(),
            start: self.ledger.subdir().to_owned(),
            user_top: self.ledger.top().to_owned(),
            events: Arc::new(RobotEvents {
                journal: Arc::clone(&self.journal),
                candidate: key.candidate,
            }),
            budget: Arc::clone(&self.budget),
        };
        let work_dir = seat.workspace.join(&seat.start);
        self.session = Some(
            self.worker
                .open(&self.system, seat)
                .await
                .map_err(StopReason::environment)?,
        );
        self.worked = true;
        // Notes that cannot be read are a smaller loss than a night without an iteration.
        let notes = notes::read(&self.dir.notes()).unwrap_or_else(|error| {
            self.journal.note(Event::Notice {
                message: format!("the notes cannot be read: {error}"),
            });
            String::new()
        });
        let situation = Situation {
            iteration: state.iteration,
            work_dir: &work_dir,
            nonce: &nonce(),
            notes: &notes,
            failing: self.failing.as_deref().filter(|_| state.commits == 0),
            score: self.settings.measure.as_ref().map(|measure| Standing {
                best: state.best,
                parent: state.parent_value,
                target: measure.target,
                minimize: measure.minimize,
                since_improvement: state.since_improvement,
                committed: state.commits > 0,
            }),
        };
        self.prompts.iteration(&situation).map_err(internal)
    }

    async fn say(&mut self, key: Key, text: Result<Say, crate::prompt::PromptError>) -> Input {
        let end = match text {
            Ok(say) => self.turn(key, say).await,
            Err(error) => TurnEnd::Halted(internal(error)),
        };
        Input::TurnEnded { key, end }
    }

    async fn turn(&mut self, key: Key, say: Say) -> TurnEnd {
        let Key {
            candidate, attempt, ..
        } = key;
        if let Err(error) = self.journal.append(Event::AgentStarted { candidate, attempt }) {
            return TurnEnd::Halted(StopReason::environment(error));
        }
        let Some(mut session) = self.session.take() else {
            return TurnEnd::Halted(StopReason::new(StopKind::Internal, "a turn without a robot"));
        };
        let cancel = self.halt.soft().child_token();
        let ended = {
            let mut turn = match &say {
                Say::Turn(text) => session.turn(text, &cancel),
                Say::Order(text) => session.order(text, &cancel),
            };
            let waited = tokio::select! {
                end = &mut turn => Some(end),
                () = tokio::time::sleep_until(self.deadline) => None,
                () = self.halt.soft().cancelled() => None,
                () = self.halt.hard().cancelled() => None,
            };
            match waited {
                Some(end) => Some(end),
                None => {
                    cancel.cancel();
                    tokio::select! {
                        end = timeout(TURN_GRACE, turn) => end.ok(),
                        () = self.halt.hard().cancelled() => None,
                    }
                }
            }
        };
        // A robot that did not come back in time is gone, with everything it runs.
        let came_back = ended.is_some();
        if came_back {
            self.session = Some(session);
        }
        if let Some(failed) = self.journal.failure() {
            return TurnEnd::Halted(StopReason::environment(failed));
        }
        if self.halt.reason().is_some() {
            return TurnEnd::Halted(self.halted());
        }
        match ended {
            Some(TurnEnd::Halted(reason)) if reason.kind == StopKind::MaxTokens => {
                let limit = self.settings.policy.max_tokens.unwrap_or_default();
                TurnEnd::Halted(StopReason::max_tokens(limit))
            }
            Some(TurnEnd::Limit { .. }) if cancel.is_cancelled() => TurnEnd::Limit {
                limit: self.out_of_time(),
            },
            Some(end) => end,
            None => TurnEnd::Error {
                kind: "timeout".into(),
                message: self.out_of_time(),
            },
        }
    }

    async fn snapshot(&mut self, state: &RunState) -> Result<Result<Oid, Vec<String>>, StopReason> {
        let parent = parent(state)?;
        let rules = SnapshotRules {
            max_file_bytes: self.settings.max_file_bytes,
        };
        let halt = self.halt.clone();
        tokio::select! {
            snapshot = self.workspace.snapshot(&parent, &rules) => match snapshot.map_err(zone)? {
                Snapshot::Tree(tree) => Ok(Ok(tree)),
                Snapshot::Rejected(reasons) => Ok(Err(reasons.iter().map(ToString::to_string).collect())),
            },
            () = halt.soft().cancelled() => Err(self.halted()),
        }
    }

    async fn grade(&mut self, tree: &Oid, state: &RunState) -> Result<Score, StopReason> {
        let parent = parent(state)?;
        let halt = self.halt.clone();
        tokio::select! {
            prepared = self.bench.prepare(tree, &parent) => prepared.map_err(zone)?,
            () = halt.soft().cancelled() => return Err(self.halted()),
        }
        let cx = EvalContext {
            work_dir: self.bench.path().join(self.ledger.subdir()),
            previous_ref: parent,
            previous_value: state.parent_value,
            objective: self.settings.objective.clone(),
            iteration: state.iteration,
            run_id: state.run_id.clone(),
            tree: tree.clone(),
            cancel: halt.soft().child_token(),
        };
        let mut scoring = std::pin::pin!(AssertUnwindSafe(self.eval.score(&cx)).catch_unwind());
        let scored = tokio::select! {
            scored = &mut scoring => Some(scored),
            () = halt.soft().cancelled() => None,
        };
        match (self.halt.reason(), scored) {
            (None, Some(Ok(scored))) => scored.map(Score::checked),
            (None, Some(Err(_panic))) => {
                Err(internal("the eval crashed; the candidate is kept, not committed"))
            }
            (reason, scored) => {
                if scored.is_none() {
                    tokio::select! {
                        // What it started should end with it.
                        _ = timeout(EVAL_GRACE, scoring) => {}
                        () = halt.hard().cancelled() => {}
                    }
                }
                Err(reason.unwrap_or_else(StopReason::interrupted))
            }
        }
    }

    /// Ends the run before an iteration is paid for when the branch is not where the run left it.
    async fn branch_is_at(&self, parent: &Oid) -> Result<(), StopReason> {
        let Some(branch) = &self.branch else {
            return Err(internal("an iteration without a branch"));
        };
        match self.ledger.tip(branch).await {
            Ok(Some(tip)) if tip == *parent => Ok(()),
            Ok(found) => {
                let moved = AcceptError::BranchMoved {
                    branch: branch.name().to_owned(),
                    expected: parent.clone(),
                    found,
                };
                Err(StopReason::new(
                    StopKind::BranchMoved,
                    format!("branch moved: {moved}"),
                ))
            }
            Err(error) => Err(StopReason::environment(chain(&error))),
        }
    }

    /// Makes the commit and moves the branch. Dates come from the record that announced it, so that doing it again
    /// makes the same commit.
    async fn commit(
        &self,
        tree: &Oid,
        parent: &Oid,
        message: String,
        record: &Record,
    ) -> Result<Oid, StopReason> {
        let spec = CommitSpec {
            tree: tree.clone(),
            parent: parent.clone(),
            message: self.journal.redact(message).into_bytes(),
            identity: self.ledger.identity().clone(),
            at: record.ts.as_second(),
        };
        let Some(branch) = &self.branch else {
            return Err(internal("a commit without a branch"));
        };
        let commit = self
            .zones
            .commit_tree(&spec)
            .await
            .map_err(|error| StopReason::environment(chain(&error)))?;
        match self.ledger.accept(&self.zones, branch, &commit, parent).await {
            Ok(()) => Ok(commit),
            Err(moved @ AcceptError::BranchMoved { .. }) => Err(StopReason::new(
                StopKind::BranchMoved,
                format!("branch moved: {moved}"),
            )),
            Err(error) => Err(StopReason::environment(chain(&error))),
        }
    }

    /// Keeps what was not committed, and writes the notes and the state.
    async fn conclude(&mut self, record: &Record, state: &RunState) {
        let failures = [
            self.keep(record, state).await,
            self.write_notes(record),
            self.save(state, None),
        ];
        for failure in failures.into_iter().filter_map(Result::err) {
            // Nothing is lost with these: the log has it all. A log that fails stops the run by itself.
            self.journal.note(Event::Notice { message: failure });
        }
    }

    /// Keeps what was made and not committed in the run repository, or else the workspace itself.
    async fn keep(&mut self, record: &Record, state: &RunState) -> Result<(), String> {
        let (candidate, tree) = match &record.event {
            Event::CommitFailed { candidate, tree, .. } | Event::NoImprovement { candidate, tree, .. } => {
                (*candidate, Some(tree.clone()))
            }
            Event::GateFailure { candidate, tree, .. } => (*candidate, tree.clone()),
            Event::Failure { candidate, .. }
            | Event::AgentError { candidate, .. }
            | Event::Interrupted { candidate, .. } => (*candidate, None),
            _ => return Ok(()),
        };
        if !self.worked {
            return Ok(());
        }
        let hurry = self
            .halt
            .reason()
            .is_some_and(|reason| reason.kind == StopKind::Interrupted);
        let limit = if hurry { HURRIED_KEEP } else { KEEP };
        let hard = self.halt.hard().clone();
        let kept = tokio::select! {
            kept = timeout(limit, self.keep_attempt(candidate, tree, record, state)) => {
                kept.unwrap_or_else(|_| Err("there was no time".into()))
            }
            () = hard.cancelled() => Err("there was no time".into()),
        };
        match kept {
            Ok(kept) => self.kept |= kept,
            Err(why) => {
                // A later iteration cleans the workspace; the end of the run leaves it as it is.
                self.holds_work = self.halt.reason().is_some();
                return Err(format!("the discarded attempt was not kept: {why}"));
            }
        }
        Ok(())
    }

    /// Answers whether there was something to keep.
    async fn keep_attempt(
        &mut self,
        candidate: u32,
        tree: Option<Oid>,
        record: &Record,
        state: &RunState,
    ) -> Result<bool, String> {
        let parent = parent(state).map_err(|reason| reason.text)?;
        let tree = match tree {
            Some(tree) => tree,
            None => {
                let rules = SnapshotRules {
                    max_file_bytes: self.settings.max_file_bytes,
                };
                match self
                    .workspace
                    .snapshot(&parent, &rules)
                    .await
                    .map_err(|error| chain(&error))?
                {
                    Snapshot::Tree(tree) => tree,
                    Snapshot::Rejected(reasons) => {
                        return Err(reasons
                            .iter()
                            .map(ToString::to_string)
                            .collect::<Vec<_>>()
                            .join("; "));
                    }
                }
            }
        };
        if Some(&tree) == state.parent_tree.as_ref() {
            return Ok(false);
        }
        let entry = notes::entry(record.iteration, &record.event).unwrap_or_default();
        let message = format!(
            "attempt {}-{candidate}: {}\n{entry}",
            state.iteration,
            record.event.name()
        );
        let kept = self
            .zones
            .keep_attempt(state.iteration, candidate, &tree, &parent, &message)
            .await;
        kept.map(|_| true).map_err(|error| chain(&error))
    }

    fn write_notes(&self, record: &Record) -> Result<(), String> {
        let Some(entry) = notes::entry(record.iteration, &record.event) else {
            return Ok(());
        };
        notes::append(&self.dir.notes(), &entry)
            .map_err(|error| format!("the notes were not written: {error}"))
    }

    /// Writes `run.json`.
    pub(crate) fn save(&mut self, state: &RunState, reason: Option<StopReason>) -> Result<(), String> {
        self.file.state = state.clone();
        self.file.reason = reason;
        self.file.updated = self.journal.now();
        self.dir
            .save(&self.file)
            .map_err(|error| format!("run.json was not written: {error}; the log has it all"))
    }

    fn halted(&self) -> StopReason {
        self.halt.reason().unwrap_or_else(StopReason::interrupted)
    }

    fn out_of_time(&self) -> String {
        format!(
            "iteration timeout ({} s)",
            self.settings.iteration_timeout.as_secs()
        )
    }
}

fn parent(state: &RunState) -> Result<Oid, StopReason> {
    state
        .parent
        .clone()
        .ok_or_else(|| StopReason::new(StopKind::Internal, "there is no parent commit"))
}

/// A mark that robots cannot foresee, so that what they wrote cannot end a fence.
fn nonce() -> String {
    crate::random::hex(12)
}

fn internal(error: impl std::fmt::Display) -> StopReason {
    StopReason::new(StopKind::Internal, error.to_string())
}

fn zone(error: ZoneError) -> StopReason {
    StopReason::environment(chain(&error))
}

/// An error and what caused it, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}
