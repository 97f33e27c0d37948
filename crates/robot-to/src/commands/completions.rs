//! `robot-to completions`: a script that lets a shell complete the command line.

use super::look::print;
use crate::args::{self, CompletionsArgs};
use crate::error::CliError;
use crate::exit::Exit;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "robot-to", &mut script);
    print(&script)?;
    Ok(Exit::Done)
}
