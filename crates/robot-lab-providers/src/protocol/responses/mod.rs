//! OpenAI's responses: a conversation is a list of items, and reasoning is one of them.
//!
//! Nothing is kept at the provider, so reasoning comes encrypted and goes back as it came: an item of it is an opaque
//! part. So is the phase of a text, which stands after what it belongs to: `{"type": "phase", "phase": "…"}`.

mod reader;
mod request;

pub(super) use reader::Reader;
pub(super) use request::body;

/// The type of an opaque part that holds an item of reasoning.
const REASONING: &str = "reasoning";
/// The type of an opaque part that holds the phase of the text before it, and its key.
const PHASE: &str = "phase";
