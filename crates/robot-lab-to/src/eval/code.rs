//! The eval of code: a verify command that must exit 0, and a measure command whose number must get better.

use super::measure::{self, Measurement};
use super::{Eval, EvalContext, Score};
use crate::iteration::{StopKind, StopReason};
use crate::shell::{Shell, head_and_tail};
use async_trait::async_trait;
use robot_exec::{Output, Status, Stderr};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes of the output that the robot reads when it repairs.
const MAX_OUTPUT: usize = 4_000;

/// Grades by commands. At least one of the two is there.
#[derive(Clone, Debug)]
pub struct Code {
    /// Where the commands run.
    pub shell: Shell,
    /// The floor: must exit 0.
    pub verify: Option<String>,
    /// How long it may take; then everything it started is ended and the gate has failed.
    pub verify_timeout: Duration,
    /// The number that must get better.
    pub measure: Option<Measure>,
}

/// A measured objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Prints the value on standard output and exits 0.
    pub command: String,
    /// How long it may take.
    pub timeout: Duration,
    /// Which of several labelled metrics counts.
    pub metric: Option<String>,
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
    /// In the unit of the measure.
    Absolute(f64),
    /// In percent of the value before.
    Percent(f64),
}

impl Measure {
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
}

#[async_trait]
impl Eval for Code {
    fn name(&self) -> &str {
        "code"
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        if !cx.work_dir.is_dir() {
            return Ok(Score {
                detail: "the directory that the commands run in is gone".into(),
                output: Some("the directory that the grading commands run in does not exist any more".into()),
                ..Score::default()
            });
        }
        let mut score = Score {
            gate_ok: true,
            improved: true,
            ..Score::default()
        };
        if let Some(command) = &self.verify {
            let output = self
                .command(command, "verify", self.verify_timeout, Stderr::Merged, cx)
                .await?;
            score.elapsed_ms = millis(output.elapsed);
            score.gate_ok = output.status.success();
            score.improved = score.gate_ok;
            if !score.gate_ok {
                score.detail = format!("verify=false ({})", output.status);
                score.output = Some(head_and_tail(&output.stdout.text(), MAX_OUTPUT));
                return Ok(score);
            }
            score.detail = "verify=true".into();
        }
        match &self.measure {
            Some(measure) => self.measure(measure, score, cx).await,
            None => Ok(score),
        }
    }
}

impl Code {
    async fn measure(
        &self,
        measure: &Measure,
        mut score: Score,
        cx: &EvalContext,
    ) -> Result<Score, StopReason> {
        let output = self
            .command(&measure.command, "measure", measure.timeout, Stderr::Separate, cx)
            .await?;
        score.elapsed_ms = score.elapsed_ms.saturating_add(millis(output.elapsed));
        let and = if score.detail.is_empty() { "" } else { ", " };
        match read(measure, &output) {
            Ok(Measurement { value, metrics }) => {
                score.improved = measure.is_better(value, cx.previous_value);
                score.met_target = measure.meets_target(value);
                score.value = Some(value);
                score.metrics = metrics;
                let before = cx
                    .previous_value
                    .map(|before| format!(" (before {before})"))
                    .unwrap_or_default();
                score.detail.push_str(&format!("{and}measure={value}{before}"));
            }
            // No value is never a good one: the gate fails, so that nothing is committed on it.
            Err(why) if cx.iteration > 0 => {
                score.gate_ok = false;
                score.improved = false;
                score.detail.push_str(&format!("{and}measure=invalid"));
                score.output = Some(format!("{why}\n{}", printed(&output)));
            }
            Err(why) => {
                let said = printed(&output);
                let text = format!(
                    "the measure command gives no score: {why}; it printed: {}",
                    said.trim()
                );
                return Err(StopReason::new(StopKind::Configuration, text));
            }
        }
        Ok(score)
    }

    async fn command(
        &self,
        command: &str,
        what: &str,
        timeout: Duration,
        stderr: Stderr,
        cx: &EvalContext,
    ) -> Result<Output, StopReason> {
        let output = self
            .shell
            .run(command, &cx.work_dir, timeout, stderr, &cx.cancel)
            .await
            .map_err(|error| {
                StopReason::environment(format!("the {what} command could not be started: {error}"))
            })?;
        if output.status == Status::Cancelled {
            return Err(StopReason::interrupted());
        }
        if let (0, Status::Exited(code @ (126 | 127))) = (cx.iteration, output.status) {
            let said = printed(&output);
            let text = format!("the {what} command cannot be run (exit {code}): {}", said.trim());
            return Err(StopReason::new(StopKind::Configuration, text));
        }
        Ok(output)
    }
}

fn read(measure: &Measure, output: &Output) -> Result<Measurement, String> {
    if !output.status.success() {
        let hint = if output.status == Status::Exited(1) {
            "; a command that counts and finds nothing, such as grep -c, exits 1 too: add `|| true`"
        } else {
            ""
        };
        return Err(format!(
            "the measure command must exit 0, but: {}{hint}",
            output.status
        ));
    }
    let Some(printed) = output.stdout.complete() else {
        return Err(format!(
            "the measure command printed {} bytes, too many to look for a number in; print only the score",
            output.stdout.total()
        ));
    };
    let printed = String::from_utf8_lossy(printed);
    measure::read(&printed, measure.metric.as_deref()).map_err(|error| error.to_string())
}

/// Standard output, then standard error, clipped.
fn printed(output: &Output) -> String {
    head_and_tail(
        &format!("{}{}", output.stdout.text(), output.stderr.text()),
        MAX_OUTPUT,
    )
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(minimize: bool, min_delta: MinDelta, target: Option<f64>) -> Measure {
        Measure {
            command: String::new(),
            timeout: Duration::from_secs(1),
            metric: None,
            minimize,
            min_delta,
            target,
        }
    }

    #[test]
    fn better_is_a_change_that_counts_in_the_right_direction() {
        let up = measure(false, MinDelta::Absolute(0.0), None);
        assert!(up.is_better(1.0, None) && up.is_better(1.1, Some(1.0)));
        assert!(!up.is_better(1.0, Some(1.0)) && !up.is_better(0.9, Some(1.0)));
        let down = measure(true, MinDelta::Absolute(0.5), None);
        assert!(
            down.is_better(0.5, Some(1.0))
                && !down.is_better(0.6, Some(1.0))
                && !down.is_better(2.0, Some(1.0))
        );
        let percent = measure(false, MinDelta::Percent(10.0), None);
        assert!(percent.is_better(110.0, Some(100.0)) && !percent.is_better(109.0, Some(100.0)));
        assert!(percent.is_better(-89.0, Some(-100.0)), "scores may be negative");
    }

    #[test]
    fn a_target_works_both_ways() {
        let zero = MinDelta::Absolute(0.0);
        assert!(measure(false, zero, Some(90.0)).meets_target(90.0));
        assert!(!measure(false, zero, Some(90.0)).meets_target(89.9));
        assert!(measure(true, zero, Some(10.0)).meets_target(9.0));
        assert!(!measure(true, zero, None).meets_target(9.0));
    }
}
