//! Test helpers.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test helper fails its test by panicking"
)]

mod environment;
mod files;
#[cfg(target_os = "linux")]
mod processes;
mod repo;
mod server;

pub use environment::{Finished, Running, Signal, TestEnvironment};
pub use files::files_containing;
#[cfg(target_os = "linux")]
pub use processes::{survivors, wait_until_gone};
pub use repo::{Fingerprint, TestRepo};
pub use server::{Call, ModelServer, Reply, Request};
