//! `submit_iteration_result`: the robot's report, which ends its work.

use crate::iteration::Submission;
use crate::shell::head_and_tail;
use async_trait::async_trait;
use robot_lab::tool::Typed;
use robot_lab::{Abort, Tool, ToolCx, ToolOutcome, ToolPart, TypedTool};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the tool.
pub const SUBMIT: &str = "submit_iteration_result";

/// Most entries of a list, and most bytes of one, or of the summary.
const MAX_LINES: usize = 100;
const MAX_LINE: usize = 2_000;

/// Where a submission waits until the turn is over.
#[derive(Clone, Debug, Default)]
pub struct Submissions(Arc<Mutex<Option<Submission>>>);

impl Submissions {
    /// Takes the submission of this turn.
    pub fn take(&self) -> Option<Submission> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Puts one there in the robot's place.
    pub(crate) fn put(&self, submission: Submission) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(submission);
    }
}

/// Takes the robot's report.
pub struct SubmitResult {
    /// Where it goes.
    pub submissions: Submissions,
    /// Whether commits are conventional, so that a type and a scope are asked for.
    pub conventional: bool,
}

impl SubmitResult {
    /// The tool as a model sees it.
    pub fn tool(self) -> Arc<dyn Tool> {
        let conventional = self.conventional;
        let mut tool = Typed::new(self);
        if !conventional && let Some(Value::Object(properties)) = tool.parameters_mut().get_mut("properties")
        {
            for name in ["type", "scope"] {
                properties.remove(name);
            }
        }
        Arc::new(tool)
    }
}

/// The report.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct SubmitArgs {
    /// Did this iteration make meaningful progress? Changing nothing is not success.
    success: bool,
    /// One sentence: what was done, or why it stopped.
    summary: String,
    /// Files or changes made in this iteration.
    #[serde(default)]
    key_changes: Vec<String>,
    /// Facts that help later iterations.
    #[serde(default)]
    key_learnings: Vec<String>,
    /// Set when the stop condition, if there is one, is met.
    #[serde(default)]
    should_fully_stop: bool,
    /// The type of the commit: feat, fix, refactor, test, docs, perf, build or chore.
    #[serde(default, rename = "type")]
    kind: Option<String>,
    /// The part of the project that the commit is about, in a word.
    #[serde(default)]
    scope: Option<String>,
}

#[async_trait]
impl TypedTool for SubmitResult {
    type Args = SubmitArgs;
    const NAME: &'static str = SUBMIT;
    const DESCRIPTION: &'static str =
        "Report the result of this iteration. Call it exactly once, at the end: it ends your work.";

    async fn run(&self, args: SubmitArgs, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        if args.summary.trim().is_empty() {
            return Ok(ToolOutcome::BadCall(
                "the summary is empty; say in one sentence what was done".into(),
            ));
        }
        let list = |lines: Vec<String>| {
            lines
                .iter()
                .take(MAX_LINES)
                .map(|line| head_and_tail(line, MAX_LINE))
                .collect()
        };
        self.submissions.put(Submission {
            success: args.success,
            summary: head_and_tail(&args.summary, MAX_LINE),
            key_changes: list(args.key_changes),
            key_learnings: list(args.key_learnings),
            should_fully_stop: args.should_fully_stop,
            kind: args.kind.filter(|_| self.conventional),
            scope: args.scope.filter(|_| self.conventional),
        });
        Ok(ToolOutcome::Finished(vec![ToolPart::text("submitted")]))
    }
}
