//! Flags of `robot-to config`, `completions` and `man`.

use super::RunArgs;
use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// Flags of `robot-to config`: those of a run, so that they are shown too.
#[derive(Debug, Args)]
#[command(mut_arg("json", |arg| arg.help("Print JSON, an object for each setting")))]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Flags of `robot-to completions`.
#[derive(Debug, Args)]
#[command(
    after_help = "For bash: robot-to completions bash > ~/.local/share/bash-completion/completions/robot-to"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Flags of `robot-to man`.
#[derive(Debug, Args)]
#[command(after_help = "To read it at once: robot-to man | man -l -")]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory [default: print the main page]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
