//! The end of an iteration: what was not committed is kept, and the notes and the state are written.

use super::{RealWorld, chain, parent};
use crate::event::{Event, Record};
use crate::iteration::{RunState, StopKind, StopReason};
use crate::notes;
use crate::workspace::{Oid, Snapshot, SnapshotRules};
use std::time::Duration;
use tokio::time::timeout;

/// How long it may take to keep what an iteration made: after a signal, and otherwise.
const HURRIED_KEEP: Duration = Duration::from_secs(2);
const KEEP: Duration = Duration::from_secs(120);

impl RealWorld {
    /// Keeps what was not committed, and writes the notes and the state.
    pub(super) async fn conclude(&mut self, record: &Record, state: &RunState) {
        let failures = [
            self.keep(record, state).await,
            self.write_notes(record),
            self.save(state, None),
        ];
        for failure in failures.into_iter().filter_map(Result::err) {
            // Nothing is lost with these: the log has it all. A log that fails stops the run by itself.
            self.journal.note(Event::Notice { message: failure });
        }
    }

    /// Keeps what was made and not committed in the run repository, or else the workspace itself.
    pub(crate) async fn keep(&mut self, record: &Record, state: &RunState) -> Result<(), String> {
        let (candidate, tree) = match &record.event {
            Event::CommitFailed { candidate, tree, .. } | Event::NoImprovement { candidate, tree, .. } => {
                (*candidate, Some(tree.clone()))
            }
            Event::Tampered { candidate, tree, .. } => (*candidate, Some(tree.clone())),
            Event::GateFailure { candidate, tree, .. } => (*candidate, tree.clone()),
            Event::Failure { candidate, .. }
            | Event::AgentError { candidate, .. }
            | Event::Interrupted { candidate, .. } => (*candidate, None),
            _ => return Ok(()),
        };
        if !self.worked {
            return Ok(());
        }
        let hurry = self
            .halt
            .reason()
            .is_some_and(|reason| reason.kind == StopKind::Interrupted);
        let limit = if hurry { HURRIED_KEEP } else { KEEP };
        let hard = self.halt.hard().clone();
        let kept = tokio::select! {
            kept = timeout(limit, self.keep_attempt(candidate, tree, record, state)) => {
                kept.unwrap_or_else(|_| Err("there was no time".into()))
            }
            () = hard.cancelled() => Err("there was no time".into()),
        };
        match kept {
            Ok(kept) => self.kept |= kept,
            Err(why) => {
                // Another iteration cleans the workspace; a run that ends leaves it as it is.
                self.holds_work = matches!(
                    record.event,
                    Event::Interrupted { .. } | Event::CommitFailed { .. }
                );
                return Err(format!("the discarded attempt was not kept: {why}"));
            }
        }
        Ok(())
    }

    /// Answers whether there was something to keep.
    pub(super) async fn keep_attempt(
        &mut self,
        candidate: u32,
        tree: Option<Oid>,
        record: &Record,
        state: &RunState,
    ) -> Result<bool, String> {
        let parent = parent(state).map_err(|reason| reason.text)?;
        let tree = match tree {
            Some(tree) => tree,
            None => {
                let rules = SnapshotRules {
                    max_file_bytes: self.plan.max_file_bytes,
                };
                match self
                    .workspace
                    .snapshot(&parent, &rules)
                    .await
                    .map_err(|error| chain(&error))?
                {
                    Snapshot::Tree(tree) => tree,
                    Snapshot::Rejected(reasons) => {
                        return Err(reasons
                            .iter()
                            .map(ToString::to_string)
                            .collect::<Vec<_>>()
                            .join("; "));
                    }
                }
            }
        };
        if Some(&tree) == state.parent_tree.as_ref() {
            return Ok(false);
        }
        let entry = notes::entry(record.iteration, &record.event).unwrap_or_default();
        let message = format!(
            "attempt {}-{candidate}: {}\n{entry}",
            state.iteration,
            record.event.name()
        );
        let kept = self
            .zones
            .keep_attempt(state.iteration, candidate, &tree, &parent, &message)
            .await;
        kept.map(|_| true).map_err(|error| chain(&error))
    }

    pub(super) fn write_notes(&self, record: &Record) -> Result<(), String> {
        let Some(entry) = notes::entry(record.iteration, &record.event) else {
            return Ok(());
        };
        notes::append(&self.dir.notes(), &entry)
            .map_err(|error| format!("the notes were not written: {error}"))
    }

    /// Writes `run.json`.
    pub(crate) fn save(&mut self, state: &RunState, reason: Option<StopReason>) -> Result<(), String> {
        self.file.state = state.clone();
        self.file.reason = reason;
        self.file.updated = self.journal.now();
        self.dir
            .save(&self.file)
            .map_err(|error| format!("run.json was not written: {error}; the log has it all"))
    }
}
