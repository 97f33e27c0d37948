//! What an input makes a fact: the records that follow from it.

use super::candidate::{Accepted, GateFailed};
use super::outcome::{committed, gate_failure, interrupted, learnings, no_change, repair_or_fail, summary};
use super::stop::due;
use super::{
    Candidate, Hooked, Illegal, Input, Phase, Policy, RunState, Step, StopKind, StopReason, Submission,
    Taken, TurnEnd, Verdict, verdict,
};
use crate::commit_message::CommitMessage;
use crate::eval::Score;
use crate::event::{Event, Key};
use crate::workspace::Oid;
use std::cmp::Ordering;
use std::time::Duration;

/// What an attempt goes through, once each and in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Turn,
    Snapshot,
    Grade,
    Hooks,
    Commit,
}

impl Stage {
    fn of(step: Step, committing: bool) -> Self {
        match step {
            _ if committing => Self::Commit,
            Step::Working | Step::Nudging | Step::Ordered | Step::Repairing => Self::Turn,
            Step::Snapshotting => Self::Snapshot,
            Step::Grading => Self::Grade,
            Step::Hooking => Self::Hooks,
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
        Input::Hooked { key, .. } => (*key, Stage::Hooks),
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
        Phase::Committing { tree, message, .. } => Some((tree, message)),
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
        (
            Input::Hooked {
                result, elapsed_ms, ..
            },
            _,
        ) => Ok(hooked(state, candidate, result, elapsed_ms, policy)),
        (Input::Committed { commit, .. }, Some((tree, message))) => {
            Ok(vec![committed(candidate, commit, tree, message, policy)])
        }
        // The candidate is as good as it was: neither the robot nor the gate failed.
        (Input::CommitFailed { reason, .. }, Some(_)) if reason.kind == StopKind::Environment => {
            Ok(vec![interrupted(key.candidate, reason)])
        }
        (Input::CommitFailed { reason, .. }, Some((tree, _))) => {
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
            from: state.carried.as_ref().and_then(|carried| carried.tree.clone()),
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
                hook: None,
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
                // Files that hold need a better message, which the hooks have not seen yet.
                Some(failure) if failure.tree.as_ref() == Some(&tree) && failure.hook.is_some() => {
                    gate_holds(state, candidate, tree.clone(), policy)
                }
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
    let (score, tree) = match (result, &candidate.tree) {
        (Err(reason), _) => return vec![interrupted(number, reason)],
        (Ok(score), Some(tree)) => (score, tree.clone()),
        (Ok(_), None) => {
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
                hook: None,
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
            let accepted = Accepted {
                improved: score.improved,
                met_target: score.met_target,
                value: score.value,
                detail: score.detail.clone(),
            };
            let candidate = Candidate {
                accepted: Some(accepted),
                ..candidate.clone()
            };
            gate_holds(state, &candidate, tree, policy)
        }
    };
    vec![eval, next]
}

/// The eval lets a tree through: the hooks are asked, or it is committed.
fn gate_holds(state: &RunState, candidate: &Candidate, tree: Oid, policy: &Policy) -> Event {
    let Key {
        candidate: number,
        attempt,
        ..
    } = candidate.key;
    let submission = candidate.submission.clone().unwrap_or_default();
    let accepted = candidate.accepted.as_ref();
    let message = CommitMessage {
        iteration: state.iteration,
        run_id: &state.run_id,
        submission: &submission,
        value: accepted.and_then(|accepted| accepted.value),
        detail: accepted.map_or("", |accepted| &accepted.detail),
        format: policy.commit_format,
    }
    .render();
    if state.hooks {
        Event::HooksStarted {
            candidate: number,
            attempt,
            tree,
            message,
            pre_commit: !candidate.hooked,
        }
    } else {
        commit(state, candidate, tree, message)
    }
}

fn commit(state: &RunState, candidate: &Candidate, tree: Oid, message: String) -> Event {
    let number = candidate.key.candidate;
    match &state.parent {
        Some(parent) => Event::CommitStarted {
            candidate: number,
            attempt: candidate.key.attempt,
            tree,
            parent: parent.clone(),
            message,
        },
        None => interrupted(
            number,
            StopReason::new(StopKind::Internal, "there is no parent commit"),
        ),
    }
}

fn hooked(
    state: &RunState,
    candidate: &Candidate,
    result: Result<Hooked, StopReason>,
    elapsed_ms: u64,
    policy: &Policy,
) -> Vec<Event> {
    let Key {
        candidate: number,
        attempt,
        ..
    } = candidate.key;
    let ended = |tree: Option<&Oid>, refused: Option<(&String, &String)>| Event::HooksEnded {
        candidate: number,
        attempt,
        tree: tree.cloned(),
        refused: refused.map(|(hook, _)| hook.clone()),
        output: refused.map(|(_, output)| output.clone()),
        elapsed_ms,
    };
    match (result, &candidate.tree) {
        (Err(reason), _) => vec![interrupted(number, reason)],
        (Ok(_), None) => {
            let reason = StopReason::new(StopKind::Internal, "hooks were asked without a tree");
            vec![interrupted(number, reason)]
        }
        (Ok(Hooked::Passed { message }), Some(tree)) => {
            vec![ended(None, None), commit(state, candidate, tree.clone(), message)]
        }
        (Ok(Hooked::Changed(Taken { tree, tampered })), Some(_)) => {
            // What a hook does is not the robot's doing, and what it takes back is kept.
            let undone = if !tampered.is_empty() {
                Some(format!("it changes locked files: {}", tampered.join(", ")))
            } else if Some(&tree) == state.parent_tree.as_ref() {
                Some("it took the whole change back".to_owned())
            } else {
                None
            };
            if let (Some(output), Some(before)) = (undone, &candidate.tree) {
                let hook = "pre-commit".to_owned();
                let failure = GateFailed::refused(Some(before.clone()), &hook, Some(output.clone()));
                return vec![
                    ended(None, Some((&hook, &output))),
                    repair_or_fail(candidate, &failure, policy),
                ];
            }
            let next = if state.seen.contains(&tree) {
                no_change(candidate, true)
            } else {
                // A round of its own: an answer about the tree before must not count for this one.
                Event::EvalStarted {
                    candidate: number,
                    attempt: attempt + 1,
                    tree: tree.clone(),
                }
            };
            vec![ended(Some(&tree), None), next]
        }
        (Ok(Hooked::Refused { hook, output }), Some(tree)) => {
            let failure = GateFailed::refused(Some(tree.clone()), &hook, Some(output.clone()));
            vec![
                ended(None, Some((&hook, &output))),
                repair_or_fail(candidate, &failure, policy),
            ]
        }
    }
}
