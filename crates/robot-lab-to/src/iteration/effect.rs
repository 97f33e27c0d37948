//! What a record announces: the effect that is done once the record is written.

use crate::event::{Event, Key};
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

/// The effect that this event announces.
pub fn effect_of(event: &Event) -> Option<Effect> {
    let effect = match event {
        Event::IterationStarted { .. } => Effect::Work(Key { candidate: 0, attempt: 1 }),
        Event::Nudged { candidate, attempt, .. } => Effect::Nudge(Key { candidate: *candidate, attempt: *attempt }),
        Event::Ordered { candidate, attempt, limit } => {
            Effect::Order { key: Key { candidate: *candidate, attempt: *attempt }, limit: limit.clone() }
        }
        Event::Repair { candidate, attempt, output, .. } => {
            Effect::Repair { key: Key { candidate: *candidate, attempt: *attempt }, output: output.clone() }
        }
        Event::SnapshotStarted { candidate, attempt } => {
            Effect::Snapshot(Key { candidate: *candidate, attempt: *attempt })
        }
        Event::EvalStarted { candidate, attempt, tree } => {
            Effect::Grade { key: Key { candidate: *candidate, attempt: *attempt }, tree: tree.clone() }
        }
        Event::CommitStarted { candidate, attempt, tree, parent, message } => Effect::Commit {
            key: Key { candidate: *candidate, attempt: *attempt },
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
