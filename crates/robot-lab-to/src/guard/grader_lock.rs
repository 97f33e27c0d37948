//! Refuses `write` and `edit` on a locked file at once, so that a robot does not lose an iteration to it. Reading and
//! running locked files is allowed.

use super::Locked;
use super::files::named;
use crate::tools::Root;
use async_trait::async_trait;
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome};
use std::sync::Arc;

/// The hook.
pub(crate) struct GraderLock {
    pub(crate) root: Arc<Root>,
    pub(crate) locked: Arc<Locked>,
}

#[async_trait]
impl Hook for GraderLock {
    fn name(&self) -> &'static str {
        "grader-lock"
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        if matches!(call.name.as_str(), "write" | "edit")
            && let Some(path) = named(&self.root, &call)
            && self.locked.holds(&path)
        {
            return Ok(ToolOutcome::Refused(format!(
                "{} is locked: it belongs to the grader, and a change of it is never taken. Reach the objective in \
                 other files; reading and running it is fine",
                path.display()
            )));
        }
        next.run(call).await
    }
}
