//! The pure machine of one invocation: it says what to do next and is told how that went. Nothing here awaits.

use super::StopReason;
use crate::hook::TurnAction;
use crate::message::ToolCall;
use crate::model::FinishReason;
use crate::tool::ToolOutcome;
use std::collections::VecDeque;

/// Wrong calls in a row that end an invocation.
pub(super) const MAX_BAD_CALLS: u32 = 5;
/// How often hooks may steer within one invocation, so that it ends.
const MAX_STEERS: u32 = 20;

/// What the driver does next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Send a request.
    Request,
    /// Run a tool.
    Run(ToolCall),
    /// Answer a call without running it.
    Answer(ToolCall, ToolOutcome),
    /// Ask the hooks what should follow the turn.
    AfterTurn,
    /// Say this to the model, then ask for the next action.
    Say(String),
    /// End.
    Done(End),
}

/// How an invocation ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Well.
    Stop(StopReason),
    /// With too many tool calls.
    ToolLoop,
    /// With too many wrong calls in a row.
    BadCalls,
}

/// Where an invocation stands.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    max_tool_calls: u32,
    calls_run: u32,
    bad_in_a_row: u32,
    steers: u32,
    queue: VecDeque<ToolCall>,
    truncated: bool,
    end: Option<End>,
}

impl Invocation {
    pub(super) fn new(max_tool_calls: u32) -> Self {
        Self {
            max_tool_calls,
            calls_run: 0,
            bad_in_a_row: 0,
            steers: 0,
            queue: VecDeque::new(),
            truncated: false,
            end: None,
        }
    }

    /// Tool calls that were run.
    pub(super) fn calls_run(&self) -> u32 {
        self.calls_run
    }

