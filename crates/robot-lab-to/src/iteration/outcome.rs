//! The records that end an iteration, or give its robot another turn.

use super::candidate::{Accepted, GateFailed};
use super::{Candidate, Policy, StopKind, StopReason, Submission};
use crate::event::Event;
use crate::workspace::Oid;

pub(super) fn committed(
    candidate: &Candidate,
    commit: Oid,
    tree: &Oid,
    message: &str,
    policy: &Policy,
) -> Event {
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
        message: message.lines().next().unwrap_or_default().to_owned(),
        improved: accepted.improved,
        value: accepted.value,
        submission,
        stop: stop.as_ref().map(|stop| stop.kind),
        stop_text: stop.map(|stop| stop.text),
    }
}

pub(super) fn repair_or_fail(candidate: &Candidate, failure: &GateFailed, policy: &Policy) -> Event {
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

pub(super) fn gate_failure(candidate: &Candidate, failure: &GateFailed, submission: &Submission) -> Event {
    if let (Some(_), Some(tree)) = (&failure.hook, &failure.tree) {
        return Event::CommitFailed {
            candidate: candidate.key.candidate,
            tree: tree.clone(),
            summary: submission.summary.clone(),
            kind: StopKind::CommitRejected,
            output: format!("{}\n{}", failure.detail, failure.output),
        };
    }
    Event::GateFailure {
        candidate: candidate.key.candidate,
        summary: submission.summary.clone(),
        learnings: submission.key_learnings.clone(),
        detail: failure.detail.clone(),
        output: failure.output.clone(),
        tree: failure.tree.clone(),
    }
}

pub(super) fn no_change(candidate: &Candidate, repeat: bool) -> Event {
    let (number, summary, learnings) = (candidate.key.candidate, summary(candidate), learnings(candidate));
    Event::NoChange {
        candidate: number,
        summary,
        learnings,
        repeat,
    }
}

pub(super) fn interrupted(candidate: u32, reason: StopReason) -> Event {
    Event::Interrupted {
        candidate,
        kind: reason.kind,
        reason: reason.text,
    }
}

pub(super) fn summary(candidate: &Candidate) -> String {
    candidate
        .submission
        .as_ref()
        .map(|s| s.summary.clone())
        .unwrap_or_default()
}

pub(super) fn learnings(candidate: &Candidate) -> Vec<String> {
    candidate
        .submission
        .as_ref()
        .map(|s| s.key_learnings.clone())
        .unwrap_or_default()
}
