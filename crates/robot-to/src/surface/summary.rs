//! The end of a run, in a few lines.

use super::cost::{Bill, tokens};
use super::extent;
use super::plain::clock;
use crate::exit::Exit;
use robot_lab::counted;
use robot_lab_to::iteration::StopKind;
use robot_lab_to::run::RunReport;
use std::path::Path;

/// The summary of a run, with the commands that come next. Paths are shown relative to `cwd` where they are in it;
/// `flags` lead another command to the run.
pub(crate) fn summary(report: &RunReport, cwd: &Path, flags: &str) -> String {
    let state = &report.state;
    let ended = if Exit::is_complete(&report.reason) {
        "complete"
    } else {
        "stopped"
    };
    let elapsed = clock(i64::try_from(report.elapsed.as_secs()).unwrap_or(i64::MAX));
    let estimated = if state.usage.estimated {
        " (partly estimated)"
    } else {
        ""
    };
    let short = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
    let mut text = format!("\nrobot-to {ended} — {} — {elapsed}\n", report.model);
    text.push_str(&format!("Reason:     {}\n", report.reason.text));
    text.push_str(&format!("Branch:     {}\n", report.branch));
    text.push_str(&format!(
        "Iterations: {} ({} committed, {} discarded)\n",
        state.iteration, state.commits, state.discarded
    ));
    let usage = &state.usage;
    let used = tokens(usage.input, usage.cached_input, usage.output, false);
    text.push_str(&format!("Tokens:     {used}{estimated}\n"));
    text.push_str(&format!("Cost:       {}\n", Bill::of(state).text()));
    if let Some(answers) = super::answers(state) {
        text.push_str(&format!("Answers:    {answers}\n"));
    }
    if state.waited_ms > 0 {
        text.push_str(&format!("Waited:     {}\n", super::waited(state)));
    }
    let changes = if state.commits > 0 {
        extent(&report.diff)
    } else {
        "none: nothing was committed".into()
    };
    text.push_str(&format!("Changes:    {changes}\n"));
    text.push_str(&format!("Notes:      {}\n", short(&report.notes)));
    text.push_str(&format!("Log:        {}\n", short(&report.log)));
    if let Some(workspace) = &report.workspace {
        text.push_str(&format!(
            "Unfinished: what was under way is in {}
",
            short(workspace)
        ));
    }
    if report.missed > 0 {
        text.push_str(&format!(
            "Not shown:  {}, which nobody read in time; the log has them
",
            counted(report.missed, "event")
        ));
    }
    let mut next = Vec::new();
    if state.commits > 0 {
        let range = format!("{}..{}", report.base.short(), report.branch);
        next.extend([format!("git log {range}"), format!("git diff {range}")]);
    }
    next.push(format!("robot-to report {}{flags}", report.run_id));
    if report.attempts.is_some() {
        next.push(format!("robot-to attempts {}{flags}", report.run_id));
    }
    // At a limit, going on needs a higher one.
    let limit = matches!(
        report.reason.kind,
        StopKind::MaxIterations | StopKind::MaxTokens | StopKind::MaxCost | StopKind::MaxTime
    );
    if !limit && !Exit::is_complete(&report.reason) {
        next.push(format!("robot-to resume {}{flags}", report.run_id));
    }
    text.push_str(&format!("Next:       {}\n", next.join("\n            ")));
    text
}
