//! Keeps what is sent within what a model can read. The conversation itself stays whole: what is sent is a view of it,
//! which is compacted in large steps, so that its beginning stays the same for as long as possible and a provider's cache
//! of it holds.

mod limit;
mod view;

pub(crate) use view::View;

use crate::budget::Budget;
use crate::message::Message;
use crate::model::{ModelError, ModelErrorKind, ModelId, ModelRequest};

/// Of a hundred parts of what a request may have: what is left of it after a compaction.
const TARGET: usize = 60;
/// The same where the conversation did not fit even so, and only its end is still to be said.
const TIGHT: usize = 25;
/// Compactions of one conversation. One that needs more turns in a circle.
const MAX_COMPACTIONS: u32 = 10;
/// Tokens that are kept free for a reply where nobody knows how long one can be.
const REPLY: u64 = 8_192;

/// What was done to make a conversation fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// About how many tokens a request had.
    pub(crate) before: u64,
    /// About how many it has now.
    pub(crate) after: u64,
    /// How many the model takes, its reply included; `None` where nobody knows.
    pub(crate) window: Option<u64>,
}

/// What is known of a conversation's fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    view: View,
    compactions: u32,
    /// Whether a provider has refused this conversation for its length.
    refused: bool,
    /// Whether it did not fit, so that only its end is still to be said.
    tight: bool,
}

/// Who knows how long a text is.
#[derive(Clone, Copy)]
pub(crate) struct Gauge<'a> {
    pub(crate) budget: &'a Budget,
    pub(crate) model: &'a ModelId,
}

impl Gauge<'_> {
    fn tokens(&self, bytes: usize) -> u64 {
        self.budget.meter().tokens(self.model, bytes)
    }

    /// Tokens that the model can read and write at once.
    pub(crate) fn window(&self) -> Option<u64> {
        let learnt = self.budget.meter().window(self.model);
        let known = self.budget.facts(self.model).context_window;
        match (learnt, known) {
            (Some(learnt), Some(known)) => Some(learnt.min(known)),
            (learnt, known) => learnt.or(known),
        }
    }

    /// Bytes that a request may have, so that a reply still fits.
    fn room(&self, window: u64, max_output: Option<u32>) -> usize {
        let facts = self.budget.facts(self.model);
        let reply = max_output.map(u64::from).or(facts.max_output).unwrap_or(REPLY);
        let room = window.saturating_sub(reply.min(window / 4));
        self.budget.meter().bytes(self.model, room)
    }
}

impl Context {
    /// Puts the conversation, as it is to be sent, into a request; compacted when it has grown too long. An error when
    /// it is known not to fit: then nothing is to be sent.
    pub(crate) fn fit(
        &mut self,
        request: &mut ModelRequest,
        messages: &[Message],
        gauge: Gauge<'_>,
    ) -> Result<Option<Compacted>, ModelError> {
        request.messages = self.view.render(messages);
        let Some(window) = gauge.window() else {
            return Ok(None);
        };
        let room = gauge.room(window, request.max_output_tokens);
        let size = request.size();
        let tight = std::mem::take(&mut self.tight);
        if size <= room && !tight {
            return Ok(None);
        }
        if !tight {
            self.compactions += 1;
            if self.compactions > MAX_COMPACTIONS {
                return Err(self.overflow(format!(
                    "the conversation grew too long {MAX_COMPACTIONS} times, and was shortened each time"
                )));
            }
        }
        let target = room / 100 * if tight { TIGHT } else { TARGET };
        let compacted = self.compact(request, messages, target, gauge);
        // Without a count of the provider's own, a guess may be too high.
        let sure = gauge.budget.meter().is_sure(gauge.model);
        let limit = if sure {
            window
        } else {
            window.saturating_add(window / 2)
        };
        if gauge.tokens(request.size()) > limit {
            return Err(self.overflow(format!(
                "about {} tokens have to be sent, and the model takes {window}",
                gauge.tokens(request.size())
            )));
        }
        Ok(compacted)
    }

    /// A provider has refused a request for its length: learns from what it says, and compacts it once. An error when
    /// that was done before, or does not make it shorter.
    pub(crate) fn refused(
        &mut self,
        error: ModelError,
        request: &mut ModelRequest,
        messages: &[Message],
        gauge: Gauge<'_>,
    ) -> Result<Compacted, ModelError> {
        let bytes = request.size();
        let said = limit::said(&error.message);
        if let Some(sent) = said.sent {
            gauge.budget.meter().learn_size(gauge.model, bytes, sent);
        }
        let tokens = gauge.tokens(bytes);
        // Where no number is said, it is less than what was sent.
        let window = said.window.unwrap_or(tokens.saturating_sub(tokens / 10)).max(1);
        gauge.budget.meter().learn_window(gauge.model, window);
        if std::mem::replace(&mut self.refused, true) {
            self.tight = true;
            return Err(error);
        }
        let window = gauge.window().unwrap_or(window);
        let room = gauge.room(window, request.max_output_tokens).min(bytes);
        match self.compact(request, messages, room / 100 * TARGET, gauge) {
            Some(compacted) if request.size() < bytes => Ok(compacted),
            _ => {
                self.tight = true;
                Err(error)
            }
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn compact(
        &mut self,
        request: &mut ModelRequest,
        messages: &[Message],
        target: usize,
        gauge: Gauge<'_>,
    ) -> Option<Compacted> {
        let before = request.size();
        let target = target.saturating_sub(request.size_without_messages());
        self.view.compact(messages, target);
        request.messages = self.view.render(messages);
        let after = request.size();
        (after < before).then(|| Compacted {
            before: gauge.tokens(before),
            after: gauge.tokens(after),
            window: gauge.window(),
        })
    }

    fn overflow(&mut self, why: String) -> ModelError {
        self.tight = true;
        ModelError::new(ModelErrorKind::ContextLength, why)
    }
}
