//! What follows from a failed request: from its kind, from how often it failed before, and from a throw of dice.

use super::{Backoff, Patience};
use crate::model::ModelErrorKind as Kind;
use std::time::Duration;

/// Replies of one request that may break off or make no sense, unless more retries than that are allowed. Each was paid
/// for, so they are no outage that could go on for hours.
pub(crate) const MAX_BROKEN: u32 = 5;
/// What is added to an announced wait at random, at the least and at the most.
const SPREAD: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// What one request has met so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Failures of any kind.
    pub(crate) failures: u32,
    /// Replies that broke off or made no sense.
    pub(crate) broken: u32,
}

impl Trouble {
    /// Counts a failure. `begun`: whether something of a reply had come.
    pub(crate) fn count(&mut self, kind: &Kind, begun: bool) {
        self.failures = self.failures.saturating_add(1);
        if is_broken(kind, begun) {
            self.broken = self.broken.saturating_add(1);
        }
    }
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: sending it again cannot help.
    GiveUp,
    /// Nothing: too many replies were broken.
    TooManyBroken,
    /// Send it again after this time.
    Again(Duration),
    /// Nobody asks this provider for so long.
    Close {
        /// How long.
        wait: Duration,
        /// Whether the provider said so.
        announced: bool,
    },
}

/// Decides after a failure of this kind, for which the provider may have asked to wait. `trouble` includes it; `row` is
/// how often in a row the provider failed whoever asked, this failure included; `dice` is from 0 to 1.
pub(crate) fn next(
    patience: &Patience,
    kind: &Kind,
    asked: Option<Duration>,
    begun: bool,
    trouble: Trouble,
    row: u32,
    dice: f64,
) -> Next {
    if !kind.is_retryable() {
        return Next::GiveUp;
    }
    if is_broken(kind, begun) {
        let most = MAX_BROKEN.max(patience.max_retries.saturating_add(1));
        return if trouble.broken >= most {
            Next::TooManyBroken
        } else {
            Next::Again(patience.quick.below(trouble.broken.saturating_sub(1), dice))
        };
    }
    let failed = row.max(trouble.failures).max(1);
    let limited_now = matches!(kind, Kind::RateLimited { .. });
    match failed.checked_sub(patience.max_retries.saturating_add(1)) {
        // A request is quick to be sent again, unless the provider wants much later.
        None if !limited_now && asked.is_none_or(|asked| asked <= patience.quick.cap) => {
            let wait = patience.quick.below(failed - 1, dice);
            Next::Again(wait.max(asked.unwrap_or_default()))
        }
        slow => match asked {
            Some(asked) => limited(asked, failed, patience, dice),
            None => {
                let n = if limited_now {
                    failed - 1
                } else {
                    slow.unwrap_or(0)
                };
                Next::Close {
                    wait: patience.slow.between(n, dice),
                    announced: false,
                }
            }
        },
    }
}

/// Whether a reply came that is of no use, in place of none.
fn is_broken(kind: &Kind, begun: bool) -> bool {
    match kind {
        Kind::MalformedReply => true,
        Kind::Network | Kind::Timeout => begun,
        _ => false,
    }
}

/// Waits as long as was asked for, and a little more. Whoever asks for too little again and again is waited for longer.
fn limited(asked: Duration, failed: u32, patience: &Patience, dice: f64) -> Next {
    let spread = (asked / 10).clamp(SPREAD.0, SPREAD.1);
    let wait = asked.saturating_add(part(spread, dice));
    let least = failed
        .checked_sub(3)
        .map_or(Duration::ZERO, |n| patience.slow.between(n, dice));
    Next::Close {
        wait: wait.max(least),
        announced: wait >= least,
    }
}

impl Backoff {
    fn bound(&self, n: u32) -> Duration {
        let doubled = self.first.saturating_mul(2u32.saturating_pow(n));
        doubled.min(self.cap)
    }

    /// Any time up to the bound.
    fn below(&self, n: u32, dice: f64) -> Duration {
        part(self.bound(n), dice)
    }

    /// Any time from the first bound to this one.
    fn between(&self, n: u32, dice: f64) -> Duration {
        let least = self.first.min(self.cap);
        least.saturating_add(part(self.bound(n).saturating_sub(least), dice))
    }
}

