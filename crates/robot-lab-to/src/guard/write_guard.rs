//! Refuses `write` over a file that was there before: weak models write files anew and lose what they do not remember.

use super::files::Files;
use async_trait::async_trait;
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A file of the robot's own that has so many lines may not lose more than half of them at once.
const LONG: usize = 20;

/// The hook.
pub(crate) struct WriteGuard(pub(crate) Arc<Files>);

#[async_trait]
impl Hook for WriteGuard {
    fn name(&self) -> &'static str {
        "write-guard"
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        let path = (call.name == "write").then(|| self.0.named(&call)).flatten();
        let Some(path) = path else {
            return next.run(call).await;
        };
        if let Ok(old) = self.0.root.read(&path) {
            let new = call.arguments.get("content").and_then(Value::as_str);
            let new = new.map_or(0, |text| text.lines().count());
            let old = old.split_inclusive(|byte| *byte == b'\n').count();
            if let Some(why) = refusal(&path, old, new, self.0.has_made(&path)) {
                return Ok(ToolOutcome::Refused(why));
            }
        }
        let is_new = !self.0.root.exists(&path);
        let outcome = next.run(call).await?;
        if is_new && outcome.is_ok() {
            self.0.made(path);
        }
        Ok(outcome)
    }
}

/// Why a file of `old` lines may not become one of `new`. A file that is empty, or that the robot made itself, may be
/// written again.
fn refusal(path: &Path, old: usize, new: usize, own: bool) -> Option<String> {
    let path = path.display();
    if old == 0 {
        return None;
    }
    if !own {
        return Some(format!(
            "{path} is there already, with {old} lines, and write would replace all of them. Read it, then change the \
             part that matters with edit. write is for new files"
        ));
    }
    (old >= LONG && new * 2 < old).then(|| {
        format!(
            "{path} has {old} lines, and only {new} would be left. Change the part that matters with edit; nothing was \
             written"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_150_what_was_there_stays_and_new_files_are_free() {
        let path = Path::new("a.rs");
        for (old, new, own, refused) in [
            (2_000, 40, false, true),
            (1, 1, false, true),
            (0, 40, false, false),
            (100, 100, true, false),
            (100, 50, true, false),
            (100, 49, true, true),
            (19, 0, true, false),
        ] {
            assert_eq!(
                refusal(path, old, new, own).is_some(),
                refused,
                "{old} {new} {own}"
            );
        }
        let why = refusal(path, 2_000, 40, false).unwrap();
        assert!(
            why.contains("a.rs") && why.contains("2000 lines") && why.contains("with edit"),
            "{why}"
        );
    }
}
