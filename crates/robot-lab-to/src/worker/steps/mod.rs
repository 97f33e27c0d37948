//! A robot in small steps, as weak models need it: one rule of the objective at a time, each in a conversation of its
//! own, on the files as they are, with the check of the whole after each.

mod answer;
mod clauses;
mod shown;
mod whole_files;

pub(super) use whole_files::WholeFiles;

use super::Session;
use super::robot::RobotSession;
use crate::guard::{Checked, EarlyCheck, submission};
use crate::iteration::{StopKind, StopReason, Submission, TurnEnd};
use crate::prompt::{PromptError, Prompts, StepFacts};
use crate::tools::Root;
use answer::Texts;
use async_trait::async_trait;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use whole_files::Step;

/// Steps with the whole objective, once each of its rules had one and the check still fails.
const LAST_STEPS: usize = 2;

/// What is the same in all iterations.
#[derive(Clone)]
pub struct Steps {
    /// What the user wants.
    pub objective: String,
    /// The system prompt where files are answered with.
    pub system: String,
    /// Writes what is said in a step.
    pub prompts: Arc<Prompts>,
}

/// A step as hook and session share it.
pub(super) type SharedStep = Arc<Mutex<Step>>;

/// The session.
pub(super) struct StepsSession {
    pub(super) steps: Steps,
    /// The robot that answers with whole files, and the one that uses tools, for files that are too large to be shown.
    pub(super) whole: RobotSession,
    pub(super) tools: RobotSession,
    pub(super) step: SharedStep,
    pub(super) root: Arc<Root>,
    /// The files that may be changed.
    pub(super) files: Vec<PathBuf>,
    pub(super) check: Option<Arc<EarlyCheck>>,
    /// What the check said last, where it failed.
    pub(super) failing: Option<String>,
    /// Whether it has worked before.
    pub(super) begun: bool,
    pub(super) changed: bool,
}

/// How a step went.
enum Went {
    /// On to the next.
    On,
    /// The answer was of no use; it may be asked once more.
    Again,
    /// The turn is over.
    Over(TurnEnd),
}

#[async_trait]
impl Session for StepsSession {
    async fn turn(&mut self, message: &str, cancel: &CancellationToken) -> TurnEnd {
        let whole = self.steps.objective.clone();
        let (rules, last) = match (std::mem::replace(&mut self.begun, true), &self.failing) {
            (false, _) => (clauses::rules(&whole), LAST_STEPS),
            // What the check says is told with each step.
            (true, Some(_)) => (Vec::new(), LAST_STEPS),
            (true, None) => (vec![message.to_owned()], 0),
        };
        for rule in &rules {
            if let Some(end) = self.step(rule, cancel).await {
                return end;
            }
        }
        for _ in 0..last {
            if self.failing.is_none() {
                break;
            }
            if let Some(end) = self.step(&whole, cancel).await {
                return end;
            }
        }
        self.submitted()
    }

    async fn order(&mut self, message: &str, cancel: &CancellationToken) -> TurnEnd {
        if self.changed {
            return self.submitted();
        }
        self.tools.order(message, cancel).await
    }
}

impl StepsSession {
    /// Gives the robot one rule, twice if the first answer is of no use. Answers how the turn ends, if it does.
    async fn step(&mut self, rule: &str, cancel: &CancellationToken) -> Option<TurnEnd> {
        let mut refused = None;
        for again in [false, true] {
            match self.ask(rule, &mut refused, again, cancel).await {
                Went::On => break,
                Went::Again => {}
                Went::Over(end) => return Some(end),
            }
            if cancel.is_cancelled() {
                return Some(TurnEnd::Limit {
                    limit: "cancelled".into(),
                });
            }
        }
        None
    }

