//! Money and tokens in a few words, the same wherever a run is told.

use super::plain::count;
use robot_lab::{Cost, Usage};
use robot_lab_to::iteration::RunState;

/// What is known of a run's cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bill {
    /// `None` when nothing of it is known.
    pub(super) cost: Option<Cost>,
    /// Whether there were requests without a price.
    pub(super) unpriced: bool,
    /// Whether tokens were estimated.
    pub(super) estimated: bool,
    pub(super) per_commit: Option<Cost>,
}

impl Bill {
    pub(super) fn of(state: &RunState) -> Self {
        Self {
            cost: state.known_cost(),
            unpriced: state.unpriced,
            estimated: state.usage.estimated,
            per_commit: state.cost_per_commit(),
        }
    }

    /// `~$1.20 ($0.40 per accepted change)`.
    pub(super) fn text(&self) -> String {
        let Some(cost) = self.cost else {
            return "not known: the model's price is not; --price says it".into();
        };
        let least = if self.unpriced { "at least " } else { "" };
        let each = match self.per_commit {
            Some(each) if cost > Cost::ZERO => {
                format!(" ({} per accepted change)", money(each, self.estimated))
            }
            _ => String::new(),
        };
        format!("{least}{}{each}", money(cost, self.estimated))
    }
}

/// An amount, marked where it is an estimate of something.
pub(crate) fn money(cost: Cost, estimated: bool) -> String {
    guessed(cost.to_string(), estimated && cost > Cost::ZERO)
}

/// A number, marked where it is an estimate.
pub(super) fn guessed(number: String, estimated: bool) -> String {
    if estimated { format!("~{number}") } else { number }
}

/// `~12.3k in (80% cached), ~1.2k out`.
pub(super) fn tokens(input: u64, cached: u64, output: u64, estimated: bool) -> String {
    let mark = if estimated { "~" } else { "" };
    let hits = match u128::from(cached) * 100 / u128::from(input.max(1)) {
        0 => String::new(),
        percent => format!(" ({percent}% cached)"),
    };
    format!("{mark}{} in{hits}, {mark}{} out", count(input), count(output))
}

/// The same of a usage.
pub(super) fn usage(usage: Usage) -> String {
    tokens(usage.input, usage.cached_input, usage.output, usage.estimated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_says_what_is_known_and_how_well() {
        let bill = |cents: Option<u64>, unpriced, estimated| Bill {
            cost: cents.map(Cost::from_cents),
            unpriced,
            estimated,
            per_commit: cents.map(|cents| Cost::from_cents(cents / 2)),
        };
        for (bill, text) in [
            (bill(Some(120), false, false), "$1.20 ($0.60 per accepted change)"),
            (
                bill(Some(120), true, true),
                "at least ~$1.20 (~$0.60 per accepted change)",
            ),
            (bill(Some(0), false, true), "$0.00"),
            (
                bill(None, true, false),
                "not known: the model's price is not; --price says it",
            ),
        ] {
            assert_eq!(bill.text(), text);
        }
        assert_eq!(
            tokens(20_000, 15_900, 500, true),
            "~20.0k in (79% cached), ~500 out"
        );
        assert_eq!(tokens(0, 0, 0, false), "0 in, 0 out");
    }
}
