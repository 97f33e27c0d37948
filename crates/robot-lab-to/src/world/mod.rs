//! The real world of a run: robots in a workspace, grading in a bench, commits in the user's repository.

mod cache;
mod conclude;
mod deadline;
mod furnish;
mod hooks;
mod turn;

pub use cache::BenchCache;
pub(crate) use cache::CacheState;
use deadline::Deadline;
pub(crate) use deadline::Waits;
pub(crate) use furnish::{Furnished, Furnishing, Unfurnished};
use furnish::{Zone, broken_setup};

use crate::driver::World;
use crate::eval::{Eval, EvalContext, Score};
use crate::event::Record;
use crate::git_hooks::GitHooks;
use crate::guard::Locked;
use crate::iteration::{Effect, Input, RunState, StopKind, StopReason, Taken, TurnEnd};
use crate::log::Journal;
use crate::prompt::Prompts;
use crate::run::{Halt, RunDir, RunFile};
use crate::settings::Plan;
use crate::worker::{Session, Worker};
use crate::workspace::{
    AcceptError, Branch, Checkout, CommitSpec, Ledger, Oid, RunRepo, Snapshot, SnapshotRules, ZoneError,
};
use async_trait::async_trait;
use futures::FutureExt as _;
use robot_lab::Budget;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use turn::Say;

/// How long a robot has to submit once it is ordered to.
const ORDER_TIME: Duration = Duration::from_secs(120);
/// How long an eval may take to end once the run must.
const EVAL_GRACE: Duration = Duration::from_secs(3);
/// Most locked paths that are named.
const MAX_TAMPERED: usize = 50;

/// What a run works with, once it is set up.
pub(crate) struct RealWorld {
    pub(crate) plan: Plan,
    pub(crate) journal: Arc<Journal>,
    pub(crate) halt: Halt,
    pub(crate) started: Instant,
    /// Time that earlier processes of the run took.
    pub(crate) before: Duration,
    pub(crate) dir: RunDir,
    pub(crate) file: RunFile,
    pub(crate) ledger: Ledger,
    pub(crate) zones: RunRepo,
    /// Made when the run begins.
    pub(crate) branch: Option<Branch>,
    pub(crate) workspace: Checkout,
    pub(crate) bench: Checkout,
    pub(crate) furnishing: Furnishing,
    pub(crate) cache: CacheState,
    pub(crate) worker: Arc<dyn Worker>,
    pub(crate) eval: Arc<dyn Eval>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) prompts: Arc<Prompts>,
    pub(crate) system: String,
    /// What robots may not change.
    pub(crate) locked: Arc<Locked>,
    /// The user's hooks.
    pub(crate) hooks: GitHooks,
    pub(crate) session: Option<Box<dyn Session>>,
    /// The waits of the robot that works.
    pub(crate) waits: Arc<Waits>,
    pub(crate) deadline: Deadline,
    /// Whether a robot has worked in the workspace since it was prepared.
    pub(crate) worked: bool,
    /// Whether something was kept in the run repository.
    pub(crate) kept: bool,
    /// Whether the workspace holds what could not be kept otherwise, so that it stays.
    pub(crate) holds_work: bool,
}

#[async_trait]
impl World for RealWorld {
    fn begin(&self) -> Input {
        Input::Begin {
            elapsed: self.elapsed(),
            halt: self.halt.reason(),
        }
    }

