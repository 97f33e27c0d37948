//! Google's `streamGenerateContent`.
//!
//! Signatures of reasoning are attached to a part: to a call, or to a text. As an opaque part of ours, a signature
//! stands before what it belongs to, and says what that is: `{"thoughtSignature": "…", "of": "call"}`.

mod reader;
mod request;

pub(super) use reader::Reader;
pub(super) use request::body;

/// The key of a signature, on the wire and in an opaque part.
const SIGNATURE: &str = "thoughtSignature";
/// The key in an opaque part that says what a signature belongs to.
const OF: &str = "of";
/// A signature of a call.
const CALL: &str = "call";
/// A signature of a text.
const TEXT: &str = "text";
