//! Answers requests from a recording, in order, if they are those that were recorded.

use super::compare::difference;
use super::names::Names;
use super::{Recorded, Recording};
use crate::failure::Reporter;
use crate::http::Ended;
use robot_lab::{ModelError, ModelErrorKind, ModelEvent, counted};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recording that is being played, from its beginning. Its clones are the same one, for the several models that were
/// recorded.
#[derive(Clone)]
pub struct Playback(Arc<Playing>);

struct Playing {
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
    /// Plays this recording.
    #[must_use]
    pub fn new(recording: Recording) -> Self {
        Self(Arc::new(Playing {
            exchanges: recording.exchanges,
            state: Mutex::default(),
        }))
    }

    /// Whether this model was the next one to be asked.
    pub(crate) fn is_next(&self, model: &str) -> bool {
        let recorded = self.0.exchanges.get(self.state().next);
        let asked = recorded.and_then(|recorded| recorded.model.as_deref());
        asked.is_none_or(|asked| asked == model)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body of the answer that a request got then, or why it got none.
    pub(crate) fn answer(&self, model: &str, body: &str, reporter: &Reporter) -> Result<String, Box<Ended>> {
        let exchanges = &self.0.exchanges;
        let mut state = self.state();
        let Some(recorded) = exchanges.get(state.next) else {
            let all = counted(exchanges.len(), "exchange");
            return Err(refused(format!("the recording has {all}, and this is one more")));
        };
        if let Some(asked) = recorded.model.as_deref().filter(|asked| *asked != model) {
            return Err(refused(format!(
                "request {} was sent to {asked} when it was recorded, and goes to {model} now",
                state.next + 1
            )));
        }
        let (then, now) = (state.then.number(&recorded.request), state.now.number(body));
        if let Some(difference) = difference(&then, &now) {
            return Err(refused(format!(
                "request {} is not the one that was recorded: {difference}",
                state.next + 1
            )));
        }
        state.next += 1;
        let Some(status) = recorded.status else {
            let error = reporter.other(ModelErrorKind::Network, "no answer, as it was recorded");
            return Err(Box::new(error.into()));
        };
        if (200..300).contains(&status) {
            return Ok(recorded.answer.clone());
        }
        let header = |name: &str| {
            let found = recorded.headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let mut error = reporter.status(status, header, &recorded.answer);
        // There is nobody to wait for.
        error.retry_after = None;
        if let ModelErrorKind::RateLimited { retry_after } = &mut error.kind {
            *retry_after = None;
        }
        Err(Box::new(Ended {
            said: Some(recorded.answer.clone()),
            ..error.into()
        }))
    }

    /// A reply in the words of this run: its directories, its commits. Texts that came in pieces are made whole, since a
    /// word may have been cut.
    pub(crate) fn translate(
        &self,
        events: Vec<Result<ModelEvent, ModelError>>,
    ) -> Vec<Result<ModelEvent, ModelError>> {
        let state = self.state();
        let text = |text: String| state.now.translate(&text, &state.then);
        let translated = |event| match event {
            ModelEvent::Text(said) => ModelEvent::Text(text(said)),
            ModelEvent::Reasoning(said) => ModelEvent::Reasoning(text(said)),
            ModelEvent::Call(mut call) => {
                for_each_text(&mut call.arguments, &|said| *said = text(std::mem::take(said)));
                ModelEvent::Call(call)
            }
            other => other,
        };
        joined(events)
            .into_iter()
            .map(|event| event.map(translated))
            .collect()
    }
}

fn refused(why: String) -> Box<Ended> {
    let message = format!("{why}; nothing was sent, and the recording is as it was");
    Box::new(ModelError::new(ModelErrorKind::OffScript, message).into())
}

fn joined(events: Vec<Result<ModelEvent, ModelError>>) -> Vec<Result<ModelEvent, ModelError>> {
    let mut joined: Vec<Result<ModelEvent, ModelError>> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(Ok(ModelEvent::Text(text))), Ok(ModelEvent::Text(more)))
            | (Some(Ok(ModelEvent::Reasoning(text))), Ok(ModelEvent::Reasoning(more))) => {
                text.push_str(&more)
            }
            (_, event) => joined.push(event),
        }
    }
    joined
}

fn for_each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| for_each_text(value, change)),
        Value::Object(map) => map.values_mut().for_each(|value| for_each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
