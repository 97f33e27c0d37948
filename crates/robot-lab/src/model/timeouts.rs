//! How long a model may take.

use std::time::Duration;

/// How long to wait for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// Until the first content of a reply. Local models read a long prompt for minutes.
    pub first_content: Duration,
    /// Between two pieces of content. Neither keep-alive bytes count nor counts of tokens.
    pub idle: Duration,
    /// For a whole reply, also one that comes byte by byte.
    pub total: Duration,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            first_content: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(3_600),
        }
    }
}

impl ModelTimeouts {
    /// A model that may be silent for so long, before its first content and between two pieces.
    pub fn silent_for(silence: Duration) -> Self {
        let Self { total, .. } = Self::default();
        Self {
            first_content: silence,
            idle: silence,
            total: total.max(silence),
        }
    }
}
