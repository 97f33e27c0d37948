//! Our own robot as a worker: a fresh one, with fresh tools and hooks, for each candidate.

use super::steps::{SharedStep, StepsSession, WholeFiles};
use super::submit_only::SubmitOnly;
use super::{Extras, RobotCx, Seat, Session, Steps, Worker, WorkerError};
use crate::clock::Clock;
use crate::eval::panic_said;
use crate::guard::{
    AnswerLimit, Checkpoints, EarlyCheck, Files, GraderLock, Guards, Lint, Quality, ReadBeforeEdit, Repeats,
    StopAtGreen, WriteGuard,
};
use crate::iteration::{StopKind, StopReason, TurnEnd};
use crate::shell::Shell;
use crate::tools::{Bash, Edit, Read, Root, Submissions, SubmitResult, Write};
use async_trait::async_trait;
use robot_lab::{
    Budget, BudgetLimit, Hook, Limiter, Model, ModelError, ModelErrorKind, Patience, Robot, RobotBuilder,
    RunError, StopReason as RobotStop, Toolset,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Tool calls that a robot may still make once it is ordered to submit.
const ORDERED_CALLS: u32 = 3;

/// Builds robots over one model.
pub struct RobotWorker {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Where `bash` runs its commands.
    pub shell: Shell,
    /// Tool calls of one iteration.
    pub max_tool_calls: u32,
    /// The limiter of its key, shared by all robots of the run.
    pub limiter: Arc<Limiter>,
    /// The model that is asked while the first one is out of order, with its limiter.
    pub fallback: Option<(Arc<dyn Model>, Arc<Limiter>)>,
    /// How long providers are waited for.
    pub patience: Patience,
    /// Tells when a limit ends that is not waited for.
    pub clock: Arc<dyn Clock>,
    /// Whether a submission has a type and a scope.
    pub conventional: bool,
    /// Whether it has the built-in tools.
    pub builtin: bool,
    /// What it is guarded by.
    pub guards: Guards,
    /// Whether it works in small steps, and how.
    pub steps: Option<Steps>,
    /// What the program adds.
    pub extras: Extras,
}

impl RobotWorker {
    /// The guards around its tools, the outermost first. One that answers with whole files may write them.
    fn hooks(&self, seat: &Seat, root: &Arc<Root>, whole: bool) -> Vec<Arc<dyn Hook>> {
        let mut hooks: Vec<Arc<dyn Hook>> = vec![Arc::new(GraderLock {
            root: Arc::clone(root),
            locked: Arc::clone(&seat.locked),
        })];
        let files = Arc::new(Files::new(Arc::clone(root)));
        let Guards {
            local, write, lint, ..
        } = &self.guards;
        if *local {
            hooks.push(Arc::new(Quality::new(Arc::clone(&seat.events), whole)));
        }
        if *local && self.builtin && !whole {
            hooks.push(Arc::new(AnswerLimit(Arc::clone(&files))));
            if *write {
                hooks.push(Arc::new(WriteGuard(Arc::clone(&files))));
            }
            hooks.push(Arc::new(ReadBeforeEdit(Arc::clone(&files))));
        }
        if let Some(command) = lint.as_ref().filter(|_| self.builtin) {
            hooks.push(Arc::new(Lint {
                files: Arc::clone(&files),
                shell: self.shell.clone(),
                workspace: seat.workspace.clone(),
                work_dir: seat.workspace.join(&seat.start),
                command: command.clone(),
            }));
        }
        if *local && self.builtin {
            let place = seat.checkpoints.clone();
            hooks.push(Arc::new(Checkpoints::new(files, place, seat.iteration)));
        }
        hooks
    }
}

#[async_trait]
impl Worker for RobotWorker {
    fn name(&self) -> String {
        self.model.id().to_string()
    }

    async fn open(&self, system: &str, seat: Seat) -> Result<Box<dyn Session>, WorkerError> {
        let root = Arc::new(Root::open(&seat.workspace, &seat.start, &seat.user_top)?);
        let submissions = Submissions::default();
        let work_dir = seat.workspace.join(&seat.start);
        let cx = RobotCx {
            iteration: seat.iteration,
            workspace: &seat.workspace,
            work_dir: &work_dir,
            shell: &self.shell,
        };
        // A program that fails at this has an iteration less, not a night.
        let added = catch_unwind(AssertUnwindSafe(|| {
            (self.extras.tools(&cx), self.extras.hooks(&cx))
        }));
        let (own_tools, own_hooks) = match added {
            Ok(added) => added,
            Err(panic) => {
                return Ok(Box::new(Broken(format!(
                    "the tools or hooks of this program cannot be made: {}",
                    panic_said(&*panic)
                ))));
            }
        };
        let mut tools = Toolset::new();
        if self.builtin {
            tools.add_typed(Read(Arc::clone(&root)))?;
            tools.add_typed(Write(Arc::clone(&root)))?;
            tools.add_typed(Edit(Arc::clone(&root)))?;
            tools.add_typed(Bash {
                shell: self.shell.clone(),
                dir: work_dir.clone(),
            })?;
        }
        tools.add(
            SubmitResult {
                submissions: submissions.clone(),
                conventional: self.conventional,
            }
            .tool(),
        )?;
        for tool in own_tools {
            tools.add(tool)?;
        }
        let early = self.guards.early.as_ref().filter(|_| self.builtin);
        let check = early.map(|early| {
            let (shell, failing) = (self.shell.clone(), seat.failing.clone());
            Arc::new(EarlyCheck::new(
                shell,
                early.command.clone(),
                work_dir.clone(),
                failing,
            ))
        });
        let of = Of {
            root: &root,
            tools: &tools,
            own: &own_hooks,
            submissions: &submissions,
        };
        let mut with_tools: Vec<Arc<dyn Hook>> = Vec::new();
        if let (Some(check), Some(early), None) = (&check, early, &self.steps) {
            let (check, objective) = (Arc::clone(check), early.objective.clone());
            with_tools.push(Arc::new(StopAtGreen::new(check, submissions.clone(), objective)));
        }
        let tools = self.session(system, &seat, &of, with_tools, false);
        let Some(steps) = &self.steps else {
            return Ok(Box::new(tools));
        };
        let step = SharedStep::default();
        let whole_files = Arc::new(WholeFiles {
            step: Arc::clone(&step),
            root: Arc::clone(&root),
            workspace: seat.workspace.clone(),
            work_dir: work_dir.clone(),
        });
        Ok(Box::new(StepsSession {
            steps: steps.clone(),
            whole: self.session(&steps.system, &seat, &of, vec![whole_files], true),
            tools,
            step,
            root,
            files: seat.files,
            check,
            failing: seat.failing,
            begun: false,
            changed: false,
        }))
    }
}

/// What the robots of one seat have in common.
struct Of<'a> {
    root: &'a Arc<Root>,
    tools: &'a Toolset,
    own: &'a [Arc<dyn Hook>],
    submissions: &'a Submissions,
}

