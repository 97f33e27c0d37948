//! What an eval command is told and what it answers: one JSON object each.

use super::goal::said;
use super::score::MAX_METRICS;
use super::{EvalContext, Goal, Score};
use crate::commit_message::one_line;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of both objects.
const VERSION: u32 = 1;

/// What the command reads on standard input.
#[derive(Serialize)]
struct Question<'a> {
    version: u32,
    work_dir: String,
    previous_ref: &'a str,
    previous_value: Option<f64>,
    objective: &'a str,
    iteration: u32,
    run_id: &'a str,
    tree: &'a str,
}

/// What it prints. A key that is not known is most likely a mistyped one, so it is refused.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    gate_ok: bool,
    #[serde(default)]
    improved: Option<bool>,
    #[serde(default)]
    met_target: Option<bool>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    output: Option<String>,
}

/// The question about a candidate, as a line of JSON.
pub(super) fn question(cx: &EvalContext) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(&Question {
        version: VERSION,
        work_dir: plain(&cx.work_dir),
        previous_ref: cx.previous_ref.as_str(),
        previous_value: cx.previous_value,
        objective: &cx.objective,
        iteration: cx.iteration,
        run_id: &cx.run_id,
        tree: cx.tree.as_str(),
    })?;
    line.push(b'\n');
    Ok(line)
}

/// A path without a slash at its end.
fn plain(path: &Path) -> String {
    path.components().collect::<PathBuf>().display().to_string()
}