    async fn perform(&mut self, record: &Record, effect: Effect, state: &RunState) -> Option<Input> {
        match effect {
            Effect::Work(key) => {
                self.deadline = self.waits.deadline(self.plan.iteration_timeout);
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
                self.deadline = self.waits.deadline(ORDER_TIME);
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
            Effect::Hooks {
                key,
                tree,
                message,
                pre_commit,
            } => {
                let began = Instant::now();
                let result = self.ask_hooks(&tree, message, pre_commit, state).await;
                let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                Some(Input::Hooked {
                    key,
                    result,
                    elapsed_ms,
                })
            }
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
    /// Time that the run has taken.
    pub(crate) fn elapsed(&self) -> Duration {
        self.before + self.started.elapsed()
    }

    /// Grades the base commit, before a token is spent.
    pub(crate) async fn baseline(&mut self, tree: &Oid) -> Result<Score, StopReason> {
        let base = Some(self.file.base.clone());
        let state = RunState {
            parent: base,
            run_id: self.file.run_id.clone(),
            ..RunState::default()
        };
        let score = self.grade(tree, &state).await?;
        // The user vouches for the base commit, whether verify holds there or not.
        self.save_cache().await;
        Ok(score)
    }

    async fn snapshot(&mut self, state: &RunState) -> Result<Result<Taken, Vec<String>>, StopReason> {
        let parent = parent(state)?;
        let rules = SnapshotRules {
            max_file_bytes: self.plan.max_file_bytes,
        };
        let halt = self.halt.clone();
        tokio::select! {
            snapshot = self.workspace.snapshot(&parent, &rules) => match snapshot.map_err(zone)? {
                Snapshot::Tree(tree) => {
                    let tampered = self.tampered(&tree).await?;
                    Ok(Ok(Taken { tree, tampered }))
                }
                Snapshot::Rejected(reasons) => Ok(Err(reasons.iter().map(ToString::to_string).collect())),
            },
            () = halt.soft().cancelled() => Err(self.halted()),
        }
    }

    async fn grade(&mut self, tree: &Oid, state: &RunState) -> Result<Score, StopReason> {
        let parent = parent(state)?;
        let halt = self.halt.clone();
        self.restore_cache(&parent).await?;
        self.prepare(Zone::Bench, tree, &parent).await?;
        match self.furnish(Zone::Bench, tree, &parent).await {
            Ok(()) => {}
            Err(Unfurnished::Setup {
                detail,
                output,
                locks,
                changed: true,
            }) => {
                return Ok(Score {
                    detail: format!("setup=false ({detail})"),
                    output: Some(broken_setup(&detail, &output, &locks)),
                    ..Score::default()
                });
            }
            Err(failed) => return Err(failed.into_reason(StopReason::environment)),
        }
        let cx = EvalContext {
            bench: self.bench.path().to_owned(),
            work_dir: self.bench.path().join(self.ledger.subdir()),
            previous_ref: parent,
            previous_value: state.parent_value,
            goal: self.plan.goal,
            objective: self.plan.objective.clone(),
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
        &mut self,
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
            sign: self.plan.sign,
        };
        let Some(branch) = &self.branch else {
            return Err(internal("a commit without a branch"));
        };
        // Signing twice makes two commits, so one that is there already must be recognised.
        if spec.sign
            && let Ok(Some(tip)) = self.ledger.tip(branch).await
            && tip != *parent
            && let Ok(true) = self.zones.is_commit_of(&tip, &spec).await
        {
            return match self.ledger.accept(&self.zones, branch, &tip, parent).await {
                Ok(()) => Ok(tip),
                Err(error) => Err(StopReason::environment(chain(&error))),
            };
        }
        let commit = self
            .zones
            .commit_tree(&spec)
            .await
            .map_err(|error| StopReason::environment(chain(&error)))?;
        match self.ledger.accept(&self.zones, branch, &commit, parent).await {
            Ok(()) => {
                self.save_cache().await;
                Ok(commit)
            }
            Err(moved @ (AcceptError::BranchMoved { .. } | AcceptError::CheckedOut { .. })) => Err(
                StopReason::new(StopKind::BranchMoved, format!("branch moved: {moved}")),
            ),
            Err(error) => Err(StopReason::environment(chain(&error))),
        }
    }

    fn halted(&self) -> StopReason {
        self.halt.reason().unwrap_or_else(StopReason::interrupted)
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
