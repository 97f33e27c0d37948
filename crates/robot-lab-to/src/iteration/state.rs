//! The state of a run, which changes only by applying records.

use super::candidate::{Accepted, GateFailed};
use super::{Candidate, Step, StopKind, StopReason};
use crate::eval::Goal;
use crate::event::{Event, Record};
use crate::settings::Plan;
use crate::workspace::Oid;
use jiff::Timestamp;
use robot_lab::{Cost, Usage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that decisions depend on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    /// The run's id.
    pub run_id: String,
    /// Iterations begun.
    pub iteration: u32,
    /// Iterations committed.
    pub commits: u32,
    /// Iterations discarded.
    pub discarded: u32,
    /// Failures since the last commit.
    pub failures_in_a_row: u32,
    /// Iterations since the last improvement.
    pub since_improvement: u32,
    /// Iterations in a row without a change.
    pub no_change_in_a_row: u32,
    /// What all requests cost.
    pub usage: Usage,
    /// The same in money, as far as prices are known.
    pub cost: Cost,
    /// Whether there were requests of which nobody knows the price.
    pub unpriced: bool,
    /// The commit that the run branch points to.
    pub parent: Option<Oid>,
    /// Its tree.
    pub parent_tree: Option<Oid>,
    /// Its score.
    pub parent_value: Option<f64>,
    /// Whether lower scores are better.
    pub minimize: bool,
    /// What the gate said of the base commit, while that is the parent and the gate fails there.
    pub failing: Option<String>,
    /// Time that the run has taken, in milliseconds, without what lies between its end and its resuming.
    pub elapsed_ms: u64,
    /// The best score so far, the baseline included.
    pub best: Option<f64>,
    /// Trees that need no second try: accepted, not better, or refused by the gate. They grow with the run, so they are
    /// shared by copies of the state, and only the log keeps them.
    #[serde(skip)]
    pub seen: Arc<BTreeSet<Oid>>,
    /// Whether the user's hooks are asked before a commit.
    pub hooks: bool,
    /// The change that hooks refused to the end, from which the next iteration starts.
    pub carried: Option<GateFailed>,
    /// Whether the last failure was a commit that hooks refused.
    pub rejected: bool,
    /// By what scores are judged.
    pub goal: Goal,
    /// The condition that the robot judges.
    pub stop_when: Option<String>,
    /// Why the run ends before its next iteration.
    pub pending_stop: Option<StopReason>,
    /// Where the run stands.
    pub phase: Phase,
    /// Replies of each model, which are of more than one when a fallback was asked.
    pub answers: BTreeMap<String, u32>,
    /// Time that robots waited for providers, in milliseconds.
    pub waited_ms: u64,
    /// When the present process began, and the time before.
    pub since: Option<(Timestamp, u64)>,
}

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Between two iterations.
    #[default]
    Ready,
    /// Candidates are made and graded.
    Attempting {
        /// The candidates of this iteration.
        candidates: Vec<Candidate>,
    },
    /// A candidate is being committed.
    Committing {
        /// Which.
        candidate: Box<Candidate>,
        /// Its graded tree.
        tree: Oid,
        /// The message of the commit.
        #[serde(default)]
        message: String,
    },
    /// The run is over.
    Stopped {
        /// Why.
        reason: StopReason,
    },
}

impl RunState {
    /// What all requests cost; `None` where that is not known of a single one.
    pub fn known_cost(&self) -> Option<Cost> {
        Some(self.cost).filter(|cost| !self.unpriced || *cost > Cost::ZERO)
    }

    /// What each accepted change cost, with what was discarded shared among them; `None` without a change, and where
    /// the cost is not known.
    pub fn cost_per_commit(&self) -> Option<Cost> {
        let cost = self.known_cost().filter(|_| self.commits > 0)?;
        Some(cost.each_of(self.commits.into()))
    }

    /// Iterations that count: those that were not interrupted.
    pub fn finished(&self) -> u32 {
        self.commits + self.discarded
    }

