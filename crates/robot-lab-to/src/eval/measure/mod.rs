//! Reads a score from what a measure command prints: labelled metrics, a JSON object, or exactly one number.

mod number;

use number::numbers;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most metrics that are recorded.
const MAX_METRICS: usize = 100;

/// What a measure command said.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The value that counts. Always finite.
    pub value: f64,
    /// Everything that was labelled, the value included.
    pub metrics: BTreeMap<String, f64>,
}

/// An output that holds no usable score. It never wins, whatever the direction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unreadable {
    /// No number at all.
    #[error(
        "it printed no number; print `METRIC name=value`, a JSON object, or exactly one number on standard output"
    )]
    Nothing,
    /// Several numbers, and nothing says which.
    #[error("it printed {count} numbers ({first}); label the one that counts: `METRIC name=value`")]
    Several {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// Several metrics, and nothing says which.
    #[error("it printed several metrics ({names}); choose one with --metric NAME")]
    SeveralMetrics {
        /// Their names.
        names: String,
    },
    /// The metric that was asked for is not there.
    #[error("it printed no metric named {wanted}; it printed: {names}")]
    NoSuchMetric {
        /// What was asked for.
        wanted: String,
        /// What there is.
        names: String,
    },
    /// Not a number, or infinite.
    #[error("it printed {text}, which is no finite number")]
    NotFinite {
        /// What it printed.
        text: String,
    },
}

/// Reads what a command printed on standard output. `metric` names the metric that counts.
pub fn read(stdout: &str, metric: Option<&str>) -> Result<Measurement, Unreadable> {
    let text = without_ansi(stdout);
    let labelled = labelled(&text).or_else(|| json(&text));
    let Some(metrics) = labelled else {
        if let Some(wanted) = metric {
            return Err(Unreadable::NoSuchMetric {
                wanted: wanted.into(),
                names: "no labelled metric".into(),
            });
        }
        return match numbers(&text).as_slice() {
            [] => Err(Unreadable::Nothing),
            [one] => finite(one.value, one.text).map(|value| Measurement {
                value,
                metrics: BTreeMap::new(),
            }),
            several => {
                let first: Vec<&str> = several.iter().take(5).map(|number| number.text).collect();
                Err(Unreadable::Several {
                    count: several.len(),
                    first: first.join(", "),
                })
            }
        };
    };
    let names = || metrics.keys().take(20).cloned().collect::<Vec<_>>().join(", ");
    let value = match metric {
        Some(wanted) => *metrics.get(wanted).ok_or_else(|| Unreadable::NoSuchMetric {
            wanted: wanted.into(),
            names: names(),
        })?,
        None if metrics.len() > 1 => return Err(Unreadable::SeveralMetrics { names: names() }),
        None => metrics.values().copied().next().ok_or(Unreadable::Nothing)?,
    };
    let value = finite(value, &value.to_string())?;
    Ok(Measurement { value, metrics })
}

fn finite(value: f64, text: &str) -> Result<f64, Unreadable> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Unreadable::NotFinite { text: text.into() })
    }
}

/// `METRIC name=value` lines. A later line of the same name replaces an earlier one.
fn labelled(text: &str) -> Option<BTreeMap<String, f64>> {
    let mut metrics = BTreeMap::new();
    for line in text.lines() {
        let Some((name, value)) = line
            .trim()
            .strip_prefix("METRIC ")
            .and_then(|rest| rest.split_once('='))
        else {
            continue;
        };
        let value = match numbers(value).as_slice() {
            [one] => one.value,
            _ => f64::NAN,
        };
        if metrics.len() < MAX_METRICS {
            metrics.insert(name.trim().to_owned(), value);
        }
    }
    (!metrics.is_empty()).then_some(metrics)
}

