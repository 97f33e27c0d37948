//! The verdict of an eval over one candidate, and what produced it.

use crate::shell::head_and_tail;
use robot_exec::{Output, Status};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Most metrics that are recorded, and most bytes of the name of one.
pub(super) const MAX_METRICS: usize = 100;
const MAX_NAME: usize = 200;
/// Most bytes of the line for people, and of what the robot reads when it repairs.
const MAX_DETAIL: usize = 1_000;
pub(super) const MAX_OUTPUT: usize = 4_000;

/// What an eval says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// The floor holds. Without it nothing is committed.
    pub gate_ok: bool,
    /// Better than the parent.
    pub improved: bool,
    /// The objective is measurably reached.
    pub met_target: bool,
    /// The measured value, if there is one.
    pub value: Option<f64>,
    /// Everything that was measured, by name.
    pub metrics: BTreeMap<String, f64>,
    /// One line for people.
    pub detail: String,
    /// What the robot should read when the gate failed: head and tail of what was printed.
    pub output: Option<String>,
    /// How long grading took, in milliseconds.
    pub elapsed_ms: u64,
    /// What the score comes from.
    pub provenance: Provenance,
}

/// What produced a score: what is known of each command that ran. The fields are keys of the `eval` event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The exit status of the verify command; `None` when none ran, or when it was ended by a signal or its time.
    pub verify_exit: Option<i32>,
    /// How long the verify command ran, in milliseconds.
    pub verify_ms: Option<u64>,
    /// The same of the measure command.
    pub measure_exit: Option<i32>,
    /// The same of the measure command.
    pub measure_ms: Option<u64>,
    /// The same of an eval that is a command.
    pub eval_exit: Option<i32>,
    /// The same of an eval that is a command.
    pub eval_ms: Option<u64>,
    /// Every value that was taken, in order.
    pub samples: Vec<f64>,
    /// The SHA-256, in hexadecimal, of what the command printed as far as it was kept: standard output, then standard
    /// error. Of several commands, each further one makes it the SHA-256 of the digest so far and its own, as text.
    pub output_sha256: Option<String>,
}

/// Which command of a grade is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Verify,
    Measure,
    Eval,
}

impl Part {
    /// What it is called, in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Verify => "verify command",
            Self::Measure => "measure command",
            Self::Eval => "eval command",
        }
    }
}

impl Score {
    /// A score that holds and is better, with a line for people: what an eval says that only lets through or not.
    pub fn pass(detail: impl Into<String>) -> Self {
        Self {
            gate_ok: true,
            improved: true,
            detail: detail.into(),
            ..Self::default()
        }
    }

    /// A score whose gate failed, with a line for people, and what the robot should read to repair it.
    pub fn fail(detail: impl Into<String>, output: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            output: Some(output.into()),
            ..Self::default()
        }
    }

    /// The score within bounds, with everything that is no finite number taken out, and nothing won where the gate
    /// failed. An eval whose value is none has no value, and what has no value does not win.
    pub(crate) fn checked(mut self) -> Self {
        self.metrics
            .retain(|name, value| value.is_finite() && name.len() <= MAX_NAME);
        if let Some((first_beyond, _)) = self.metrics.iter().nth(MAX_METRICS) {
            drop(self.metrics.split_off(&first_beyond.clone()));
        }
        self.provenance.samples.retain(|value| value.is_finite());
        self.detail = head_and_tail(&self.detail, MAX_DETAIL);
        self.output = self.output.map(|output| head_and_tail(&output, MAX_OUTPUT));
        if self.value.is_some_and(|value| !value.is_finite()) {
            self = Self {
                detail: format!("{} (the value is no finite number)", self.detail),
                gate_ok: false,
                value: None,
                ..self
            };
        }
        self.improved &= self.gate_ok;
        self.met_target &= self.gate_ok;
        self
    }

    /// Notes that a command ran.
    pub(super) fn ran(&mut self, part: Part, output: &Output) {
        let ms = u64::try_from(output.elapsed.as_millis()).unwrap_or(u64::MAX);
        let exit = match output.status {
            Status::Exited(code) => Some(code),
            _ => None,
        };
        let known = &mut self.provenance;
        let (its_exit, its_ms) = match part {
            Part::Verify => (&mut known.verify_exit, &mut known.verify_ms),
            Part::Measure => (&mut known.measure_exit, &mut known.measure_ms),
            Part::Eval => (&mut known.eval_exit, &mut known.eval_ms),
        };
        (*its_exit, *its_ms) = (exit, Some(ms));
        let printed = [&output.stdout, &output.stderr];
        let printed = printed.iter().flat_map(|kept| [kept.head(), kept.tail()]);
        known.take_digest(sha256(printed));
        self.elapsed_ms = self.elapsed_ms.saturating_add(ms);
    }
}

impl Provenance {
    /// Takes in what is known of commands that ran after these.
    pub(super) fn and_then(&mut self, later: Self) {
        self.verify_exit = later.verify_exit.or(self.verify_exit);
        self.verify_ms = later.verify_ms.or(self.verify_ms);
        self.measure_exit = later.measure_exit.or(self.measure_exit);
        self.measure_ms = later.measure_ms.or(self.measure_ms);
        self.eval_exit = later.eval_exit.or(self.eval_exit);
        self.eval_ms = later.eval_ms.or(self.eval_ms);
        self.samples.extend(later.samples);
        if let Some(digest) = later.output_sha256 {
            self.take_digest(digest);
        }
    }

    fn take_digest(&mut self, digest: String) {
        self.output_sha256 = Some(match self.output_sha256.take() {
            Some(before) => sha256([before.as_bytes(), digest.as_bytes()]),
            None => digest,
        });
    }
}

fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_text_and_a_further_one_is_chained() {
        // From `printf abc | sha256sum`, and of that text twice.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256([&b"a"[..], b"bc"]), abc);
        let of_abc = || Provenance {
            output_sha256: Some(abc.into()),
            ..Provenance::default()
        };
        let mut known = Provenance::default();
        known.and_then(of_abc());
        assert_eq!(known.output_sha256.as_deref(), Some(abc));
        known.and_then(of_abc());
        assert_eq!(
            known.output_sha256,
            Some(sha256([format!("{abc}{abc}").as_bytes()]))
        );
    }

    #[test]
    fn what_failed_the_gate_has_won_nothing() {
        let score = Score {
            improved: true,
            met_target: true,
            ..Score::default()
        };
        assert_eq!(score.checked(), Score::default());
    }

    #[test]
    fn whatever_an_eval_says_is_bounded() {
        let names = (0..300).map(|n| format!("{n:03}")).chain(["x".repeat(201)]);
        let score = Score {
            metrics: names.map(|name| (name, 1.0)).collect(),
            detail: "d".repeat(1 << 20),
            output: Some("o".repeat(1 << 20)),
            ..Score::pass("")
        };
        let checked = score.checked();
        assert!(checked.gate_ok && checked.metrics.len() == MAX_METRICS);
        assert_eq!(
            checked.metrics.keys().next_back().map(String::as_str),
            Some("099")
        );
        assert!(checked.detail.len() < 1_100 && checked.output.unwrap().len() < 4_100);
    }
}