    /// The candidate of this number, while it is being made or committed.
    pub fn candidate(&self, number: u32) -> Option<&Candidate> {
        match &self.phase {
            Phase::Attempting { candidates } => candidates.iter().find(|c| c.key.candidate == number),
            Phase::Committing { candidate, .. } => {
                Some(candidate.as_ref()).filter(|c| c.key.candidate == number)
            }
            Phase::Ready | Phase::Stopped { .. } => None,
        }
    }

    /// The state after these records.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut state = Self::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    /// Takes one record in. Records that announce or observe change nothing but the step.
    pub fn apply(&mut self, record: &Record) {
        // No time of the run passes between two processes.
        let resumes = matches!(record.event, Event::RunResumed { .. } | Event::Reopened {});
        if let Some((start, before)) = self.since.filter(|_| !resumes) {
            let here = record.ts.as_millisecond().saturating_sub(start.as_millisecond());
            self.elapsed_ms = before
                .saturating_add(u64::try_from(here).unwrap_or(0))
                .max(self.elapsed_ms);
        }
        match &record.event {
            Event::RunStarted {
                run_id,
                base,
                base_tree,
                hooks,
                plan,
                ..
            } => {
                self.hooks = !hooks.is_empty();
                self.since = Some((record.ts, 0));
                self.planned(plan);
                self.run_id.clone_from(run_id);
                self.parent = Some(base.clone());
                self.parent_tree = Some(base_tree.clone());
                // To undo all that was accepted is to come back to what was there before.
                Arc::make_mut(&mut self.seen).insert(base_tree.clone());
            }
            Event::RunResumed {
                plan,
                hooks,
                carried_lost,
                ..
            } => {
                let same = (plan.goal, &plan.policy.stop_when) == (self.goal, &self.stop_when);
                let over = matches!(self.phase, Phase::Stopped { .. });
                // What was reached stays reached, unless something else is aimed at now; a robot's word ends one process.
                self.pending_stop = self.pending_stop.take().filter(|stop| {
                    same && (stop.kind == StopKind::TargetMet
                        || (stop.kind == StopKind::StopCondition && !over))
                });
                if *carried_lost {
                    self.carried = None;
                }
                self.hooks = !hooks.is_empty();
                self.since = Some((record.ts, self.elapsed_ms));
                self.planned(plan);
                self.failures_in_a_row = 0;
                self.since_improvement = 0;
                self.no_change_in_a_row = 0;
                self.phase = Phase::Ready;
            }
            Event::Reopened {} => self.since = Some((record.ts, self.elapsed_ms)),
            Event::IterationStarted { parent, .. } => {
                self.iteration = record.iteration;
                self.parent = Some(parent.clone());
                let mut candidate = Candidate::new(self.iteration, 0);
                candidate.carried = self.carried.take();
                self.phase = Phase::Attempting {
                    candidates: vec![candidate],
                };
            }
            Event::AgentEnded {
                candidate,
                submission,
                ..
            } => {
                self.change(*candidate, |c| {
                    if let Some(submission) = submission {
                        c.submission = Some(submission.clone());
                    }
                });
            }
            Event::Nudged {
                candidate,
                attempt,
                nudge,
            } => self.change(*candidate, |c| {
                c.nudges = *nudge;
                c.begin(*attempt, Step::Nudging);
            }),
            Event::Ordered {
                candidate, attempt, ..
            } => self.change(*candidate, |c| {
                c.ordered = true;
                c.begin(*attempt, Step::Ordered);
            }),
            Event::Repair {
                candidate,
                attempt,
                repair,
                ..
            } => self.change(*candidate, |c| {
                c.repairs = *repair;
                c.begin(*attempt, Step::Repairing);
            }),
            Event::SnapshotStarted { candidate, .. } => {
                self.change(*candidate, |c| c.step = Step::Snapshotting)
            }
            Event::Snapshotted {
                candidate,
                tree,
                refused,
                ..
            } => self.change(*candidate, |c| {
                c.tree = tree.clone();
                if !refused.is_empty() {
                    c.gate_failure = Some(GateFailed {
                        tree: None,
                        detail: "the workspace cannot be committed".into(),
                        output: refused.join("\n"),
                        hook: None,
                    });
                }
            }),
            Event::EvalStarted {
                candidate, attempt, ..
            } => self.change(*candidate, |c| {
                c.key.attempt = *attempt;
                c.step = Step::Grading;
            }),
            Event::HooksStarted { candidate, .. } => self.change(*candidate, |c| c.step = Step::Hooking),
            Event::HooksEnded {
                candidate,
                tree,
                refused,
                output,
                ..
            } => self.change(*candidate, |c| {
                if let Some(tree) = tree {
                    c.tree = Some(tree.clone());
                    c.hooked = true;
                }
                if let Some(hook) = refused {
                    c.gate_failure = Some(GateFailed::refused(c.tree.clone(), hook, output.clone()));
                }
            }),
            Event::Eval {
                candidate,
                tree,
                gate,
                improved,
                value,
                met_target,
                detail,
                output,
                ..
            } => {
                if record.iteration == 0 {
                    self.failing = (!gate).then(|| output.clone().unwrap_or_default());
                    // Where the gate fails, the first candidate that passes it sets the value.
                    self.scored(value.filter(|_| *gate));
                    if *gate && *met_target {
                        self.pending_stop = Some(StopReason::target_met(detail));
                    }
                }
                self.change(*candidate, |c| {
                    if *gate {
                        c.gate_failure = None;
                        let (improved, met_target) = (*improved, *met_target);
                        c.accepted = Some(Accepted {
                            improved,
                            met_target,
                            value: *value,
                            detail: detail.clone(),
                        });
                    } else {
                        let output = output.clone().unwrap_or_default();
                        c.gate_failure = Some(GateFailed {
                            tree: Some(tree.clone()),
                            detail: detail.clone(),
                            output,
                            hook: None,
                        });
                    }
                });
            }
            Event::CommitStarted {
                candidate,
                tree,
                message,
                ..
            } => {
                if let Some(candidate) = self.candidate(*candidate).cloned() {
                    self.phase = Phase::Committing {
                        candidate: Box::new(candidate),
                        tree: tree.clone(),
                        message: message.clone(),
                    };
                }
            }
            Event::Committed {
                commit,
                tree,
                improved,
                value,
                stop,
                stop_text,
                ..
            } => {
                self.commits += 1;
                self.parent = Some(commit.clone());
                self.parent_tree = Some(tree.clone());
                Arc::make_mut(&mut self.seen).insert(tree.clone());
                self.failures_in_a_row = 0;
                self.no_change_in_a_row = 0;
                self.failing = None;
                self.scored(*value);
                self.since_improvement = if *improved { 0 } else { self.since_improvement + 1 };
                self.pending_stop =
                    stop.map(|kind| StopReason::new(kind, stop_text.clone().unwrap_or_default()));
                self.phase = Phase::Ready;
            }
            Event::CommitFailed {
                candidate,
                kind,
                tree,
                output,
                ..
            } => {
                let again = self.candidate(*candidate).is_some_and(|c| c.carried.is_some());
                let rejected = *kind == StopKind::CommitRejected;
                self.carried = (rejected && !again).then(|| GateFailed {
                    tree: Some(tree.clone()),
                    detail: "a hook refused the commit".into(),
                    output: output.clone(),
                    hook: None,
                });
                self.failed();
                self.rejected = rejected;
            }
            Event::Failure { .. } | Event::Tampered { .. } | Event::AgentError { .. } => self.failed(),
            Event::GateFailure { tree, .. } => {
                Arc::make_mut(&mut self.seen).extend(tree.clone());
                self.failed();
            }
            Event::NoImprovement { tree, .. } => {
                Arc::make_mut(&mut self.seen).insert(tree.clone());
                self.no_change_in_a_row = 0;
                self.discard();
            }
            Event::NoChange { .. } => {
                self.no_change_in_a_row += 1;
                self.discard();
            }
            Event::Interrupted {
                candidate,
                kind,
                reason,
            } => {
                // It was not tried to the end, so it may be tried again.
                self.carried = self.candidate(*candidate).and_then(|c| c.carried.clone());
                self.pending_stop = Some(StopReason::new(*kind, reason.clone()));
                self.phase = Phase::Ready;
            }
            Event::Aborted { kind, reason } => {
                self.phase = Phase::Stopped {
                    reason: StopReason::new(*kind, reason.clone()),
                };
            }
            Event::ModelFinished {
                input_tokens,
                cached_tokens,
                cache_write_tokens,
                output_tokens,
                reasoning_tokens,
                estimated,
                model,
                finish,
                cost,
                ..
            } => {
                self.cost += cost.unwrap_or_default();
                self.unpriced |= cost.is_none();
                if finish.is_some() {
                    *self.answers.entry(model.clone()).or_default() += 1;
                }
                self.usage += Usage {
                    input: *input_tokens,
                    cached_input: *cached_tokens,
                    cache_write: *cache_write_tokens,
                    output: *output_tokens,
                    reasoning: *reasoning_tokens,
                    estimated: *estimated,
                };
            }
            Event::ProviderResumed { waited_ms, .. } => {
                self.waited_ms = self.waited_ms.saturating_add(*waited_ms);
            }
            Event::AgentStarted { .. }
            | Event::ProviderWait { .. }
            | Event::Ended { .. }
            | Event::ModelFailed { .. }
            | Event::ModelAdapted { .. }
            | Event::WindowLearnt { .. }
            | Event::ModelSwitched { .. }
            | Event::ModelServed { .. }
            | Event::Compacted { .. }
            | Event::ToolStarted { .. }
            | Event::ToolFinished { .. }
            | Event::SetupStarted { .. }
            | Event::SetupFinished { .. }
            | Event::Notice { .. } => {}
        }
    }

