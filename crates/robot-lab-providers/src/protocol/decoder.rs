//! Reads a reply, piece by piece, and tells a whole reply from one that broke off.

use super::frames::{Frames, Framing};
use robot_lab::{Cost, FinishReason, ModelEvent, Usage};
use serde_json::Value;
use std::collections::VecDeque;

/// The most that a reply may hold, in bytes of text, arguments and opaque parts.
const MAX_REPLY: usize = 32 * 1024 * 1024;
/// A call has at least so many tokens, with its name and what stands around it.
const LEAST_OF_A_CALL: u64 = 8;
/// The longest reason for an end that is handed on, in characters.
const MAX_REASON: usize = 60;
/// The longest name of a model that is handed on, in characters.
const MAX_NAME: usize = 100;

/// Why a reply is of no use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The server reports this error in place of a reply, or in the middle of one.
    Reported(Value),
    /// The reply cannot be understood; the text completes "the reply is malformed: ".
    Malformed(String),
    /// The conversation did not fit, and the server left a part of it out without a word; the text says so.
    Overflow(String),
    /// The reply ended before its end.
    Cut,
    /// The reply is whole, and the tool calls that it must have had are not in it.
    Lost {
        /// Whether the reply announced them; else they are missed, as so many tokens say nothing.
        announced: bool,
        /// What the reply has cost.
        usage: Option<Usage>,
        /// What the provider charged for it.
        charged: Option<Cost>,
    },
}

impl Fault {
    pub(super) fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }
}

/// What one protocol knows about the events of a reply.
pub(super) trait Reader: Send {
    /// Reads one event, which is an object and reports no error.
    fn read(&mut self, event: &Value, draft: &mut Draft) -> Result<(), Fault>;

    /// What is only handed on once the reply is known to be complete: opaque parts and tool calls, in order.
    fn rest(self: Box<Self>) -> Result<Vec<ModelEvent>, Fault>;
}

/// One reply on its way.
pub(crate) struct Decoder {
    frames: Frames,
    reader: Box<dyn Reader>,
    draft: Draft,
    /// Whether a reply of many tokens that says nothing counts as one that lost its calls.
    notices_silence: bool,
}

impl Decoder {
    pub(super) fn new(framing: Framing, reader: impl Reader + 'static) -> Self {
        Self {
            frames: Frames::new(framing),
            reader: Box::new(reader),
            draft: Draft::default(),
            notices_silence: false,
        }
    }

    /// The same, which does not take it for a reply when many tokens said nothing at all.
    pub(crate) fn noticing_silence(self, notices_silence: bool) -> Self {
        Self {
            notices_silence,
            ..self
        }
    }

    /// Whether any part of a reply has come.
    pub(crate) fn started(&self) -> bool {
        self.draft.started
    }

    /// Whether the model is known to have ended its reply.
    pub(crate) fn finished(&self) -> bool {
        self.draft.finish.is_some()
    }

    /// Whether the server has said that nothing follows.
    pub(crate) fn done(&self) -> bool {
        self.draft.done
    }

    /// Reads the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut VecDeque<ModelEvent>) -> Result<(), Fault> {
        let read = self
            .frames
            .push(bytes)
            .and_then(|events| events.iter().try_for_each(|data| self.event(data)));
        out.extend(self.draft.events.drain(..));
        read
    }

    /// The end of the stream: what remains to be said of a whole reply, or why it is none. Tool calls are only here.
    pub(crate) fn finish(mut self) -> Result<Vec<ModelEvent>, Fault> {
        let finished = self.finished();
        let read = self
            .frames
            .finish()
            .and_then(|events| events.iter().try_for_each(|data| self.event(data)));
        match read {
            // Nothing of a reply is missing that had ended before.
            Ok(()) => {}
            Err(_) if finished => {}
            Err(Fault::Malformed(_)) if self.frames.is_whole() => return Err(no_stream()),
            // The last event broke off.
            Err(Fault::Malformed(_)) if self.started() => return Err(Fault::Cut),
            Err(fault) => return Err(fault),
        }
        let Some(finish) = self.draft.finish else {
            return Err(if self.draft.started {
                Fault::Cut
            } else {
                no_stream()
            });
        };
        let mut events = self.draft.events;
        let rest = self.reader.rest()?;
        let has_calls = rest.iter().any(|event| matches!(event, ModelEvent::Call(_)));
        let announced = finish == FinishReason::ToolCalls;
        let spent = self.draft.usage.map_or(0, |usage| usage.output);
        let missed = finish == FinishReason::Stop && !self.draft.said && spent >= LEAST_OF_A_CALL;
        if !has_calls && (announced || (missed && self.notices_silence)) {
            let Draft { usage, charged, .. } = self.draft;
            return Err(Fault::Lost {
                announced,
                usage,
                charged,
            });
        }
        events.extend(rest);
        events.extend(self.draft.usage.map(ModelEvent::Usage));
        events.extend(self.draft.charged.map(ModelEvent::Charged));
        events.push(ModelEvent::Finished(finish));
        Ok(events)
    }

    /// Reads the data of one event.
    fn event(&mut self, data: &str) -> Result<(), Fault> {
        if self.draft.done {
            return Ok(());
        }
        if data == "[DONE]" {
            self.draft.done = true;
            return Ok(());
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|error| Fault::malformed(format!("an event is not valid JSON ({error})")))?;
        if let Some(error) = reported(&event) {
            return Err(Fault::Reported(error));
        }
        match event {
            // All events of the stream, as a list in its place.
            Value::Array(events) if self.frames.is_whole() => {
                events.iter().try_for_each(|event| self.read(event))
            }
            event => self.read(&event),
        }
    }

    fn read(&mut self, event: &Value) -> Result<(), Fault> {
        if let Some(error) = reported(event) {
            return Err(Fault::Reported(error));
        }
        if !event.is_object() {
            return Err(Fault::malformed("an event is not a JSON object"));
        }
        self.reader.read(event, &mut self.draft)?;
        if self.draft.bytes > MAX_REPLY {
            return Err(Fault::malformed(format!("it is longer than {MAX_REPLY} bytes")));
        }
        Ok(())
    }
}

