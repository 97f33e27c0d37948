//! Changes as they are written down, so that another process need not learn them again.

use super::Change;
use super::parameters::named;

impl Change {
    /// The change in a word: `without:temperature`.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::Without(name) => format!("without:{name}"),
            Self::NewerLimit => "newer_limit".into(),
            Self::AtMost(limit) => format!("at_most:{limit}"),
            Self::Effort(effort) => format!("effort:{}", effort.name()),
            Self::OtherThinking => "other_thinking".into(),
            Self::OtherEcho => "other_echo".into(),
            Self::PlainSchemas => "plain_schemas".into(),
            Self::Responses => "responses".into(),
            Self::Whole => "whole".into(),
            Self::Silence => "silence".into(),
        }
    }

    /// The change that a word stands for; `None` when it is none of ours.
    pub(crate) fn read(word: &str) -> Option<Self> {
        let (kind, of) = word.split_once(':').unwrap_or((word, ""));
        Some(match kind {
            "without" => Self::Without(named(of)?),
            "newer_limit" => Self::NewerLimit,
            "at_most" => Self::AtMost(of.parse().ok()?),
            "effort" => Self::Effort(of.parse().ok()?),
            "other_thinking" => Self::OtherThinking,
            "other_echo" => Self::OtherEcho,
            "plain_schemas" => Self::PlainSchemas,
            "responses" => Self::Responses,
            "whole" => Self::Whole,
            "silence" => Self::Silence,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;

    #[test]
    fn what_is_written_is_read_again_and_nothing_else_is() {
        for change in [
            Change::Without("temperature"),
            Change::NewerLimit,
            Change::AtMost(4_096),
            Change::Effort(Effort::Low),
            Change::OtherThinking,
            Change::OtherEcho,
            Change::PlainSchemas,
            Change::Responses,
            Change::Whole,
            Change::Silence,
        ] {
            assert_eq!(Change::read(&change.written()), Some(change));
        }
        for word in [
            "",
            "without",
            "without:messages",
            "at_most:-1",
            "effort:very",
            "other",
        ] {
            assert_eq!(Change::read(word), None, "{word}");
        }
    }
}
