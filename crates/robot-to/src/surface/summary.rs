//! The end of a run, in a few lines.

use super::plain::{clock, count};
use super::{extent, shell_word};
use crate::exit::Exit;
use robot_lab_to::run::RunReport;
use std::path::Path;

/// The summary of a run, with the commands that come next. Paths are shown relative to `cwd` where they are in it.
pub(crate) fn summary(report: &RunReport, cwd: &Path) -> String {
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
    text.push_str(&format!(
        "Tokens:     {} in, {} out{estimated}\n",
        count(state.usage.input),
        count(state.usage.output)
    ));
    text.push_str(&format!("Changes:    {}\n", extent(&report.diff)));
    text.push_str(&format!("Notes:      {}\n", short(&report.notes)));
    text.push_str(&format!("Log:        {}\n", short(&report.log)));
    if let Some(attempts) = &report.attempts {
        text.push_str(&format!(
            "Attempts:   git --git-dir={} log --all
",
            shell_word(&short(attempts))
        ));
    }
    if let Some(workspace) = &report.workspace {
        text.push_str(&format!(
            "Unfinished: what was under way is in {}
",
            short(workspace)
        ));
    }
    if report.missed > 0 {
        text.push_str(&format!(
            "Not shown:  {} events, which nobody read in time; the log has them
",
            report.missed
        ));
    }
    if state.commits > 0 {
        let range = format!("{}..{}", report.base.short(), report.branch);
        text.push_str(&format!(
            "Next:       git log {range}\n            git diff {range}\n"
        ));
    } else {
        text.push_str("Next:       nothing was committed; the notes say what was tried\n");
    }
    text
}
