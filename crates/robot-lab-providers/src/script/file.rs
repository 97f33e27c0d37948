//! Reads a script and checks it.

use robot_lab::{ModelErrorKind, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};
use std::time::Duration;

/// The most bytes of a script.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The most turns of a script.
const MAX_TURNS: usize = 10_000;
/// The longest delay of a turn, in milliseconds.
const MAX_DELAY: u64 = 60 * 60 * 1000;

/// A script that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is too large.
    #[error("the script has {bytes} bytes, and at most {MAX_BYTES} are read; split it")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It has too many turns.
    #[error("the script has {turns} turns, and at most {MAX_TURNS} are played; split it")]
    TooManyTurns {
        /// Their number.
        turns: usize,
    },
    /// It has no turns.
    #[error("the script has no turns; add one entry per reply to `turns`")]
    NoTurns,
    /// It is not a script in YAML.
    #[error("line {line} of the script: {message}")]
    Syntax {
        /// Where it is wrong, from 1; 0 where that is not known.
        line: u64,
        /// What is wrong.
        message: String,
    },
    /// A turn makes no sense.
    #[error("line {line} of the script, turn {turn}: {message}")]
    Turn {
        /// Where the turn begins.
        line: u64,
        /// Which turn it is, from 1.
        turn: usize,
        /// What is wrong with it.
        message: String,
    },
}

/// The turns of a script, checked.
pub(super) fn read(script: &str) -> Result<Vec<Turn>, ScriptError> {
    if script.len() > MAX_BYTES {
        return Err(ScriptError::TooLarge { bytes: script.len() });
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 2_000_000, max_events: 6_000_000, max_documents: 1 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
    };
    let script: Script = serde_saphyr::from_str_with_options(script, options).map_err(|error| {
        let error = error.without_snippet();
        let Some(at) = error.location() else {
            return ScriptError::Syntax {
                line: 0,
                message: error.to_string(),
            };
        };
        // The parser says the place at the end; it is said at the beginning here.
        let message = error.to_string();
        let place = format!(" at line {}, column {}", at.line(), at.column());
        let message = message
            .strip_suffix(place.as_str())
            .unwrap_or(&message)
            .to_owned();
        ScriptError::Syntax {
            line: at.line(),
            message,
        }
    })?;
    match script.turns.len() {
        0 => return Err(ScriptError::NoTurns),
        turns if turns > MAX_TURNS => return Err(ScriptError::TooManyTurns { turns }),
        _ => {}
    }
    let checked = script.turns.into_iter().enumerate().map(|(index, turn)| {
        let line = turn.referenced.line();
        turn.value.checked().map_err(|message| ScriptError::Turn {
            line,
            turn: index + 1,
            message,
        })
    });
    checked.collect()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    turns: Vec<Spanned<Turn>>,
}

/// One reply.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Turn {
    pub(super) expect: Option<String>,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Tokens>,
    pub(super) delay_ms: u64,
    pub(super) cut: bool,
    pub(super) error: Option<Failure>,
}

impl Turn {
    pub(super) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    fn checked(mut self) -> Result<Self, String> {
        if self.delay_ms > MAX_DELAY {
            return Err(format!("`delay_ms` is at most {MAX_DELAY}"));
        }
        if self.expect.as_ref().is_some_and(String::is_empty) {
            return Err("`expect` is empty, so that every message would do".into());
        }
        if let Some(error) = &self.error {
            if !self.text.is_empty() || !self.calls.is_empty() || self.usage.is_some() || self.cut {
                return Err(
                    "a turn with `error` has no reply: remove `text`, `calls`, `usage` and `cut`".into(),
                );
            }
            if error
                .retry_after
                .is_some_and(|seconds| Duration::try_from_secs_f64(seconds).is_err())
            {
                return Err("`retry_after` is a number of seconds".into());
            }
        }
        for call in &mut self.calls {
            if call.tool.is_empty() {
                return Err("`tool` is the name of a tool".into());
            }
            match &call.args {
                Value::Null => call.args = Map::new().into(),
                Value::Object(_) | Value::String(_) => {}
                _ => {
                    return Err(format!(
                        "`args` of {} is a mapping, or a text that is no JSON object",
                        call.tool
                    ));
                }
            }
        }
        Ok(self)
    }
}

