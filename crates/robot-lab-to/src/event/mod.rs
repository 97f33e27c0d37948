//! Everything that a run writes down: one closed set of events, each a line of `run.log`.
//!
//! Names follow the pattern `subject:verb`. Some events announce an effect, and are written before it; the others
//! state facts. The state of a run is the fold of its events and nothing else.

mod record;
mod redact;
mod wire;

pub use record::{Key, Record};
pub use redact::Redactor;
pub use wire::{LineError, parse_line, to_line};

use crate::eval::{Provenance, Score};
use crate::iteration::{StopKind, Submission};
use crate::settings::Plan;
use crate::shell::head_and_tail;
use crate::workspace::Oid;
use jiff::Timestamp;
use robot_lab::{Cost, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the log's format. A reader refuses to continue a run of a newer one.
pub const LOG_VERSION: u32 = 1;

/// Longest text of an event that comes from a program or a model, in bytes.
pub const MAX_TEXT: usize = 4_000;

/// What can happen in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
#[expect(
    missing_docs,
    reason = "the fields are the log's keys, described in docs/run-log.md"
)]
pub enum Event {
    /// The run began.
    #[serde(rename = "orchestrator:start")]
    RunStarted {
        version: u32,
        run_id: String,
        objective: String,
        branch: String,
        base: Oid,
        base_tree: Oid,
        model: String,
        eval: String,
        /// Names of the user's hooks that are the last gate.
        #[serde(default)]
        hooks: Vec<String>,
        #[serde(default)]
        plan: Box<Plan>,
    },
    /// Another process took the run up, and does what comes before it goes on. No time of the run passed until here.
    #[serde(rename = "orchestrator:reopen")]
    Reopened {},
    /// A run that had ended goes on, by this plan.
    #[serde(rename = "orchestrator:resume")]
    RunResumed {
        run_id: String,
        branch: String,
        model: String,
        #[serde(default)]
        hooks: Vec<String>,
        #[serde(default)]
        carried_lost: bool,
        plan: Box<Plan>,
    },
    /// A new iteration began. Announces the first turn of its candidate, in a workspace at `parent`, or with the
    /// change `from` that hooks refused.
    #[serde(rename = "iteration:start")]
    IterationStarted {
        parent: Oid,
        #[serde(default)]
        from: Option<Oid>,
    },
    /// The robot begins a turn.
    #[serde(rename = "agent:run:start")]
    AgentStarted { candidate: u32, attempt: u32 },
    /// The robot's turn is over. `submission` is null when it did not submit.
    #[serde(rename = "agent:run:end")]
    AgentEnded {
        candidate: u32,
        attempt: u32,
        stop: String,
        submission: Option<Submission>,
    },
    /// It did not submit. Announces a turn that asks for it.
    #[serde(rename = "agent:nudge")]
    Nudged {
        candidate: u32,
        attempt: u32,
        nudge: u32,
    },
    /// It ran into a limit. Announces a last turn in which it may only submit.
    #[serde(rename = "agent:order")]
    Ordered {
        candidate: u32,
        attempt: u32,
        limit: String,
    },
    /// Announces that the workspace is turned into a tree.
    #[serde(rename = "snapshot:start")]
    SnapshotStarted { candidate: u32, attempt: u32 },
    /// The workspace is a tree now, or cannot be one.
    #[serde(rename = "snapshot:finish")]
    Snapshotted {
        candidate: u32,
        attempt: u32,
        tree: Option<Oid>,
        refused: Vec<String>,
    },
    /// Announces grading.
    #[serde(rename = "eval:start")]
    EvalStarted { candidate: u32, attempt: u32, tree: Oid },
    /// The verdict of the eval. Iteration 0 is the baseline.
    #[serde(rename = "eval")]
    Eval {
        candidate: u32,
        attempt: u32,
        tree: Oid,
        gate: bool,
        improved: bool,
        value: Option<f64>,
        #[serde(default)]
        metrics: BTreeMap<String, f64>,
        met_target: bool,
        detail: String,
        output: Option<String>,
        elapsed_ms: u64,
        #[serde(flatten)]
        provenance: Provenance,
    },
    /// The gate failed. Announces a turn in which the same robot repairs.
    #[serde(rename = "eval:repair")]
    Repair {
        candidate: u32,
        attempt: u32,
        repair: u32,
        output: String,
    },
    /// Announces that the user's hooks are asked about a graded tree and its message.
    #[serde(rename = "hooks:start")]
    HooksStarted {
        candidate: u32,
        attempt: u32,
        tree: Oid,
        message: String,
        pre_commit: bool,
    },
    /// What they said: `tree` when they changed the files, `refused` names the hook that refused.
    #[serde(rename = "hooks:finish")]
    HooksEnded {
        candidate: u32,
        attempt: u32,
        tree: Option<Oid>,
        refused: Option<String>,
        output: Option<String>,
        elapsed_ms: u64,
    },
    /// Announces a commit: exactly this one, so that doing it twice is doing it once.
    #[serde(rename = "commit:start")]
    CommitStarted {
        candidate: u32,
        attempt: u32,
        tree: Oid,
        parent: Oid,
        message: String,
    },
    /// The candidate is committed: the outcome of the iteration.
    #[serde(rename = "commit:success")]
    Committed {
        candidate: u32,
        commit: Oid,
        tree: Oid,
        message: String,
        improved: bool,
        value: Option<f64>,
        submission: Submission,
        stop: Option<StopKind>,
        stop_text: Option<String>,
    },
    /// The commit did not come about: the outcome of the iteration.
    #[serde(rename = "commit:failed")]
    CommitFailed {
        candidate: u32,
        tree: Oid,
        summary: String,
        kind: StopKind,
        output: String,
    },
    /// The robot failed, or did not submit: the outcome of the iteration.
    #[serde(rename = "iteration:failure")]
    Failure {
        candidate: u32,
        summary: String,
        learnings: Vec<String>,
    },
    /// The gate failed to the end: the outcome of the iteration.
    #[serde(rename = "iteration:gate_failure")]
    GateFailure {
        candidate: u32,
        summary: String,
        learnings: Vec<String>,
        detail: String,
        output: String,
        tree: Option<Oid>,
    },
    /// The gate held, but the candidate is not better: the outcome of the iteration.
    #[serde(rename = "iteration:no_improvement")]
    NoImprovement {
        candidate: u32,
        summary: String,
        learnings: Vec<String>,
        detail: String,
        tree: Oid,
    },
    /// The candidate is the parent, or was tried before: the outcome of the iteration.
    #[serde(rename = "iteration:no_change")]
    NoChange {
        candidate: u32,
        summary: String,
        learnings: Vec<String>,
        repeat: bool,
    },
    /// The candidate changes locked files: the outcome of the iteration.
    #[serde(rename = "iteration:tampered")]
    Tampered {
        candidate: u32,
        summary: String,
        paths: Vec<String>,
        tree: Oid,
    },
    /// The iteration ran into an error that is neither permanent nor the environment's: its outcome.
    #[serde(rename = "agent:run:error")]
    AgentError {
        candidate: u32,
        error: String,
        message: String,
    },
    /// A signal, a limit or the environment ended the iteration: its outcome. It counts for nothing.
    #[serde(rename = "iteration:interrupted")]
    Interrupted {
        candidate: u32,
        kind: StopKind,
        reason: String,
    },
    /// The run stops.
    #[serde(rename = "orchestrator:abort")]
    Aborted { kind: StopKind, reason: String },
    /// The run is over: the last line.
    #[serde(rename = "orchestrator:end")]
    Ended {
        iterations: u32,
        commits: u32,
        discarded: u32,
        input_tokens: u64,
        output_tokens: u64,
        estimated: bool,
        abort_reason: String,
        elapsed: f64,
        #[serde(default)]
        cost: Option<Cost>,
    },
    /// A request ended: this is where tokens are counted.
    #[serde(rename = "model:finish")]
    ModelFinished {
        candidate: u32,
        model: String,
        input_tokens: u64,
        cached_tokens: u64,
        cache_write_tokens: u64,
        output_tokens: u64,
        reasoning_tokens: u64,
        estimated: bool,
        finish: Option<String>,
        elapsed_ms: u64,
        #[serde(default)]
        cost: Option<Cost>,
    },
    /// A request failed; it is sent again after `retry_in_ms`, or not at all.
    #[serde(rename = "model:error")]
    ModelFailed {
        candidate: u32,
        kind: String,
        message: String,
        retry_in_ms: Option<u64>,
    },
    /// A request was put otherwise, as the provider would not take it as it was.
    #[serde(rename = "model:adapted")]
    ModelAdapted {
        candidate: u32,
        #[serde(default)]
        model: String,
        note: String,
        /// The same for the model itself, when it does so from now on.
        #[serde(default)]
        change: Option<String>,
    },
    /// A conversation with the model was found to have no more than so many tokens.
    #[serde(rename = "model:window")]
    WindowLearnt {
        candidate: u32,
        model: String,
        tokens: u64,
    },
    /// The fallback answers in place of the main model, or the main model again in place of the fallback.
    #[serde(rename = "model:switch")]
    ModelSwitched {
        candidate: u32,
        model: String,
        instead_of: String,
        why: Option<String>,
    },
    /// Another model than the one that was asked answers, or the provider calls it so.
    #[serde(rename = "model:served")]
    ModelServed {
        candidate: u32,
        model: String,
        served_by: String,
    },
    /// A request waits for its provider: until it answers again, as it `announced`, or for as long as may be waited. Said
    /// once in a wait, however often the provider is asked meanwhile.
    #[serde(rename = "provider:wait")]
    ProviderWait {
        candidate: u32,
        model: String,
        kind: String,
        message: String,
        until: Timestamp,
        announced: bool,
        /// The other model that might have answered, and does not either.
        #[serde(default)]
        other_model: Option<String>,
        #[serde(default)]
        other_kind: Option<String>,
        #[serde(default)]
        other_message: Option<String>,
    },
    /// The wait is over: the model answers, or it is waited no more.
    #[serde(rename = "provider:resume")]
    ProviderResumed {
        candidate: u32,
        model: String,
        waited_ms: u64,
        answered: bool,
    },
    /// The conversation with the robot grew too long for its model, and is sent in short from now on.
    #[serde(rename = "context:compact")]
    Compacted {
        candidate: u32,
        #[serde(default)]
        model: String,
        before_tokens: u64,
        after_tokens: u64,
        window: Option<u64>,
    },
    /// A tool call began.
    #[serde(rename = "tool:start")]
    ToolStarted {
        candidate: u32,
        call_id: String,
        tool: String,
        arguments: Value,
        /// Whether the arguments were repaired, and the name that the model wrote where the tool has another.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repaired: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        called: Option<String>,
        /// Whether the call was written as text.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_text: bool,
    },
    /// A tool call ended.
    #[serde(rename = "tool:finish")]
    ToolFinished {
        candidate: u32,
        call_id: String,
        tool: String,
        ok: bool,
        output: String,
        elapsed_ms: u64,
    },
    /// The setup command begins. `locks` are the lock files that changed since it succeeded.
    #[serde(rename = "setup:start")]
    SetupStarted { place: String, locks: Vec<String> },
    /// The setup command ended.
    #[serde(rename = "setup:finish")]
    SetupFinished {
        place: String,
        ok: bool,
        detail: String,
        output: String,
        elapsed_ms: u64,
    },
    /// Something that the user should know.
    #[serde(rename = "notice")]
    Notice { message: String },
}

