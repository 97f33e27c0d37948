//! The lines spoken between the calling program and the supervisor.
//!
//! Calling program: one [`Spec`] as a line of JSON, later perhaps one line more, which means "cancel".
//! Supervisor: [`Answer::Ready`], then [`Answer::Finished`] or [`Answer::Refused`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::{Deserialize, Serialize};

use crate::command::Limits;

/// The most bytes a line may have: several times what the kernel takes as arguments and environment.
pub(crate) const LINE_CAP: usize = 32 << 20;

/// The most bytes of standard input: far below [`LINE_CAP`], also as the numbers that bytes are in JSON.
pub(crate) const STDIN_CAP: usize = 1 << 20;

/// What the supervisor needs to know about the command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) program: OsText,
    pub(crate) args: Vec<OsText>,
    pub(crate) env: Vec<(OsText, OsText)>,
    pub(crate) cwd: OsText,
    pub(crate) stdin: OsText,
    pub(crate) timeout_ms: u64,
    pub(crate) grace_ms: u64,
    pub(crate) limits: Limits,
}

/// What the supervisor says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The spec is read. From here on a missing answer means that the supervisor was killed.
    Ready,
    /// Nothing was run.
    Refused { what: Refused, failure: Failure },
    /// The command has ended, and so has all it started, apart from `survivors`.
    Finished {
        end: End,
        elapsed_us: u64,
        leaked: u32,
        survivors: u32,
    },
}

/// Why nothing was run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Refused {
    /// The working directory cannot be entered.
    Cwd,
    /// The command cannot be started at all.
    Start,
}

/// How the command ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Cancelled,
}

/// An [`io::Error`] as data.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    errno: Option<i32>,
    text: String,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            errno: error.raw_os_error(),
            text: error.to_string(),
        }
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        failure
            .errno
            .map_or_else(|| Self::other(failure.text), Self::from_raw_os_error)
    }
}

/// An [`OsString`] as data: text where it is UTF-8, else bytes, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OsText {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for OsText {
    fn from(text: &OsStr) -> Self {
        text.to_str().map_or_else(
            || Self::Bytes(text.as_bytes().to_vec()),
            |text| Self::Text(text.to_owned()),
        )
    }
}

impl From<OsText> for OsString {
    fn from(text: OsText) -> Self {
        match text {
            OsText::Text(text) => text.into(),
            OsText::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_survive_the_line(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let text = OsString::from_vec(bytes);
            let line = serde_json::to_string(&OsText::from(text.as_os_str())).unwrap();
            prop_assert!(!line.contains('\n'));
            let back: OsText = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(OsString::from(back), text);
        }
    }

    #[test]
    fn an_error_keeps_its_number() {
        let error: io::Error = Failure::from(io::Error::from_raw_os_error(2)).into();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
