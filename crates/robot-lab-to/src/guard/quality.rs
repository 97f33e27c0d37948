//! Steers a model that repeats itself: its answer is thrown away and it is asked once more in other words; when that
//! does not help, the iteration ends. What it said is never shown to it as its own turn, since it would say it again.

use async_trait::async_trait;
use robot_lab::{
    EventSink, Hook, HookCx, Message, ModelError, ModelErrorKind, ModelReply, ModelRequest, NextModel,
    RobotEvent,
};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

/// Most answers that are remembered.
const MAX_ANSWERS: usize = 1_000;

/// The hook. It remembers from one invocation to the next.
pub(crate) struct Quality {
    events: Arc<dyn EventSink>,
    answers: Mutex<BTreeSet<u64>>,
    /// Whether it answers with whole files, so that no tool is to be named to it, and two files may be the same.
    whole: bool,
}

impl Quality {
    pub(crate) fn new(events: Arc<dyn EventSink>, whole: bool) -> Self {
        Self {
            events,
            answers: Mutex::default(),
            whole,
        }
    }

    /// What is wrong with an answer, if it can be mended by asking anew.
    fn wrong(&self, answer: &Result<ModelReply, ModelError>) -> Option<String> {
        match answer {
            Ok(reply) if self.is_repeated(reply) => Some("the reply is the same as an earlier one".into()),
            Err(error) if error.kind == ModelErrorKind::Repetition => Some(error.message.clone()),
            Ok(_) | Err(_) => None,
        }
    }

    /// Whether an answer without calls was given before, word for word. Calls are another guard's matter.
    fn is_repeated(&self, reply: &ModelReply) -> bool {
        let text = reply.message.text();
        if self.whole || reply.message.calls().next().is_some() || text.trim().is_empty() {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        text.trim().hash(&mut hasher);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = answers.insert(hasher.finish());
        while answers.len() > MAX_ANSWERS {
            answers.pop_first();
        }
        !is_new
    }
}

#[async_trait]
impl Hook for Quality {
    fn name(&self) -> &'static str {
        "quality"
    }

    async fn around_model(
        &self,
        _cx: &HookCx<'_>,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelReply, ModelError> {
        let answer = next.run(request.clone()).await;
        let Some(why) = self.wrong(&answer) else {
            return answer;
        };
        if answer.is_ok() {
            // One that was cut has been reported already.
            self.events.emit(RobotEvent::ModelFailed {
                kind: ModelErrorKind::Repetition,
                message: why,
                retry_in: Some(std::time::Duration::ZERO),
            });
        }
        let again = next.run(steered(request, self.whole)).await;
        match self.wrong(&again) {
            Some(why) => Err(ModelError::new(
                ModelErrorKind::Repetition,
                format!("{why}, twice"),
            )),
            None => again,
        }
    }
}

/// The request with a word at its end, and with some chance in the answer: at a temperature of 0 a model would say the
/// same again. It is said to this request alone.
fn steered(mut request: ModelRequest, whole: bool) -> ModelRequest {
    const WORD: &str = "Do not repeat what was said. Do the next step now: call one tool. If there is nothing left to \
                        do, call `submit_iteration_result`.";
    const WHOLE: &str = "That was tried before. Do it in another way.";
    const WARM: f64 = 0.8;
    let word = if whole { WHOLE } else { WORD };
    request.temperature = Some(WARM);
    match request.messages.last_mut() {
        Some(Message::User { text }) => {
            text.push_str("\n\n");
            text.push_str(word);
        }
        _ => request.messages.push(Message::User { text: word.into() }),
    }
    request
}
