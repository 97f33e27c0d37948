//! What a program adds to each robot: factories for tools and hooks, called anew for every candidate.

use robot_lab::{Hook, Tool};
use std::path::Path;
use std::sync::Arc;

use crate::shell::Shell;

/// What a factory is told of the robot that it works for.
#[derive(Clone, Copy, Debug)]
pub struct RobotCx<'a> {
    /// The iteration.
    pub iteration: u32,
    /// The top of the workspace: a private copy of the repository.
    pub workspace: &'a Path,
    /// The directory in it that the user started from.
    pub work_dir: &'a Path,
    /// Runs commands as the robot's `bash` does: contained, and with the allow-listed environment.
    pub shell: &'a Shell,
}

type Factory<T> = Arc<dyn Fn(&RobotCx<'_>) -> Vec<Arc<T>> + Send + Sync>;

/// The factories.
#[derive(Clone, Default)]
pub struct Extras {
    tools: Vec<Factory<dyn Tool>>,
    hooks: Vec<Factory<dyn Hook>>,
}

impl Extras {
    /// Adds a factory of tools.
    pub fn add_tools(&mut self, make: impl Fn(&RobotCx<'_>) -> Vec<Arc<dyn Tool>> + Send + Sync + 'static) {
        self.tools.push(Arc::new(make));
    }

    /// Adds a factory of hooks.
    pub fn add_hooks(&mut self, make: impl Fn(&RobotCx<'_>) -> Vec<Arc<dyn Hook>> + Send + Sync + 'static) {
        self.hooks.push(Arc::new(make));
    }

    pub(super) fn tools(&self, cx: &RobotCx<'_>) -> Vec<Arc<dyn Tool>> {
        self.tools.iter().flat_map(|make| make(cx)).collect()
    }

    pub(super) fn hooks(&self, cx: &RobotCx<'_>) -> Vec<Arc<dyn Hook>> {
        self.hooks.iter().flat_map(|make| make(cx)).collect()
    }
}
