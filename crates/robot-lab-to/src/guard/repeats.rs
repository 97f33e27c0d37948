//! Notices a robot that makes the same calls again and again with the same results: it is told first, then its
//! iteration ends.

use async_trait::async_trait;
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome, Turn, TurnAction};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

/// The longest round of calls that is looked for.
const MAX_PERIOD: usize = 4;
/// After so many rounds the robot is told, and after so many its iteration ends.
const TELL: usize = 3;
const END: usize = 6;

/// The hook. It remembers from one invocation to the next.
#[derive(Default)]
pub(crate) struct Repeats(Mutex<Watch>);

#[async_trait]
impl Hook for Repeats {
    fn name(&self) -> &'static str {
        "repeats"
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        let (name, arguments) = (call.name.clone(), call.arguments.to_string());
        let outcome = next.run(call).await?;
        let mut hasher = DefaultHasher::new();
        (&name, arguments, format!("{outcome:?}")).hash(&mut hasher);
        let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (rounds, period) = watch.take(hasher.finish());
        if rounds >= END && watch.told {
            return Err(Abort(format!(
                "{} {rounds} times with the same result; the iteration was ended to save tokens",
                what(&name, period)
            )));
        }
        if rounds >= TELL && !watch.told {
            watch.tell = Some(format!(
                "You made {} {rounds} times with the same result. It will not change. Think about what you want to \
                 know or do, and try something else: read another file, change something, or call \
                 `submit_iteration_result`.",
                what(&name, period)
            ));
        }
        Ok(outcome)
    }

    async fn after_turn(&self, _cx: &HookCx<'_>, _turn: &Turn<'_>) -> TurnAction {
        let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match watch.tell.take() {
            Some(text) => {
                watch.told = true;
                TurnAction::Steer(text)
            }
            None => TurnAction::Continue,
        }
    }
}

fn what(name: &str, period: usize) -> String {
    match period {
        1 => format!("the same call of `{name}`"),
        n => format!("the same {n} calls"),
    }
}

/// The last calls with their results.
#[derive(Debug, Default)]
struct Watch {
    last: VecDeque<u64>,
    tell: Option<String>,
    /// Whether the robot was told of the loop that it is in.
    told: bool,
}

impl Watch {
    /// Takes one call with its result. Answers how many whole rounds in a row were the same, and of how many calls a
    /// round is.
    fn take(&mut self, call: u64) -> (usize, usize) {
        self.last.push_back(call);
        if self.last.len() > MAX_PERIOD * (END + 1) {
            self.last.pop_front();
        }
        let of = |period: usize| {
            let newest = self.last.iter().rev();
            let same = newest
                .clone()
                .zip(newest.skip(period))
                .take_while(|(a, b)| a == b);
            same.count() / period + 1
        };
        let (rounds, period) = (1..=MAX_PERIOD)
            .map(|period| (of(period), period))
            .max_by_key(|(rounds, period)| (*rounds, MAX_PERIOD - period))
            .unwrap_or((1, 1));
        if rounds < TELL {
            self.told = false;
            self.tell = None;
        }
        (rounds, period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(calls: &str) -> (usize, usize) {
        let mut watch = Watch::default();
        let all = calls.bytes().map(|call| watch.take(call.into()));
        all.last().unwrap()
    }

    #[test]
    fn case_151_rounds_of_calls_are_counted() {
        for (calls, expected) in [
            ("a", (1, 1)),
            ("aaa", (3, 1)),
            ("xyaaaaaa", (6, 1)),
            ("aab", (1, 1)),
            ("ababab", (3, 2)),
            ("abababababab", (6, 2)),
            ("abcabcabc", (3, 3)),
            ("abcdabcdabcdabcdabcdabcd", (6, 4)),
            ("aabaabaab", (3, 3)),
            ("abcdeabcdeabcde", (1, 1)),
            ("abacadae", (1, 1)),
        ] {
            assert_eq!(rounds(calls), expected, "{calls}");
        }
    }
}
