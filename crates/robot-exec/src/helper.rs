//! Turns the process into a helper stage when it was started as one.

use std::ffi::OsStr;
use std::process::ExitCode;

mod launcher;
mod supervisor;
mod tree;

/// The first argument of a supervisor.
pub(crate) const SUPERVISOR: &str = "__robot-exec-supervisor";

/// The first argument of a launcher.
const LAUNCHER: &str = "__robot-exec-launcher";

/// The name both stages show in process lists.
pub(crate) const PROCESS_NAME: &str = "robot-exec";

/// Runs a helper stage if this process was started as one, and returns its exit code; `None` otherwise.
///
/// Call it first in `main`, before threads are started or files are opened, and return the code if there is
/// one. It looks at the first argument only; no argument a person would type is taken for a helper's.
#[must_use]
pub fn maybe_helper() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let stage = args.next()?;
    if stage == OsStr::new(SUPERVISOR) {
        Some(supervisor::run())
    } else if stage == OsStr::new(LAUNCHER) {
        Some(launcher::run(args))
    } else {
        None
    }
}
