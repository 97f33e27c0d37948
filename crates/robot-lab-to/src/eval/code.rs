//! The eval of code: a verify command that must exit 0, and a measure command whose number must get better.

use super::commands::{ended, invalid, printed, without_place};
use super::goal::said;
use super::measure::{self, Measurement};
use super::score::Part;
use super::{Eval, EvalContext, Score};
use crate::iteration::StopReason;
use crate::settings::Plan;
use crate::shell::Shell;
use async_trait::async_trait;
use robot_exec::{Output, Status, Stderr};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Grades by commands: by the verify command, then by the measure command, in so far as they are there.
#[derive(Clone, Debug)]
pub struct Code {
    /// Where the commands run.
    pub shell: Shell,
    /// The floor: must exit 0.
    pub verify: Option<String>,
    /// How long it may take; then everything it started is ended and the gate has failed.
    pub verify_timeout: Duration,
    /// The number that must get better, as the goal of the run says.
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
}

#[async_trait]
impl Eval for Code {
    fn name(&self) -> &str {
        "code"
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        if let Some(gone) = without_place(cx) {
            return Ok(gone);
        }
        let mut score = Score {
            gate_ok: true,
            improved: true,
            ..Score::default()
        };
        if let Some(command) = &self.verify {
            let output = self
                .shell
                .run(
                    command,
                    &cx.work_dir,
                    self.verify_timeout,
                    Stderr::Merged,
                    &cx.cancel,
                )
                .await;
            let output = ended(output, Part::Verify, cx)?;
            score.ran(Part::Verify, &output);
            score.gate_ok = output.status.success();
            score.improved = score.gate_ok;
            if !score.gate_ok {
                score.detail = format!("verify=false ({})", output.status);
                score.output = Some(printed(&output));
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
    /// The commands of a plan.
    pub(crate) fn of(plan: &Plan, shell: &Shell) -> Self {
        Self {
            shell: shell.clone(),
            verify: plan.verify_command.clone(),
            verify_timeout: plan.verify_timeout,
            measure: plan.measure.clone(),
        }
    }

    async fn measure(
        &self,
        measure: &Measure,
        mut score: Score,
        cx: &EvalContext,
    ) -> Result<Score, StopReason> {
        let output = self
            .shell
            .run(
                &measure.command,
                &cx.work_dir,
                measure.timeout,
                Stderr::Separate,
                &cx.cancel,
            )
            .await;
        let output = ended(output, Part::Measure, cx)?;
        score.ran(Part::Measure, &output);
        match read(measure, &output) {
            Ok(Measurement { value, metrics }) => {
                score.improved = cx.goal.is_better(value, cx.previous_value);
                score.met_target = cx.goal.meets_target(value);
                score.value = Some(value);
                score.metrics = metrics;
                score.provenance.samples.push(value);
                let and = if score.detail.is_empty() { "" } else { ", " };
                score
                    .detail
                    .push_str(&format!("{and}{}", said("measure", value, cx.previous_value)));
                Ok(score)
            }
            Err(why) => invalid(
                score,
                cx,
                (Part::Measure.name(), "measure"),
                &why,
                &printed(&output),
            ),
        }
    }
}

fn read(measure: &Measure, output: &Output) -> Result<Measurement, String> {
    if !output.status.success() {
        let hint = if output.status == Status::Exited(1) {
            "; a command that counts and finds nothing, such as grep -c, exits 1 too: add `|| true`"
        } else {
            ""
        };
        return Err(format!("it must exit 0, but: {}{hint}", output.status));
    }
    let Some(printed) = output.stdout.complete() else {
        return Err(format!(
            "it printed {} bytes, too many to look for a number in; print only the score",
            output.stdout.total()
        ));
    };
    let printed = String::from_utf8_lossy(printed);
    measure::read(&printed, measure.metric.as_deref()).map_err(|error| error.to_string())
}
