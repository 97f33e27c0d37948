//! One reply on its way: bytes come from the connection, the decoder reads them.

use super::connection;
use super::exchange::Recorder;
use crate::failure::Reporter;
use crate::protocol::{Decoder, Fault};
use reqwest::Response;
use robot_lab::{ModelError, ModelEvent};
use std::collections::VecDeque;
use std::sync::Arc;

/// Why no whole reply came.
pub(crate) struct Ended {
    pub(crate) error: ModelError,
    /// What the server said of it.
    pub(crate) said: Option<String>,
    /// What was wrong with the reply.
    pub(crate) fault: Option<Fault>,
}

impl From<ModelError> for Ended {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            said: None,
            fault: None,
        }
    }
}

/// Where the bytes of a reply come from.
pub(super) enum Body {
    /// The connection.
    Live(Response),
    /// A recording, all at once.
    Recorded(Option<String>),
}

impl Body {
    /// More bytes; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, reqwest::Error> {
        match self {
            Self::Live(response) => Ok(response.chunk().await?.map(Vec::from)),
            Self::Recorded(text) => Ok(text.take().map(String::into_bytes)),
        }
    }
}

pub(super) struct Reply {
    response: Body,
    /// Gone once the reply has ended, well or not.
    decoder: Option<Decoder>,
    /// Whether it comes piece by piece.
    pub(super) streamed: bool,
    /// Whether any part of it has come.
    begun: bool,
    events: VecDeque<ModelEvent>,
    /// What comes after the events, if it ended badly.
    ended: Option<Ended>,
    reporter: Arc<Reporter>,
    recorder: Option<Recorder>,
}

impl Reply {
    /// Waits until a reply begins. What fails before that has cost nothing.
    pub(super) async fn open(
        response: Body,
        decoder: Decoder,
        streamed: bool,
        reporter: Arc<Reporter>,
        recorder: Option<Recorder>,
    ) -> Result<Self, Ended> {
        let mut reply = Self {
            response,
            decoder: Some(decoder),
            streamed,
            begun: false,
            events: VecDeque::new(),
            ended: None,
            reporter,
            recorder,
        };
        while !reply.begun && reply.decoder.is_some() {
            reply.step().await;
        }
        match reply.ended.take() {
            Some(ended) if !reply.begun => Err(ended),
            ended => {
                reply.ended = ended;
                Ok(reply)
            }
        }
    }

    pub(super) async fn next(&mut self) -> Option<Result<ModelEvent, Ended>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if self.decoder.is_none() {
                return self.ended.take().map(Err);
            }
            self.step().await;
        }
    }

    /// Ends here with this error.
    pub(super) fn end_with(&mut self, ended: impl Into<Ended>) {
        self.recorder = None;
        self.decoder = None;
        self.ended = Some(ended.into());
    }

    /// Reads on by as many bytes as are there.
    async fn step(&mut self) {
        let read = self.response.chunk().await;
        let Some(decoder) = &mut self.decoder else { return };
        match read {
            Ok(Some(bytes)) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.push(&bytes);
                }
                let pushed = decoder.push(&bytes, &mut self.events);
                self.begun |= decoder.started();
                match pushed {
                    Ok(()) if decoder.done() => self.finish(),
                    Ok(()) => {}
                    Err(fault) => self.fail(fault),
                }
            }
            Ok(None) => self.finish(),
            // Nothing of a reply is missing that has ended.
            Err(_) if decoder.finished() => self.finish(),
            Err(error) => self.end_with(connection::failure(&self.reporter, &error)),
        }
    }

    fn finish(&mut self) {
        self.recorder = None;
        match self.decoder.take().map(Decoder::finish) {
            Some(Ok(last)) => {
                self.begun = true;
                self.events.extend(last);
            }
            Some(Err(fault)) => self.fail(fault),
            None => {}
        }
    }

    fn fail(&mut self, fault: Fault) {
        // Such a reply was whole, and is paid for.
        self.begun |= matches!(fault, Fault::Lost { .. });
        let said = match &fault {
            Fault::Reported(body) => Some(body.to_string()),
            _ => None,
        };
        self.end_with(Ended {
            error: self.reporter.fault(fault.clone()),
            said,
            fault: Some(fault),
        });
    }
}
