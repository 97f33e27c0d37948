//! What an input makes a fact: the records that follow from it.

use super::state::{Accepted, GateFailed};
use super::stop::due;
use super::{Candidate, Phase, Policy, RunState, Step, StopKind, StopReason, Submission, Verdict, verdict};
use crate::commit_message::{CommitMessage, subject};
use crate::eval::Score;
use crate::event::{Event, Key};
use crate::workspace::Oid;
use std::cmp::Ordering;
use std::time::Duration;

/// What the world says.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Nothing is under way.
    Begin {
        /// Time since the start of the run.
        elapsed: Duration,
        /// Why the run was told to end, if it was.
        halt: Option<StopReason>,
    },
    /// A robot's turn is over.
    TurnEnded {
        /// Whose.
        key: Key,
        /// How.
        end: TurnEnd,
    },
    /// The workspace was turned into a tree, or cannot be one for these reasons.
    Snapshotted {
        /// Whose.
        key: Key,
        /// The tree, or why there is none; `Err` when a signal or the environment came between.
        result: Result<Result<Taken, Vec<String>>, StopReason>,
    },
    /// A tree was graded; `Err` when a signal or the environment came between.
    Graded {
        /// Whose.
        key: Key,
        /// The score.
        result: Result<Score, StopReason>,
    },
    /// The commit is on the branch.
    Committed {
        /// Whose.
        key: Key,
        /// The commit.
        commit: Oid,
    },
    /// The commit is not on the branch.
    CommitFailed {
        /// Whose.
        key: Key,
        /// Why, and why the run ends.
        reason: StopReason,
    },
}

/// A workspace as a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The tree.
    pub tree: Oid,
    /// Locked files in which it differs from the base.
    pub tampered: Vec<String>,
}

/// How a robot's turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// With a submission.
    Submitted(Submission),
    /// Without one.
    Silent {
        /// Why it ended, in a word or two.
        stop: String,
    },
    /// At a limit of tool calls or time.
    Limit {
        /// Which.
        limit: String,
    },
    /// With an error that is neither permanent nor the environment's.
    Error {
        /// The kind, in a word or two.
        kind: String,
        /// What happened.
        message: String,
    },
    /// By a signal, a limit of the run, or the environment.
    Halted(StopReason),
}

/// An input that cannot come in this state: a fault of the driver.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("input {input:?} is impossible in phase {phase:?}")]
pub struct Illegal {
    /// Where the run stands.
    pub phase: Box<Phase>,
    /// What came.
    pub input: Box<Input>,
}

/// What an attempt goes through, once each and in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Turn,
    Snapshot,
    Grade,
    Commit,
}

impl Stage {
    fn of(step: Step, committing: bool) -> Self {
        match step {
            _ if committing => Self::Commit,
            Step::Working | Step::Nudging | Step::Ordered | Step::Repairing => Self::Turn,
            Step::Snapshotting => Self::Snapshot,
            Step::Grading => Self::Grade,
        }
    }
}

/// The facts that follow from an input, in order. At most one of them announces work that answers with an input, and
/// it is the last. An input for something that is over is dropped; one that is impossible is an error, never a guess.
pub fn decide(state: &RunState, input: Input, policy: &Policy) -> Result<Vec<Event>, Illegal> {
    let illegal = |input: Input| Illegal {
        phase: Box::new(state.phase.clone()),
        input: Box::new(input),
    };
    let (key, stage) = match &input {
        Input::Begin { elapsed, halt } => {
            return match (&state.phase, &state.parent) {
                (Phase::Ready, Some(parent)) => {
                    Ok(vec![begin(state, parent, *elapsed, halt.clone(), policy)])
                }
                _ => Err(illegal(input)),
            };
        }
        Input::TurnEnded { key, .. } => (*key, Stage::Turn),
        Input::Snapshotted { key, .. } => (*key, Stage::Snapshot),
        Input::Graded { key, .. } => (*key, Stage::Grade),
        Input::Committed { key, .. } | Input::CommitFailed { key, .. } => (*key, Stage::Commit),
    };
    // A candidate that is gone, or has gone on: the answer is late.
    let Some(candidate) = state
        .candidate(key.candidate)
        .filter(|candidate| candidate.key == key)
    else {
        return Ok(Vec::new());
    };
    let committing = match &state.phase {
        Phase::Committing { tree, .. } => Some(tree),
        Phase::Ready | Phase::Attempting { .. } | Phase::Stopped { .. } => None,
    };
    match stage.cmp(&Stage::of(candidate.step, committing.is_some())) {
        Ordering::Less => return Ok(Vec::new()),
        Ordering::Greater => return Err(illegal(input)),
        Ordering::Equal => {}
    }
    match (input, committing) {
        (Input::TurnEnded { end, .. }, _) => Ok(turn_ended(candidate, end, policy)),
        (Input::Snapshotted { result, .. }, _) => Ok(snapshotted(state, candidate, result, policy)),
        (Input::Graded { result, .. }, _) => Ok(graded(state, candidate, result, policy)),
        (Input::Committed { commit, .. }, Some(tree)) => {
            Ok(vec![committed(state, candidate, commit, tree, policy)])
        }
        // The candidate is as good as it was: neither the robot nor the gate failed.
        (Input::CommitFailed { reason, .. }, Some(_)) if reason.kind == StopKind::Environment => {
            Ok(vec![interrupted(key.candidate, reason)])
        }
        (Input::CommitFailed { reason, .. }, Some(tree)) => {
            let failed = Event::CommitFailed {
                candidate: key.candidate,
                tree: tree.clone(),
                summary: summary(candidate),
                kind: reason.kind,
                output: reason.text.clone(),
            };
            Ok(vec![
                failed,
                Event::Aborted {
                    kind: reason.kind,
                    reason: reason.text,
                },
            ])
        }
        (input, _) => Err(illegal(input)),
    }
}

