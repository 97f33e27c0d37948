//! What was found out about the surroundings: a line per finding, with what mends it.

use super::Style;
use robot_lab_to::commit_message::one_line;
use serde_json::json;

/// How good or bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Ok,
    /// A run may begin; something is missing or left over.
    Warn,
    /// No run would begin.
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What was looked at, in a word or two.
    pub(crate) what: &'static str,
    /// What was found.
    pub(crate) found: String,
    /// What mends it.
    pub(crate) fix: Option<String>,
}

impl Finding {
    /// All is well.
    pub(crate) fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            what,
            found: found.into(),
            fix: None,
        }
    }

    /// Something that a run can do without.
    pub(crate) fn warn(what: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            what,
            found: found.into(),
            fix: Some(fix.into()),
        }
    }

    /// Something that a run cannot do without.
    pub(crate) fn fail(what: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(what, found, fix)
        }
    }

    /// From an error whose message says first what failed and then what to do.
    pub(crate) fn of_error(what: &'static str, error: &dyn std::error::Error) -> Self {
        let message = error.to_string();
        match message.split_once("; nothing was changed") {
            Some((found, fix)) => {
                let fix = fix.trim_start_matches([';', ' ']);
                Self {
                    fix: Some(fix.to_owned()).filter(|fix| !fix.is_empty()),
                    ..Self::fail(what, found, "")
                }
            }
            None => Self {
                fix: None,
                ..Self::fail(what, message, "")
            },
        }
    }

    /// For people.
    pub(crate) fn line(&self, style: Style) -> String {
        let level = match self.level {
            Level::Ok => style.good("ok  "),
            Level::Warn => style.bold("warn"),
            Level::Fail => style.bad("FAIL"),
        };
        let mut line = format!("{level}  {:<12} {}\n", self.what, one_line(&self.found));
        if let Some(fix) = &self.fix {
            line.push_str(&format!("      {:<12} {}\n", "  fix:", one_line(fix)));
        }
        line
    }

    /// For programs.
    pub(crate) fn json(&self) -> String {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        };
        json!({
            "level": level,
            "what": self.what,
            "found": one_line(&self.found),
            "fix": self.fix.as_deref().map(one_line),
        })
        .to_string()
    }
}
