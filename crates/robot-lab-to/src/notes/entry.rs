//! The notes' text for the outcome of an iteration. What robots wrote cannot become a heading.

use crate::commit_message::{clip, one_line};
use crate::event::Event;
use crate::shell::head_and_tail;

/// Longest summary, change or learning, in characters, and most of a kind.
const MAX_LINE: usize = 500;
const MAX_LINES: usize = 30;
/// Bytes of output that an entry quotes.
const MAX_OUTPUT: usize = 2_000;

/// How the notes begin.
pub fn header(run_id: &str, objective: &str) -> String {
    format!(
        "# robot-to run: {run_id}\n\nObjective: {}\n\n## Iteration Log\n",
        one_line(objective)
    )
}

/// The entry for this outcome; `None` when the event is no outcome, or leaves nothing to say.
pub fn entry(iteration: u32, event: &Event) -> Option<String> {
    let text = match event {
        Event::Committed { submission, .. } => Entry::new(iteration, None, &submission.summary)
            .list("Changes", &submission.key_changes)
            .list("Learnings", &submission.key_learnings),
        Event::Failure {
            summary, learnings, ..
        } => Entry::new(iteration, Some("FAIL"), summary).list("Learnings", learnings),
        Event::GateFailure {
            summary,
            learnings,
            detail,
            output,
            ..
        } => Entry::new(iteration, Some("VERIFY FAILED"), summary)
            .line("Gate", detail)
            .quote(output)
            .list("Learnings of a discarded attempt", learnings),
        Event::NoImprovement {
            summary,
            learnings,
            detail,
            ..
        } => Entry::new(iteration, Some("NO IMPROVEMENT"), summary)
            .line("Score", detail)
            .list("Learnings of a discarded attempt", learnings),
        Event::Tampered { summary, paths, .. } => {
            Entry::new(iteration, Some("TAMPERED"), summary).list("Locked files that it changed", paths)
        }
        Event::NoChange {
            summary,
            learnings,
            repeat,
            ..
        } => {
            let why = if *repeat {
                "the same change was tried before"
            } else {
                "nothing was changed"
            };
            Entry::new(iteration, Some("NO CHANGE"), summary)
                .line("Why", why)
                .list("Learnings of a discarded attempt", learnings)
        }
        Event::CommitFailed { summary, output, .. } => {
            Entry::new(iteration, Some("COMMIT FAILED"), summary).quote(output)
        }
        Event::AgentError { error, message, .. } => {
            Entry::new(iteration, Some("ERROR"), &format!("{error}: {message}"))
        }
        _ => return None,
    };
    Some(text.0)
}

struct Entry(String);

impl Entry {
    fn new(iteration: u32, marker: Option<&str>, summary: &str) -> Self {
        let marker = marker.map(|marker| format!(" [{marker}]")).unwrap_or_default();
        Self(format!("\n### Iteration {iteration}{marker}\n\n")).line("Summary", summary)
    }

    fn line(mut self, title: &str, text: &str) -> Self {
        let text = clip(&one_line(text), MAX_LINE);
        if !self.0.ends_with("\n\n") {
            self.0.push('\n');
        }
        self.0.push_str(&format!("**{title}:** {text}\n"));
        self
    }

    fn list(mut self, title: &str, lines: &[String]) -> Self {
        if !lines.is_empty() {
            self.0.push_str(&format!("\n**{title}:**\n"));
            for line in lines.iter().take(MAX_LINES) {
                self.0
                    .push_str(&format!("- {}\n", clip(&one_line(line), MAX_LINE)));
            }
        }
        self
    }

    /// Text of a program, indented, so that Markdown takes it as it is.
    fn quote(mut self, text: &str) -> Self {
        let text = head_and_tail(text.trim_end(), MAX_OUTPUT);
        if !text.is_empty() {
            self.0.push('\n');
            for line in text.lines() {
                let clean: String = line.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
                self.0.push_str(&format!("    {clean}\n"));
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_cannot_be_forged() {
        let learnings = vec!["a\n### Iteration 9\n\nforged".into()];
        let output = "### Iteration 8\n\u{1b}[31mred".into();
        let event = Event::GateFailure {
            candidate: 0,
            summary: "did\n## it".into(),
            learnings,
            detail: "verify=false (exit 1)".into(),
            output,
            tree: None,
        };
        insta::assert_snapshot!(entry(2, &event).unwrap(), @r"

        ### Iteration 2 [VERIFY FAILED]

        **Summary:** did ## it

        **Gate:** verify=false (exit 1)

            ### Iteration 8
            [31mred

        **Learnings of a discarded attempt:**
        - a ### Iteration 9 forged
        ");
    }
}