fn part(whole: Duration, dice: f64) -> Duration {
    Duration::try_from_secs_f64(whole.as_secs_f64() * dice)
        .unwrap_or(whole)
        .min(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn any_kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::RateLimited { retry_after: None }),
            Just(Kind::Overloaded),
            Just(Kind::Timeout),
            Just(Kind::Network),
            Just(Kind::MalformedReply),
            Just(Kind::Auth),
            Just(Kind::Billing),
            Just(Kind::ModelNotFound),
            Just(Kind::BadRequest),
            Just(Kind::ContextLength),
            Just(Kind::ContentFilter),
        ]
    }

    fn any_wait() -> impl Strategy<Value = Option<Duration>> {
        prop_oneof![
            Just(None),
            (0u64..100_000_000).prop_map(|asked| Some(Duration::from_millis(asked))),
            Just(Some(Duration::MAX)),
        ]
    }

    fn any_patience() -> impl Strategy<Value = Patience> {
        (0u32..10, 1u64..20, 1u64..1_000).prop_map(|(max_retries, first, cap)| Patience {
            max_retries,
            max_wait: 6 * HOUR,
            quick: Backoff {
                first: Duration::from_secs(1),
                cap: Duration::from_secs(60),
            },
            slow: Backoff {
                first: Duration::from_secs(first),
                cap: Duration::from_secs(first + cap),
            },
        })
    }

    proptest! {
        #[test]
        fn each_kind_gets_what_it_is_due(
            patience in any_patience(),
            kind in any_kind(),
            asked in any_wait(),
            begun: bool,
            failures in 1u32..100_000,
            broken in 1u32..20,
            row in 0u32..100_000,
            dice in 0f64..=1.0,
        ) {
            let trouble = Trouble { failures, broken };
            let next = next(&patience, &kind, asked, begun, trouble, row, dice);
            let paid = kind == Kind::MalformedReply || (begun && matches!(kind, Kind::Network | Kind::Timeout));
            let handful = 5.max(patience.max_retries + 1);
            let outage = matches!(kind, Kind::RateLimited { .. } | Kind::Overloaded | Kind::Network | Kind::Timeout);
            match next {
                Next::GiveUp => prop_assert!(
                    kind.is_permanent() || matches!(kind, Kind::ContextLength | Kind::ContentFilter)
                ),
                Next::TooManyBroken => prop_assert!(paid && broken >= handful),
                Next::Again(_) if paid => prop_assert!(broken < handful),
                Next::Again(wait) => {
                    let limit = matches!(kind, Kind::RateLimited { .. });
                    prop_assert!(outage && !limit);
                    prop_assert!(failures.max(row) <= patience.max_retries && wait <= patience.quick.cap);
                    prop_assert!(wait >= asked.unwrap_or_default());
                }
                Next::Close { wait, announced } => {
                    prop_assert!(outage && !paid);
                    match asked {
                        Some(asked) => {
                            prop_assert!(wait >= asked && (announced || wait <= patience.slow.cap));
                            let most = asked.saturating_add(Duration::from_secs(30)).max(patience.slow.cap);
                            prop_assert!(wait <= most, "{wait:?}");
                        }
                        None => prop_assert!(
                            !announced && wait >= patience.slow.first && wait <= patience.slow.cap
                        ),
                    }
                }
            }
        }

        #[test]
        fn an_outage_of_six_hours_is_a_bounded_number_of_requests(
            patience in any_patience(),
            failures in prop::collection::vec((any_kind(), any_wait()), 1..20),
            dice in prop::collection::vec(0f64..=1.0, 1..20),
        ) {
            let mut trouble = Trouble::default();
            let mut now = Duration::ZERO;
            let mut requests = 0u32;
            for ((kind, asked), dice) in failures.iter().cycle().zip(dice.iter().cycle()) {
                requests += 1;
                trouble.count(kind, false);
                match next(&patience, kind, *asked, false, trouble, trouble.failures, *dice) {
                    Next::GiveUp | Next::TooManyBroken => break,
                    Next::Again(wait) => now += wait,
                    Next::Close { wait, .. } => now = now.saturating_add(wait),
                }
                if now > patience.max_wait {
                    break;
                }
            }
            let slowest = 6 * 3_600 / patience.slow.first.as_secs().max(1);
            prop_assert!(u64::from(requests) <= slowest + 32, "{requests}");
        }
    }

    #[test]
    fn replies_that_are_broken_are_a_handful_and_no_outage() {
        let patience = Patience::default();
        let mut trouble = Trouble::default();
        let mut sent = 0;
        loop {
            sent += 1;
            trouble.count(&Kind::MalformedReply, true);
            match next(&patience, &Kind::MalformedReply, None, true, trouble, sent, 1.0) {
                Next::Again(wait) => assert_eq!(wait, Duration::from_secs(1 << (sent - 1))),
                end => break assert_eq!(end, Next::TooManyBroken),
            }
        }
        assert_eq!(sent, MAX_BROKEN);
    }

    #[test]
    fn a_limit_that_asks_for_too_little_again_and_again_is_not_hammered() {
        let asked = Some(Duration::ZERO);
        let kind = Kind::RateLimited { retry_after: asked };
        let patience = Patience {
            max_wait: 6 * HOUR,
            ..Patience::default()
        };
        let (mut now, mut requests) = (Duration::ZERO, 0);
        while now < patience.max_wait {
            requests += 1;
            let trouble = Trouble {
                failures: requests,
                broken: 0,
            };
            let Next::Close { wait, .. } = next(&patience, &kind, asked, false, trouble, requests, 0.5)
            else {
                panic!("a limit is waited for")
            };
            now += wait;
        }
        assert!(requests < 160, "{requests} requests in six hours");
    }
}
