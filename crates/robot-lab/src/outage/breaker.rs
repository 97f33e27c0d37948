//! The circuit breaker of one key, as a pure machine: closed, open until a time, or half open, which lets one request
//! through at a time until enough of them were answered. Times count from a moment that its owner chose.

use std::time::Duration;

/// Requests that are let through one at a time before the breaker closes again.
const RECOVERED: u32 = 3;

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Requests go through.
    Closed,
    /// Nobody asks until then.
    Open { until: Duration },
    /// One at a time.
    HalfOpen { busy: bool, answered: u32 },
}

/// The breaker.
#[derive(Debug)]
pub(super) struct Breaker {
    state: State,
    /// Counts how often it opened. What went out before that says nothing of the time after it.
    opened: u64,
    /// Failures in a row.
    failures: u32,
}

/// The right to send one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permit {
    opened: u64,
    probe: bool,
}

/// Whether a request may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Go(Permit),
    /// Not before this time.
    NotBefore(Duration),
    /// Not before the one that is on its way has come back.
    Busy,
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self {
            state: State::Closed,
            opened: 0,
            failures: 0,
        }
    }

    /// Asks for a permit.
    pub(super) fn ask(&mut self, now: Duration) -> Admission {
        let probe = match &mut self.state {
            State::Closed => false,
            State::Open { until } if now < *until => return Admission::NotBefore(*until),
            State::HalfOpen { busy: true, .. } => return Admission::Busy,
            State::Open { .. } => {
                self.state = State::HalfOpen {
                    busy: true,
                    answered: 0,
                };
                true
            }
            State::HalfOpen { busy, .. } => {
                *busy = true;
                true
            }
        };
        Admission::Go(Permit {
            opened: self.opened,
            probe,
        })
    }

    /// The request is being answered, so that the next one may go out.
    pub(super) fn answered(&mut self, permit: &mut Permit) {
        if permit.opened != self.opened {
            return;
        }
        self.failures = 0;
        let probe = std::mem::take(&mut permit.probe);
        if let State::HalfOpen { busy, answered } = &mut self.state
            && probe
        {
            *busy = false;
            *answered += 1;
            if *answered >= RECOVERED {
                self.state = State::Closed;
            }
        }
    }

    /// The request failed. With a time, nobody asks before it.
    pub(super) fn failed(&mut self, permit: Permit, until: Option<Duration>) {
        if permit.opened != self.opened {
            // It went out before the breaker opened, and may know of a later end.
            if let (State::Open { until: known }, Some(until)) = (&mut self.state, until) {
                *known = until.max(*known);
            }
            return;
        }
        self.failures = self.failures.saturating_add(1);
        match until {
            Some(until) => {
                self.opened += 1;
                self.state = State::Open { until };
            }
            None => self.released(permit),
        }
    }

    /// The request ended, and says nothing of the provider.
    pub(super) fn released(&mut self, permit: Permit) {
        if let State::HalfOpen { busy, .. } = &mut self.state
            && permit.probe
            && permit.opened == self.opened
        {
            *busy = false;
        }
    }

    /// How often in a row the provider failed.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Until when nobody asks; `None` when somebody may.
    pub(super) fn open_until(&self) -> Option<Duration> {
        match self.state {
            State::Open { until } => Some(until),
            State::Closed | State::HalfOpen { .. } => None,
        }
    }

    /// Whether every request may go out.
    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: Duration = Duration::from_secs(1);

    fn go(breaker: &mut Breaker, now: Duration) -> Permit {
        match breaker.ask(now) {
            Admission::Go(permit) => permit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_opens_lets_one_through_at_a_time_and_closes() {
        let mut breaker = Breaker::new();
        let (first, second) = (go(&mut breaker, S), go(&mut breaker, S));
        breaker.failed(first, Some(10 * S));
        assert_eq!(breaker.ask(9 * S), Admission::NotBefore(10 * S));
        breaker.failed(second, Some(12 * S));
        assert_eq!(
            breaker.ask(11 * S),
            Admission::NotBefore(12 * S),
            "the later end counts"
        );
        assert_eq!(breaker.failures(), 1, "one outage, one failure");
        for _ in 0..RECOVERED {
            let mut probe = go(&mut breaker, 12 * S);
            assert_eq!(breaker.ask(12 * S), Admission::Busy);
            breaker.answered(&mut probe);
        }
        assert!(breaker.is_closed() && breaker.failures() == 0);
        let probe = go(&mut breaker, 13 * S);
        breaker.failed(probe, None);
        assert!(breaker.is_closed(), "a single failure is no outage");
    }

    #[test]
    fn a_probe_that_fails_or_is_dropped_leaves_room_for_the_next() {
        let mut breaker = Breaker::new();
        let first = go(&mut breaker, S);
        breaker.failed(first, Some(2 * S));
        let probe = go(&mut breaker, 2 * S);
        breaker.released(probe);
        let mut probe = go(&mut breaker, 2 * S);
        breaker.failed(probe, Some(9 * S));
        assert_eq!(breaker.ask(3 * S), Admission::NotBefore(9 * S));
        breaker.answered(&mut probe);
        assert_eq!(
            breaker.ask(3 * S),
            Admission::NotBefore(9 * S),
            "what is over says nothing"
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        Pass(u64),
        Ask,
        Answered(usize),
        Failed(usize, Option<u64>),
        Released(usize),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..5).prop_map(Step::Pass),
            Just(Step::Ask),
            (0usize..8).prop_map(Step::Answered),
            (0usize..8, prop::option::of(0u64..10)).prop_map(|(at, wait)| Step::Failed(at, wait)),
            (0usize..8).prop_map(Step::Released),
        ]
    }

    proptest! {
        /// The oracle keeps only the history: the requests on their way, and what was said of them.
        #[test]
        fn nobody_asks_too_early_and_after_an_outage_one_at_a_time(steps in prop::collection::vec(any_step(), 0..200)) {
            let mut breaker = Breaker::new();
            let mut now = Duration::ZERO;
            // With the outages before it, and whether it is being answered.
            let mut under_way: Vec<(Permit, u64, bool)> = Vec::new();
            let (mut outages, mut end, mut answers) = (0u64, Duration::ZERO, RECOVERED);
            for step in steps {
                match step {
                    Step::Pass(seconds) => now += Duration::from_secs(seconds),
                    Step::Ask => {
                        if let Admission::Go(permit) = breaker.ask(now) {
                            prop_assert!(now >= end, "asked before the end of the wait");
                            let alone = under_way.iter().all(|(_, outage, answered)| *outage != outages || *answered);
                            prop_assert!(answers >= RECOVERED || alone, "two at a time");
                            under_way.push((permit, outages, false));
                        } else {
                            prop_assert!(now < end || answers < RECOVERED, "it never closes");
                        }
                    }
                    Step::Answered(at) if at < under_way.len() => {
                        let (permit, outage, answered) = &mut under_way[at];
                        breaker.answered(permit);
                        if *outage == outages && !std::mem::replace(answered, true) {
                            answers += 1;
                        }
                    }
                    Step::Failed(at, wait) if at < under_way.len() => {
                        let (permit, outage, _) = under_way.remove(at);
                        let until = wait.map(|wait| now + Duration::from_secs(wait));
                        let open = breaker.open_until().is_some();
                        breaker.failed(permit, until);
                        match until {
                            Some(until) if outage == outages => {
                                (outages, end, answers) = (outages + 1, until, 0);
                            }
                            Some(until) if open => end = end.max(until),
                            _ => {}
                        }
                    }
                    Step::Released(at) if at < under_way.len() => {
                        let (permit, _, _) = under_way.remove(at);
                        breaker.released(permit);
                    }
                    _ => {}
                }
            }
        }
    }
}
