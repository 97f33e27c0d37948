//! Flags of `robot-to config`.

use super::RunArgs;
use clap::Args;

/// Flags of `robot-to config`: those of a run, so that they are shown too.
#[derive(Debug, Args)]
#[command(mut_arg("json", |arg| arg.help("Print JSON, an object for each setting")))]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
