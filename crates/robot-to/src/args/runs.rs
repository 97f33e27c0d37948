//! Flags of `robot-to runs`.

use clap::Args;
use std::path::PathBuf;

/// Flags of `robot-to runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Where runs are recorded, relative to the top of the repository
    #[arg(long, value_name = "DIR", default_value = ".robot_lab_to")]
    pub(crate) run_dir: PathBuf,
    /// Print one JSON object per run
    #[arg(long)]
    pub(crate) json: bool,
}
