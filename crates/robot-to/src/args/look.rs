//! Flags of the commands that look at a run: `status`, `attempts`, `show`, `apply`.

use clap::Args;
use std::path::PathBuf;

/// Flags of `robot-to status` and `robot-to attempts`.
#[derive(Debug, Args)]
pub(crate) struct LookArgs {
    /// The run [default: the latest of this repository]
    #[arg(value_name = "RUN")]
    pub(crate) run_id: Option<String>,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
    /// Print JSON, an object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `robot-to show` and `robot-to apply`.
#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct IterationArgs {
    /// The run [default: the latest of this repository]
    #[arg(value_name = "RUN")]
    pub(crate) run_id: Option<String>,
    /// The number of the iteration
    #[arg(value_name = "ITER", required = true)]
    pub(crate) iteration: u32,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
}

/// Where to look.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Where runs are recorded, relative to the top of the repository
    #[arg(long, value_name = "DIR", default_value = ".robot_lab_to")]
    pub(crate) run_dir: PathBuf,
    /// Where the private copies of the run live [default: $XDG_STATE_HOME/robot-to]
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
}
