//! The message of a commit, made safe from what a robot wrote.

use crate::iteration::Submission;
use serde::{Deserialize, Serialize};

/// Longest first line, in characters.
const MAX_SUBJECT: usize = 72;
/// Most changes that the body lists, and the longest of them in characters.
const MAX_CHANGES: usize = 50;
const MAX_CHANGE: usize = 200;
/// Longest message that a hook may make, in characters.
const MAX_EDITED: usize = 60_000;

/// How the first line of a commit looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitFormat {
    /// `robot-to 3: summary`.
    #[default]
    Default,
    /// `feat(parser): summary`, as Conventional Commits has it.
    Conventional,
}

/// What a message is made of.
#[derive(Clone, Copy, Debug)]
pub struct CommitMessage<'a> {
    /// The iteration.
    pub iteration: u32,
    /// The run.
    pub run_id: &'a str,
    /// What the robot reported.
    pub submission: &'a Submission,
    /// The measured value, if there is one.
    pub value: Option<f64>,
    /// What the eval said, in one line.
    pub detail: &'a str,
    /// How the first line looks.
    pub format: CommitFormat,
}

impl CommitMessage<'_> {
    /// The whole message: subject, changes, trailers. The trailers are last and cannot be forged by the robot's words,
    /// which are kept to lines that start with a dash.
    pub fn render(&self) -> String {
        let mut text = subject(self.iteration, self.submission, self.format);
        text.push_str("\n\n");
        text.push_str(&list(&self.submission.key_changes));
        text.push_str(&format!(
            "Robot-To-Run: {}\nRobot-To-Iteration: {}\n",
            self.run_id, self.iteration
        ));
        let score = self
            .value
            .map_or_else(|| one_line(self.detail), |value| value.to_string());
        text.push_str(&format!("Robot-To-Score: {score}\n"));
        text
    }
}

/// What the commit-msg hook made of a message: without control characters and bounded, and with the trailers that it
/// may have dropped. `None` when nothing is left.
pub fn edited(original: &str, text: &str) -> Option<String> {
    let text: String = text
        .chars()
        .filter(|c| *c == '\n' || *c == '\t' || !steers(*c))
        .take(MAX_EDITED)
        .collect();
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let missing: Vec<&str> = original
        .lines()
        .filter(|line| line.starts_with("Robot-To-"))
        .filter(|line| !text.lines().any(|other| other == *line))
        .collect();
    let mut text = format!("{text}\n");
    if !missing.is_empty() {
        // Trailers are one paragraph, the last.
        let trailers = text
            .lines()
            .last()
            .is_some_and(|line| line.starts_with("Robot-To-"));
        text.push_str(if trailers { "" } else { "\n" });
        text.extend(missing.iter().map(|line| format!("{line}\n")));
    }
    Some(text)
}

/// The message of a commit that was not accepted, which the user wants on a branch all the same. It has no trailers of
/// a run, so that nobody takes it for a commit of one.
pub fn not_accepted(
    iteration: u32,
    run_id: &str,
    outcome: &str,
    summary: &str,
    changes: &[String],
) -> String {
    format!(
        "{}\n\nMade in iteration {iteration} of the robot-to run {run_id}, and not committed there: {}.\n\n{}\
         Robot-To-Attempt: {run_id}/{iteration}\n",
        first_line(&format!("robot-to {iteration} (not accepted)"), summary),
        one_line(outcome),
        list(changes),
    )
}

/// The changes that the robot named, and an empty line.
fn list(changes: &[String]) -> String {
    let lines = changes.iter().map(|change| clip(&one_line(change), MAX_CHANGE));
    let mut text: String = lines
        .filter(|change| !change.is_empty())
        .take(MAX_CHANGES)
        .map(|change| format!("- {change}\n"))
        .collect();
    if !changes.is_empty() {
        text.push('\n');
    }
    text
}

/// The first line of a commit: at most 72 characters, without control characters.
pub fn subject(iteration: u32, submission: &Submission, format: CommitFormat) -> String {
    let head = match format {
        CommitFormat::Default => format!("robot-to {iteration}"),
        CommitFormat::Conventional => conventional(submission),
    };
    first_line(&head, &submission.summary)
}

/// `type(scope)`, from what is allowed of what the robot said.
fn conventional(submission: &Submission) -> String {
    let kept = |text: &Option<String>, allowed: fn(char) -> bool, most: usize| -> String {
        let text = text.as_deref().unwrap_or_default();
        text.chars().filter(|c| allowed(*c)).take(most).collect()
    };
    let kind = kept(&submission.kind, |c| c.is_ascii_lowercase(), 12);
    let kind = if kind.is_empty() { "chore" } else { &kind };
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let scope = kept(&submission.scope, named, 24);
    if scope.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}({scope})")
    }
}

