//! Reads how long a provider asks to wait: in a header, or in the words of its refusal.

mod text;
mod time;

use jiff::Timestamp;
use std::time::Duration;

/// The headers that say when a limit is over, each with the one that says what is left of it.
const LIMITS: [(&str, &str); 9] = [
    ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
    ("ratelimit-reset", "ratelimit-remaining"),
    (
        "anthropic-ratelimit-requests-reset",
        "anthropic-ratelimit-requests-remaining",
    ),
    (
        "anthropic-ratelimit-tokens-reset",
        "anthropic-ratelimit-tokens-remaining",
    ),
    (
        "anthropic-ratelimit-input-tokens-reset",
        "anthropic-ratelimit-input-tokens-remaining",
    ),
    (
        "anthropic-ratelimit-output-tokens-reset",
        "anthropic-ratelimit-output-tokens-remaining",
    ),
    (
        "anthropic-ratelimit-unified-reset",
        "anthropic-ratelimit-unified-remaining",
    ),
];

/// The wait that the header for it asks for. What cannot be read, or lies in the past, asks for nothing.
///
/// `retry-after-ms` is more exact than `retry-after`, which is in seconds or a date.
pub(crate) fn asked<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let millis =
        || Duration::try_from_secs_f64(header("retry-after-ms")?.trim().parse::<f64>().ok()? / 1_000.0).ok();
    millis().or_else(|| time::wait(header("retry-after")?, now(&header)))
}

/// The wait until the limits are over that other headers tell of: the longest of those that are used up, or, when none
/// is known to be, of all.
pub(crate) fn limits<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let now = now(&header);
    let known = LIMITS.iter().filter_map(|(reset, remaining)| {
        let used_up = header(remaining).and_then(|left| left.trim().parse::<f64>().ok()) == Some(0.0);
        Some((used_up, time::wait(header(reset)?, now)?))
    });
    known.max().map(|(_, wait)| wait)
}

/// The wait that a message asks for.
pub(crate) fn said<'a>(header: impl Fn(&str) -> Option<&'a str>, message: &str) -> Option<Duration> {
    text::read(message, now(&header))
}

/// By how much this machine's clock is ahead of the server's, in seconds; behind it when negative.
pub(crate) fn skew<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<i64> {
    let theirs = time::date(header("date")?)?;
    Some(Timestamp::now().as_second().saturating_sub(theirs.as_second()))
}

/// The time of the answer itself, so that a wrong clock here does not matter.
fn now<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Timestamp {
    header("date").and_then(time::date).unwrap_or_else(Timestamp::now)
}

#[cfg(test)]
mod tests;
