//! One reply on its way: the library brings the events of the stream, `chat` reads them.

use crate::chat::{Decoder, Fault};
use crate::failure::Reporter;
use futures::Stream;
use genai::chat::{ChatFrameSink, ChatStream, ChatStreamEvent, FrameCtx, RawFrameRef};
use robot_lab::{ModelError, ModelErrorKind, ModelEvent, ModelStream};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// The events of a stream as they came, before the library reads anything into them.
#[derive(Debug, Default)]
pub(super) struct Frames(Mutex<Vec<String>>);

impl Frames {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        // Comments, which keep a connection alive, have no data.
        if !frame.data.is_empty() {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(frame.data.to_owned());
        }
    }
}

/// Sends the request and waits until a reply begins. What fails before that has cost nothing.
pub(super) async fn open(
    stream: ChatStream,
    frames: Arc<Frames>,
    reporter: Arc<Reporter>,
) -> Result<ModelStream, ModelError> {
    let mut reply = Reply {
        stream,
        frames,
        reporter,
        decoder: Some(Decoder::default()),
        begun: false,
        events: VecDeque::new(),
        end: VecDeque::new(),
    };
    futures::future::poll_fn(|cx| reply.poll_begin(cx)).await;
    match (reply.begun, reply.end.pop_front()) {
        (false, Some(Err(error))) => Err(error),
        (_, taken) => {
            reply.end.extend(taken);
            Ok(Box::pin(reply))
        }
    }
}

struct Reply {
    stream: ChatStream,
    frames: Arc<Frames>,
    reporter: Arc<Reporter>,
    /// Gone once the reply has ended, well or not.
    decoder: Option<Decoder>,
    /// Whether any part of it has come.
    begun: bool,
    events: VecDeque<ModelEvent>,
    /// What comes after the events.
    end: VecDeque<Result<ModelEvent, ModelError>>,
}

impl Reply {
    /// Ready once the reply has begun or has failed.
    fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let stepped = self.step(cx);
            if self.begun || self.decoder.is_none() {
                return Poll::Ready(());
            }
            std::task::ready!(stepped);
        }
    }

    /// Goes on by one event of the library. Ready when there may be more at once.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = Pin::new(&mut self.stream).poll_next(cx);
        let Some(decoder) = &mut self.decoder else {
            return Poll::Ready(());
        };
        for data in self.frames.take() {
            if let Err(fault) = decoder.push(&data, &mut self.events) {
                return self.fail(fault);
            }
            self.begun |= decoder.started();
        }
        if decoder.done() {
            return self.finish();
        }
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None | Some(Ok(ChatStreamEvent::End(_)))) => self.finish(),
            Poll::Ready(Some(Ok(_))) => Poll::Ready(()),
            // The library takes every `error` for one, also an empty one; the decoder has seen the same event.
            Poll::Ready(Some(Err(genai::Error::ChatResponse { .. }))) => Poll::Ready(()),
            // Nothing of a reply is missing that has ended.
            Poll::Ready(Some(Err(_))) if decoder.finished() => self.finish(),
            Poll::Ready(Some(Err(error))) => {
                let error = failure(&self.reporter, &error);
                self.end_with(Err(error))
            }
        }
    }

    fn finish(&mut self) -> Poll<()> {
        match self.decoder.take().unwrap_or_default().finish() {
            Ok(last) => {
                self.end.extend(last.into_iter().map(Ok));
                Poll::Ready(())
            }
            Err(fault) => self.fail(fault),
        }
    }

    fn fail(&mut self, fault: Fault) -> Poll<()> {
        let error = self.reporter.fault(fault);
        self.end_with(Err(error))
    }

    fn end_with(&mut self, last: Result<ModelEvent, ModelError>) -> Poll<()> {
        self.decoder = None;
        self.end.push_back(last);
        Poll::Ready(())
    }
}

impl Stream for Reply {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.events.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            if this.decoder.is_none() {
                return Poll::Ready(this.end.pop_front());
            }
            if this.step(cx).is_pending() && this.events.is_empty() {
                return Poll::Pending;
            }
        }
    }
}

/// What the library reports, as an error of ours.
pub(super) fn failure(reporter: &Reporter, error: &genai::Error) -> ModelError {
    match error {
        genai::Error::WebStream { error, .. } => transport(reporter, error.as_ref()),
        genai::Error::HttpError {
            status,
            body,
            headers,
            ..
        } => reporter.status(status.as_u16(), |name| headers.get(name)?.to_str().ok(), body),
        genai::Error::StreamParse { serde_error, .. } => {
            reporter.fault(Fault::Malformed(serde_error.to_string()))
        }
        genai::Error::ChatResponse { body, .. } => reporter.fault(Fault::Reported(body.clone())),
        other => reporter.other(
            ModelErrorKind::BadRequest,
            &format!("the request cannot be sent: {other}"),
        ),
    }
}

fn transport(reporter: &Reporter, error: &(dyn std::error::Error + Send + Sync + 'static)) -> ModelError {
    if let Some(error) = error.downcast_ref::<genai::Error>() {
        return failure(reporter, error);
    }
    if error.is::<std::string::FromUtf8Error>() || error.is::<std::str::Utf8Error>() {
        return reporter.fault(Fault::Malformed("it is not valid UTF-8".into()));
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let http = error.downcast_ref::<reqwest::Error>();
    let (kind, what) = match http {
        Some(error) if error.is_builder() => (ModelErrorKind::BadRequest, "the request cannot be sent"),
        Some(error) if error.is_connect() && error.is_timeout() => (
            ModelErrorKind::Network,
            "no connection within 10 s, check the address and the network",
        ),
        Some(error) if error.is_connect() => (
            ModelErrorKind::Network,
            "no connection, check the address and that the server runs",
        ),
        _ => (
            ModelErrorKind::Network,
            "the connection broke, nothing of the reply was used",
        ),
    };
    reporter.other(kind, &format!("{what} ({cause})"))
}
