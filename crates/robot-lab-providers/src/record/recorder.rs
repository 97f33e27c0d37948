//! Writes exchanges with a provider into a recording.

use super::{Header, Recorded, VERSION};
use crate::http::{Exchange, ExchangeObserver};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// The most of an answer that is kept, in bytes: more than any reply may have.
const KEPT: usize = 64 * 1024 * 1024;

/// The most that a recording may hold, in bytes. Each request has the whole conversation in it, so one night can be long.
const MAX_RECORDING: usize = 2 << 30;

/// Keeps every exchange, one line each, as soon as its answer is there.
pub struct Recorder {
    state: Mutex<State>,
    redact: Box<dyn Fn(String) -> String + Send + Sync>,
}

type Open = Box<dyn FnOnce() -> io::Result<Box<dyn Write + Send>> + Send>;

struct State {
    /// How the file is made, until it is.
    open_file: Option<Open>,
    out: Option<Box<dyn Write + Send>>,
    /// Requests without an answer yet, by their model and number.
    open: HashMap<(String, u64), String>,
    /// Bytes that were written.
    written: usize,
    failed: Option<io::Error>,
    /// Whether anything failed: what follows a line that is not whole could not be read.
    over: bool,
}

impl Recorder {
    /// A recording of a model, which begins with its first exchange: then `open` makes the file. What else must not be
    /// written down is taken out by `redact`.
    pub fn new<W: Write + Send + 'static>(
        open: impl FnOnce() -> io::Result<W> + Send + 'static,
        model: Value,
        redact: impl Fn(String) -> String + Send + Sync + 'static,
    ) -> Self {
        let open = move || {
            let mut out = open()?;
            let header = Header {
                recording: VERSION,
                model,
            };
            write(&mut out, &header)?;
            Ok(Box::new(out) as Box<dyn Write + Send>)
        };
        Self {
            state: Mutex::new(State {
                open_file: Some(Box::new(open)),
                out: None,
                open: HashMap::new(),
                written: 0,
                failed: None,
                over: false,
            }),
            redact: Box::new(redact),
        }
    }

    /// Whether all of it could be written so far; says the first failure once.
    pub fn check(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.take().map_or(Ok(()), Err)
    }
}

impl State {
    fn write(&mut self, line: &Recorded) -> io::Result<()> {
        if self.over {
            return Ok(());
        }
        self.written += line.request.len() + line.answer.len();
        if self.written > MAX_RECORDING {
            return Err(io::Error::other("it has reached 2 GiB, and ends there"));
        }
        if let Some(open) = self.open_file.take() {
            self.out = Some(open()?);
        }
        match &mut self.out {
            Some(out) => write(out, line),
            None => Ok(()),
        }
    }
}

fn write(out: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()
}

impl ExchangeObserver for Recorder {
    fn exchange(&self, exchange: Exchange) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match exchange {
            Exchange::Request {
                model, number, body, ..
            } => {
                state.open.insert((model, number), (self.redact)(body));
            }
            Exchange::Answer {
                model,
                number,
                address,
                status,
                headers,
                body,
                ..
            } => {
                let Some(request) = state.open.remove(&(model.clone(), number)) else {
                    return;
                };
                let line = Recorded {
                    model: Some(model),
                    address,
                    request,
                    status,
                    headers,
                    answer: (self.redact)(body),
                };
                if let Err(error) = state.write(&line) {
                    state.over = true;
                    state.out = None;
                    state.failed.get_or_insert(error);
                }
            }
        }
    }

    fn keeps(&self) -> usize {
        KEPT
    }
}
