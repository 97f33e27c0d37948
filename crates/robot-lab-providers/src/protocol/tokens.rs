//! Counts of tokens as providers report them, without those that cannot be right.

use robot_lab::Usage;
use serde_json::Value;

/// More tokens than any request can have: a count above is an error of the server.
const ABSURD: u64 = 100_000_000;

/// The count at this pointer. `None` where it is missing, negative or absurd.
pub(super) fn count(counts: &Value, pointer: &str) -> Option<u64> {
    counts.pointer(pointer)?.as_u64().filter(|n| *n <= ABSURD)
}

/// The counts with their parts no larger than the whole. `None` where nothing was counted, so that the cost is
/// estimated.
pub(super) fn usage(counts: Usage) -> Option<Usage> {
    if counts.input == 0 && counts.output == 0 {
        return None;
    }
    Some(Usage {
        cached_input: counts.cached_input.min(counts.input),
        cache_write: counts.cache_write.min(counts.input),
        reasoning: counts.reasoning.min(counts.output),
        ..counts
    })
}
