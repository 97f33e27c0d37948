//! Runs the verify command in the workspace after each change, where it is quick: what it says helps a weak model more
//! than anything else, and once it holds there is nothing left to do. It does not grade: that is done on a clean copy.

use crate::iteration::Submission;
use crate::shell::{Shell, head_and_tail};
use crate::tools::Submissions;
use async_trait::async_trait;
use robot_exec::{Status, Stderr};
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome, ToolPart, Turn, TurnAction};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a command may take for being run after each change.
const QUICK: Duration = Duration::from_secs(10);
/// Most bytes of what it prints that the model is shown.
const MAX_OUTPUT: usize = 1_200;
/// Most outputs that are remembered.
const MAX_SEEN: usize = 200;

/// The command of one candidate, and what it said so far.
pub(crate) struct EarlyCheck {
    pub(crate) shell: Shell,
    pub(crate) command: String,
    /// Where the robot works.
    pub(crate) dir: PathBuf,
    /// What it said before any work, where it failed; else that it holds means nothing.
    pub(crate) failing: Option<String>,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// It is not quick, or cannot be run.
    off: bool,
    seen: BTreeSet<u64>,
}

/// What it says of the files as they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// It holds, and did not before any work.
    Green,
    /// It holds, as it did before.
    Fine,
    /// It fails, with this output. `before`: it said the same before an earlier change, so that one was undone.
    Red { output: String, before: bool },
    /// It says nothing: it is not quick, or was ended.
    Unknown,
}

impl EarlyCheck {
    pub(crate) fn new(shell: Shell, command: String, dir: PathBuf, failing: Option<String>) -> Self {
        let said = Said {
            off: false,
            seen: failing.iter().map(|output| digest(output)).collect(),
        };
        Self {
            shell,
            command,
            dir,
            failing,
            said: Mutex::new(said),
        }
    }

    /// Runs it.
    pub(crate) async fn run(&self, cancel: &CancellationToken) -> Checked {
        if self.said().off {
            return Checked::Unknown;
        }
        let ran = self
            .shell
            .run(&self.command, &self.dir, QUICK, Stderr::Merged, cancel)
            .await;
        match ran {
            Ok(output) if output.status.success() => match self.failing {
                Some(_) => Checked::Green,
                None => Checked::Fine,
            },
            Ok(output) if matches!(output.status, Status::Exited(_)) => {
                let output = head_and_tail(output.stdout.text().trim(), MAX_OUTPUT);
                let mut said = self.said();
                let before = !said.seen.insert(digest(&output));
                while said.seen.len() > MAX_SEEN {
                    said.seen.pop_first();
                }
                Checked::Red { output, before }
            }
            Ok(output) if output.status == Status::Cancelled => Checked::Unknown,
            // What failed so would fail so again, and the bench will say why.
            Ok(_) | Err(_) => {
                self.said().off = true;
                Checked::Unknown
            }
        }
    }

    fn said(&self) -> std::sync::MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of an output, in so far as it is shown.
fn digest(output: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    head_and_tail(output.trim(), MAX_OUTPUT).hash(&mut hasher);
    hasher.finish()
}

/// The hook: after each `write` and `edit`. Once the command holds, it submits in the robot's place.
pub(crate) struct StopAtGreen {
    pub(crate) check: Arc<EarlyCheck>,
    pub(crate) submissions: Submissions,
    /// What the submission says was done.
    pub(crate) summary: String,
    done: Mutex<bool>,
}

impl StopAtGreen {
    pub(crate) fn new(check: Arc<EarlyCheck>, submissions: Submissions, summary: String) -> Self {
        Self {
            check,
            submissions,
            summary,
            done: Mutex::new(false),
        }
    }
}

#[async_trait]
impl Hook for StopAtGreen {
    fn name(&self) -> &'static str {
        "stop at green"
    }

    async fn around_tool(
        &self,
        cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        let changes = matches!(call.name.as_str(), "write" | "edit");
        let outcome = next.run(call).await?;
        let ToolOutcome::Done(mut parts) = outcome.clone() else {
            return Ok(outcome);
        };
        if !changes {
            return Ok(outcome);
        }
        let said = match self.check.run(cx.cancel).await {
            Checked::Green => {
                self.submissions.put(submission(&self.summary));
                *self.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
                "the check holds now".to_owned()
            }
            Checked::Red { output, .. } => format!("the change was made. The check fails now:\n{output}"),
            Checked::Fine | Checked::Unknown => return Ok(outcome),
        };
        parts.push(ToolPart::text(said));
        Ok(ToolOutcome::Done(parts))
    }

    async fn after_turn(&self, _cx: &HookCx<'_>, _turn: &Turn<'_>) -> TurnAction {
        let done = std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner));
        if done {
            TurnAction::Stop("the check holds".into())
        } else {
            TurnAction::Continue
        }
    }
}

/// A submission in the robot's place.
pub(crate) fn submission(summary: &str) -> Submission {
    Submission {
        success: true,
        summary: summary.to_owned(),
        ..Submission::default()
    }
}