    async fn ask(
        &mut self,
        rule: &str,
        refused: &mut Option<String>,
        again: bool,
        cancel: &CancellationToken,
    ) -> Went {
        let before = shown::texts(&self.root, self.files.iter().cloned());
        let shown = shown::choose(rule, &self.steps.objective, &before, &self.files);
        let message = match self.say(rule, &shown, refused.take()) {
            Ok(message) => message,
            Err(error) => {
                return Went::Over(TurnEnd::Halted(StopReason::new(
                    StopKind::Internal,
                    error.to_string(),
                )));
            }
        };
        let in_whole = !shown.is_empty();
        self.begin(Step {
            rule: rule.to_owned(),
            shown,
            all: before.clone(),
            again,
            ..Step::default()
        });
        let robot = if in_whole {
            &mut self.whole
        } else {
            &mut self.tools
        };
        robot.forget();
        let end = robot.turn(&message, cancel).await;
        let left = self.whole.calls_left().min(self.tools.calls_left());
        self.whole.set_calls_left(left);
        self.tools.set_calls_left(left);
        match end {
            // By the check in its place, or of its own with tools: whether it is done is not for it to say.
            TurnEnd::Submitted(_) | TurnEnd::Silent { .. } => {}
            TurnEnd::Error { kind, .. } if MODEL_SLIPS.contains(&kind.as_str()) => {}
            end => return Went::Over(end),
        }
        let step = self.take();
        for path in step.changed {
            if !self.files.contains(&path) && self.root.exists(&path) {
                self.files.push(path);
            }
        }
        let now = shown::texts(&self.root, self.files.iter().cloned());
        if in_whole && now == before {
            *refused = step.refused;
            return Went::Again;
        }
        self.changed = true;
        self.judge(&before, &now, in_whole, refused, cancel).await
    }

    /// Lets the check say what became of a change. One that undoes what an earlier step mended is undone.
    async fn judge(
        &mut self,
        before: &Texts,
        now: &Texts,
        in_whole: bool,
        refused: &mut Option<String>,
        cancel: &CancellationToken,
    ) -> Went {
        let Some(check) = self.check.clone() else {
            return Went::On;
        };
        match check.run(cancel).await {
            Checked::Green => Went::Over(self.submitted()),
            Checked::Fine => {
                self.failing = None;
                Went::On
            }
            Checked::Unknown => Went::On,
            Checked::Red { output, before: back } if in_whole && (back || check.failing.is_none()) => {
                if let Err(why) = undo(&self.root, before, now) {
                    return Went::Over(TurnEnd::Error {
                        kind: "workspace".into(),
                        message: why,
                    });
                }
                *refused = Some(if back {
                    "It undid what the file does already. Keep that, and add to it what the rule says."
                        .to_owned()
                } else {
                    format!("With it the check printed: {}", last_lines(&output))
                });
                Went::Again
            }
            Checked::Red { output, .. } => {
                self.failing = Some(output);
                Went::On
            }
        }
    }

    fn say(&self, rule: &str, shown: &Texts, refused: Option<String>) -> Result<String, PromptError> {
        self.steps.prompts.step(&StepFacts {
            rule,
            files: shown
                .iter()
                .map(|(path, text)| (path.as_path(), text.as_str()))
                .collect(),
            failing: self.failing.as_deref().map(last_lines),
            refused: refused.as_deref(),
        })
    }

    fn begin(&self, step: Step) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    fn take(&self) -> Step {
        std::mem::take(&mut *self.step.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn submitted(&self) -> TurnEnd {
        TurnEnd::Submitted(if self.changed {
            submission(&self.steps.objective)
        } else {
            Submission {
                summary: "none of the answers was a change of the files".into(),
                ..Submission::default()
            }
        })
    }
}

/// How a model slips in one answer: the next one may be better.
const MODEL_SLIPS: [&str; 3] = ["repetition", "bad calls", "malformed reply"];

/// Puts the files back as they were.
fn undo(root: &Root, before: &Texts, now: &Texts) -> Result<(), String> {
    let changed = |path: &&PathBuf| before.get(*path) != now.get(*path);
    for path in before.keys().chain(now.keys()).filter(changed) {
        match before.get(path) {
            Some(text) => root.write(path, text.as_bytes())?,
            None => root.remove(path)?,
        }
    }
    Ok(())
}

/// The end of an output, which says most: a few lines.
fn last_lines(output: &str) -> &str {
    const LINES: usize = 6;
    const BYTES: usize = 600;
    let output = output.trim_end();
    let lines = output
        .rmatch_indices('\n')
        .nth(LINES - 1)
        .map_or(0, |(at, _)| at + 1);
    let bytes = output.ceil_char_boundary(output.len().saturating_sub(BYTES));
    output.get(lines.max(bytes)..).unwrap_or_default()
}
