//! How much a model thinks before it answers.

use std::str::FromStr;

/// How much a model thinks before it answers. Each protocol has words or numbers of its own for it, and each model takes
/// some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all, or as little as the model can.
    None,
    /// Next to nothing.
    Minimal,
    /// A little.
    Low,
    /// As much as most tasks need.
    Medium,
    /// Much.
    High,
    /// As much as it can.
    Xhigh,
}

impl Effort {
    /// All of them, from the least.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
    ];

    /// In one word, as users write it and as most protocols do.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }

    /// Whether the model thinks at all.
    pub(crate) fn thinks(self) -> bool {
        self != Self::None
    }

    /// The name in a protocol that knows only three: `low`, `medium` and `high`.
    pub(crate) fn of_three(self) -> &'static str {
        match self {
            Self::None | Self::Minimal | Self::Low => "low",
            Self::Medium => "medium",
            Self::High | Self::Xhigh => "high",
        }
    }

    /// So many tokens of thinking, in a protocol that counts them.
    pub(crate) fn budget(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Minimal => 1_024,
            Self::Low => 4_096,
            Self::Medium => 10_240,
            Self::High | Self::Xhigh => 24_576,
        }
    }
}

/// A word that names no effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give none, minimal, low, medium, high or xhigh")]
pub struct NoEffort;

impl FromStr for Effort {
    type Err = NoEffort;

    fn from_str(text: &str) -> Result<Self, NoEffort> {
        Self::ALL
            .into_iter()
            .find(|effort| effort.name() == text)
            .ok_or(NoEffort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_and_more_effort_is_never_less_thinking() {
        for effort in Effort::ALL {
            assert_eq!(effort.name().parse(), Ok(effort));
        }
        assert_eq!("High".parse::<Effort>(), Err(NoEffort));
        assert!(Effort::ALL.is_sorted() && Effort::ALL.is_sorted_by_key(|effort| effort.budget()));
    }
}
