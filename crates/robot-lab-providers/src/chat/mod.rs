//! The chat completions format, without any IO: requests are written, and the events of a reply are read.

mod calls;
mod decoder;
mod request;
mod usage;

pub(crate) use decoder::{Decoder, Fault};
pub(crate) use request::body;
