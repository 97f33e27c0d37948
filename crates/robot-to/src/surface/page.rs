//! An iteration in full: what was said of it, what the gate printed, and its patch.

use super::{Style, extent, printable};
use robot_lab_to::commit_message::{clip, one_line};
use robot_lab_to::event::Event;
use robot_lab_to::run::LoggedIteration;
use robot_lab_to::shell::head_and_tail;
use robot_lab_to::workspace::{DiffStat, Oid, Patch};

/// Longest change or learning, in characters, and most of a kind.
const MAX_LINE: usize = 500;
const MAX_LINES: usize = 50;
/// Bytes of the gate's output.
const MAX_OUTPUT: usize = 4_000;

/// What an iteration made.
pub(crate) struct Made {
    /// Whether it was not committed.
    pub(crate) attempt: bool,
    pub(crate) commit: Oid,
    pub(crate) stat: DiffStat,
    pub(crate) patch: Patch,
    /// The command that shows all of a patch that was cut.
    pub(crate) rest: String,
}

/// All there is to show.
pub(crate) struct Page<'a> {
    pub(crate) run_id: &'a str,
    /// The flags that lead another command to the run.
    pub(crate) flags: &'a str,
    pub(crate) told: LoggedIteration<'a>,
    /// What it made, or why nothing can be shown of that.
    pub(crate) made: Result<Made, String>,
}

impl Page<'_> {
    /// The page. On a terminal nothing of a patch steers it; elsewhere the patch is to the byte what `git apply` takes.
    pub(crate) fn render(&self, style: Style, terminal: bool) -> Vec<u8> {
        let mut bytes = self.head(style).into_bytes();
        if let Ok(made) = &self.made {
            bytes.extend_from_slice(b"\n");
            let whole = whole_lines(&made.patch);
            if terminal {
                bytes.extend_from_slice(painted(&String::from_utf8_lossy(whole), style).as_bytes());
            } else {
                bytes.extend_from_slice(whole);
            }
            if made.patch.truncated {
                let note = format!(
                    "\n[the patch is longer than {} kB; all of it: {}]\n",
                    made.patch.bytes.len().div_ceil(1_000),
                    one_line(&made.rest)
                );
                bytes.extend_from_slice(note.as_bytes());
            }
        }
        bytes
    }

    /// Everything but the patch. No line of it starts as one of a patch does.
    fn head(&self, style: Style) -> String {
        let Self { run_id, told, .. } = self;
        let title = format!("iteration {} of {run_id}: {}", told.number, told.outcome());
        let mut text = format!("{}\n", style.bold(&title));
        let mut line = |name: &str, value: &str| text.push_str(&format!("{name:<11} {value}\n"));
        let summary = told.summary();
        line("Summary:", if summary.is_empty() { "none" } else { &summary });
        line("Parent:", told.parent.as_str());
        match &self.made {
            Ok(made) => {
                let name = if made.attempt { "Attempt:" } else { "Commit:" };
                line(name, made.commit.as_str());
                line("Extent:", &extent(&made.stat));
                if made.attempt {
                    let apply = format!("robot-to apply {run_id} {}{}", told.number, self.flags);
                    line("Take it:", &apply);
                }
            }
            Err(why) => line("Patch:", &one_line(why)),
        }
        if let Some(submission) = told.submission {
            for (name, lines) in [
                ("Changes:", &submission.key_changes),
                ("Learnings:", &submission.key_learnings),
            ] {
                text.push_str(&list(name, lines));
            }
        }
        if let Some(Event::CommitFailed { output, .. }) = told.outcome.map(|record| &record.event) {
            text.push_str("\nCommit:\n");
            for line in printable(&head_and_tail(output.trim_end(), MAX_OUTPUT)).lines() {
                text.push_str(&format!("    {line}\n"));
            }
        }
        if let Some(gate) = told.gate {
            text.push_str(&format!("\n{:<11} {}\n", "Gate:", one_line(gate.detail)));
            for line in printable(&head_and_tail(gate.output.trim_end(), MAX_OUTPUT)).lines() {
                text.push_str(&format!("    {line}\n"));
            }
        }
        text
    }
}

fn list(name: &str, lines: &[String]) -> String {
    let mut text = String::new();
    if !lines.is_empty() {
        text.push_str(&format!("\n{name}\n"));
    }
    for line in lines.iter().take(MAX_LINES) {
        text.push_str(&format!("  - {}\n", clip(&one_line(line), MAX_LINE)));
    }
    if let Some(left @ 1..) = lines.len().checked_sub(MAX_LINES) {
        text.push_str(&format!("  - {left} more\n"));
    }
    text
}

/// The patch up to its last whole line, when it was cut.
fn whole_lines(patch: &Patch) -> &[u8] {
    let end = match patch.bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if patch.truncated => end + 1,
        _ => patch.bytes.len(),
    };
    patch.bytes.get(..end).unwrap_or_default()
}

