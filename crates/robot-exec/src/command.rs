//! Describes a command: what to run, where, with what, for how long and within which limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::env::Env;

/// A command to be run by [`Exec::run`](crate::Exec::run).
#[derive(Debug, Clone)]
#[must_use]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Env,
    pub(crate) stdin: Vec<u8>,
    pub(crate) timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) limits: Limits,
    pub(crate) capture: Capture,
}

impl Command {
    /// `program` run in the directory `cwd`: no arguments, no input, the [`Env`] of [`Env::default`], 120 s, 2 s of grace.
    ///
    /// A program name without a slash is looked up in the `PATH` of the command's own environment.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: Env::default(),
            stdin: Vec::new(),
            timeout: Duration::from_secs(120),
            grace: Duration::from_secs(2),
            limits: Limits::default(),
            capture: Capture::default(),
        }
    }

    /// `script` given to `/bin/sh -c`, run in the directory `cwd`.
    pub fn shell(script: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self::new("/bin/sh", cwd).args([OsString::from("-c"), script.into()])
    }

    /// Adds arguments. They need not be UTF-8.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The whole environment of the command; nothing is inherited besides.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// What the command reads on standard input, which is empty otherwise. At most 1 MiB.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// How long the command may run. Millisecond steps.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long the processes have to react to SIGTERM after a timeout or a cancellation, before SIGKILL.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// What the command may use up.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What is kept of the output.
    pub fn capture(mut self, capture: Capture) -> Self {
        self.capture = capture;
        self
    }
}

/// Limits set by the kernel for the command and all it starts. `None` leaves the limit of the calling program.
///
/// They can only lower what the calling program has. There are never core dumps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads of the user (RLIMIT_NPROC). It counts all that the user runs, not only this
    /// command, and does not bind root.
    pub processes: Option<u64>,
    /// Bytes in one file (RLIMIT_FSIZE). A write beyond it raises SIGXFSZ.
    pub file_size: Option<u64>,
    /// Open files in one process (RLIMIT_NOFILE).
    pub open_files: Option<u64>,
    /// Bytes of address space in one process (RLIMIT_AS).
    pub address_space: Option<u64>,
}

/// What is kept of the output of a command. The default: 16 KiB head, 48 KiB tail, both streams merged.
///
/// Memory used is in proportion to head + tail (per stream when separate), whatever is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Capture {
    pub(crate) head: usize,
    pub(crate) tail: usize,
    pub(crate) stderr: Stderr,
    pub(crate) full: Option<(PathBuf, u64)>,
}

impl Default for Capture {
    fn default() -> Self {
        Self::new(16 << 10, 48 << 10)
    }
}

impl Capture {
    /// Keeps the first `head` bytes and the last `tail` bytes, both streams merged.
    pub fn new(head: usize, tail: usize) -> Self {
        Self {
            head,
            tail,
            stderr: Stderr::Merged,
            full: None,
        }
    }

    /// What becomes of standard error.
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Writes the output to the file `path` too, up to `cap` bytes.
    ///
    /// The file is created, or emptied if it exists, with mode 0600. Separate streams are written as they
    /// arrive, so only merged output keeps its order.
    pub fn full(mut self, path: impl Into<PathBuf>, cap: u64) -> Self {
        self.full = Some((path.into(), cap));
        self
    }
}

/// What becomes of standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stderr {
    /// It is the same pipe as standard output, so the order of writes is kept.
    Merged,
    /// It is a pipe of its own.
    Separate,
}
