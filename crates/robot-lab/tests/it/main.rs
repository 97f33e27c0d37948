//! Invocations of a robot over a scripted model.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod malformed;
mod outage;
mod robot;
