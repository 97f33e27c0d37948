//! The verdict of an eval over one candidate.

use std::collections::BTreeMap;

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
}

impl Score {
    /// The score with everything that is no finite number taken out. An eval whose value is none has no value, and
    /// what has no value does not win.
    pub(crate) fn checked(mut self) -> Self {
        self.metrics.retain(|_, value| value.is_finite());
        if self.value.is_some_and(|value| !value.is_finite()) {
            self = Self {
                detail: format!("{} (the value is no finite number)", self.detail),
                gate_ok: false,
                improved: false,
                met_target: false,
                value: None,
                ..self
            };
        }
        self
    }
}
