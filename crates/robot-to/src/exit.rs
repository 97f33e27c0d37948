//! The exit codes, which are part of the interface.

use robot_lab_to::iteration::{StopKind, StopReason};
use std::process::ExitCode;

/// What the program tells its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Complete, or a limit reached.
    Done = 0,
    /// A setting, the command line or the repository does not fit.
    Configuration = 2,
    /// The run gave up.
    GaveUp = 3,
    /// The provider or the environment.
    Environment = 5,
    /// Another process has the run.
    Held = 6,
    /// A fault of ours.
    Internal = 70,
    /// A signal.
    Interrupted = 130,
}

impl Exit {
    /// The code of a run that ended for this reason after so many commits.
    pub(crate) fn of(reason: &StopReason, commits: u32) -> Self {
        match reason.kind {
            StopKind::TargetMet
            | StopKind::StopCondition
            | StopKind::NothingToDo
            | StopKind::MaxIterations
            | StopKind::MaxTokens
            | StopKind::MaxCost
            | StopKind::MaxTime => Self::Done,
            StopKind::Plateau if commits > 0 => Self::Done,
            StopKind::Plateau | StopKind::Failures | StopKind::CommitRejected => Self::GaveUp,
            StopKind::Configuration => Self::Configuration,
            StopKind::BranchMoved | StopKind::Permanent | StopKind::Environment => Self::Environment,
            StopKind::Internal => Self::Internal,
            StopKind::Interrupted => Self::Interrupted,
        }
    }

    /// Whether a run that ends so has done what was asked.
    pub(crate) fn is_complete(reason: &StopReason) -> bool {
        matches!(
            reason.kind,
            StopKind::TargetMet | StopKind::StopCondition | StopKind::NothingToDo
        )
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The codes as `--help` shows them.
pub(crate) const HELP: &str = "\
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
    fn every_code_is_in_the_help() {
        for exit in [
            Exit::Done,
            Exit::Configuration,
            Exit::GaveUp,
            Exit::Environment,
            Exit::Held,
            Exit::Internal,
            Exit::Interrupted,
        ] {
            assert!(HELP.contains(&format!("\n  {:<5}", exit as u8)), "{exit:?}");
        }
    }

    #[test]
    fn a_plateau_is_a_success_only_with_a_commit() {
        let plateau = StopReason::new(StopKind::Plateau, "");
        assert_eq!(Exit::of(&plateau, 1), Exit::Done);
        assert_eq!(Exit::of(&plateau, 0), Exit::GaveUp);
    }
}
