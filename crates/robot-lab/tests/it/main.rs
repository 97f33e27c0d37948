//! Invocations of a robot over a scripted model.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of the tests fails its test by panicking"
)]

mod malformed;
mod outage;
mod robot;