    /// A reply came, with these calls in order.
    pub(super) fn replied(&mut self, calls: Vec<ToolCall>, finish: &FinishReason) -> Action {
        self.truncated = *finish == FinishReason::Length;
        if calls.is_empty() {
            return Action::Done(End::Stop(match finish {
                FinishReason::Length => StopReason::OutputLimit,
                FinishReason::ContentFilter => StopReason::ContentFilter,
                FinishReason::Refused => StopReason::Refused,
                FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_) => StopReason::EndTurn,
            }));
        }
        self.queue = calls.into();
        self.next()
    }

    /// A reply came that ends as a call does, written as text, but cannot be read.
    pub(super) fn unreadable(&mut self, why: &str) -> Action {
        self.count_bad();
        match self.end.take() {
            Some(end) => Action::Done(end),
            None => Action::Say(format!(
                "Your call could not be read, and nothing was done: {why}. Call the tool again."
            )),
        }
    }

    /// A tool call ended, and the caller may have cancelled meanwhile.
    pub(super) fn ran(&mut self, outcome: &ToolOutcome, cancelled: bool) -> Action {
        match outcome {
            ToolOutcome::Finished(_) => self.end_with(End::Stop(StopReason::ToolFinished)),
            ToolOutcome::BadCall(_) => self.count_bad(),
            ToolOutcome::Done(_) | ToolOutcome::Refused(_) | ToolOutcome::Failed(_) => self.bad_in_a_row = 0,
        }
        if cancelled {
            self.end_with(End::Stop(StopReason::Cancelled));
        }
        self.next()
    }

    /// A call was answered without running.
    pub(super) fn answered(&mut self) -> Action {
        self.next()
    }

    /// The hooks have spoken.
    pub(super) fn after_turn(&mut self, action: TurnAction) -> Action {
        match action {
            TurnAction::Continue => Action::Request,
            TurnAction::Stop(why) => Action::Done(End::Stop(StopReason::Hook(why))),
            TurnAction::Steer(text) if self.steers < MAX_STEERS => {
                self.steers += 1;
                Action::Say(text)
            }
            TurnAction::Steer(_) => Action::Done(End::Stop(StopReason::Hook(format!(
                "hooks steered {MAX_STEERS} times"
            )))),
        }
    }

    /// There is no reply, and none will come.
    pub(super) fn unanswered(&mut self, reason: StopReason) -> Action {
        Action::Done(End::Stop(reason))
    }

    fn end_with(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    fn count_bad(&mut self) {
        self.bad_in_a_row += 1;
        if self.bad_in_a_row >= MAX_BAD_CALLS {
            self.end_with(End::BadCalls);
        }
    }

    fn next(&mut self) -> Action {
        let Some(call) = self.queue.pop_front() else {
            return match self.end.take() {
                Some(end) => Action::Done(end),
                None => Action::AfterTurn,
            };
        };
        if let Some(end) = &self.end {
            let why = match end {
                End::Stop(StopReason::ToolFinished) => "already submitted; this call was not run",
                End::Stop(_) => "the invocation ended; this call was not run",
                End::ToolLoop => "the limit of tool calls is reached; this call was not run",
                End::BadCalls => "too many wrong calls in a row; this call was not run",
            };
            return Action::Answer(call, ToolOutcome::Refused(why.into()));
        }
        if self.truncated {
            self.count_bad();
            let why = "the reply was cut off at the output limit, so this call may be incomplete and was not run; \
                       split the work into smaller calls";
            return Action::Answer(call, ToolOutcome::BadCall(why.into()));
        }
        if self.calls_run >= self.max_tool_calls {
            self.end_with(End::ToolLoop);
            let why = format!(
                "the limit of {} tool calls is reached; this call was not run",
                self.max_tool_calls
            );
            return Action::Answer(call, ToolOutcome::Refused(why));
        }
        self.calls_run += 1;
        Action::Run(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(n: usize) -> ToolCall {
        ToolCall {
            id: format!("c{n}"),
            name: "t".into(),
            arguments: json!({}),
        }
    }

    #[test]
    fn calls_after_the_finishing_one_are_refused_and_no_request_follows() {
        let mut m = Invocation::new(10);
        assert_eq!(
            m.replied(vec![call(1), call(2)], &FinishReason::ToolCalls),
            Action::Run(call(1))
        );
        let Action::Answer(answered, ToolOutcome::Refused(why)) =
            m.ran(&ToolOutcome::Finished(vec![]), false)
        else {
            panic!("the second call must be refused")
        };
        assert_eq!(
            (answered, why.as_str()),
            (call(2), "already submitted; this call was not run")
        );
        assert_eq!(m.answered(), Action::Done(End::Stop(StopReason::ToolFinished)));
    }

    #[test]
    fn call_n_plus_one_ends_the_invocation() {
        let mut m = Invocation::new(1);
        assert_eq!(
            m.replied(vec![call(1)], &FinishReason::ToolCalls),
            Action::Run(call(1))
        );
        assert_eq!(m.ran(&ToolOutcome::text("ok"), false), Action::AfterTurn);
        assert_eq!(m.after_turn(TurnAction::Continue), Action::Request);
        let next = m.replied(vec![call(2)], &FinishReason::ToolCalls);
        assert!(
            matches!(next, Action::Answer(_, ToolOutcome::Refused(_))),
            "{next:?}"
        );
        assert_eq!(m.answered(), Action::Done(End::ToolLoop));
    }

    #[test]
    fn a_cut_call_is_never_run() {
        let mut m = Invocation::new(10);
        let next = m.replied(vec![call(1)], &FinishReason::Length);
        assert!(
            matches!(next, Action::Answer(_, ToolOutcome::BadCall(_))),
            "{next:?}"
        );
        assert_eq!(m.answered(), Action::AfterTurn);
    }

    proptest! {
        /// Whatever models, tools and hooks do: every call gets exactly one answer, in order; no more than the limit
        /// run; nothing runs after an end; and it ends.
        #[test]
        fn every_call_is_answered_once_and_it_ends(
            script in prop::collection::vec((0usize..4, 0u8..12, 0u8..12), 1..60), limit in 0u32..30
        ) {
            let mut m = Invocation::new(limit);
            let mut script = script.into_iter().cycle();
            let (mut n, mut open, mut ran, mut ended, mut steps) = (0usize, VecDeque::new(), 0u32, false, 0);
            let mut action = Action::Request;
            loop {
                steps += 1;
                prop_assert!(steps < 5_000, "does not end");
                let (calls, a, b) = script.next().unwrap();
                action = match action {
                    Action::Request => {
                        prop_assert!(open.is_empty() && !ended);
                        let calls: Vec<_> = (0..calls).map(|_| { n += 1; call(n) }).collect();
                        open = calls.iter().cloned().collect();
                        let finish = match a { 0 => FinishReason::Length, 1 => FinishReason::ContentFilter, _ => FinishReason::ToolCalls };
                        m.replied(calls, &finish)
                    }
                    Action::Run(c) => {
                        prop_assert!(!ended);
                        prop_assert_eq!(Some(&c), open.front());
                        open.pop_front();
                        ran += 1;
                        let outcome = match b {
                            0 => ToolOutcome::Finished(vec![]),
                            1..=3 => ToolOutcome::BadCall(String::new()),
                            4 => ToolOutcome::Refused(String::new()),
                            _ => ToolOutcome::Done(vec![]),
                        };
                        ended |= b == 0 || a == 11;
                        m.ran(&outcome, a == 11)
                    }
                    Action::Answer(c, _) => {
                        prop_assert_eq!(Some(&c), open.front());
                        open.pop_front();
                        m.answered()
                    }
                    Action::AfterTurn => {
                        prop_assert!(open.is_empty());
                        m.after_turn(match a { 0 => TurnAction::Stop("x".into()), 1..=4 => TurnAction::Steer("y".into()), _ => TurnAction::Continue })
                    }
                    Action::Say(_) => Action::Request,
                    Action::Done(_) => { prop_assert!(open.is_empty()); break; }
                };
                prop_assert!(ran <= limit);
            }
        }
    }
}
