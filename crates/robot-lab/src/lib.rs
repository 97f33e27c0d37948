//! LLM agents ("robots") in plain parts.
//!
//! In the order in which one invocation flows through them:
//!
//! 1. A [`Robot`] holds a conversation, a model, tools and hooks. [`Robot::run`] is one invocation: turns of one
//!    model request and its tool calls, until the model has nothing more to do.
//! 2. [`Transcript`] is the conversation. It can only hold valid orders: each tool call is answered exactly once
//!    before the next request.
//! 3. [`Model`] answers a [`ModelRequest`] with a stream of [`ModelEvent`]s; [`Usage`] is metered for every request.
//! 4. [`Tool`]s are what the model may call; [`TypedTool`] derives the schema from a struct. A tool answers with a
//!    [`ToolOutcome`] that the model reads, or ends the invocation with [`Abort`].
//! 5. [`Hook`]s steer: around each request, around each tool call, after each turn. They share a [`Store`] that lives
//!    as long as the invocation.
//! 6. [`EventSink`]s observe: one typed stream of [`RobotEvent`]s, which can neither fail nor stop anything.
//! 7. Before a call runs, slips of the model that can mean only one thing are repaired ([`Repair`]); all others are
//!    answered.
//! 8. [`Patience`] says how long a provider that is out of order is waited for; the [`Limiter`] of a key holds all robots
//!    up together, and lets them go one by one.
//! 9. [`Budget`] bounds what robots may spend together, in tokens and in money, also in the middle of a reply; [`Price`]
//!    and [`Cost`] are exact.
//!
//! What is sent is kept within what a model can read: older parts of a conversation that grows too long are sent in
//! short. The [`Transcript`] stays whole.
//!
//! Decisions are in a pure machine ([`robot`]'s `turn`), effects in one driver. Nothing here reads files, the
//! environment or the clock.

pub mod budget;
mod context;
pub mod cost;
pub mod event;
pub mod hook;
pub mod message;
pub mod meter;
pub mod model;
pub mod outage;
mod repair;
mod repetition;
pub mod robot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tool;
mod wording;

pub use budget::{Budget, BudgetLimit, KnownModels, Limits, ModelFacts, Spent};
pub use cost::{Cost, Price, Rates};
pub use event::{EventSink, NoEvents, OutOfOrder, Repair, RobotEvent};
pub use hook::{Hook, HookCx, NextModel, NextTool, Store, Turn, TurnAction};
pub use message::{AssistantMessage, AssistantPart, Message, ToolCall, ToolPart, ToolResult, Transcript};
pub use model::{
    FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelId, ModelReply, ModelRequest,
    ModelStream, Usage,
};
pub use outage::{Backoff, Limiter, Patience};
pub use robot::{Robot, RobotBuilder, RobotResult, RunError, StopReason};
pub use tool::{Abort, Tool, ToolCx, ToolOutcome, ToolSpec, Toolset, ToolsetError, TypedTool};
pub use wording::counted;
