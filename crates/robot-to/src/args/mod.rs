//! The command line.

mod demo;
mod run;
mod runs;

pub(crate) use demo::DemoArgs;
pub(crate) use run::{DEFAULT_PROVIDER, RunArgs};
pub(crate) use runs::RunsArgs;

use clap::{Parser, Subcommand};

/// Runs a robot unattended in a git repository, toward an objective: one focused change per iteration, graded by a
/// command that the robot cannot touch, committed to a branch of its own when it holds, discarded when not.
///
/// Your checkout is never written: the robot works in a private copy. In the morning, review the branch.
#[derive(Debug, Parser)]
#[command(
    name = "robot-to",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = crate::exit::HELP,
    after_long_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// What else the program does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a whole run in a throw-away repository, with a scripted model: no key, no network
    Demo(DemoArgs),
    /// List the runs of this repository
    Runs(RunsArgs),
}

const EXAMPLES: &str = "\
Examples:
  See how it works, without a key:
    robot-to demo

  Make a failing test suite pass, in at most 20 iterations:
    robot-to \"make the parser tests pass\" --verify \"cargo test -p parser\" --max-iterations 20

  A model of your own, served by anything that speaks the OpenAI protocol:
    robot-to \"raise coverage\" --base-url http://localhost:11434/v1 --model qwen3.6 --verify \"make test\"

  Afterwards:
    git log robot-to/…        the accepted commits
    robot-to runs             all runs of this repository

Exit codes:
  0    complete (target, stop condition, nothing to do) or a limit reached
  2    a setting, the command line or the repository does not fit; nothing was changed
  3    gave up (failures in a row; plateau without any commit)
  5    the provider or the environment
  70   a fault of robot-to
  130  interrupted";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        assert!(
            EXAMPLES.ends_with(crate::exit::HELP),
            "both helps list the same codes"
        );
    }
}
