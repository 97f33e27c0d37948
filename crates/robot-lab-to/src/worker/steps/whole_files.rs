//! Takes whole files for an answer, in place of calls of tools: weak models write them better. What they answer becomes
//! calls of `write`, so that whatever looks at calls looks at these too.

use super::answer::{Texts, files};
use crate::guard::limited;
use crate::tools::Root;
use async_trait::async_trait;
use robot_lab::{
    AssistantMessage, AssistantPart, Hook, HookCx, ModelError, ModelReply, ModelRequest, NextModel, ToolCall,
    Turn, TurnAction,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How much chance there is in an answer when the one before was of no use.
const WARM: f64 = 0.8;

/// One rule, and what came of it.
#[derive(Debug, Default)]
pub(in crate::worker) struct Step {
    /// The rule.
    pub(super) rule: String,
    /// The files that the model is shown.
    pub(super) shown: Texts,
    /// All files that are looked at.
    pub(super) all: Texts,
    /// Whether the same was asked before.
    pub(super) again: bool,
    /// What the answer changes.
    pub(super) changed: Vec<PathBuf>,
    /// Why the answer was not taken, in a sentence for the model.
    pub(super) refused: Option<String>,
}

/// The hook. It acts where files are shown, and leaves everything else to tools.
pub(in crate::worker) struct WholeFiles {
    pub(in crate::worker) step: Arc<Mutex<Step>>,
    pub(in crate::worker) root: Arc<Root>,
    /// The top of the workspace, and where relative paths start in it.
    pub(in crate::worker) workspace: PathBuf,
    pub(in crate::worker) work_dir: PathBuf,
}

#[async_trait]
impl Hook for WholeFiles {
    fn name(&self) -> &'static str {
        "whole files"
    }

    async fn around_model(
        &self,
        cx: &HookCx<'_>,
        mut request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelReply, ModelError> {
        {
            let step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
            let size: usize = step.shown.values().map(String::len).sum();
            request = limited(request, size);
            request.tools.clear();
            request.temperature = step.again.then_some(WARM);
        }
        let mut reply = next.run(request).await?;
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = files(&reply.message.text(), &step.shown, &step.all, &step.rule);
        match answer.and_then(|changed| self.may(changed, &step.shown)) {
            Ok(changed) => {
                step.changed = changed.keys().cloned().collect();
                reply.message = AssistantMessage {
                    parts: changed
                        .iter()
                        .enumerate()
                        .map(|(n, (path, text))| write(cx.turn, n, &self.name(path), text))
                        .collect(),
                };
            }
            Err(why) => step.refused = Some(why),
        }
        Ok(reply)
    }

    async fn after_turn(&self, _cx: &HookCx<'_>, _turn: &Turn<'_>) -> TurnAction {
        TurnAction::Stop("answered".into())
    }
}

impl WholeFiles {
    /// A file as `write` is told it: from where relative paths start, where it is below.
    fn name(&self, path: &Path) -> PathBuf {
        let whole = self.workspace.join(path);
        let below = whole.strip_prefix(&self.work_dir).map(Path::to_owned);
        below.unwrap_or(whole)
    }

    /// The files, unless one of them is there and was not shown: only what was seen is written over.
    fn may(&self, changed: Texts, shown: &Texts) -> Result<Texts, String> {
        let unseen = |path: &&PathBuf| !shown.contains_key(*path) && self.root.exists(path);
        match changed.keys().find(unseen) {
            Some(path) => Err(format!("Leave {} as it is.", path.display())),
            None => Ok(changed),
        }
    }
}

fn write(turn: u32, number: usize, path: &Path, text: &str) -> AssistantPart {
    AssistantPart::Call(ToolCall {
        id: format!("file-{turn}-{number}"),
        name: "write".into(),
        arguments: json!({ "path": path, "content": text }),
    })
}
