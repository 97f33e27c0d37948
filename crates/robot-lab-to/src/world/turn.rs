//! The robot's turns: a fresh robot in a workspace at the parent, and what it is told.

use super::{RealWorld, Unfurnished, Zone, chain, internal, nonce, parent};
use crate::event::{Event, Key};
use crate::iteration::{Input, RunState, StopKind, StopReason, TurnEnd};
use crate::log::RobotEvents;
use crate::notes;
use crate::prompt::{PromptError, Situation, Standing};
use crate::worker::Seat;
use crate::workspace::Oid;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a robot may take to end its turn once it is cancelled: a little longer than its tools may.
const TURN_GRACE: Duration = Duration::from_millis(3_500);

/// What the robot is told in a turn.
pub(super) enum Say {
    Turn(String),
    Order(String),
}

impl RealWorld {
    /// Brings the workspace to the parent, and a fresh robot into it. Answers the first message.
    pub(super) async fn open(&mut self, key: Key, state: &RunState) -> Result<String, StopReason> {
        let parent = parent(state)?;
        self.session = None;
        self.worked = false;
        self.branch_is_at(&parent).await?;
        let carried = state
            .candidate(key.candidate)
            .and_then(|candidate| candidate.carried.clone());
        let start = carried
            .as_ref()
            .and_then(|carried| carried.tree.as_ref())
            .unwrap_or(&parent);
        let start = start.clone();
        self.prepare(Zone::Workspace, &start, &parent).await?;
        match self.furnish(Zone::Workspace, &start, &parent).await {
            // The robot is there to mend what an earlier one left, and its change is graded by setup too.
            Ok(()) | Err(Unfurnished::Setup { changed: true, .. }) => {}
            Err(failed) => return Err(failed.into_reason(StopReason::environment)),
        }
        let seat = Seat {
            iteration: key.iteration,
            workspace: self.workspace.path().to_owned(),
            start: self.ledger.subdir().to_owned(),
            user_top: self.ledger.top().to_owned(),
            events: self.waits.observing(Arc::new(RobotEvents {
                journal: Arc::clone(&self.journal),
                candidate: key.candidate,
            })),
            budget: Arc::new(self.budget.part(self.plan.max_iteration_tokens)),
            checkpoints: self.dir.path().join("checkpoints"),
            locked: Arc::clone(&self.locked),
            files: self.files_to_show(&start).await?,
            failing: state.failing.clone(),
        };
        self.session = Some(
            self.worker
                .open(&self.system, seat)
                .await
                .map_err(StopReason::from)?,
        );
        self.worked = true;
        self.first_message(state).map_err(internal)
    }

    /// The files of a tree that robots in small steps may be shown: those that they may change.
    async fn files_to_show(&self, tree: &Oid) -> Result<Vec<PathBuf>, StopReason> {
        if !self.plan.small_steps {
            return Ok(Vec::new());
        }
        let listed = self.zones.list(tree).await;
        let mut files = listed
            .map_err(|error| StopReason::environment(chain(&error)))?
            .paths;
        files.retain(|path| !self.locked.holds(path));
        Ok(files)
    }

    /// The message that an iteration begins with.
    pub(crate) fn first_message(&self, state: &RunState) -> Result<String, PromptError> {
        // Notes that cannot be read are a smaller loss than a night without an iteration.
        let notes = notes::read(&self.dir.notes()).unwrap_or_else(|error| {
            self.journal.note(Event::Notice {
                message: format!("the notes cannot be read: {error}"),
            });
            String::new()
        });
        let notes_file = notes::copy_for_robots(&self.dir.notes(), self.zones.work())
            .map_err(|error| {
                self.journal.note(Event::Notice {
                    message: format!("robots get no copy of the notes: {error}"),
                });
            })
            .ok();
        let goal = self.plan.goal;
        // An eval of the user's may do without.
        let has_value = self.plan.measure.is_some() || state.best.is_some() || goal.target.is_some();
        let situation = Situation {
            iteration: state.iteration,
            work_dir: &self.workspace.path().join(self.ledger.subdir()),
            nonce: &nonce(),
            notes: &notes,
            notes_file: notes_file.as_deref(),
            failing: state.failing.as_deref(),
            score: has_value.then_some(Standing {
                best: state.best,
                parent: state.parent_value,
                target: goal.target,
                minimize: goal.minimize,
                since_improvement: state.since_improvement,
                committed: state.commits > 0,
            }),
        };
        let mut message = self.prompts.iteration(&situation)?;
        let carried = state
            .candidate(0)
            .and_then(|candidate| candidate.carried.as_ref());
        if let Some(carried) = carried {
            message.push_str("\n\n");
            message.push_str(&self.prompts.carried(&nonce(), &carried.output)?);
        }
        Ok(message)
    }

    pub(super) async fn say(&mut self, key: Key, text: Result<Say, PromptError>) -> Input {
        let end = match text {
            Ok(say) => self.turn(key, say).await,
            Err(error) => TurnEnd::Halted(internal(error)),
        };
        Input::TurnEnded { key, end }
    }

    pub(super) async fn turn(&mut self, key: Key, say: Say) -> TurnEnd {
        let Key {
            candidate, attempt, ..
        } = key;
        if let Err(error) = self.journal.append(Event::AgentStarted { candidate, attempt }) {
            return TurnEnd::Halted(StopReason::environment(error));
        }
        let Some(mut session) = self.session.take() else {
            return TurnEnd::Halted(StopReason::new(StopKind::Internal, "a turn without a robot"));
        };
        let cancel = self.halt.soft().child_token();
        let ended = {
            let mut turn = match &say {
                Say::Turn(text) => session.turn(text, &cancel),
                Say::Order(text) => session.order(text, &cancel),
            };
            let waited = tokio::select! {
                end = &mut turn => Some(end),
                () = self.deadline.passed() => None,
                () = self.halt.soft().cancelled() => None,
                () = self.halt.hard().cancelled() => None,
            };
            match waited {
                Some(end) => Some(end),
                None => {
                    cancel.cancel();
                    tokio::select! {
                        end = timeout(TURN_GRACE, turn) => end.ok(),
                        () = self.halt.hard().cancelled() => None,
                    }
                }
            }
        };
        // A robot that did not come back in time is gone, with everything it runs.
        let came_back = ended.is_some();
        if came_back {
            self.session = Some(session);
        }
        if let Some(failed) = self.journal.failure() {
            return TurnEnd::Halted(StopReason::environment(failed));
        }
        if self.halt.reason().is_some() {
            return TurnEnd::Halted(self.halted());
        }
        match ended {
            Some(TurnEnd::Limit { .. }) if cancel.is_cancelled() => TurnEnd::Limit {
                limit: self.out_of_time(),
            },
            Some(end) => end,
            None => TurnEnd::Error {
                kind: "timeout".into(),
                message: self.out_of_time(),
            },
        }
    }

    pub(super) fn out_of_time(&self) -> String {
        format!("iteration timeout ({} s)", self.plan.iteration_timeout.as_secs())
    }
}
