//! The loop: an input makes facts, facts are written down, what they announce is done, and that is the next input.
//! It is the only place that waits for the world.

use crate::event::Record;
use crate::iteration::{Effect, Illegal, Input, Phase, Policy, RunState, StopReason, decide, effect_of};
use crate::log::Journal;
use async_trait::async_trait;
use std::collections::VecDeque;

/// What effects are done in.
#[async_trait]
pub(crate) trait World: Send {
    /// Does what `record` announces, and says how that went; `None` when there is nothing to say.
    async fn perform(&mut self, record: &Record, effect: Effect, state: &RunState) -> Option<Input>;

    /// What is to be known before an iteration: [`Input::Begin`].
    fn begin(&self) -> Input;
}

/// Why the loop itself broke down. The branch holds what was committed, and nothing else.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriveError {
    /// The log cannot be written.
    #[error(transparent)]
    Log(#[from] std::io::Error),
    /// A fault of ours.
    #[error("internal: {0}")]
    Illegal(#[from] Illegal),
}

/// Runs until the run stops.
pub(crate) async fn drive(
    journal: &Journal,
    policy: &Policy,
    world: &mut impl World,
) -> Result<StopReason, DriveError> {
    let mut inputs = VecDeque::new();
    loop {
        let state = journal.state();
        if let Phase::Stopped { reason } = &state.phase {
            return Ok(reason.clone());
        }
        let input = inputs.pop_front().unwrap_or_else(|| world.begin());
        for event in decide(&state, input, policy)? {
            let record = journal.append(event)?;
            if let Some(effect) = effect_of(&record) {
                inputs.extend(world.perform(&record, effect, &journal.state()).await);
            }
        }
    }
}