fn no_stream() -> Fault {
    Fault::malformed("the answer is no stream of events; check the base URL")
}

/// The error that an event reports, if it does.
fn reported(event: &Value) -> Option<Value> {
    // Some send a list of errors in place of a stream.
    let first = event.as_array().and_then(|list| list.first()).unwrap_or(event);
    match first.get("error") {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::Object(nothing)) if nothing.is_empty() => {}
        Some(_) => return Some(first.clone()),
    }
    (first.get("object").and_then(Value::as_str) == Some("error")).then(|| first.clone())
}

/// What is known of a reply so far, for a [`Reader`] to write.
#[derive(Debug, Default)]
pub(super) struct Draft {
    events: Vec<ModelEvent>,
    usage: Option<Usage>,
    charged: Option<Cost>,
    finish: Option<FinishReason>,
    bytes: usize,
    started: bool,
    done: bool,
    /// Whether the model is named.
    named: bool,
    /// Whether any text or reasoning has come.
    said: bool,
}

impl Draft {
    /// A part of a reply has come.
    pub(super) fn start(&mut self) {
        self.started = true;
    }

    /// The model that the reply says it is from, the first time.
    pub(super) fn model(&mut self, name: Option<&Value>) {
        let name = name.and_then(Value::as_str).unwrap_or_default().trim();
        if !name.is_empty() && !std::mem::replace(&mut self.named, true) {
            self.events
                .push(ModelEvent::Served(name.chars().take(MAX_NAME).collect()));
        }
    }

    /// Hands on more text.
    pub(super) fn text(&mut self, text: &str) {
        self.emit(text, ModelEvent::Text);
    }

    /// Hands on more readable reasoning.
    pub(super) fn reasoning(&mut self, text: &str) {
        self.emit(text, ModelEvent::Reasoning);
    }

    fn emit(&mut self, text: &str, event: fn(String) -> ModelEvent) {
        if !text.is_empty() {
            self.bytes += text.len();
            self.said = true;
            self.events.push(event(text.to_owned()));
        }
    }

    /// Hands on a part that goes back unchanged.
    pub(super) fn opaque(&mut self, part: Value) {
        self.events.push(ModelEvent::Opaque(part));
    }

    /// Counts the bytes of a call on its way.
    pub(super) fn call(&mut self, bytes: usize) {
        if bytes > 0 {
            self.bytes += bytes;
            self.events.push(ModelEvent::CallProgress(bytes));
        }
    }

    /// Counts bytes that the reader keeps for later.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Notes what the request has cost. Counts of a reply only grow; a later one that does not is an error of the
    /// server.
    pub(super) fn usage(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage
            && self.usage.is_none_or(|before| usage.total() >= before.total())
        {
            self.usage = Some(usage);
        }
    }

    /// Notes what the provider charged.
    pub(super) fn charged(&mut self, cost: Option<Cost>) {
        self.charged = cost.or(self.charged);
    }

    /// Notes what the request has cost, and says so the first time: what a reply has cost that breaks off later.
    pub(super) fn usage_at_once(&mut self, usage: Option<Usage>) {
        if self.usage.is_none() {
            self.events.extend(usage.map(ModelEvent::Usage));
        }
        self.usage(usage);
    }

    /// The model has ended its reply.
    pub(super) fn end(&mut self, reason: FinishReason) {
        self.finish = Some(match reason {
            FinishReason::Other(words) => FinishReason::Other(words.chars().take(MAX_REASON).collect()),
            known => known,
        });
    }

    /// Nothing follows.
    pub(super) fn done(&mut self) {
        self.done = true;
    }
}