impl RobotWorker {
    /// A robot in its seat. `first` are the hooks around all others but the program's.
    fn session(
        &self,
        system: &str,
        seat: &Seat,
        of: &Of<'_>,
        first: Vec<Arc<dyn Hook>>,
        whole: bool,
    ) -> RobotSession {
        let gate = Arc::new(SubmitOnly::default());
        let robot = Robot::builder("robot-to", Arc::clone(&self.model))
            .system(system)
            .tools(of.tools.clone());
        let own = of.own.iter().cloned().chain(first);
        let robot = own
            .fold(robot, RobotBuilder::hook)
            .hook(Arc::new(Repeats::default()))
            .hook(Arc::clone(&gate) as Arc<dyn Hook>);
        let robot = self
            .hooks(seat, of.root, whole)
            .into_iter()
            .fold(robot, RobotBuilder::hook)
            .cut_repetition(self.guards.local)
            .events(Arc::clone(&seat.events))
            .budget(Arc::clone(&seat.budget))
            .max_tool_calls(self.max_tool_calls)
            .patience(self.patience)
            .limiter(Arc::clone(&self.limiter));
        let robot = match &self.fallback {
            Some((model, limiter)) => robot.fallback(Arc::clone(model), Arc::clone(limiter)),
            None => robot,
        };
        RobotSession {
            robot: robot.build(),
            submissions: of.submissions.clone(),
            gate,
            clock: Arc::clone(&self.clock),
            budget: Arc::clone(&seat.budget),
            calls_left: self.max_tool_calls,
            forgets: self.guards.local,
            submitted: false,
        }
    }
}

/// In the place of a robot that could not be made.
struct Broken(String);

#[async_trait]
impl Session for Broken {
    async fn turn(&mut self, _message: &str, _cancel: &CancellationToken) -> TurnEnd {
        TurnEnd::Error {
            kind: "crashed".into(),
            message: self.0.clone(),
        }
    }

    async fn order(&mut self, message: &str, cancel: &CancellationToken) -> TurnEnd {
        self.turn(message, cancel).await
    }
}

pub(super) struct RobotSession {
    robot: Robot,
    submissions: Submissions,
    gate: Arc<SubmitOnly>,
    clock: Arc<dyn Clock>,
    budget: Arc<Budget>,
    calls_left: u32,
    /// Whether a repair begins without what was said before: a weak model would do the same again.
    forgets: bool,
    submitted: bool,
}

impl RobotSession {
    /// Begins a conversation anew.
    pub(super) fn forget(&mut self) {
        self.robot.clear_messages();
    }

