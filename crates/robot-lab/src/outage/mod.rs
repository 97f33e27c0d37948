//! A provider that is out of order, or wants to be asked later: for how long it is waited for, and who asks next.
//!
//! - [`Patience`] is how much is waited; the pure `policy` says what follows from one failure.
//! - [`Limiter`] is what all robots of one key share: a circuit breaker, pure as well, and a fair queue before it.

mod breaker;
mod limiter;
mod policy;

pub use limiter::Limiter;
pub(crate) use limiter::{Blocked, Pass, Why};
pub(crate) use policy::{Next, Trouble, next};

use std::time::Duration;

/// How much is waited for a provider before a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Quick retries of one request, before its failures are taken for an outage.
    pub max_retries: u32,
    /// The longest that one request waits for outages and rate limits together. One whose announced end is later
    /// fails at once.
    pub max_wait: Duration,
    /// Waits before quick retries: any time up to a bound that doubles.
    pub quick: Backoff,
    /// Waits in an outage: from its first bound up to one that doubles.
    pub slow: Backoff,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            max_retries: 2,
            max_wait: Duration::from_secs(60),
            quick: Backoff {
                first: Duration::from_secs(1),
                cap: Duration::from_secs(60),
            },
            slow: Backoff {
                first: Duration::from_secs(5),
                cap: Duration::from_secs(300),
            },
        }
    }
}

/// Bounds of waits that double from one to the next. The waits themselves are drawn at random, so that many callers do
/// not come back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first bound.
    pub first: Duration,
    /// The last one.
    pub cap: Duration,
}