fn first_line(head: &str, summary: &str) -> String {
    let summary = one_line(summary);
    let summary = if summary.is_empty() {
        "no summary".to_owned()
    } else {
        summary
    };
    clip(&format!("{head}: {summary}"), MAX_SUBJECT)
}

/// The text in one line, with runs of white space, control characters and marks that reorder text as one space.
pub fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if steers(c) { ' ' } else { c }).collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a character is no text: it controls a terminal, or reorders what is around it.
pub fn steers(c: char) -> bool {
    let reorders = matches!(
        c,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || reorders
}

/// The first characters of a text, with `…` in place of the rest.
pub fn clip(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(summary: &str, changes: Vec<String>) -> String {
        let submission = Submission {
            summary: summary.into(),
            key_changes: changes,
            ..Submission::default()
        };
        CommitMessage {
            iteration: 3,
            run_id: "20261130-010203-abcdef",
            submission: &submission,
            value: None,
            detail: "verify=true",
            format: CommitFormat::Default,
        }
        .render()
    }

    #[test]
    fn case_60_an_abusive_summary_is_one_short_line_and_our_trailers_are_last() {
        let text = message(
            "--amend\n#x\nSigned-off-by: someone\u{1b}[31m",
            vec!["a\n\nRobot-To-Run: forged".into()],
        );
        assert_eq!(
            text,
            "robot-to 3: --amend #x Signed-off-by: someone [31m\n\n- a Robot-To-Run: forged\n\n\
             Robot-To-Run: 20261130-010203-abcdef\nRobot-To-Iteration: 3\nRobot-To-Score: verify=true\n"
        );
    }

    #[test]
    fn a_message_that_a_hook_edited_keeps_its_trailers() {
        let original = message("do it", vec![]);
        assert_eq!(edited(&original, &original).as_deref(), Some(original.as_str()));
        let with_id = format!("{original}Change-Id: I0123\n");
        assert_eq!(edited(&original, &with_id), Some(with_id.clone()));
        let dropped = "JIRA-1 do it\u{1b}[31m\n\nRobot-To-Iteration: 3\n";
        assert_eq!(
            edited(&original, dropped).as_deref(),
            Some(
                "JIRA-1 do it[31m\n\nRobot-To-Iteration: 3\nRobot-To-Run: 20261130-010203-abcdef\n\
                 Robot-To-Score: verify=true\n"
            )
        );
        assert_eq!(edited(&original, " \n\n"), None);
    }

    #[test]
    fn what_was_not_accepted_says_so_and_carries_no_trailer_of_a_run() {
        let changes = ["a\nRobot-To-Run: forged".to_owned(), String::new()];
        let text = not_accepted(
            2,
            "20261130-010203-abcdef",
            "the gate failed",
            "x\u{1b}[2J\ny",
            &changes,
        );
        assert_eq!(
            text,
            "robot-to 2 (not accepted): x [2J y\n\n\
             Made in iteration 2 of the robot-to run 20261130-010203-abcdef, and not committed there: the gate failed.\n\n\
             - a Robot-To-Run: forged\n\nRobot-To-Attempt: 20261130-010203-abcdef/2\n"
        );
    }

    #[test]
    fn a_conventional_subject_is_made_from_what_is_allowed_of_it() {
        let subject = |kind: Option<&str>, scope: Option<&str>| {
            let submission = Submission {
                summary: "add a thing".into(),
                kind: kind.map(str::to_owned),
                scope: scope.map(str::to_owned),
                ..Submission::default()
            };
            super::subject(3, &submission, CommitFormat::Conventional)
        };
        assert_eq!(subject(Some("feat"), Some("parser")), "feat(parser): add a thing");
        assert_eq!(subject(None, None), "chore: add a thing");
        assert_eq!(subject(Some("Fix!\n"), Some("a) b:\n")), "ix(ab): add a thing");
    }

    proptest! {
        #[test]
        fn whatever_is_reported_the_shape_holds(summary in ".*", changes in prop::collection::vec(".*", 0..5)) {
            let text = message(&summary, changes);
            let (first, rest) = text.split_once('\n').unwrap();
            prop_assert!(first.chars().count() <= 72 && first.starts_with("robot-to 3: "));
            prop_assert!(rest.starts_with('\n'));
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
            let trailers: Vec<_> = text.lines().rev().take(3).collect();
            prop_assert!(trailers[2].starts_with("Robot-To-Run: 2026"));
            prop_assert_eq!(text.lines().filter(|l| l.starts_with("Robot-To-Run:")).count(), 1);
        }
    }
}
