//! The helpers against plain sockets and small programs.
#![expect(
    clippy::expect_used,
    reason = "a helper of the tests fails its test by panicking"
)]

mod client;
mod environment;
mod server;
