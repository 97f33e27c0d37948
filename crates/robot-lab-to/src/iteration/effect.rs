//! What a record announces: the effect that is done once the record is written.

use crate::event::{Event, Key, Record};
use crate::workspace::Oid;

/// Something to be done in the world. Those with a key are answered by an input with the same key.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Bring the workspace to the parent and let a fresh robot work.
    Work(Key),
    /// Ask the robot, which did not submit, to do so.
    Nudge(Key),
    /// Order the robot, which ran into `limit`, to submit, and let it do nothing else.
    Order {
        /// Whose turn.
        key: Key,
        /// The limit.
        limit: String,
    },
    /// Let the robot repair a failed gate.
    Repair {
        /// Whose turn.
        key: Key,
        /// What the gate said.
        output: String,
    },
    /// Turn the workspace into a tree.
    Snapshot(Key),
    /// Grade a tree.
    Grade {
        /// Whose tree.
        key: Key,
        /// The tree.
        tree: Oid,
    },
    /// Ask the user's hooks about a graded tree.
    Hooks {
        /// Whose tree.
        key: Key,
        /// The graded tree.
        tree: Oid,
        /// The message.
        message: String,
        /// Whether the pre-commit hook is asked too.
        pre_commit: bool,
    },
    /// Commit a tree.
    Commit {
        /// Whose tree.
        key: Key,
        /// The graded tree.
        tree: Oid,
        /// Its parent, which the branch must still point to.
        parent: Oid,
        /// The message.
        message: String,
    },
    /// The iteration is over: keep what it made, write the notes.
    Conclude,
    /// The run is over.
    Finish,
}

/// The effect that this record announces.
pub fn effect_of(record: &Record) -> Option<Effect> {
    let key = |candidate: &u32, attempt: &u32| Key {
        iteration: record.iteration,
        candidate: *candidate,
        attempt: *attempt,
    };
    let effect = match &record.event {
        Event::IterationStarted { .. } => Effect::Work(key(&0, &1)),
        Event::Nudged {
            candidate, attempt, ..
        } => Effect::Nudge(key(candidate, attempt)),
        Event::Ordered {
            candidate,
            attempt,
            limit,
        } => Effect::Order {
            key: key(candidate, attempt),
            limit: limit.clone(),
        },
        Event::Repair {
            candidate,
            attempt,
            output,
            ..
        } => Effect::Repair {
            key: key(candidate, attempt),
            output: output.clone(),
        },
        Event::SnapshotStarted { candidate, attempt } => Effect::Snapshot(key(candidate, attempt)),
        Event::EvalStarted {
            candidate,
            attempt,
            tree,
        } => Effect::Grade {
            key: key(candidate, attempt),
            tree: tree.clone(),
        },
        Event::HooksStarted {
            candidate,
            attempt,
            tree,
            message,
            pre_commit,
        } => Effect::Hooks {
            key: key(candidate, attempt),
            tree: tree.clone(),
            message: message.clone(),
            pre_commit: *pre_commit,
        },
        Event::CommitStarted {
            candidate,
            attempt,
            tree,
            parent,
            message,
        } => Effect::Commit {
            key: key(candidate, attempt),
            tree: tree.clone(),
            parent: parent.clone(),
            message: message.clone(),
        },
        Event::Aborted { .. } => Effect::Finish,
        event if event.is_outcome() => Effect::Conclude,
        _ => return None,
    };
    Some(effect)
}