    fn planned(&mut self, plan: &Plan) {
        self.minimize = plan.goal.minimize;
        self.goal = plan.goal;
        self.stop_when.clone_from(&plan.policy.stop_when);
    }

    /// The parent has this score now.
    fn scored(&mut self, value: Option<f64>) {
        self.parent_value = value.or(self.parent_value);
        if let Some(value) = value {
            let better = |best: f64| if self.minimize { value < best } else { value > best };
            if self.best.is_none_or(better) {
                self.best = Some(value);
            }
        }
    }

    fn failed(&mut self) {
        self.rejected = false;
        self.failures_in_a_row += 1;
        self.no_change_in_a_row = 0;
        self.discard();
    }

    fn discard(&mut self) {
        self.since_improvement += 1;
        self.discarded += 1;
        self.phase = Phase::Ready;
    }

    fn change(&mut self, number: u32, change: impl FnOnce(&mut Candidate)) {
        if let Phase::Attempting { candidates } = &mut self.phase
            && let Some(candidate) = candidates.iter_mut().find(|c| c.key.candidate == number)
        {
            change(candidate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_of_a_run_passes_between_two_processes() {
        let mut state = RunState::default();
        let mut at = |ts: &str, event| {
            state.apply(&Record {
                seq: 1,
                ts: ts.parse().unwrap(),
                iteration: 0,
                event,
            });
            state.elapsed_ms
        };
        let oid = |digit: &str| digit.repeat(40).parse::<Oid>().unwrap();
        let notice = || Event::Notice { message: "m".into() };
        let resumed = || Event::RunResumed {
            run_id: "r".into(),
            branch: "b".into(),
            model: "m".into(),
            hooks: vec![],
            carried_lost: false,
            plan: Box::default(),
        };
        let started = Event::RunStarted {
            version: 1,
            run_id: "r".into(),
            objective: "x".into(),
            branch: "b".into(),
            base: oid("1"),
            base_tree: oid("2"),
            model: "m".into(),
            eval: "code".into(),
            hooks: vec![],
            plan: Box::default(),
        };
        assert_eq!(at("2026-12-01T01:00:00Z", started), 0);
        assert_eq!(at("2026-12-01T01:00:02Z", notice()), 2_000);
        assert_eq!(at("2026-12-01T09:00:00Z", resumed()), 2_000);
        assert_eq!(at("2026-12-01T09:00:03Z", notice()), 5_000);
        assert_eq!(at("2026-12-02T09:00:00Z", resumed()), 5_000);
        assert_eq!(at("2026-12-03T09:00:00Z", Event::Reopened {}), 5_000);
        assert_eq!(at("2026-12-03T09:00:01Z", notice()), 6_000);
        assert_eq!(at("2026-12-03T09:00:02Z", resumed()), 6_000);
    }
}
