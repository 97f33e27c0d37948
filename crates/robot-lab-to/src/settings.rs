//! The resolved settings of a run. Nothing is read here: whoever starts a run says everything.
//!
//! The [`Plan`] is what a run does and by which numbers. It is written into the log, and a resumed run goes by it. The
//! [`Place`] is where and with what; each process says it anew, and nothing of it is written down.

use crate::eval::Measure;
use crate::iteration::Policy;
use crate::workspace::HostEnv;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Iterations without improvement that end a measured run that nothing else bounds.
const DEFAULT_PLATEAU: u32 = 10;

/// Where a run happens, and with what.
#[derive(Clone, Debug)]
pub struct Place {
    /// A directory in the user's repository; verify runs in the same place of its own checkout.
    pub repo: PathBuf,
    /// Where runs are recorded, relative to the top of the repository, or absolute.
    pub run_dir: PathBuf,
    /// Where repositories and workspaces of runs live: the user's state directory.
    pub work_dir: PathBuf,
    /// The environment that git, tools and evals get a part of.
    pub host: HostEnv,
    /// Values that must not be written down anywhere.
    pub secrets: Vec<String>,
    /// The program that commands are run by: see `robot_exec::maybe_helper`.
    pub helper: PathBuf,
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
    /// The number that must get better.
    pub measure: Option<Measure>,
    /// Files that no robot may change: git pathspecs from the top of the repository.
    pub protect_paths: Vec<String>,
    /// Whether the user's git hooks are asked before a commit.
    pub hooks: bool,
    /// Whether commits are signed, as the user's git is configured to.
    pub sign: bool,
    /// How long a robot may work in one iteration.
    pub iteration_timeout: Duration,
    /// Tool calls of one iteration.
    pub max_tool_calls: u32,
    /// Quick retries of one request.
    pub max_retries: u32,
    /// Largest file that may be committed, in bytes.
    pub max_file_bytes: u64,
    /// Names of variables that tools and evals get besides the usual ones.
    pub env: Vec<String>,
    /// Keep workspace and bench at the end.
    pub keep_workspace: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            objective: String::new(),
            model: serde_json::Value::Null,
            policy: Policy::default(),
            verify_command: None,
            verify_timeout: Duration::from_secs(600),
            measure: None,
            protect_paths: Vec::new(),
            hooks: true,
            sign: false,
            iteration_timeout: Duration::from_secs(3_600),
            max_tool_calls: robot_lab::robot::DEFAULT_MAX_TOOL_CALLS,
            max_retries: 2,
            max_file_bytes: 50 * 1024 * 1024,
            env: Vec::new(),
            keep_workspace: false,
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

    /// Gives a measured run without any limit one.
    pub(crate) fn bound(&mut self) {
        if self.measure.is_some() && !self.policy.has_limit() {
            self.policy.stop_on_plateau.get_or_insert(DEFAULT_PLATEAU);
        }
    }
}
