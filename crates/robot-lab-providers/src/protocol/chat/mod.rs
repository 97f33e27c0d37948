//! OpenAI's chat completions.

mod pieces;
mod reader;
mod request;

pub(super) use reader::Reader;
pub(super) use request::body;
