//! Refuses `edit` of a file that the robot has not seen: what it would replace is a guess, which fails or hits the wrong
//! place.

use super::files::Files;
use async_trait::async_trait;
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome};
use std::path::Path;
use std::sync::Arc;

/// The hook.
pub(crate) struct ReadBeforeEdit(pub(crate) Arc<Files>);

#[async_trait]
impl Hook for ReadBeforeEdit {
    fn name(&self) -> &'static str {
        "read-before-edit"
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        let is_edit = call.name == "edit";
        let touches = is_edit || matches!(call.name.as_str(), "read" | "write");
        let path = touches.then(|| self.0.named(&call)).flatten();
        let Some(path) = path else {
            return next.run(call).await;
        };
        // Of a file that is not there, the tool itself says so.
        if is_edit && self.0.root.exists(&path) && !self.0.knows(&path) {
            return Ok(ToolOutcome::Refused(refusal(&path)));
        }
        let outcome = next.run(call).await?;
        if outcome.is_ok() {
            // A file that is new has its real path only now.
            self.0.know(self.0.root.real(&path));
        }
        Ok(outcome)
    }
}

fn refusal(path: &Path) -> String {
    let path = path.display();
    format!(
        "you have not read {path} yet. Call read on {path} first, then edit it again: copy old_text from what you read, \
         white space included, with two or three lines around the change so that it occurs once. Do not guess what the \
         file says"
    )
}
