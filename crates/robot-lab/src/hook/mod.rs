//! Hooks steer an invocation: they wrap its requests and its tool calls, and speak up after each turn.
//!
//! Rules:
//! - The hook that was registered first is the outermost: it sees a call first and its outcome last.
//! - A hook that does not call `next` answers in the tool's place. A refusal is an ordinary
//!   [`ToolOutcome::Refused`], which the model reads.
//! - [`Hook::after_turn`] is asked in order; the first answer other than [`TurnAction::Continue`] counts.
//! - Only [`Abort`] ends an invocation from inside a hook; one that panics does the same. [`Hook::after_run`] is called
//!   however it ended.
//! - State of one invocation lives in its [`Store`]; state that outlives it lives in the hook.

mod next;
mod store;

pub use next::{NextModel, NextTool};
pub use store::Store;

use crate::message::{ToolCall, ToolResult};
use crate::model::{ModelError, ModelReply, ModelRequest};
use crate::robot::{RobotResult, RunError};
use crate::tool::{Abort, ToolOutcome};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

/// What a hook may know about the invocation that it steers.
#[derive(Debug, Clone, Copy)]
pub struct HookCx<'a> {
    /// The robot's name.
    pub robot: &'a str,
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// State that lives as long as the invocation.
    pub store: &'a Store,
    /// Cancelled when the invocation must end.
    pub cancel: &'a CancellationToken,
}

/// One whole turn: a reply and the results of its calls.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// What the model said.
    pub reply: &'a ModelReply,
    /// The results of its tool calls, in order.
    pub results: &'a [ToolResult],
}

/// What should follow a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnAction {
    /// Go on.
    Continue,
    /// Go on, after telling the model this.
    Steer(String),
    /// End the invocation, for this reason.
    Stop(String),
}

/// Steers invocations. Every method has a default that changes nothing.
#[async_trait]
pub trait Hook: Send + Sync {
    /// The hook's name, for logs.
    fn name(&self) -> &'static str;

    /// Before the first request.
    async fn before_run(&self, _cx: &HookCx<'_>) -> Result<(), Abort> {
        Ok(())
    }

    /// Around each request.
    async fn around_model(
        &self,
        _cx: &HookCx<'_>,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelReply, ModelError> {
        next.run(request).await
    }

    /// Around each tool call, whatever tool it names.
    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        next.run(call).await
    }

    /// After each turn that had tool calls.
    async fn after_turn(&self, _cx: &HookCx<'_>, _turn: &Turn<'_>) -> TurnAction {
        TurnAction::Continue
    }

    /// After the invocation, however it ended.
    async fn after_run(&self, _cx: &HookCx<'_>, _outcome: &Result<RobotResult, RunError>) {}
}
