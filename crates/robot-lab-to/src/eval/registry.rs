//! Evals by name. A registry is a value: whoever starts a run hands one over, and a run that goes on needs the same
//! names again.

use super::{Code, Eval, Null};
use crate::settings::Plan;
use crate::shell::Shell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What begins the name of an eval that is a program.
pub(crate) const COMMAND: &str = "command:";
/// The names of evals that take every success, and that go by the commands of the plan.
pub(crate) const NULL: &str = "null";
pub(crate) const CODE: &str = "code";

/// What an eval is made of.
#[derive(Clone, Copy, Debug)]
pub struct EvalSetup<'a> {
    /// What the run goes by, its goal included.
    pub plan: &'a Plan,
    /// Runs commands as verify runs: contained, and with the allow-listed environment.
    pub shell: &'a Shell,
}

/// Longest name, in bytes.
const MAX_NAME: usize = 100;

type Maker = dyn Fn(&EvalSetup<'_>) -> Result<Arc<dyn Eval>, String> + Send + Sync;

/// Evals by name: `null` and `code`, and those that are registered.
#[derive(Clone)]
pub struct EvalRegistry(BTreeMap<String, Arc<Maker>>);

/// An eval that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// Nobody registered it.
    #[error(
        "there is no eval {name:?}; there are: {known}, and command:PATH; a run goes on where its own evals are registered"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The name cannot be given.
    #[error(
        "an eval cannot be named {0:?}: the name is taken, empty or too long, or has a colon or a space in it"
    )]
    Name(String),
    /// It cannot be made of this plan.
    #[error("the eval {name:?} cannot be used: {why}")]
    NotMade {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
}

impl Default for EvalRegistry {
    fn default() -> Self {
        let mut known: BTreeMap<String, Arc<Maker>> = BTreeMap::new();
        known.insert(NULL.into(), Arc::new(|setup: &EvalSetup<'_>| null(setup.plan)));
        known.insert(CODE.into(), Arc::new(code));
        Self(known)
    }
}

impl EvalRegistry {
    /// `null` and `code`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an eval, which is made when a run begins or goes on that names it. An error of `make` says why it cannot be
    /// used; then nothing begins.
    ///
    /// ```
    /// use robot_lab_to::eval::{EvalRegistry, from_fn};
    /// use std::sync::Arc;
    ///
    /// let mut evals = EvalRegistry::new();
    /// evals.register("files", |_| {
    ///     Ok(Arc::new(from_fn("files", |cx| async move {
    ///         let files = std::fs::read_dir(&cx.work_dir).map_or(0, Iterator::count);
    ///         Ok(cx.score(files as f64))
    ///     })))
    /// })?;
    /// assert_eq!(evals.names().collect::<Vec<_>>(), ["code", "files", "null"]);
    /// # Ok::<(), robot_lab_to::eval::EvalError>(())
    /// ```
    pub fn register(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(&EvalSetup<'_>) -> Result<Arc<dyn Eval>, String> + Send + Sync + 'static,
    ) -> Result<(), EvalError> {
        let name = name.into();
        let odd = name.is_empty()
            || name.len() > MAX_NAME
            || name.contains(|c: char| c == ':' || c.is_whitespace() || c.is_control());
        if odd || self.0.contains_key(&name) {
            return Err(EvalError::Name(name));
        }
        self.0.insert(name, Arc::new(make));
        Ok(())
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Makes the eval of this name.
    pub(crate) fn make(&self, name: &str, setup: &EvalSetup<'_>) -> Result<Arc<dyn Eval>, EvalError> {
        let Some(make) = self.0.get(name) else {
            return Err(EvalError::Unknown {
                name: name.into(),
                known: self.names().collect::<Vec<_>>().join(", "),
            });
        };
        let made = catch_unwind(AssertUnwindSafe(|| make(setup)))
            .unwrap_or_else(|panic| Err(format!("it crashed: {}", super::guarded::said(&*panic))));
        made.map_err(|why| EvalError::NotMade {
            name: name.into(),
            why,
        })
    }
}

fn null(plan: &Plan) -> Result<Arc<dyn Eval>, String> {
    if plan.verify_command.is_some() || plan.measure.is_some() {
        return Err(
            "it takes every success, and there is a verify or a measure command; leave out one of the two"
                .into(),
        );
    }
    Ok(Arc::new(Null))
}

fn code(setup: &EvalSetup<'_>) -> Result<Arc<dyn Eval>, String> {
    if setup.plan.verify_command.is_none() && setup.plan.measure.is_none() {
        return Err("there is neither a verify nor a measure command; give one".into());
    }
    Ok(Arc::new(Code::of(setup.plan, setup.shell)))
}

impl std::fmt::Debug for EvalRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
