//! Answers requests from a recording, in order, if they are those that were recorded.

use super::compare::difference;
use super::names::Names;
use super::{Recorded, Recording};
use crate::failure::Reporter;
use crate::protocol::Decoder;
use futures::StreamExt as _;
use robot_lab::{ModelError, ModelErrorKind, ModelEvent, ModelStream};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// A recording that is being played.
pub(crate) struct Playback {
    exchanges: Vec<Recorded>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: usize,
    /// The words of the run that was recorded, and of this one.
    then: Names,
    now: Names,
}

impl Playback {
    pub(crate) fn new(recording: Recording) -> Self {
        Self {
            exchanges: recording.exchanges,
            state: Mutex::default(),
        }
    }

    /// Answers a request as it was answered then.
    pub(crate) fn answer(
        &self,
        body: &str,
        decoder: Decoder,
        reporter: &Reporter,
    ) -> Result<ModelStream, ModelError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |why: String| {
            ModelError::new(
                ModelErrorKind::BadRequest,
                format!("{why}; nothing was sent, and the recording is as it was"),
            )
        };
        let number = state.next + 1;
        let Some(recorded) = self.exchanges.get(state.next) else {
            return Err(refused(format!(
                "the recording has {} exchanges, and this is one more",
                self.exchanges.len()
            )));
        };
        let (then, now) = (state.then.number(&recorded.request), state.now.number(body));
        if let Some(difference) = difference(&then, &now) {
            return Err(refused(format!(
                "request {number} is not the one that was recorded: {difference}"
            )));
        }
        state.next += 1;
        let Some(status) = recorded.status else {
            return Err(reporter.other(ModelErrorKind::Network, "no answer, as it was recorded"));
        };
        if !(200..300).contains(&status) {
            let header = |name: &str| {
                let found = recorded.headers.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.as_str())
            };
            return Err(reporter.status(status, header, &recorded.answer));
        }
        let (events, error) = decode(decoder, &recorded.answer, reporter);
        if events.is_empty()
            && let Some(error) = error
        {
            return Err(error);
        }
        let events = joined(events).into_iter().map(|event| translated(event, &state));
        let events: Vec<_> = events.map(Ok).chain(error.map(Err)).collect();
        Ok(futures::stream::iter(events).boxed())
    }
}

/// The events of a whole answer, and why it is none, if so.
fn decode(
    mut decoder: Decoder,
    answer: &str,
    reporter: &Reporter,
) -> (VecDeque<ModelEvent>, Option<ModelError>) {
    let mut events = VecDeque::new();
    if let Err(fault) = decoder.push(answer.as_bytes(), &mut events) {
        return (events, Some(reporter.fault(fault)));
    }
    match decoder.finish() {
        Ok(last) => {
            events.extend(last);
            (events, None)
        }
        Err(fault) => (events, Some(reporter.fault(fault))),
    }
}

/// With texts that came in pieces made whole: a word may have been cut.
fn joined(events: VecDeque<ModelEvent>) -> Vec<ModelEvent> {
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more))
            | (Some(ModelEvent::Reasoning(text)), ModelEvent::Reasoning(more)) => text.push_str(&more),
            (_, event) => joined.push(event),
        }
    }
    joined
}

/// In the words of this run: its directories, its commits.
fn translated(event: ModelEvent, state: &State) -> ModelEvent {
    let text = |text: String| state.now.translate(&text, &state.then);
    match event {
        ModelEvent::Text(said) => ModelEvent::Text(text(said)),
        ModelEvent::Reasoning(said) => ModelEvent::Reasoning(text(said)),
        ModelEvent::Call(mut call) => {
            for_each_text(&mut call.arguments, &|said| *said = text(std::mem::take(said)));
            ModelEvent::Call(call)
        }
        other => other,
    }
}

fn for_each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| for_each_text(value, change)),
        Value::Object(map) => map.values_mut().for_each(|value| for_each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