    /// Tool calls that it may still make.
    pub(super) fn calls_left(&self) -> u32 {
        self.calls_left
    }

    pub(super) fn set_calls_left(&mut self, calls: u32) {
        self.calls_left = calls;
    }
}

#[async_trait]
impl Session for RobotSession {
    async fn turn(&mut self, message: &str, cancel: &CancellationToken) -> TurnEnd {
        if std::mem::take(&mut self.submitted) && self.forgets {
            self.robot.clear_messages();
        }
        self.robot.set_max_tool_calls(self.calls_left);
        let outcome = self.robot.run(message, cancel).await;
        if let Ok(result) = &outcome {
            self.calls_left = self.calls_left.saturating_sub(result.tool_calls);
        }
        if let Some(submission) = self.submissions.take() {
            self.submitted = true;
            return TurnEnd::Submitted(submission);
        }
        end_of(outcome, self.robot.usage().total() > 0, self.clock.as_ref())
    }

    async fn order(&mut self, message: &str, cancel: &CancellationToken) -> TurnEnd {
        self.gate.close();
        self.calls_left = ORDERED_CALLS;
        // A robot that has used up its tokens may still say what it did.
        self.budget.lift();
        let end = self.turn(message, cancel).await;
        self.budget.hold();
        end
    }
}

/// `answered`: whether the model has answered before, so that it is the conversation that it refuses now.
fn end_of(outcome: Result<robot_lab::RobotResult, RunError>, answered: bool, clock: &dyn Clock) -> TurnEnd {
    let error = |kind: &str, message: String| TurnEnd::Error {
        kind: kind.into(),
        message,
    };
    match outcome {
        Ok(result) => match result.stop {
            RobotStop::Budget(Some(BudgetLimit::Part(limit))) => TurnEnd::Limit {
                limit: format!("token limit of an iteration reached ({limit})"),
            },
            RobotStop::Budget(Some(BudgetLimit::Cost(limit))) => TurnEnd::Halted(StopReason::max_cost(limit)),
            RobotStop::Budget(Some(BudgetLimit::Tokens(limit))) => {
                TurnEnd::Halted(StopReason::max_tokens(limit))
            }
            // Only a model that says so itself.
            RobotStop::Budget(None) => error("over budget", "the model says that a budget is spent".into()),
            RobotStop::Cancelled => TurnEnd::Limit {
                limit: "cancelled".into(),
            },
            RobotStop::EndTurn if result.text.trim().is_empty() => TurnEnd::Silent {
                stop: "empty reply".into(),
            },
            RobotStop::EndTurn | RobotStop::ToolFinished => TurnEnd::Silent {
                stop: "ended its turn".into(),
            },
            RobotStop::Hook(why) => TurnEnd::Silent { stop: why },
            RobotStop::OutputLimit => TurnEnd::Silent {
                stop: "ran into its output limit".into(),
            },
            RobotStop::Refused => TurnEnd::Silent {
                stop: "the model refused".into(),
            },
            RobotStop::ContentFilter => TurnEnd::Silent {
                stop: "the provider withheld the reply".into(),
            },
        },
        Err(RunError::ToolLoop { .. }) => TurnEnd::Limit {
            limit: "tool call limit reached".into(),
        },
        Err(RunError::BadCalls { count }) => error("bad calls", format!("{count} wrong tool calls in a row")),
        Err(RunError::Aborted(abort)) => error("aborted", abort.to_string()),
        Err(RunError::Transcript(fault)) => error("internal", fault.to_string()),
        Err(RunError::Model(model)) => match model.kind {
            ModelErrorKind::BadRequest if answered => error("bad request", model.message),
            kind if kind.is_permanent() => TurnEnd::Halted(StopReason::new(
                StopKind::Permanent,
                format!("the provider refuses: {}", model.message),
            )),
            ModelErrorKind::ContextLength => TurnEnd::Limit {
                limit: format!("the conversation does not fit the model: {}", model.message),
            },
            ModelErrorKind::Repetition => error("repetition", model.message),
            ModelErrorKind::ContentFilter => TurnEnd::Silent {
                stop: "the provider withheld the reply".into(),
            },
            // It is the reply that is bad, and the provider is there.
            ModelErrorKind::MalformedReply => error("malformed reply", model.message),
            _ => TurnEnd::Halted(StopReason::environment(out_of_patience(model, clock))),
        },
    }
}

/// Why a provider is not waited for, with the time at which it wants to be asked again.
fn out_of_patience(error: ModelError, clock: &dyn Clock) -> String {
    let again = error.retry_after.map(|wait| clock.now().saturating_add(wait));
    match again {
        Some(Ok(at)) => format!("{}; it is over at {at:.0}, resume the run then", error.message),
        _ => error.message,
    }
}
