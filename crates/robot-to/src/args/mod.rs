//! The command line.

mod check;
mod clean;
mod config;
mod demo;
mod doctor;
mod look;
mod mistake;
mod models;
mod plan;
#[cfg(test)]
mod reference;
mod report;
mod run;
mod runs;

pub(crate) use check::CheckArgs;
pub(crate) use clean::CleanArgs;
pub(crate) use config::{CompletionsArgs, ConfigArgs, ManArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use look::{IterationArgs, LookArgs, PlaceArgs};
pub(crate) use mistake::report as report_mistake;
pub(crate) use models::ModelsArgs;
pub(crate) use plan::{is_written, written};
pub(crate) use report::{ReportArgs, ReportFormat};
pub(crate) use run::{DEFAULT_MODEL, DEFAULT_PROVIDER, RunArgs};
pub(crate) use runs::RunsArgs;

use clap::{CommandFactory as _, Parser, Subcommand};
use std::path::PathBuf;

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
    pub(crate) start: StartArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// What a run begins with.
#[derive(Debug, clap::Args)]
pub(crate) struct StartArgs {
    /// What should be better, in a sentence [default: read from standard input]
    pub(crate) objective: Option<String>,
    /// Let a run go on: its id, or nothing for the latest that is not complete. Other flags change what it goes by
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "", conflicts_with = "objective")]
    pub(crate) resume: Option<String>,
    /// Read the objective from a file
    #[arg(long, value_name = "FILE", conflicts_with = "objective")]
    pub(crate) objective_file: Option<PathBuf>,
}

/// What else the program does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a whole run in a throw-away repository, with a scripted model: no key, no network
    Demo(DemoArgs),
    /// Let a run go on, by the plan that it was started with; every flag of a run may change it
    Resume(Box<ResumeArgs>),
    /// Check how a run would begin: the repository, the score of its commit, the first prompt; nothing is changed and no
    /// token spent
    Check(Box<CheckArgs>),
    /// List the runs of this repository
    Runs(RunsArgs),
    /// Show how a run stands, also while it is under way
    Status(LookArgs),
    /// List what a run made, did not commit, and kept
    Attempts(LookArgs),
    /// Show an iteration in full: what was said of it, what the gate printed, its patch
    Show(IterationArgs),
    /// Write a report of a run, to read in the morning
    Report(ReportArgs),
    /// Make a branch of an attempt that was not committed; your checkout stays as it is
    Apply(IterationArgs),
    /// Move what finished runs left into a trash; never a branch, a commit, or a run that is under way
    Clean(CleanArgs),
    /// List the models that a provider offers; no token is spent
    Models(ModelsArgs),
    /// Look at everything that a run needs, and say what mends it; nothing is changed
    Doctor(DoctorArgs),
    /// Show each setting, its value, and where it came from: default, file, variable or flag
    Config(Box<ConfigArgs>),
    /// Print a script that lets your shell complete the command line
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for each command
    Man(ManArgs),
}

/// The command line as it is read: every switch of a run has its opposite.
pub(crate) fn command() -> clap::Command {
    crate::config::with_opposites(Cli::command())
}

/// Flags of `robot-to resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// The run [default: the latest that is not complete]
    pub(crate) run_id: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

const EXAMPLES: &str = "\
Examples:
  See how it works, without a key:
    robot-to demo

  Make a failing test suite pass, in at most 20 iterations:
    robot-to \"make the parser tests pass\" --verify \"cargo test -p parser\" --max-iterations 20

  A model of your own, served by Ollama; docs/models.md has others:
    robot-to \"raise coverage\" --provider ollama --model qwen3.6 --verify \"make test\"

  Afterwards:
    git log robot-to/…        the accepted commits
    robot-to runs             all runs of this repository
    robot-to status           how the latest one stands
    robot-to report           all of it, on a page
    robot-to resume           let the latest one go on
    robot-to attempts         what it tried and did not commit
    robot-to show 2           its second iteration in full
    robot-to apply 2          a branch of that attempt, to merge by hand

  Settings that are always the same can be in a file: robot-to.yml in the repository, or
  robot_lab/to.yml in your own configuration. Which hold, and where they come from:
    robot-to config

Exit codes:
  0    complete (target, stop condition, nothing to do) or a limit reached
  2    a setting, the command line or the repository does not fit; nothing was changed
  3    gave up (failures in a row; plateau without any commit)
  5    the provider or the environment
  6    the run is held by another process
  70   a fault of robot-to
  130  interrupted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
        assert!(
            EXAMPLES.ends_with(crate::exit::HELP),
            "both helps list the same codes"
        );
    }
}
