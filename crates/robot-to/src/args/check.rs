//! Flags of `robot-to check`: those of a run.

use super::{RunArgs, StartArgs};
use std::path::PathBuf;

/// Flags of `robot-to check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// What should be better, in a sentence [default: read from standard input]
    objective: Option<String>,
    /// Read the objective from a file
    #[arg(long, value_name = "FILE", conflicts_with = "objective")]
    objective_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

impl CheckArgs {
    /// What the run would begin with.
    pub(crate) fn start(&self) -> StartArgs {
        StartArgs {
            objective: self.objective.clone(),
            resume: None,
            objective_file: self.objective_file.clone(),
        }
    }
}
