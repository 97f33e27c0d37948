//! The resolved settings of a run. Nothing is read here: whoever starts a run says everything.
//!
//! The [`Plan`] is what a run does and by which numbers. It is written into the log, and a resumed run goes by it. The
//! [`Place`] is where and with what; each process says it anew, and nothing of it is written down.

use crate::eval::{CODE, Goal, Measure, NULL};
use crate::iteration::Policy;
use crate::workspace::HostEnv;
pub use crate::world::BenchCache;
use robot_lab::KnownModels;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Iterations without improvement that end a measured run that nothing else bounds.
const DEFAULT_PLATEAU: u32 = 10;

/// Where a run happens, and with what.
#[derive(Clone, Debug)]
pub struct Place {
    /// A directory in the user's repository; verify runs in the same place of its own checkout. The default is the
    /// current one.
    pub repo: PathBuf,
    /// Where runs are recorded, relative to the top of the repository, or absolute: `.robot_lab_to` by default.
    pub run_dir: PathBuf,
    /// Where repositories and workspaces of runs live. Empty, as by default: [`state_dir`] of the host.
    pub work_dir: PathBuf,
    /// The environment that git, tools and evals get a part of.
    pub host: HostEnv,
    /// Values that must not be written down anywhere.
    pub secrets: Vec<String>,
    /// The program that commands are run by: see [`robot_exec::maybe_helper`]. The default is the one that runs, also
    /// should its file be replaced during the night.
    pub helper: PathBuf,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            repo: ".".into(),
            run_dir: ".robot_lab_to".into(),
            work_dir: PathBuf::new(),
            host: HostEnv::default(),
            secrets: Vec::new(),
            helper: "/proc/self/exe".into(),
        }
    }
}

/// `$XDG_STATE_HOME/robot-to`, or its usual place below `$HOME`; `None` when neither is an absolute path.
pub fn state_dir(host: &HostEnv) -> Option<PathBuf> {
    let absolute = |name| {
        host.get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    state.map(|state| state.join("robot-to"))
}

/// What a run does, and by which numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// What the user wants.
    pub objective: String,
    /// How to make the model again; whoever starts runs writes and reads it.
    pub model: serde_json::Value,
    /// The numbers.
    pub policy: Policy,
    /// The command that must exit 0.
    pub verify_command: Option<String>,
    /// How long it may take.
    pub verify_timeout: Duration,
    /// The eval, by name: `null`, `code`, `command:PATH`, or one of the registry. The verify and measure commands hold
    /// besides. `None`: `code` with one of these commands, `null` without.
    pub eval: Option<String>,
    /// The command that prints a number, which must get better.
    pub measure: Option<Measure>,
    /// By what the number is judged, whoever gives it.
    pub goal: Goal,
    /// Files that no robot may change: git pathspecs from the top of the repository.
    pub protect_paths: Vec<String>,
    /// Where in the checkout the run was started, relative to the top: set when it begins, so that it goes on there.
    /// `None` also where that is no UTF-8; then it goes by where it is resumed.
    pub subdir: Option<String>,
    /// Whether the user's git hooks are asked before a commit.
    pub hooks: bool,
    /// Whether commits are signed, as the user's git is configured to.
    pub sign: bool,
    /// How long a robot may work in one iteration.
    pub iteration_timeout: Duration,
    /// Whether robots get the built-in tools. Without them only the submission is left, and what the program adds.
    pub tools: bool,
    /// Whether robots are guarded and told as weak models need it.
    pub local_guards: bool,
    /// Whether, of these guards, the one that keeps files from being written over is among them.
    pub write_guard: bool,
    /// Whether robots are given one rule of the objective at a time, with the files that it is about, as weak models
    /// need it. The guards go with it.
    pub small_steps: bool,
    /// The command that checks a file after a robot changed it, with `{file}` in its place.
    pub lint: Option<String>,
    /// Tool calls of one iteration.
    pub max_tool_calls: u32,
    /// Quick retries of one request.
    pub max_retries: u32,
    /// How long a provider that is out of order, or wants to be asked later, is waited for.
    pub max_wait: Duration,
    /// Tokens of one iteration.
    pub max_iteration_tokens: Option<u64>,
    /// What is known of the models: their prices, by which the run counts to its end, and how much they can read.
    pub models: KnownModels,
    /// Largest file that may be committed, in bytes.
    pub max_file_bytes: u64,
    /// Names of variables that tools and evals get besides the usual ones.
    pub env: Vec<String>,
    /// Keep workspace and bench at the end.
    pub keep_workspace: bool,
    /// What the user wants every robot to know, besides the objective.
    pub instructions: Option<String>,
    /// The command that makes a new checkout ready for work, in ignored files.
    pub setup: Option<String>,
    /// How long it may take.
    pub setup_timeout: Duration,
    /// Ignored files of the user's checkout that are copied: patterns of git from the top of the repository.
    pub copy: Vec<String>,
    /// Whether the run starts from the user's uncommitted changes.
    pub include_dirty: bool,
    /// Which ignored files the bench has when it grades.
    pub bench_cache: BenchCache,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            objective: String::new(),
            model: serde_json::Value::Null,
            policy: Policy::default(),
            verify_command: None,
            verify_timeout: Duration::from_secs(600),
            eval: None,
            measure: None,
            goal: Goal::default(),
            protect_paths: Vec::new(),
            subdir: None,
            hooks: true,
            sign: false,
            iteration_timeout: Duration::from_secs(3_600),
            tools: true,
            local_guards: false,
            write_guard: true,
            small_steps: false,
            lint: None,
            max_tool_calls: robot_lab::robot::DEFAULT_MAX_TOOL_CALLS,
            max_retries: 2,
            max_wait: Duration::from_secs(6 * 3_600),
            max_iteration_tokens: None,
            models: KnownModels::new(),
            max_file_bytes: 50 * 1024 * 1024,
            env: Vec::new(),
            keep_workspace: false,
            instructions: None,
            setup: None,
            setup_timeout: Duration::from_secs(1_800),
            copy: Vec::new(),
            include_dirty: false,
            bench_cache: BenchCache::default(),
        }
    }
}

impl Plan {
    /// The defaults, for an objective.
    pub fn new(objective: impl Into<String>) -> Self {
        Self {
            objective: objective.into(),
            ..Self::default()
        }
    }

    /// Whether robots are guarded and told as weak models need it.
    pub(crate) fn is_guarded(&self) -> bool {
        self.local_guards || self.small_steps
    }

    /// Whether candidates have a value: by the measure command, or by an eval that may give one.
    pub fn is_scored(&self) -> bool {
        let eval = self.eval.as_deref();
        self.measure.is_some() || eval.is_some_and(|name| name != NULL && name != CODE)
    }

    /// The numbers that decide: with a target it is not for the robot to judge when the run is over.
    pub(crate) fn deciding(&self) -> Policy {
        let mut policy = self.policy.clone();
        if self.goal.target.is_some() {
            policy.stop_when = None;
        }
        policy
    }

    /// Gives a measured run without any limit one.
    pub(crate) fn bound(&mut self) {
        if self.is_scored() && !self.policy.has_limit() {
            self.policy.stop_on_plateau.get_or_insert(DEFAULT_PLATEAU);
        }
    }
}
