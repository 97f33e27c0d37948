//! The eval of code: a verify command that must exit 0.

use super::{Eval, EvalContext, Score};
use crate::iteration::{StopKind, StopReason};
use crate::shell::{Shell, head_and_tail};
use async_trait::async_trait;
use robot_exec::Status;
use std::time::Duration;

/// Bytes of the output that the robot reads when it repairs.
const MAX_OUTPUT: usize = 4_000;

/// Grades by the exit code of a command.
#[derive(Clone, Debug)]
pub struct Code {
    /// Where the command runs.
    pub shell: Shell,
    /// The command.
    pub verify: String,
    /// How long it may take; then everything it started is ended and the gate has failed.
    pub timeout: Duration,
}

#[async_trait]
impl Eval for Code {
    fn name(&self) -> &str {
        "code"
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        if !cx.work_dir.is_dir() {
            return Ok(Score {
                detail: "verify=false (the directory that verify runs in is gone)".into(),
                output: Some("the directory that the verify command runs in does not exist any more".into()),
                ..Score::default()
            });
        }
        let output = self
            .shell
            .run(&self.verify, &cx.work_dir, self.timeout, &cx.cancel)
            .await
            .map_err(|error| {
                StopReason::environment(format!("the verify command could not be started: {error}"))
            })?;
        if output.status == Status::Cancelled {
            return Err(StopReason::interrupted());
        }
        if let (0, Status::Exited(code @ (126 | 127))) = (cx.iteration, output.status) {
            let said = output.stdout.text();
            let text = format!("the verify command cannot be run (exit {code}): {}", said.trim());
            return Err(StopReason::new(StopKind::Configuration, text));
        }
        let gate_ok = output.status.success();
        let elapsed_ms = u64::try_from(output.elapsed.as_millis()).unwrap_or(u64::MAX);
        Ok(Score {
            gate_ok,
            improved: gate_ok,
            met_target: false,
            value: None,
            detail: if gate_ok {
                "verify=true".into()
            } else {
                format!("verify=false ({})", output.status)
            },
            output: (!gate_ok).then(|| head_and_tail(&output.stdout.text(), MAX_OUTPUT)),
            elapsed_ms,
        })
    }
}