fn begin(
    state: &RunState,
    parent: &Oid,
    elapsed: Duration,
    halt: Option<StopReason>,
    policy: &Policy,
) -> Event {
    match due(state, elapsed, policy).or(halt) {
        Some(reason) => Event::Aborted {
            kind: reason.kind,
            reason: reason.text,
        },
        None => Event::IterationStarted {
            parent: parent.clone(),
        },
    }
}

fn turn_ended(candidate: &Candidate, end: TurnEnd, policy: &Policy) -> Vec<Event> {
    let Key {
        candidate: number,
        attempt,
        ..
    } = candidate.key;
    let ended = |stop: &str, submission: Option<&Submission>| Event::AgentEnded {
        candidate: number,
        attempt,
        stop: stop.to_owned(),
        submission: submission.cloned(),
    };
    let error = |kind: String, message: String| Event::AgentError {
        candidate: number,
        error: kind,
        message,
    };
    match end {
        TurnEnd::Submitted(submission) => {
            let end = ended("submitted", Some(&submission));
            let next = match (&candidate.gate_failure, submission.success) {
                (_, true) => Event::SnapshotStarted {
                    candidate: number,
                    attempt,
                },
                // A robot that gives up on a repair leaves the gate as it failed.
                (Some(failure), false) => gate_failure(candidate, failure, &submission),
                (None, false) => {
                    let (summary, learnings) = (submission.summary.clone(), submission.key_learnings.clone());
                    Event::Failure {
                        candidate: number,
                        summary,
                        learnings,
                    }
                }
            };
            vec![end, next]
        }
        TurnEnd::Silent { stop } => {
            let next = match candidate.step {
                // It had submitted before; what it repaired since then counts.
                Step::Repairing => Event::SnapshotStarted {
                    candidate: number,
                    attempt,
                },
                _ if candidate.ordered => error("limit".into(), "did not submit when ordered to".into()),
                _ if candidate.nudges < policy.max_submit_nudges => Event::Nudged {
                    candidate: number,
                    attempt: attempt + 1,
                    nudge: candidate.nudges + 1,
                },
                _ => {
                    let summary = format!("did not submit ({stop})");
                    Event::Failure {
                        candidate: number,
                        summary,
                        learnings: Vec::new(),
                    }
                }
            };
            vec![ended(&stop, None), next]
        }
        TurnEnd::Limit { limit } => {
            let next = if candidate.ordered {
                error(
                    "limit".into(),
                    format!("{limit}, and did not submit when ordered to"),
                )
            } else {
                Event::Ordered {
                    candidate: number,
                    attempt: attempt + 1,
                    limit: limit.clone(),
                }
            };
            vec![ended(&limit, None), next]
        }
        TurnEnd::Error { kind, message } => vec![ended(&kind, None), error(kind, message)],
        TurnEnd::Halted(reason) => vec![ended("interrupted", None), interrupted(number, reason)],
    }
}

fn snapshotted(
    state: &RunState,
    candidate: &Candidate,
    result: Result<Result<Taken, Vec<String>>, StopReason>,
    policy: &Policy,
) -> Vec<Event> {
    let Key {
        candidate: number,
        attempt,
        ..
    } = candidate.key;
    let done = |tree: Option<&Oid>, refused: &[String]| Event::Snapshotted {
        candidate: number,
        attempt,
        tree: tree.cloned(),
        refused: refused.to_vec(),
    };
    match result {
        Err(reason) => vec![interrupted(number, reason)],
        Ok(Err(refused)) => {
            let failure = GateFailed {
                tree: None,
                detail: "the workspace cannot be committed".into(),
                output: refused.join("\n"),
            };
            vec![done(None, &refused), repair_or_fail(candidate, &failure, policy)]
        }
        Ok(Ok(Taken { tree, tampered })) => {
            let next = match &candidate.gate_failure {
                _ if !tampered.is_empty() => Event::Tampered {
                    candidate: number,
                    summary: summary(candidate),
                    paths: tampered,
                    tree: tree.clone(),
                },
                _ if Some(&tree) == state.parent_tree.as_ref() => no_change(candidate, false),
                _ if state.seen.contains(&tree) => no_change(candidate, true),
                // The repair changed nothing, so grading it again would say the same.
                Some(failure) if failure.tree.as_ref() == Some(&tree) => {
                    repair_or_fail(candidate, failure, policy)
                }
                _ => Event::EvalStarted {
                    candidate: number,
                    attempt,
                    tree: tree.clone(),
                },
            };
            vec![done(Some(&tree), &[]), next]
        }
    }
}