impl Answer {
    /// Reads an answer; an error says what is wrong with it.
    pub(super) fn read(printed: &[u8]) -> Result<Self, String> {
        let hint =
            "print one JSON object with `gate_ok` on standard output, and everything else on standard error";
        match printed.trim_ascii().first() {
            Some(b'{') => {}
            Some(_) => return Err(format!("its answer is no score: it is no JSON object; {hint}")),
            None => return Err(format!("it printed nothing; {hint}")),
        }
        let mut json = serde_json::Deserializer::from_slice(printed);
        let answer: Self = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            let at = if path == "." {
                String::new()
            } else {
                format!("`{path}`: ")
            };
            format!("its answer is no score: {at}{}; {hint}", error.inner())
        })?;
        json.end()
            .map_err(|_| format!("there is more than one object in its answer; {hint}"))?;
        if answer.metrics.len() > MAX_METRICS {
            return Err(format!(
                "its answer has {} metrics, more than {MAX_METRICS}",
                answer.metrics.len()
            ));
        }
        Ok(answer)
    }

    /// The score that it means. What it leaves open follows from its value and the goal; without a value, what holds is
    /// better.
    pub(super) fn score(self, goal: &Goal, before: Option<f64>) -> Score {
        let improved = self
            .improved
            .unwrap_or_else(|| self.value.is_none_or(|value| goal.is_better(value, before)));
        let met_target = self
            .met_target
            .unwrap_or_else(|| self.value.is_some_and(|value| goal.meets_target(value)));
        let detail = match self.detail.map(|detail| one_line(&detail)) {
            Some(detail) if !detail.is_empty() => detail,
            _ => {
                let gate = format!("eval={}", self.gate_ok);
                match self.value {
                    Some(value) => format!("{gate}, {}", said("value", value, before)),
                    None => gate,
                }
            }
        };
        Score {
            gate_ok: self.gate_ok,
            improved,
            met_target,
            value: self.value,
            metrics: self.metrics,
            detail,
            output: self.output,
            ..Score::default()
        }
        .checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::MinDelta;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tokio_util::sync::CancellationToken;

    fn read(text: &str) -> Result<Answer, String> {
        Answer::read(text.as_bytes())
    }

    #[test]
    fn the_question_has_exactly_these_keys() {
        let cx = EvalContext {
            bench: PathBuf::from("/bench"),
            work_dir: PathBuf::from("/bench/sub/"),
            previous_ref: "1".repeat(40).parse().unwrap(),
            previous_value: Some(2.5),
            goal: Goal::default(),
            objective: "say \"hi\"\n".into(),
            iteration: 3,
            run_id: "R".into(),
            tree: "2".repeat(40).parse().unwrap(),
            cancel: CancellationToken::new(),
        };
        let question: Value = serde_json::from_slice(&question(&cx).unwrap()).unwrap();
        let expected = json!({
            "version": 1, "work_dir": "/bench/sub", "previous_ref": "1".repeat(40), "previous_value": 2.5,
            "objective": "say \"hi\"\n", "iteration": 3, "run_id": "R", "tree": "2".repeat(40),
        });
        assert_eq!(question, expected);
        assert_eq!(
            question.as_object().unwrap().keys().collect::<Vec<_>>(),
            expected.as_object().unwrap().keys().collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_is_no_score_is_refused_and_says_why() {
        for (text, part) in [
            ("", "printed nothing"),
            ("\n", "printed nothing"),
            ("ok", "no JSON object"),
            ("true", "no JSON object"),
            ("[true, true, true, 5, {}, null, null]", "no JSON object"),
            ("{}", "missing field `gate_ok`"),
            (r#"{"gate_ok": null}"#, "`gate_ok`: "),
            (r#"{"gate_ok": "yes"}"#, "`gate_ok`: invalid type: string"),
            (r#"{"gate_ok": 1}"#, "`gate_ok`: "),
            (
                r#"{"gate_ok": true, "value": "5"}"#,
                "`value`: invalid type: string",
            ),
            (r#"{"gate_ok": true, "value": NaN}"#, "`value`: "),
            (r#"{"gate_ok": true, "value": Infinity}"#, "`value`: "),
            (r#"{"gate_ok": true, "value": 1e999}"#, "out of range"),
            (
                r#"{"gate_ok": true, "metrics": {"a": null}}"#,
                "`metrics.a`: invalid type: null",
            ),
            (r#"{"gate_ok": true, "valeu": 5}"#, "unknown field `valeu`"),
            (r#"{"gate_ok": true, "gate_ok": true}"#, "duplicate field"),
            (r#"{"gate_ok": true} {"gate_ok": false}"#, "more than one object"),
            ("building\n{\"gate_ok\": true}", "no JSON object"),
            ("{\"gate_ok\": true", "EOF"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let many: BTreeMap<String, f64> = (0..101).map(|n| (n.to_string(), 0.0)).collect();
        assert!(
            read(&json!({"gate_ok": true, "metrics": many}).to_string())
                .unwrap_err()
                .contains("101 metrics")
        );
    }

    #[test]
    fn what_an_answer_leaves_open_follows_from_its_value() {
        let goal = Goal {
            minimize: true,
            min_delta: MinDelta::Absolute(2.0),
            target: Some(4.0),
        };
        let score = |text: &str| {
            let score = read(text).unwrap().score(&goal, Some(8.0));
            (score.gate_ok, score.improved, score.met_target)
        };
        for (text, expected) in [
            (r#"{"gate_ok": true}"#, (true, true, false)),
            (r#"{"gate_ok": false}"#, (false, false, false)),
            (r#"{"gate_ok": true, "value": 6}"#, (true, true, false)),
            (r#"{"gate_ok": true, "value": 7}"#, (true, false, false)),
            (r#"{"gate_ok": true, "value": 3}"#, (true, true, true)),
            (r#"{"gate_ok": false, "value": 3}"#, (false, false, false)),
            (
                r#"{"gate_ok": true, "value": 9, "improved": true}"#,
                (true, true, false),
            ),
            (
                r#"{"gate_ok": true, "value": 3, "improved": false, "met_target": false}"#,
                (true, false, false),
            ),
            (
                r#"{"gate_ok": false, "improved": true, "met_target": true}"#,
                (false, false, false),
            ),
            (
                r#"{"gate_ok": true, "met_target": true, "value": null}"#,
                (true, true, true),
            ),
        ] {
            assert_eq!(score(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_bounded_and_a_detail_is_one_line() {
        let text =
            json!({"gate_ok": false, "detail": "a\nb\u{1b}[2J", "output": "x".repeat(9_000)}).to_string();
        let score = read(&text).unwrap().score(&Goal::default(), None);
        assert_eq!(score.detail, "a b [2J");
        assert!(score.output.unwrap().len() < 4_100);
        let plain = read(r#"{"gate_ok": true, "value": 3}"#)
            .unwrap()
            .score(&Goal::default(), Some(1.0));
        assert_eq!(plain.detail, "eval=true, value=3 (before 1)");
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_a_value_is_finite(text in "(?s).{0,60}", value in any::<f64>()) {
            drop(read(&text));
            let written = format!("{{\"gate_ok\": true, \"value\": {value:e}}}");
            match read(&written) {
                Ok(answer) => prop_assert_eq!(answer.value, Some(value)),
                Err(_) => prop_assert!(!value.is_finite()),
            }
        }
    }
}
