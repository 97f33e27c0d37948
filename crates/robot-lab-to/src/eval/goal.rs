//! What counts as better: the direction, the smallest change that counts, and where the objective is reached.

use super::Score;
use serde::{Deserialize, Serialize};

/// By what a value is judged, whoever gives it. The default: higher is better, by anything, without a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goal {
    /// Whether lower is better.
    pub minimize: bool,
    /// The smallest change that counts.
    pub min_delta: MinDelta,
    /// The value at which the objective is reached.
    pub target: Option<f64>,
}

/// The smallest change that counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MinDelta {
    /// In the unit of the value.
    Absolute(f64),
    /// In percent of the value before.
    Percent(f64),
}

impl Default for MinDelta {
    fn default() -> Self {
        Self::Absolute(0.0)
    }
}

impl Goal {
    /// Whether `value` is better than `before` by enough. Without a value before, any value is.
    pub fn is_better(&self, value: f64, before: Option<f64>) -> bool {
        let Some(before) = before else { return true };
        let gain = if self.minimize {
            before - value
        } else {
            value - before
        };
        let least = match self.min_delta {
            MinDelta::Absolute(delta) => delta,
            MinDelta::Percent(percent) => before.abs() * percent / 100.0,
        };
        gain > 0.0 && gain >= least
    }

    /// Whether `value` reaches the target.
    pub fn meets_target(&self, value: f64) -> bool {
        self.target.is_some_and(|target| {
            if self.minimize {
                value <= target
            } else {
                value >= target
            }
        })
    }

    /// The score of a candidate whose gate holds and that has this value. One that is no finite number never wins.
    pub fn score(&self, value: f64, before: Option<f64>) -> Score {
        Score {
            gate_ok: true,
            improved: self.is_better(value, before),
            met_target: self.meets_target(value),
            value: Some(value),
            detail: said("value", value, before),
            ..Score::default()
        }
        .checked()
    }
}

/// `measure=5 (before 3)`.
pub(super) fn said(what: &str, value: f64, before: Option<f64>) -> String {
    let before = before
        .map(|before| format!(" (before {before})"))
        .unwrap_or_default();
    format!("{what}={value}{before}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(minimize: bool, min_delta: MinDelta, target: Option<f64>) -> Goal {
        Goal {
            minimize,
            min_delta,
            target,
        }
    }

    #[test]
    fn case_72_better_is_a_change_that_counts_in_the_right_direction() {
        let up = Goal::default();
        assert!(up.is_better(1.0, None) && up.is_better(1.1, Some(1.0)));
        assert!(!up.is_better(1.0, Some(1.0)) && !up.is_better(0.9, Some(1.0)));
        let down = goal(true, MinDelta::Absolute(0.5), None);
        assert!(
            down.is_better(0.5, Some(1.0))
                && !down.is_better(0.6, Some(1.0))
                && !down.is_better(2.0, Some(1.0))
        );
        let percent = goal(false, MinDelta::Percent(10.0), None);
        assert!(percent.is_better(110.0, Some(100.0)) && !percent.is_better(109.0, Some(100.0)));
        assert!(percent.is_better(-89.0, Some(-100.0)), "scores may be negative");
    }

    #[test]
    fn a_target_works_both_ways() {
        let zero = MinDelta::default();
        assert!(goal(false, zero, Some(90.0)).meets_target(90.0));
        assert!(!goal(false, zero, Some(90.0)).meets_target(89.9));
        assert!(goal(true, zero, Some(10.0)).meets_target(9.0));
        assert!(!goal(true, zero, None).meets_target(9.0));
    }

    #[test]
    fn a_value_that_is_no_number_fails_the_gate() {
        let score = Goal::default().score(f64::NAN, None);
        assert!(!score.gate_ok && !score.improved && score.value.is_none());
        let score = goal(true, MinDelta::default(), Some(3.0)).score(2.0, Some(4.0));
        assert!(score.gate_ok && score.improved && score.met_target);
        assert_eq!(score.detail, "value=2 (before 4)");
    }
}
