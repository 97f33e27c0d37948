//! The resolved settings of a run. Nothing is read here: whoever starts a run says everything.

use crate::eval::Measure;
use crate::iteration::Policy;
use crate::workspace::HostEnv;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that a run needs to know besides its model.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the user wants.
    pub objective: String,
    /// A directory in the user's repository; verify runs in the same place of its own checkout.
    pub repo: PathBuf,
    /// Where runs are recorded, relative to the top of the repository, or absolute.
    pub run_dir: PathBuf,
    /// Where repositories and workspaces of runs live: the user's state directory.
    pub work_dir: PathBuf,
    /// The environment that git, tools and evals get a part of.
    pub host: HostEnv,
    /// Variables that tools and evals get besides the usual ones.
    pub env: Vec<String>,
    /// Values that must not be written down anywhere.
    pub secrets: Vec<String>,
    /// The program that commands are run by: see `robot_exec::maybe_helper`.
    pub helper: PathBuf,
    /// The numbers.
    pub policy: Policy,
    /// The command that must exit 0.
    pub verify_command: Option<String>,
    /// How long it may take.
    pub verify_timeout: Duration,
    /// The number that must get better.
    pub measure: Option<Measure>,
    /// How long a robot may work in one iteration.
    pub iteration_timeout: Duration,
    /// Tool calls of one iteration.
    pub max_tool_calls: u32,
    /// Quick retries of one request.
    pub max_retries: u32,
    /// Largest file that may be committed, in bytes.
    pub max_file_bytes: u64,
    /// Keep workspace and bench at the end.
    pub keep_workspace: bool,
}

/// Iterations without improvement that end a measured run that nothing else bounds.
const DEFAULT_PLATEAU: u32 = 10;

impl Settings {
    /// The defaults for an objective in a repository.
    pub fn new(objective: String, repo: PathBuf, work_dir: PathBuf, host: HostEnv, helper: PathBuf) -> Self {
        Self {
            objective,
            repo,
            run_dir: PathBuf::from(".robot_lab_to"),
            work_dir,
            host,
            env: Vec::new(),
            secrets: Vec::new(),
            helper,
            policy: Policy::default(),
            verify_command: None,
            verify_timeout: Duration::from_secs(600),
            measure: None,
            iteration_timeout: Duration::from_secs(3_600),
            max_tool_calls: robot_lab::robot::DEFAULT_MAX_TOOL_CALLS,
            max_retries: 2,
            max_file_bytes: 50 * 1024 * 1024,
            keep_workspace: false,
        }
    }

    /// Gives a measured run without any limit one.
    pub(crate) fn bound(&mut self) {
        if self.measure.is_some() && !self.policy.has_limit() {
            self.policy.stop_on_plateau.get_or_insert(DEFAULT_PLATEAU);
        }
    }
}
