//! The protocols that providers speak, without any IO: requests are written, and the bytes of a reply are read.
//!
//! Each protocol has a folder with a `request`, which writes the body, and a `reader`, which reads one event of a
//! reply. What they share: `address` (where a request goes), `calls` (tool calls), `tokens` (counts), `frames` (bytes
//! into events) and `decoder` (events into a reply, whole or not).
//! `adapt` knows what a server has been found not to take.

mod adapt;
mod address;
mod calls;
mod chat;
mod decoder;
mod frames;
mod gemini;
mod messages;
mod ollama;
mod responses;
mod tokens;

#[cfg(test)]
mod tests;

pub(crate) use adapt::{Change, Learnt};
pub(crate) use decoder::{Decoder, Fault};

use crate::effort::Effort;
use frames::Framing;
use robot_lab::ModelRequest;
use serde_json::Value;

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OpenAI's chat completions, which most others speak too.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Google's `streamGenerateContent`.
    Gemini,
    /// Ollama's own chat: only there a context length can be asked for.
    Ollama,
}

/// What a request asks for besides its conversation, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Options {
    /// The length of the context to ask for, which only Ollama takes.
    pub(crate) num_ctx: u32,
    /// How much chance there is in what the model says, for requests that say nothing of it; its own choice when `None`.
    pub(crate) temperature: Option<f64>,
    /// The most tokens of a reply, for requests that say nothing of it.
    pub(crate) max_output_tokens: Option<u32>,
    /// How much the model thinks; its own choice when `None`.
    pub(crate) effort: Option<Effort>,
    /// Whether thinking is asked for as models of another generation take it: by tokens in place of effort, or the
    /// other way round.
    pub(crate) other_thinking: bool,
    /// Whether the reasoning of earlier replies goes back: the readable one in chat completions, the opaque parts in
    /// other protocols.
    pub(crate) echo: bool,
    /// Whether the reply comes piece by piece.
    pub(crate) stream: bool,
    /// The most tokens that a reply may be allowed.
    pub(crate) ceiling: Option<u32>,
    /// Whether it is OpenRouter that is spoken to: it takes marks of what is to be cached, and says what it charged.
    pub(crate) is_openrouter: bool,
}

impl Options {
    /// The most tokens of the reply to this request.
    fn limit(&self, request: &ModelRequest) -> Option<u32> {
        let asked = request.max_output_tokens.or(self.max_output_tokens)?;
        Some(self.at_most(asked))
    }

    /// The temperature of the reply to this request.
    fn temperature(&self, request: &ModelRequest) -> Option<f64> {
        request.temperature.or(self.temperature)
    }

    fn at_most(&self, limit: u32) -> u32 {
        self.ceiling.map_or(limit, |ceiling| limit.min(ceiling))
    }
}

impl Protocol {
    /// The body of a request.
    pub(crate) fn body(self, model: &str, request: &ModelRequest, options: &Options) -> Value {
        match self {
            Self::Chat => chat::body(model, request, options),
            Self::Responses => responses::body(model, request, options),
            Self::Messages => messages::body(model, request, options),
            Self::Gemini => gemini::body(model, request, options),
            Self::Ollama => ollama::body(model, request, options),
        }
    }

    /// What reads the reply to this request.
    pub(crate) fn decoder(self, request: &ModelRequest, options: &Options) -> Decoder {
        match self {
            Self::Chat => Decoder::new(Framing::Events, chat::Reader::new(options.is_openrouter)),
            Self::Responses => Decoder::new(Framing::Events, responses::Reader::default()),
            Self::Messages => Decoder::new(Framing::Events, messages::Reader::default()),
            Self::Gemini => Decoder::new(Framing::Events, gemini::Reader::default()),
            Self::Ollama => Decoder::new(Framing::Lines, ollama::Reader::new(request, options.num_ctx)),
        }
    }
}
