//! How a run is put together: what it does, where, with which model, tools, hooks, eval and watchers.

use super::assemble::With;
use super::{Halt, Past, Run, RunReport, StartError};
use crate::clock::{Clock, SystemClock};
use crate::eval::{Eval, EvalRegistry};
use crate::log::Observer;
use crate::settings::{Place, Plan, state_dir};
use crate::worker::{Extras, RobotCx};
use crate::workspace::HostEnv;
use robot_lab::{Backoff, Cost, Hook, Model, Patience, Tool};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Builds a [`Run`]. Only the model and the environment are asked for; everything else has a default.
///
/// Every setting is a field of [`Plan`] or of [`Place`], which [`plan`](Self::plan) and [`place`](Self::place) hand
/// out to be changed; the other methods are shortcuts for what is set most often, and what is no setting.
#[must_use = "a run begins with `run`"]
pub struct RunBuilder {
    place: Place,
    plan: Plan,
    past: Option<Past>,
    model: Option<Arc<dyn Model>>,
    fallback: Option<Arc<dyn Model>>,
    pace: Patience,
    evals: EvalRegistry,
    eval: Option<Arc<dyn Eval>>,
    extras: Extras,
    observers: Vec<Arc<dyn Observer>>,
    clock: Arc<dyn Clock>,
    halt: Halt,
}

impl RunBuilder {
    pub(super) fn new(plan: Plan, past: Option<Past>) -> Self {
        Self {
            place: Place::default(),
            plan,
            past,
            model: None,
            fallback: None,
            pace: Patience::default(),
            evals: EvalRegistry::new(),
            eval: None,
            extras: Extras::default(),
            observers: Vec::new(),
            clock: Arc::new(SystemClock),
            halt: Halt::new(),
        }
    }

    /// The model that robots think with.
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// A model that robots think with while the first one is out of order or wants to be asked much later. Each iteration
    /// begins with the first one if that answers.
    pub fn fallback_model(mut self, model: Arc<dyn Model>) -> Self {
        self.fallback = Some(model);
        self
    }

    /// The waits between requests to a provider that is out of order. How many quick retries there are, and how long is
    /// waited altogether, is `max_retries` and `max_wait` of the plan.
    pub fn pace(mut self, quick: Backoff, slow: Backoff) -> Self {
        self.pace = Patience {
            quick,
            slow,
            ..self.pace
        };
        self
    }

    /// A directory in the user's repository. The default is the current one.
    pub fn repo(mut self, dir: impl Into<PathBuf>) -> Self {
        self.place.repo = dir.into();
        self
    }

    /// The variables of the environment, as `std::env::vars_os()` gives them: this library reads none by itself.
    /// Commands get those on a short list, without any that is named like a secret.
    pub fn host(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.place.host = HostEnv::new(variables);
        self
    }

    /// Changes where the run happens, and with what.
    pub fn place(mut self, change: impl FnOnce(&mut Place)) -> Self {
        change(&mut self.place);
        self
    }

    /// Changes what the run does, and by which numbers.
    pub fn plan(mut self, change: impl FnOnce(&mut Plan)) -> Self {
        change(&mut self.plan);
        self
    }

    /// The command that must exit 0 for a change to be committed.
    pub fn verify(self, command: impl Into<String>) -> Self {
        self.plan(|plan| plan.verify_command = Some(command.into()))
    }

    /// Ends the run after so many iterations.
    pub fn max_iterations(self, n: u32) -> Self {
        self.plan(|plan| plan.policy.max_iterations = Some(n))
    }

    /// Ends the run after so many tokens, read and written; also in the middle of a reply.
    pub fn max_tokens(self, n: u64) -> Self {
        self.plan(|plan| plan.policy.max_tokens = Some(n))
    }

    /// Ends the run after so much money; also in the middle of a reply. The price of the model has to be in
    /// [`Plan::models`].
    pub fn max_cost(self, limit: Cost) -> Self {
        self.plan(|plan| plan.policy.max_cost = Some(limit))
    }

    /// Ends the run after so much time.
    pub fn max_time(self, limit: Duration) -> Self {
        self.plan(|plan| plan.policy.max_time = Some(limit))
    }

    /// Grades with this eval, under its own name, which the log keeps. The verify and measure commands of the plan, if
    /// there are any, must hold besides; beside a measure command it has to answer without a value.
    ///
    /// An eval that panics or that needs longer than `verify_timeout` gives no score. It is asked on a thread of its own,
    /// where it may block; one that is still blocked when its time or the run is over is left behind, and the next
    /// candidate waits for it, within `verify_timeout`.
    pub fn eval(mut self, eval: impl Eval + 'static) -> Self {
        self.eval = Some(Arc::new(eval));
        self
    }

    /// The evals that [`Plan::eval`] may name.
    pub fn evals(mut self, evals: EvalRegistry) -> Self {
        self.evals = evals;
        self
    }

    /// Adds tools to the robot of each iteration. A tool of the name of another one ends the run.
    pub fn tools(
        mut self,
        make: impl Fn(&RobotCx<'_>) -> Vec<Arc<dyn Tool>> + Send + Sync + 'static,
    ) -> Self {
        self.extras.add_tools(make);
        self
    }

    /// Adds hooks to the robot of each iteration: around those that keep it from locked files, so that they see every
    /// call and how it ended.
    pub fn hooks(
        mut self,
        make: impl Fn(&RobotCx<'_>) -> Vec<Arc<dyn Hook>> + Send + Sync + 'static,
    ) -> Self {
        self.extras.add_hooks(make);
        self
    }

    /// Adds somebody who watches: every record of the log, as it is written.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Stamps records by this clock, in place of the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The handle by which the run can be ended early.
    pub fn halt(mut self, halt: Halt) -> Self {
        self.halt = halt;
        self
    }

    /// The run, or what is missing for one.
    pub fn build(self) -> Result<Run, StartError> {
        let Self {
            mut place,
            mut plan,
            past,
            model,
            fallback,
            pace,
            mut evals,
            eval,
            extras,
            observers,
            clock,
            halt,
        } = self;
        let missing = |what: &str| StartError::Configuration(what.into());
        let model = model.ok_or_else(|| missing("there is no model; give one with RunBuilder::model"))?;
        if place.host.iter().next().is_none() {
            return Err(missing(
                "the environment is not known; hand its variables over with RunBuilder::host",
            ));
        }
        if place.work_dir.as_os_str().is_empty() {
            place.work_dir = state_dir(&place.host).ok_or_else(|| {
                missing("there is neither XDG_STATE_HOME nor HOME; say where private copies may live, as work_dir of the place")
            })?;
        }
        if let Some(eval) = eval {
            let name = eval.name().to_owned();
            evals
                .register(&name, move |_| Ok(Arc::clone(&eval)))
                .map_err(|error| StartError::Configuration(error.to_string()))?;
            plan.eval = Some(name);
        }
        let with = With {
            model,
            fallback,
            pace,
            evals,
            extras,
            observers,
            clock,
        };
        Ok(Run {
            place,
            plan,
            past,
            with,
            halt,
        })
    }

    /// Builds the run and runs it: see [`Run::run`].
    pub async fn run(self) -> Result<RunReport, StartError> {
        self.build()?.run().await
    }
}
