//! A robot: a model, a conversation, tools and hooks. One call of [`Robot::run`] is one invocation.

mod driver;
mod request;
mod turn;

pub use crate::model::ModelTimeouts;

use crate::budget::{Budget, BudgetLimit};
use crate::context::Context;
use crate::event::{EventSink, NoEvents};
use crate::hook::Hook;
use crate::message::Transcript;
use crate::model::{Model, ModelError, Usage};
use crate::outage::{Limiter, Patience};
use crate::tool::{Abort, Toolset};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How many tool calls an invocation may make unless told otherwise.
pub const DEFAULT_MAX_TOOL_CALLS: u32 = 100;

/// An agent. Its conversation goes on from one invocation to the next.
pub struct Robot {
    name: String,
    model: Arc<dyn Model>,
    system: String,
    tools: Toolset,
    hooks: Vec<Arc<dyn Hook>>,
    sink: Arc<dyn EventSink>,
    budget: Arc<Budget>,
    max_tool_calls: u32,
    max_output_tokens: Option<u32>,
    timeouts: Option<ModelTimeouts>,
    cut_repetition: bool,
    patience: Patience,
    limiter: Arc<Limiter>,
    /// The model that is asked while the other one is out of order.
    fallback: Option<(Arc<dyn Model>, Arc<Limiter>)>,
    /// Whether the fallback has taken this conversation over.
    taken_over: AtomicBool,
    transcript: Transcript,
    context: Context,
    /// The same of the fallback, on top of what the model is sent.
    spare_context: Context,
    usage: Usage,
}

/// How an invocation went.
#[derive(Clone, Debug, PartialEq)]
pub struct RobotResult {
    /// The text of the last reply.
    pub text: String,
    /// Requests that were answered.
    pub turns: u32,
    /// Tool calls that ran.
    pub tool_calls: u32,
    /// What all requests cost, failed ones included.
    pub usage: Usage,
    /// Why it ended.
    pub stop: StopReason,
    /// How long it took.
    pub duration: Duration,
}

/// Why an invocation ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model had nothing more to do.
    EndTurn,
    /// A tool ended it ([`ToolOutcome::Finished`](crate::ToolOutcome::Finished)).
    ToolFinished,
    /// A hook ended it.
    Hook(String),
    /// The model ran into its limit of output tokens.
    OutputLimit,
    /// The provider withheld the reply.
    ContentFilter,
    /// The model declined to do what it was asked.
    Refused,
    /// The budget is spent: the limit that is reached.
    Budget(Option<BudgetLimit>),
    /// The caller cancelled it.
    Cancelled,
}

/// Why an invocation failed. The conversation is valid all the same: open calls are answered as not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The model did not answer.
    #[error("the model did not answer: {0}")]
    Model(ModelError),
    /// More tool calls than allowed.
    #[error("tool call limit reached ({limit}); the conversation is intact, raise max_tool_calls to go on")]
    ToolLoop {
        /// The limit.
        limit: u32,
    },
    /// Too many wrong calls in a row.
    #[error("{count} wrong tool calls in a row; the conversation is intact")]
    BadCalls {
        /// How many.
        count: u32,
    },
    /// A tool or a hook ended it.
    #[error("aborted: {0}")]
    Aborted(Abort),
    /// A fault of this library: it built a conversation that no provider accepts.
    #[error("internal: {0}")]
    Transcript(#[from] crate::message::TranscriptError),
}

impl Robot {
    /// Starts to build a robot.
    pub fn builder(name: impl Into<String>, model: Arc<dyn Model>) -> RobotBuilder {
        RobotBuilder {
            robot: Self {
                name: name.into(),
                model,
                system: String::new(),
                tools: Toolset::new(),
                hooks: Vec::new(),
                sink: Arc::new(NoEvents),
                budget: Arc::new(Budget::default()),
                max_tool_calls: DEFAULT_MAX_TOOL_CALLS,
                max_output_tokens: None,
                timeouts: None,
                cut_repetition: false,
                patience: Patience::default(),
                limiter: Arc::new(Limiter::new()),
                fallback: None,
                taken_over: AtomicBool::new(false),
                transcript: Transcript::new(),
                context: Context::default(),
                spare_context: Context::default(),
                usage: Usage::default(),
            },
        }
    }

