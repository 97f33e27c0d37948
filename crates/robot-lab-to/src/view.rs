//! What surfaces draw: one fold over the records, shared by all of them.

use crate::event::{Event, Record};
use jiff::Timestamp;
use robot_lab::Cost;

/// A run as people see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunView {
    /// When the first record was written.
    pub started: Option<Timestamp>,
    /// The present iteration.
    pub iteration: u32,
    /// Tokens so far, read and written.
    pub tokens: u64,
    /// What they cost, as far as that is known.
    pub cost: Cost,
    /// Whether a part of them is an estimate.
    pub estimated: bool,
    /// Iterations committed.
    pub commits: u32,
    /// What is being done, in a word or two.
    pub doing: &'static str,
    /// The provider that is waited for, if one is.
    pub waiting: Option<Waiting>,
}

/// A wait for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The model, as `provider/name`.
    pub model: String,
    /// Why, as the log has it.
    pub kind: String,
    /// When it is over, at the latest.
    pub until: Timestamp,
    /// The other model that might have answered and does not either, and why, as the log has it.
    pub other: Option<(String, String)>,
    /// Whether the provider said so; otherwise it is how long may be waited, and it is asked again and again.
    pub announced: bool,
}

impl Waiting {
    /// Whose model it is.
    pub fn provider(&self) -> &str {
        self.model.split('/').next().unwrap_or(&self.model)
    }

    /// Why, for people; and of the other model, if that does not answer either.
    pub fn why(&self) -> String {
        let why = spelled(&self.kind);
        match &self.other {
            Some((model, kind)) => format!("{why}; {model}: {}", spelled(kind)),
            None => why.into(),
        }
    }
}

fn spelled(kind: &str) -> &str {
    match kind {
        "rate_limited" => "rate limit",
        "model_not_found" => "model not found",
        "bad_request" => "bad request",
        "context_length" => "too long",
        kind => kind,
    }
}

impl RunView {
    /// Takes the next record in.
    pub fn apply(&mut self, record: &Record) {
        self.started.get_or_insert(record.ts);
        self.iteration = record.iteration;
        match &record.event {
            Event::ProviderWait {
                model,
                kind,
                until,
                announced,
                other_model,
                other_kind,
                ..
            } => {
                self.waiting = Some(Waiting {
                    model: model.clone(),
                    kind: kind.clone(),
                    until: *until,
                    other: other_model.clone().zip(other_kind.clone()),
                    announced: *announced,
                });
            }
            // A process that was killed while it waited has said no more.
            Event::ProviderResumed { .. } | Event::RunResumed { .. } | Event::Reopened {} => {
                self.waiting = None;
            }
            Event::ModelFinished {
                input_tokens,
                output_tokens,
                estimated,
                cost,
                ..
            } => {
                self.cost += cost.unwrap_or_default();
                self.tokens = self
                    .tokens
                    .saturating_add(input_tokens.saturating_add(*output_tokens));
                self.estimated |= estimated;
                self.doing = "working";
            }
            Event::AgentStarted { .. } | Event::ToolFinished { .. } => self.doing = "thinking",
            Event::ToolStarted { .. } => self.doing = "working",
            Event::SnapshotStarted { .. } => self.doing = "taking a snapshot",
            Event::SetupStarted { .. } => self.doing = "setting up",
            Event::SetupFinished { place, .. } if place == "bench" => self.doing = "grading",
            Event::EvalStarted { .. } => self.doing = "grading",
            Event::HooksStarted { .. } => self.doing = "asking the hooks",
            Event::CommitStarted { .. } => self.doing = "committing",
            Event::Committed { .. } => {
                self.commits += 1;
                self.doing = "between iterations";
            }
            event if event.is_outcome() => self.doing = "between iterations",
            _ => {}
        }
    }

    /// Seconds from the first record to `now`.
    pub fn elapsed_seconds(&self, now: Timestamp) -> i64 {
        self.started
            .map_or(0, |started| now.as_second() - started.as_second())
            .max(0)
    }
}
