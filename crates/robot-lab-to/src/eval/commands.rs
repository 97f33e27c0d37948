//! What grading commands have in common: how their ends are read, and what becomes of a score that is none.

use super::score::{MAX_OUTPUT, Part};
use super::{EvalContext, Score};
use crate::iteration::{StopKind, StopReason};
use crate::shell::head_and_tail;
use robot_exec::{ExecError, Output, Status};

/// The output of a command that ran to some end of its own. At the baseline, one that cannot be run is a mistake of
/// the user's.
pub(super) fn ended(
    ran: Result<Output, ExecError>,
    part: Part,
    cx: &EvalContext,
) -> Result<Output, StopReason> {
    let what = part.name();
    let output =
        ran.map_err(|error| StopReason::environment(format!("the {what} could not be started: {error}")))?;
    if output.status == Status::Cancelled {
        return Err(StopReason::interrupted());
    }
    if let (0, Status::Exited(code @ (126 | 127))) = (cx.iteration, output.status) {
        let said = printed(&output);
        let text = format!("the {what} cannot be run (exit {code}): {}", said.trim());
        return Err(StopReason::new(StopKind::Configuration, text));
    }
    Ok(output)
}

/// Standard output, then standard error, clipped.
pub(super) fn printed(output: &Output) -> String {
    head_and_tail(
        &format!("{}{}", output.stdout.text(), output.stderr.text()),
        MAX_OUTPUT,
    )
}

/// What becomes of an eval that gives no score: the gate fails, so that nothing is committed on it. On the commit that
/// the run starts from it is a mistake of the user's. `score` is what is known so far.
pub(super) fn invalid(
    score: Score,
    cx: &EvalContext,
    (what, short): (&str, &str),
    why: &str,
    printed: &str,
) -> Result<Score, StopReason> {
    if cx.iteration == 0 {
        let said = match printed.trim() {
            "" => String::new(),
            said => format!("; it printed: {said}"),
        };
        let text = format!("the {what} gives no score: {why}{said}");
        return Err(StopReason::new(StopKind::Configuration, text));
    }
    let and = if score.detail.is_empty() { "" } else { ", " };
    Ok(Score {
        gate_ok: false,
        improved: false,
        met_target: false,
        value: None,
        detail: format!("{}{and}{short}=invalid", score.detail),
        output: Some(format!("the {what} gives no score: {why}\n{printed}")),
        ..score
    })
}

/// The score of a candidate that has removed the directory that the commands run in.
pub(super) fn without_place(cx: &EvalContext) -> Option<Score> {
    let gone = || {
        Score::fail(
            "the directory that the commands run in is gone",
            "the directory that the grading commands run in does not exist any more",
        )
    };
    (!cx.work_dir.is_dir()).then(gone)
}