    /// Says `message` to the robot and lets it work until it has nothing more to do.
    ///
    /// Cancelling ends it at the next safe point, within about a second; open tool calls are answered as not run, so
    /// the conversation can go on.
    pub async fn run(&mut self, message: &str, cancel: &CancellationToken) -> Result<RobotResult, RunError> {
        driver::run(self, message, cancel).await
    }

    /// The conversation so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What all invocations cost together.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Forgets the conversation. Prompt, tools, limits and token counts stay.
    pub fn clear_messages(&mut self) {
        self.transcript.clear();
        *self.taken_over.get_mut() = false;
        self.context.clear();
        self.spare_context.clear();
    }

    /// Sets how many tool calls the next invocations may make each.
    pub fn set_max_tool_calls(&mut self, limit: u32) {
        self.max_tool_calls = limit;
    }
}

/// Builds a [`Robot`].
pub struct RobotBuilder {
    robot: Robot,
}

impl RobotBuilder {
    /// The system prompt.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.robot.system = text.into();
        self
    }

    /// The tools; all of them are sent with every request.
    #[must_use]
    pub fn tools(mut self, tools: Toolset) -> Self {
        self.robot.tools = tools;
        self
    }

    /// Adds a hook, inside those added before.
    #[must_use]
    pub fn hook(mut self, hook: Arc<dyn Hook>) -> Self {
        self.robot.hooks.push(hook);
        self
    }

    /// Who observes.
    #[must_use]
    pub fn events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.robot.sink = sink;
        self
    }

    /// The budget that this robot's requests are charged to.
    #[must_use]
    pub fn budget(mut self, budget: Arc<Budget>) -> Self {
        self.robot.budget = budget;
        self
    }

    /// How many tool calls each invocation may make.
    #[must_use]
    pub fn max_tool_calls(mut self, limit: u32) -> Self {
        self.robot.max_tool_calls = limit;
        self
    }

    /// The most tokens of one reply.
    #[must_use]
    pub fn max_output_tokens(mut self, limit: Option<u32>) -> Self {
        self.robot.max_output_tokens = limit;
        self
    }

    /// How long to wait for each model, whatever it says itself ([`Model::timeouts`]).
    #[must_use]
    pub fn timeouts(mut self, timeouts: ModelTimeouts) -> Self {
        self.robot.timeouts = Some(timeouts);
        self
    }

    /// How long a provider that is out of order is waited for: a minute, unless told otherwise.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.robot.patience = patience;
        self
    }

    /// The limiter of the model and its key, which robots that use the same should share.
    #[must_use]
    pub fn limiter(mut self, limiter: Arc<Limiter>) -> Self {
        self.robot.limiter = limiter;
        self
    }

    /// A model that is asked while the first one is out of order, or wants to be asked much later; with its limiter. A
    /// conversation that it has taken over stays with it, the next one begins with the first model again.
    #[must_use]
    pub fn fallback(mut self, model: Arc<dyn Model>, limiter: Arc<Limiter>) -> Self {
        self.robot.fallback = Some((model, limiter));
        self
    }

    /// Whether a reply is cut that repeats itself without end, or is a piece of the prompt: the request then fails with
    /// [`ModelErrorKind::Repetition`](crate::ModelErrorKind::Repetition). Weak models do that; the default is `false`.
    #[must_use]
    pub fn cut_repetition(mut self, cut: bool) -> Self {
        self.robot.cut_repetition = cut;
        self
    }

    /// The robot.
    pub fn build(self) -> Robot {
        self.robot
    }
}
