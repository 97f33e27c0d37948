//! One reply on its way: bytes come from the connection, the decoder reads them.

use super::connection;
use super::exchange::Recorder;
use crate::failure::Reporter;
use crate::protocol::Decoder;
use futures::StreamExt as _;
use reqwest::Response;
use robot_lab::{ModelError, ModelEvent, ModelStream};
use std::collections::VecDeque;
use std::sync::Arc;

/// Waits until a reply begins. What fails before that has cost nothing.
pub(super) async fn open(
    response: Response,
    decoder: Decoder,
    reporter: Arc<Reporter>,
    recorder: Option<Recorder>,
) -> Result<ModelStream, ModelError> {
    let mut reply = Reply {
        response,
        decoder: Some(decoder),
        begun: false,
        events: VecDeque::new(),
        error: None,
        reporter,
        recorder,
    };
    while !reply.begun && reply.decoder.is_some() {
        reply.step().await;
    }
    if !reply.begun
        && let Some(error) = reply.error.take()
    {
        return Err(error);
    }
    let next = |mut reply: Reply| async { reply.next().await.map(|event| (event, reply)) };
    Ok(futures::stream::unfold(reply, next).boxed())
}

struct Reply {
    response: Response,
    /// Gone once the reply has ended, well or not.
    decoder: Option<Decoder>,
    /// Whether any part of it has come.
    begun: bool,
    events: VecDeque<ModelEvent>,
    /// What comes after the events, if it ended badly.
    error: Option<ModelError>,
    reporter: Arc<Reporter>,
    recorder: Option<Recorder>,
}

impl Reply {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            if self.decoder.is_none() {
                return self.error.take().map(Err);
            }
            self.step().await;
        }
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
                    Err(fault) => self.end_with(self.reporter.fault(fault)),
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
            Some(Err(fault)) => self.end_with(self.reporter.fault(fault)),
            None => {}
        }
    }

    fn end_with(&mut self, error: ModelError) {
        self.recorder = None;
        self.decoder = None;
        self.error = Some(error);
    }
}
