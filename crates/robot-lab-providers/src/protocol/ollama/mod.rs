//! Ollama's own chat. Its other door, which speaks OpenAI's protocol, cannot set a context length, and the length that
//! it takes by itself is so short that tools and the beginning of a conversation fall out of it without a word.

mod reader;
mod request;

pub(super) use reader::Reader;
pub(super) use request::body;
