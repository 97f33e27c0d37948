//! Exchanges with a provider, kept in a file and played back: for reports of faults, and for tests.
//!
//! [`Recorder`] writes what goes over the wire; [`Recording`] is such a file, read. A model that plays one
//! ([`HttpModel::replaying`](crate::HttpModel::replaying)) sends nothing: it compares each request with the recorded
//! one, byte for byte but for the words that are other in every run, and answers what was answered then.
//!
//! A file is lines of JSON. The first says which model it was, each further one is an exchange: `model`, `address`,
//! `request`, `status`, `headers`, `answer`. No key is in it.

mod compare;
mod names;
mod playback;
mod recorder;

pub use playback::Playback;
pub use recorder::Recorder;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the format.
const VERSION: u32 = 1;

/// The first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    recording: u32,
    model: Value,
}

/// One request and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// The model that was asked, as `provider/name`; `None` where there was one alone.
    #[serde(default)]
    pub(crate) model: Option<String>,
    pub(crate) address: String,
    pub(crate) request: String,
    /// `None` when there was no answer.
    pub(crate) status: Option<u16>,
    /// Those that say how long to wait.
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) answer: String,
}

/// Exchanges that were kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    model: Value,
    pub(crate) exchanges: Vec<Recorded>,
}

impl Recording {
    /// Reads a recording. A last line that broke off, as when the program was killed, is left out.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let first = lines.next().ok_or(RecordingError::NoRecording)?.1;
        let header: Header = serde_json::from_str(first).map_err(|_| RecordingError::NoRecording)?;
        if header.recording != VERSION {
            return Err(RecordingError::Version(header.recording));
        }
        let whole = text.ends_with('\n');
        let last = text.lines().count().saturating_sub(1);
        let mut exchanges = Vec::new();
        for (number, line) in lines {
            match serde_json::from_str(line) {
                Ok(exchange) => exchanges.push(exchange),
                Err(_) if number == last && !whole => {}
                Err(source) => {
                    return Err(RecordingError::Line {
                        number: number + 1,
                        why: source.to_string(),
                    });
                }
            }
        }
        Ok(Self {
            model: header.model,
            exchanges,
        })
    }

    /// What was said of the model when the recording was made.
    #[must_use]
    pub fn model(&self) -> &Value {
        &self.model
    }
}

/// A file that is no recording, or not one of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The first line is not that of a recording.
    #[error("it is no recording; --record FILE makes one")]
    NoRecording,
    /// It was made by a newer program.
    #[error("it is a recording of format {0}, and this program reads format 1; use the version that made it")]
    Version(u32),
    /// A line cannot be read.
    #[error("line {number} is damaged: {why}")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
}