fn graded(
    state: &RunState,
    candidate: &Candidate,
    result: Result<Score, StopReason>,
    policy: &Policy,
) -> Vec<Event> {
    let number = candidate.key.candidate;
    let (score, tree, parent) = match (result, &candidate.tree, &state.parent) {
        (Err(reason), _, _) => return vec![interrupted(number, reason)],
        (Ok(score), Some(tree), Some(parent)) => (score, tree.clone(), parent.clone()),
        (Ok(_), _, _) => {
            let reason = StopReason::new(
                StopKind::Internal,
                "a score came without a tree; nothing was committed",
            );
            return vec![interrupted(number, reason)];
        }
    };
    let eval = Event::eval(candidate.key, tree.clone(), &score);
    let next = match verdict(&score, policy) {
        Verdict::GateFailed => {
            let output = score.output.clone().unwrap_or_default();
            let failure = GateFailed {
                tree: Some(tree),
                detail: score.detail.clone(),
                output,
            };
            repair_or_fail(candidate, &failure, policy)
        }
        Verdict::NoImprovement => Event::NoImprovement {
            candidate: number,
            summary: summary(candidate),
            learnings: learnings(candidate),
            detail: score.detail.clone(),
            tree,
        },
        Verdict::Commit => {
            let submission = candidate.submission.clone().unwrap_or_default();
            let message = CommitMessage {
                iteration: state.iteration,
                run_id: &state.run_id,
                submission: &submission,
                score: &score,
                format: policy.commit_format,
            }
            .render();
            Event::CommitStarted {
                candidate: number,
                attempt: candidate.key.attempt,
                tree,
                parent,
                message,
            }
        }
    };
    vec![eval, next]
}

fn committed(state: &RunState, candidate: &Candidate, commit: Oid, tree: &Oid, policy: &Policy) -> Event {
    let submission = candidate.submission.clone().unwrap_or_default();
    let accepted = candidate.accepted.clone().unwrap_or(Accepted {
        improved: false,
        met_target: false,
        value: None,
        detail: String::new(),
    });
    let stop = match &policy.stop_when {
        _ if accepted.met_target => Some(StopReason::new(
            StopKind::TargetMet,
            format!("target met: {}", accepted.detail),
        )),
        Some(text) if submission.should_fully_stop => Some(StopReason::new(
            StopKind::StopCondition,
            format!("stop condition met: {text}"),
        )),
        _ => None,
    };
    Event::Committed {
        candidate: candidate.key.candidate,
        commit,
        tree: tree.clone(),
        message: subject(state.iteration, &submission, policy.commit_format),
        improved: accepted.improved,
        value: accepted.value,
        submission,
        stop: stop.as_ref().map(|stop| stop.kind),
        stop_text: stop.map(|stop| stop.text),
    }
}

fn repair_or_fail(candidate: &Candidate, failure: &GateFailed, policy: &Policy) -> Event {
    if candidate.repairs < policy.max_verify_repairs && !candidate.ordered {
        return Event::Repair {
            candidate: candidate.key.candidate,
            attempt: candidate.key.attempt + 1,
            repair: candidate.repairs + 1,
            output: format!("{}\n{}", failure.detail, failure.output),
        };
    }
    gate_failure(
        candidate,
        failure,
        &candidate.submission.clone().unwrap_or_default(),
    )
}

fn gate_failure(candidate: &Candidate, failure: &GateFailed, submission: &Submission) -> Event {
    Event::GateFailure {
        candidate: candidate.key.candidate,
        summary: submission.summary.clone(),
        learnings: submission.key_learnings.clone(),
        detail: failure.detail.clone(),
        output: failure.output.clone(),
        tree: failure.tree.clone(),
    }
}

fn no_change(candidate: &Candidate, repeat: bool) -> Event {
    let (number, summary, learnings) = (candidate.key.candidate, summary(candidate), learnings(candidate));
    Event::NoChange {
        candidate: number,
        summary,
        learnings,
        repeat,
    }
}

fn interrupted(candidate: u32, reason: StopReason) -> Event {
    Event::Interrupted {
        candidate,
        kind: reason.kind,
        reason: reason.text,
    }
}

fn summary(candidate: &Candidate) -> String {
    candidate
        .submission
        .as_ref()
        .map(|s| s.summary.clone())
        .unwrap_or_default()
}

fn learnings(candidate: &Candidate) -> Vec<String> {
    candidate
        .submission
        .as_ref()
        .map(|s| s.key_learnings.clone())
        .unwrap_or_default()
}