/// A JSON object with numbers: the whole output, or its only line that is one.
fn json(text: &str) -> Option<BTreeMap<String, f64>> {
    let object = |text: &str| match serde_json::from_str::<Value>(text.trim()) {
        Ok(Value::Object(map)) => {
            let numbers = map
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.as_f64()?)));
            let metrics: BTreeMap<String, f64> = numbers.take(MAX_METRICS).collect();
            (!metrics.is_empty()).then_some(metrics)
        }
        _ => None,
    };
    if let Some(metrics) = object(text) {
        return Some(metrics);
    }
    let mut lines = text
        .lines()
        .filter(|line| line.trim_start().starts_with('{'))
        .filter_map(object);
    match (lines.next(), lines.next()) {
        (Some(metrics), None) => Some(metrics),
        _ => None,
    }
}

/// The text without ANSI escape sequences.
fn without_ansi(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            clean.push(c);
            continue;
        }
        if chars.next_if_eq(&'[').is_some() {
            // A control sequence ends with a letter or one of a few signs.
            for c in chars.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&c) {
                    break;
                }
            }
        } else {
            chars.next();
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Result<f64, Unreadable> {
        read(text, None).map(|m| m.value)
    }

    #[test]
    fn case_70_one_number_is_a_score_and_several_are_none() {
        for (text, expected) in [
            ("91.5", 91.5),
            ("score: 91.5\n", 91.5),
            ("1.5e-3", 0.0015),
            ("1,234 req/s", 1234.0),
            ("1,234,567.5", 1_234_567.5),
            ("\u{1b}[32m98\u{1b}[0m", 98.0),
            ("loss=.5", 0.5),
            ("-3", -3.0),
            ("85%", 85.0),
            ("p95: 12ms", 12.0),
            ("+7", 7.0),
            ("METRIC speed=3.5\nPython 3.12.1 2026-11-30", 3.5),
            ("{\"speed\": 3.5, \"name\": \"x\"}", 3.5),
            ("building…\n{\"speed\": 3.5}\n", 3.5),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
        for text in ["Python 3.12.1\nscore: 91.5", "2026-11-30", "3.12.1", "1 2"] {
            assert!(
                matches!(value(text), Err(Unreadable::Several { .. })),
                "{text}: {:?}",
                value(text)
            );
        }
        assert_eq!(value("no number, p95 only"), Err(Unreadable::Nothing));
        assert_eq!(value(""), Err(Unreadable::Nothing));
    }

    #[test]
    fn case_71_what_is_not_finite_is_no_score() {
        for text in [
            "nan",
            "NaN",
            "inf",
            "-Infinity",
            "METRIC x=nan",
            "METRIC x=",
            "METRIC x=1 2",
            "1e999",
        ] {
            assert!(
                matches!(value(text), Err(Unreadable::NotFinite { .. })),
                "{text}: {:?}",
                value(text)
            );
        }
    }

    #[test]
    fn a_metric_is_chosen_by_name() {
        let text = "METRIC a=1\nMETRIC b=2\nMETRIC a=3\n";
        assert_eq!(
            value(text),
            Err(Unreadable::SeveralMetrics { names: "a, b".into() })
        );
        let read_b = read(text, Some("b")).unwrap();
        assert_eq!((read_b.value, read_b.metrics.len()), (2.0, 2));
        assert_eq!(read(text, Some("a")).unwrap().value, 3.0);
        let error = read(text, Some("c")).unwrap_err().to_string();
        assert_eq!(error, "it printed no metric named c; it printed: a, b");
        assert!(read("5", Some("c")).is_err());
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_a_value_is_finite(text in "(?s).{0,80}") {
            if let Ok(measurement) = read(&text, None) {
                prop_assert!(measurement.value.is_finite());
            }
        }

        /// The oracle is the standard library's own printing.
        #[test]
        fn a_printed_number_is_read_back(value in -1e12f64..1e12, prefix in "(score: |x=|)", suffix in "( ms|%|\n|)") {
            prop_assert_eq!(super::read(&format!("{prefix}{value}{suffix}"), None).unwrap().value, value);
            prop_assert_eq!(super::read(&format!("{prefix}{value:e}{suffix}"), None).unwrap().value, value);
        }
    }
}
