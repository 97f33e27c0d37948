//! The protocols that providers speak, without any IO: requests are written, and the bytes of a reply are read.
//!
//! Each protocol has a folder with a `request`, which writes the body, and a `reader`, which reads one event of a
//! reply. What they share: `address` (where a request goes), `calls` (tool calls), `tokens` (counts), `frames` (bytes
//! into events) and `decoder` (events into a reply, whole or not).

mod address;
mod calls;
mod chat;
mod decoder;
mod frames;
mod gemini;
mod messages;
mod ollama;
mod tokens;

#[cfg(test)]
mod tests;

pub(crate) use decoder::{Decoder, Fault};

use frames::Framing;
use robot_lab::ModelRequest;
use serde_json::Value;

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OpenAI's chat completions, which most others speak too.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// Google's `streamGenerateContent`.
    Gemini,
    /// Ollama's own chat: only there a context length can be asked for.
    Ollama,
}

/// What may differ between two providers of the same protocol.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// The length of the context to ask for, which only Ollama takes.
    pub(crate) num_ctx: u32,
    /// Whether readable reasoning goes back in chat completions.
    pub(crate) echo_reasoning: bool,
}

impl Protocol {
    /// The body of a request.
    pub(crate) fn body(self, model: &str, request: &ModelRequest, options: Options) -> Value {
        match self {
            Self::Chat => chat::body(model, request, options.echo_reasoning),
            Self::Messages => messages::body(model, request),
            Self::Gemini => gemini::body(request),
            Self::Ollama => ollama::body(model, request, options.num_ctx),
        }
    }

    /// What reads the reply to this request.
    pub(crate) fn decoder(self, request: &ModelRequest, options: Options) -> Decoder {
        match self {
            Self::Chat => Decoder::new(Framing::Events, chat::Reader::default()),
            Self::Messages => Decoder::new(Framing::Events, messages::Reader::default()),
            Self::Gemini => Decoder::new(Framing::Events, gemini::Reader::default()),
            Self::Ollama => Decoder::new(Framing::Lines, ollama::Reader::new(request, options.num_ctx)),
        }
    }
}
