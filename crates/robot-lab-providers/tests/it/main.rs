//! Models against servers on the loopback, and scripts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test and its helpers fail by panicking"
)]

mod adapting;
mod bad_night;
mod errors;
mod fixtures;
mod framing;
mod protocols;
mod record;
mod replies;
mod script;
mod support;
