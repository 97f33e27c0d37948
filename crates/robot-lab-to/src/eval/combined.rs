//! Several evals in one run: the verify command first, then an eval of the user's, then the measure command. Each must
//! hold, and at most one of them has a value, as there is one value before.

use super::commands::invalid;
use super::{Code, Eval, EvalContext, Score};
use crate::iteration::StopReason;
use async_trait::async_trait;
use std::sync::Arc;

/// Why the value of an eval cannot stand beside a measure command.
const TWO_VALUES: &str = "it has a value, and so has the measure command, but a run goes by one number; leave out \
                          --measure, or let the eval answer without a value";

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
        let mut score = match &self.verify {
            Some(verify) => verify.score(cx).await?.checked(),
            None => Score::pass(""),
        };
        if !score.gate_ok {
            return Ok(score);
        }
        score = both(score, self.eval.score(cx).await?.checked());
        let Some(measure) = &self.measure else {
            return Ok(score);
        };
        if score.value.is_some() {
            let what = format!("eval `{}`", self.eval.name());
            return invalid(score, cx, (&what, "eval"), TWO_VALUES, "");
        }
        if !score.gate_ok {
            return Ok(score);
        }
        Ok(both(score, measure.score(cx).await?.checked()))
    }

    fn protected_paths(&self) -> Vec<String> {
        self.eval.protected_paths()
    }
}

/// What two scores say together. At most one of them has a value, and then it is the one that knows of the target.
fn both(first: Score, second: Score) -> Score {
    let mut metrics = first.metrics;
    metrics.extend(second.metrics);
    let met_target = match (first.value, second.value) {
        (Some(_), _) => first.met_target,
        (None, Some(_)) => second.met_target,
        (None, None) => first.met_target || second.met_target,
    };
    let mut provenance = first.provenance;
    provenance.and_then(second.provenance);
    let details = [first.detail, second.detail];
    let details: Vec<String> = details.into_iter().filter(|detail| !detail.is_empty()).collect();
    Score {
        gate_ok: first.gate_ok && second.gate_ok,
        improved: first.improved && second.improved,
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
    fn the_one_that_has_a_value_knows_of_the_target_and_the_other_has_a_say() {
        let goal = Goal {
            target: Some(5.0),
            ..Goal::default()
        };
        let (better, worse) = (goal.score(6.0, Some(4.0)), goal.score(1.0, Some(4.0)));
        let known = both(Score::pass("verify=true"), better.clone());
        assert_eq!(
            (known.value, known.improved, known.met_target),
            (Some(6.0), true, true)
        );
        let met = Score {
            met_target: true,
            ..Score::pass("eval=true")
        };
        let known = both(met, worse);
        assert_eq!(
            (known.value, known.improved, known.met_target),
            (Some(1.0), false, false)
        );
        let no_better = Score {
            improved: false,
            ..Score::pass("")
        };
        for known in [both(no_better.clone(), better.clone()), both(better, no_better)] {
            assert!(known.gate_ok && !known.improved && known.met_target);
            assert_eq!(known.value, Some(6.0));
        }
    }
}
