//! Several evals in one run: the verify command first, then an eval of the user's, then the measure command. Each must
//! hold.

use super::{Code, Eval, EvalContext, Score};
use crate::iteration::StopReason;
use async_trait::async_trait;
use std::sync::Arc;

/// An eval between the commands of a plan.
pub(crate) struct Combined {
    name: String,
    verify: Option<Code>,
    eval: Arc<dyn Eval>,
    measure: Option<Code>,
}

impl Combined {
    /// Combines an eval with these commands, of which at least one is there.
    pub(crate) fn new(code: Code, eval: Arc<dyn Eval>) -> Self {
        let part = |code: Code| (code.verify.is_some() || code.measure.is_some()).then_some(code);
        Self {
            name: format!("code+{}", eval.name()),
            verify: part(Code {
                measure: None,
                ..code.clone()
            }),
            measure: part(Code { verify: None, ..code }),
            eval,
        }
    }
}

#[async_trait]
impl Eval for Combined {
    fn name(&self) -> &str {
        &self.name
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        let mut score = Score {
            gate_ok: true,
            improved: true,
            ..Score::default()
        };
        let verify = self.verify.as_ref().map(|code| code as &dyn Eval);
        let measure = self.measure.as_ref().map(|code| code as &dyn Eval);
        for next in [verify, Some(self.eval.as_ref()), measure].into_iter().flatten() {
            score = both(score, next.score(cx).await?.checked());
            if !score.gate_ok {
                break;
            }
        }
        Ok(score)
    }

    fn protected_paths(&self) -> Vec<String> {
        self.eval.protected_paths()
    }
}

/// What two scores say together. The value of the first that has one counts, and whoever gave it judges it; the value
/// of the other is a metric.
fn both(first: Score, second: Score) -> Score {
    let mut metrics = first.metrics;
    metrics.extend(second.metrics);
    let (improved, met_target) = match (first.value, second.value) {
        (Some(_), Some(value)) => {
            metrics.entry("measure".into()).or_insert(value);
            (first.improved, first.met_target)
        }
        (Some(_), None) => (first.improved && second.improved, first.met_target),
        (None, Some(_)) => (first.improved && second.improved, second.met_target),
        (None, None) => (
            first.improved && second.improved,
            first.met_target || second.met_target,
        ),
    };
    let mut provenance = first.provenance;
    provenance.and_then(second.provenance);
    let details = [first.detail, second.detail];
    let details: Vec<String> = details.into_iter().filter(|detail| !detail.is_empty()).collect();
    Score {
        gate_ok: first.gate_ok && second.gate_ok,
        improved,
        met_target,
        value: first.value.or(second.value),
        metrics,
        detail: details.join(", "),
        output: second.output.or(first.output),
        elapsed_ms: first.elapsed_ms.saturating_add(second.elapsed_ms),
        provenance,
    }
    .checked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::Goal;

    #[test]
    fn each_must_hold_and_be_better() {
        for first in [false, true] {
            for second in [false, true] {
                let gates = both(
                    Score {
                        gate_ok: first,
                        ..Score::pass("a")
                    },
                    Score {
                        gate_ok: second,
                        ..Score::pass("b")
                    },
                );
                assert_eq!(gates.gate_ok, first && second);
                assert_eq!(gates.improved, first && second);
                let better = both(
                    Score {
                        improved: first,
                        ..Score::pass("")
                    },
                    Score {
                        improved: second,
                        ..Score::pass("b")
                    },
                );
                assert_eq!(
                    (better.gate_ok, better.improved),
                    (true, first && second),
                    "{first} {second}"
                );
                assert_eq!((gates.detail.as_str(), better.detail.as_str()), ("a, b", "b"));
            }
        }
    }

    #[test]
    fn the_value_of_the_eval_counts_before_that_of_the_measure() {
        let goal = Goal {
            target: Some(5.0),
            ..Goal::default()
        };
        let (better, worse) = (goal.score(6.0, Some(4.0)), goal.score(1.0, Some(4.0)));
        let known = both(better.clone(), worse.clone());
        assert_eq!(
            (known.value, known.improved, known.met_target),
            (Some(6.0), true, true)
        );
        assert_eq!(known.metrics.get("measure"), Some(&1.0));
        let known = both(Score::pass("eval=true"), worse);
        assert_eq!(
            (known.value, known.improved, known.met_target),
            (Some(1.0), false, false)
        );
        let refused = both(
            Score {
                improved: false,
                ..Score::pass("")
            },
            better,
        );
        assert!(
            refused.gate_ok && !refused.improved,
            "the eval without a value has a say"
        );
    }
}
