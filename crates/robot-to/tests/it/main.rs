//! The built `robot-to`, end to end: real repositories, real test suites, real processes, and a model over HTTP.
#![cfg(target_os = "linux")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of the tests fails its test by panicking"
)]

mod attempts;
mod cases;
mod check;
mod checks;
mod clean;
mod cli;
mod concepts;
mod config;
mod copy;
mod demo;
mod dirty;
mod docs;
mod doctor;
mod evals;
mod examples;
mod faults;
mod grading;
mod growth;
mod hooks;
mod lab;
mod library;
mod limits;
mod log;
mod outages;
mod outcomes;
mod overhead;
#[cfg(feature = "peers")]
mod peers;
mod places;
mod plain_user;
mod processes;
mod prompt;
mod providers;
mod real_input;
mod record;
mod regressions;
mod replies;
mod report;
mod resume;
mod script;
mod setup;
mod signals;
mod start;
mod surface;