impl Event {
    /// The event's name, as in the log.
    pub fn name(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map
                .get("event")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            _ => String::new(),
        }
    }

    /// Whether this is the outcome of an iteration. Each iteration has exactly one.
    pub fn is_outcome(&self) -> bool {
        matches!(
            self,
            Self::Committed { .. }
                | Self::CommitFailed { .. }
                | Self::Failure { .. }
                | Self::GateFailure { .. }
                | Self::NoImprovement { .. }
                | Self::NoChange { .. }
                | Self::Tampered { .. }
                | Self::AgentError { .. }
                | Self::Interrupted { .. }
        )
    }

    /// Whether a later effect relies on this line being on disk.
    pub fn must_be_durable(&self) -> bool {
        self.is_outcome()
            || matches!(
                self,
                Self::RunStarted { .. }
                    | Self::RunResumed { .. }
                    | Self::IterationStarted { .. }
                    | Self::CommitStarted { .. }
                    | Self::Aborted { .. }
                    | Self::Ended { .. }
            )
    }

    /// The `eval` event of a score.
    pub fn eval(key: Key, tree: Oid, score: &Score) -> Self {
        Self::Eval {
            candidate: key.candidate,
            attempt: key.attempt,
            tree,
            gate: score.gate_ok,
            improved: score.improved,
            value: score.value,
            metrics: score.metrics.clone(),
            met_target: score.met_target,
            detail: head_and_tail(&score.detail, MAX_TEXT),
            output: score
                .output
                .as_ref()
                .map(|output| head_and_tail(output, MAX_TEXT)),
            elapsed_ms: score.elapsed_ms,
            provenance: score.provenance.clone(),
        }
    }

    /// The `model:finish` event of a request.
    pub fn model_finished(
        candidate: u32,
        model: String,
        usage: Usage,
        cost: Option<Cost>,
        finish: Option<String>,
        elapsed_ms: u64,
    ) -> Self {
        Self::ModelFinished {
            candidate,
            model,
            input_tokens: usage.input,
            cached_tokens: usage.cached_input,
            cache_write_tokens: usage.cache_write,
            output_tokens: usage.output,
            reasoning_tokens: usage.reasoning,
            estimated: usage.estimated,
            finish,
            elapsed_ms,
            cost,
        }
    }
}