/// The patch for a terminal.
fn painted(patch: &str, style: Style) -> String {
    let mut text = String::new();
    // Lines of a file that begin with dashes or pluses are told from heads of files by where they are.
    let mut in_hunk = false;
    for line in patch.split_terminator('\n') {
        if line.starts_with("diff --git ") {
            in_hunk = false;
        } else if line.starts_with("@@ ") {
            in_hunk = true;
        }
        let clean = printable(line);
        text.push_str(&match line.chars().next() {
            Some('@') if in_hunk => style.place(&clean),
            Some('+') if in_hunk => style.good(&clean),
            Some('-') if in_hunk => style.bad(&clean),
            _ if in_hunk => clean,
            _ => style.bold(&clean),
        });
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab_to::event::{Event, Record};
    use robot_lab_to::iteration::Submission;

    fn oid(digit: &str) -> Oid {
        digit.repeat(40).parse().unwrap()
    }

    fn records(summary: &str) -> Vec<Record> {
        let submission = Submission {
            success: true,
            summary: summary.into(),
            key_changes: vec!["one\x1b[31m".into(), "two".into()],
            key_learnings: vec!["diff --git a/x b/x".into()],
            should_fully_stop: false,
            ..Submission::default()
        };
        let events = [
            Event::IterationStarted {
                parent: oid("a"),
                from: None,
            },
            Event::AgentEnded {
                candidate: 0,
                attempt: 1,
                stop: "submitted".into(),
                submission: Some(submission),
            },
            Event::GateFailure {
                candidate: 0,
                summary: summary.into(),
                learnings: vec![],
                detail: "verify=false (exit 1)".into(),
                output: "part one: expected ok\n\x1b]0;title\x07--- a/x\n".into(),
                tree: None,
            },
        ];
        let record = |event| Record {
            seq: 1,
            ts: "2026-11-30T01:02:03Z".parse().unwrap(),
            iteration: 2,
            event,
        };
        events.map(record).into()
    }

    const PATCH: &str =
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n context\n--- gone\n+\x1b[2Jhidden\r\n";

    fn page<'a>(records: &'a [Record], patch: &str, truncated: bool) -> Page<'a> {
        Page {
            run_id: "20261130-010203-abcdef",
            flags: " --work-dir /w",
            told: LoggedIteration::of(records, 2).unwrap(),
            made: Ok(Made {
                attempt: true,
                commit: oid("c"),
                stat: DiffStat {
                    files: 1,
                    added: 1,
                    removed: 1,
                },
                patch: Patch {
                    bytes: patch.into(),
                    truncated,
                },
                rest: "git diff".into(),
            }),
        }
    }

    #[test]
    fn nothing_on_a_terminal_steers_it() {
        let records = records("Break\x1b[2J\r\npart one");
        let bytes = page(&records, PATCH, false).render(Style::default(), true);
        insta::assert_snapshot!(String::from_utf8(bytes).unwrap(), @r"
        iteration 2 of 20261130-010203-abcdef: the gate failed
        Summary:    Break [2J part one
        Parent:     aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        Attempt:    cccccccccccccccccccccccccccccccccccccccc
        Extent:     +1 −1 in 1 file
        Take it:    robot-to apply 20261130-010203-abcdef 2 --work-dir /w

        Changes:
          - one [31m
          - two

        Learnings:
          - diff --git a/x b/x

        Gate:       verify=false (exit 1)
            part one: expected ok
            ^[]0;title^G--- a/x

        diff --git a/x b/x
        --- a/x
        +++ b/x
        @@ -1,2 +1 @@
         context
        --- gone
        +^[[2Jhidden^M
        ");
    }

    #[test]
    fn elsewhere_the_patch_is_as_it_is_and_the_only_one() {
        let records = records("x");
        let bytes = page(&records, PATCH, false).render(Style::default(), false);
        assert!(bytes.ends_with(PATCH.as_bytes()));
        let text = String::from_utf8(bytes).unwrap();
        let heads = text
            .lines()
            .filter(|line| line.starts_with("diff ") || line.starts_with("--- "));
        assert_eq!(heads.count(), 3, "{text}");
    }

    #[test]
    fn a_patch_that_was_cut_says_how_to_see_the_rest() {
        let records = records("x");
        let cut = PATCH.get(..PATCH.len() - 3).unwrap();
        let bytes = page(&records, cut, true).render(Style::default(), true);
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.ends_with("\n--- gone\n\n[the patch is longer than 1 kB; all of it: git diff]\n"),
            "{text}"
        );
    }

    #[test]
    fn colours_follow_the_hunks() {
        let colour = Style { colour: true };
        let text = painted(PATCH, colour).replace('\x1b', "^");
        assert!(text.contains("^[1m--- a/x^[0m\n"), "{text}");
        assert!(text.contains("^[31m--- gone^[0m\n"), "{text}");
        assert!(text.contains("^[32m+^[[2Jhidden^M^[0m\n"), "{text}");
    }

    #[test]
    fn why_there_is_no_patch_is_said() {
        let records = records("x");
        let page = Page {
            made: Err("nothing is kept of it".into()),
            ..page(&records, "", false)
        };
        let text = String::from_utf8(page.render(Style::default(), true)).unwrap();
        assert!(text.contains("\nPatch:      nothing is kept of it\n"), "{text}");
        assert!(!text.contains("robot-to apply"), "{text}");
    }
}
