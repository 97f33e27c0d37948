//! Flags of `robot-to demo`.

use clap::Args;
use std::path::PathBuf;

/// Flags of `robot-to demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where to make the throw-away repository; it must not exist yet [default: a new directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Do not wait between the model's words
    #[arg(long)]
    pub(crate) fast: bool,
}
