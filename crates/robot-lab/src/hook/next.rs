//! The rest of a stack of hooks, as a value: the remaining hooks, then the tool or the model.

use super::{Hook, HookCx};
use crate::message::ToolCall;
use crate::model::{ModelError, ModelReply, ModelRequest};
use crate::repair;
use crate::tool::{Abort, ToolCx, ToolOutcome, Toolset};
use futures::future::{BoxFuture, FutureExt as _};
use std::sync::Arc;

/// What is left around a tool call.
#[derive(Clone, Copy)]
pub struct NextTool<'a> {
    pub(crate) cx: &'a HookCx<'a>,
    pub(crate) hooks: &'a [Arc<dyn Hook>],
    pub(crate) tools: &'a Toolset,
}

impl NextTool<'_> {
    /// Runs the remaining hooks, then the tool. An unknown tool is an answer to the model; so are
    /// arguments that are no object, and a tool that panics.
    pub async fn run(self, call: ToolCall) -> Result<ToolOutcome, Abort> {
        if let Some((hook, rest)) = self.hooks.split_first() {
            return hook
                .around_tool(self.cx, call, NextTool { hooks: rest, ..self })
                .await;
        }
        let Some(tool) = self.tools.get(&call.name) else {
            return Ok(ToolOutcome::BadCall(self.tools.unknown(&call.name)));
        };
        if let Err(flaw) = repair::arguments(&call.arguments) {
            let takes = repair::signature(&tool.spec().parameters);
            return Ok(ToolOutcome::BadCall(format!(
                "{flaw}; nothing was done, call {name} again. {name} takes: {takes}",
                name = call.name
            )));
        }
        let cx = ToolCx {
            cancel: self.cx.cancel,
        };
        match std::panic::AssertUnwindSafe(tool.call(&call, &cx))
            .catch_unwind()
            .await
        {
            Ok(outcome) => outcome,
            Err(_panic) => Ok(ToolOutcome::Failed(format!(
                "the tool `{}` crashed; it may have done a part",
                call.name
            ))),
        }
    }
}

/// Sends one request to the model.
pub(crate) type RequestFn<'a> =
    dyn Fn(ModelRequest) -> BoxFuture<'a, Result<ModelReply, ModelError>> + Send + Sync + 'a;

/// What is left around a request.
#[derive(Clone, Copy)]
pub struct NextModel<'a> {
    pub(crate) cx: &'a HookCx<'a>,
    pub(crate) hooks: &'a [Arc<dyn Hook>],
    pub(crate) send: &'a RequestFn<'a>,
}

impl NextModel<'_> {
    /// Runs the remaining hooks, then sends the request.
    pub async fn run(self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        match self.hooks.split_first() {
            Some((hook, rest)) => {
                hook.around_model(self.cx, request, NextModel { hooks: rest, ..self })
                    .await
            }
            None => (self.send)(request).await,
        }
    }
}
