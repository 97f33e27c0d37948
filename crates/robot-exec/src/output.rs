//! What is known about a command once it has ended.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::captured::Captured;

/// The result of a command that was run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Output {
    /// How it ended.
    pub status: Status,
    /// Standard output, and standard error too with [`Stderr::Merged`](crate::Stderr::Merged).
    pub stdout: Captured,
    /// Standard error; empty with [`Stderr::Merged`](crate::Stderr::Merged).
    pub stderr: Captured,
    /// The file asked for with [`Capture::full`](crate::Capture::full).
    pub full: Option<FullText>,
    /// From the start of the command to its end, its timeout or its cancellation.
    pub elapsed: Duration,
    /// How many processes the command left running when it ended by itself. They were ended.
    pub leaked: u32,
    /// How many processes could not be ended in time, for instance stuck in the kernel. Usually 0.
    pub survivors: u32,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It exited with this code (0 to 255); 127: there is no such program, 126: it cannot be executed.
    Exited(i32),
    /// A signal with this number ended it.
    Signaled(i32),
    /// It was ended because its time was over.
    TimedOut {
        /// The timeout of the command.
        after: Duration,
    },
    /// It was ended, or never started, because the caller cancelled it.
    Cancelled,
    /// The supervisor was killed or hung, so how the command ended is not known. All its processes that could
    /// be found were killed.
    HelperLost,
}

impl Status {
    /// Whether the command exited with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signaled(number) => write!(f, "killed by signal {number}"),
            Self::TimedOut { after } => write!(f, "timed out after {} s", after.as_secs_f64()),
            Self::Cancelled => f.write_str("cancelled"),
            Self::HelperLost => f.write_str("helper lost"),
        }
    }
}

/// The file with the full output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FullText {
    /// The file.
    pub path: PathBuf,
    /// Bytes written to it.
    pub written: u64,
    /// Bytes not written, because of the cap or because the disk failed. With 0 the file is complete.
    pub left_out: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_as_a_person_would_say_it() {
        let said = |status: Status| status.to_string();
        assert_eq!(said(Status::Exited(1)), "exit 1");
        assert_eq!(said(Status::Signaled(9)), "killed by signal 9");
        assert_eq!(
            said(Status::TimedOut {
                after: Duration::from_secs(2)
            }),
            "timed out after 2 s"
        );
        assert_eq!(
            said(Status::TimedOut {
                after: Duration::from_millis(1500)
            }),
            "timed out after 1.5 s"
        );
        assert_eq!(said(Status::Cancelled), "cancelled");
        assert!(Status::Exited(0).success() && !Status::Exited(1).success() && !Status::Cancelled.success());
    }
}
