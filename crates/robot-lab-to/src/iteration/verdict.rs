//! Whether a graded candidate is committed: a truth table, and nothing else.

use super::Policy;
use crate::eval::Score;

/// What follows from a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Commit it.
    Commit,
    /// The gate does not hold: repair, then discard.
    GateFailed,
    /// The gate holds, but it is not better: discard.
    NoImprovement,
}

/// Decides over a score.
pub fn verdict(score: &Score, policy: &Policy) -> Verdict {
    match (score.gate_ok, score.improved, policy.require_improvement) {
        (false, _, _) => Verdict::GateFailed,
        (true, false, true) => Verdict::NoImprovement,
        (true, true, _) | (true, false, false) => Verdict::Commit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_table() {
        for (gate_ok, improved, require_improvement, expected) in [
            (false, false, false, Verdict::GateFailed),
            (false, false, true, Verdict::GateFailed),
            (false, true, false, Verdict::GateFailed),
            (false, true, true, Verdict::GateFailed),
            (true, false, false, Verdict::Commit),
            (true, false, true, Verdict::NoImprovement),
            (true, true, false, Verdict::Commit),
            (true, true, true, Verdict::Commit),
        ] {
            let score = Score {
                gate_ok,
                improved,
                ..Score::default()
            };
            let policy = Policy {
                require_improvement,
                ..Policy::default()
            };
            assert_eq!(
                verdict(&score, &policy),
                expected,
                "{gate_ok} {improved} {require_improvement}"
            );
        }
    }
}