/// A tool call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Value,
}

/// What a request costs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tokens {
    input: u64,
    cached_input: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        let Tokens {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
        } = tokens;
        Self {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
            estimated: false,
        }
    }
}

/// A failure in place of a reply.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    kind: Kind,
    pub(super) message: Option<String>,
    retry_after: Option<f64>,
}

/// The names of the kinds, without what belongs to one of them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Auth,
    Billing,
    ModelNotFound,
    RateLimited,
    Overloaded,
    Timeout,
    ContextLength,
    ContentFilter,
    BadRequest,
    MalformedReply,
    Network,
    Cancelled,
    OverBudget,
}

impl Failure {
    pub(super) fn kind(&self) -> ModelErrorKind {
        match self.kind {
            Kind::Auth => ModelErrorKind::Auth,
            Kind::Billing => ModelErrorKind::Billing,
            Kind::ModelNotFound => ModelErrorKind::ModelNotFound,
            Kind::RateLimited => {
                let retry_after = self
                    .retry_after
                    .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                ModelErrorKind::RateLimited { retry_after }
            }
            Kind::Overloaded => ModelErrorKind::Overloaded,
            Kind::Timeout => ModelErrorKind::Timeout,
            Kind::ContextLength => ModelErrorKind::ContextLength,
            Kind::ContentFilter => ModelErrorKind::ContentFilter,
            Kind::BadRequest => ModelErrorKind::BadRequest,
            Kind::MalformedReply => ModelErrorKind::MalformedReply,
            Kind::Network => ModelErrorKind::Network,
            Kind::Cancelled => ModelErrorKind::Cancelled,
            Kind::OverBudget => ModelErrorKind::OverBudget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(script: &str) -> String {
        read(script).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (script, line, part) in [
            ("turns:\n  - text: a\n  - txet: b\n", 3, "txet"),
            ("turns:\n  - text: a\n    text: b\n", 3, "text"),
            ("turns:\n  - calls:\n      - args: {}\n", 3, "tool"),
            ("turns:\n  - error: { kind: tired }\n", 2, "tired"),
            ("turns:\n  - delay_ms: -1\n", 2, "u64"),
            ("turns:\n  - text: \"a\n", 2, ""),
            ("turns: 3\n", 1, ""),
            ("trns: []\n", 1, "trns"),
            ("turns:\n  - {}\n  - delay_ms: 3600001\n", 3, "turn 2: `delay_ms`"),
            (
                "turns:\n  - error: { kind: auth }\n    text: a\n",
                2,
                "turn 1: a turn with `error`",
            ),
            (
                "turns:\n  - error: { kind: rate_limited, retry_after: -1 }\n",
                2,
                "`retry_after`",
            ),
            ("turns:\n  - calls: [{ tool: t, args: [1] }]\n", 2, "`args` of t"),
            ("turns:\n  - expect: ''\n", 2, "`expect`"),
        ] {
            let message = error(script);
            assert!(
                message.starts_with(&format!("line {line} of the script")),
                "{script}: {message}"
            );
            assert!(
                message.contains(part) && !message.contains("column"),
                "{script}: {message}"
            );
        }
    }

    #[test]
    fn limits_are_kept() {
        assert_eq!(read("turns: []").unwrap_err(), ScriptError::NoTurns);
        let turns = |n: usize| format!("turns:\n{}", "  - {}\n".repeat(n));
        assert_eq!(read(&turns(MAX_TURNS)).unwrap().len(), MAX_TURNS);
        assert_eq!(
            read(&turns(MAX_TURNS + 1)).unwrap_err(),
            ScriptError::TooManyTurns { turns: MAX_TURNS + 1 }
        );
        let large = " ".repeat(MAX_BYTES + 1);
        assert_eq!(
            read(&large).unwrap_err(),
            ScriptError::TooLarge { bytes: MAX_BYTES + 1 }
        );
        let deep = format!("turns:\n  - calls: [{{ tool: t, args: {} }}]", "[".repeat(10_000));
        assert!(matches!(read(&deep), Err(ScriptError::Syntax { .. })));
    }
}
