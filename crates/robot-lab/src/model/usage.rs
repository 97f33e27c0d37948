//! What a request cost in tokens.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// The tokens of one request, or a sum over many.
///
/// `input` is everything that was read, cached or not; `output` is everything that was written, reasoning included.
/// The other counts are parts of these two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Of `input`: read from the provider's cache.
    pub cached_input: u64,
    /// Of `input`: written to the provider's cache.
    pub cache_write: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Of `output`: reasoning.
    pub reasoning: u64,
    /// Whether a part of this was estimated because the provider did not report it.
    pub estimated: bool,
}

impl Usage {
    /// Input and output together: what a token limit counts.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// A later report of the same request. Counts of a request only grow, so one that is smaller than before is passed
    /// over.
    #[must_use]
    pub(crate) fn grown_to(self, later: Self) -> Self {
        Self {
            input: self.input.max(later.input),
            cached_input: self.cached_input.max(later.cached_input),
            cache_write: self.cache_write.max(later.cache_write),
            output: self.output.max(later.output),
            reasoning: self.reasoning.max(later.reasoning),
            estimated: later.estimated,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.estimated = self.estimated || other.estimated;
    }
}

/// Tokens of a text of so many bytes, at four bytes a token, which is what common vocabularies average on English and
/// code. Never 0 for a text that is not empty.
pub fn estimate_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
