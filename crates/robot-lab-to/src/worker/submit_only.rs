//! A hook that refuses everything but the submission, once it is closed.

use crate::tools::SUBMIT;
use async_trait::async_trait;
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome};
use std::sync::atomic::{AtomicBool, Ordering};

/// Open at first.
#[derive(Debug, Default)]
pub(super) struct SubmitOnly(AtomicBool);

impl SubmitOnly {
    /// From now on only the submission is let through.
    pub(super) fn close(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl Hook for SubmitOnly {
    fn name(&self) -> &'static str {
        "submit-only"
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        if self.0.load(Ordering::SeqCst) && call.name != SUBMIT {
            return Ok(ToolOutcome::Refused(format!(
                "the limit is reached; only {SUBMIT} is left"
            )));
        }
        next.run(call).await
    }
}
