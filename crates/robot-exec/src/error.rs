//! Why a command was not run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why [`Exec::run`](crate::Exec::run) could not run the command. In every case nothing of it was run.
///
/// A command that did run and failed is not an error: see [`Status`](crate::Status). That includes a program
/// that does not exist (exit 127) or is not executable (exit 126), as in a shell.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The working directory does not exist, is no directory, or may not be entered.
    #[error("cannot enter the working directory `{}`: {source}; nothing was run", path.display())]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The command cannot be started, for instance because its arguments are too long or contain a NUL byte.
    #[error("cannot start `{}`: {source}; nothing was run", program.display())]
    Start {
        /// The program of the command.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// There is more for standard input than a command can be given.
    #[error(
        "{bytes} bytes are too many for standard input, which takes 1 MiB; nothing was run; hand them over in a file"
    )]
    Stdin {
        /// How many there are.
        bytes: usize,
    },
    /// The file for the full output cannot be created.
    #[error("cannot create `{}` for the full output: {source}; nothing was run", path.display())]
    FullText {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The helper program cannot be started.
    #[error("cannot start the helper `{}`: {source}; nothing was run; check that it is installed", path.display())]
    Helper {
        /// The helper program.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The helper program was started but does not speak as one.
    #[error(
        "`{}` did not answer as a robot-exec helper; nothing was run; its main must call robot_exec::maybe_helper() first",
        path.display()
    )]
    NotAHelper {
        /// The helper program.
        path: PathBuf,
    },
    /// Pipes or sockets to the helper cannot be made, most often because too many files are open.
    #[error(
        "cannot connect to the helper: {source}; nothing was run; the limit of open files may be reached"
    )]
    Connect {
        /// What the system said.
        source: io::Error,
    },
}
