//! Finds in a sentence how long to wait: "try again in 7m12.5s", "resets 3am (Europe/Berlin)".

use super::time;
use jiff::Timestamp;
use std::time::Duration;

/// What comes before a length of time.
const LENGTHS: [&str; 9] = [
    "try again in ",
    "try again after ",
    "retry in ",
    "retry after ",
    "retry again in ",
    "resets in ",
    "reset in ",
    "wait for ",
    "wait ",
];
/// What comes before a point in time.
const POINTS: [&str; 7] = [
    "resets at ",
    "reset at ",
    "resets on ",
    "resets ",
    "try again at ",
    "available at ",
    "limit reached|",
];
/// Most words that make one time.
const MAX_WORDS: usize = 8;

/// The wait that a message asks for.
pub(super) fn read(message: &str, now: Timestamp) -> Option<Duration> {
    // Lower case has the same length for these letters, so places are the same in both.
    let lower = message.to_ascii_lowercase();
    let after = |marks: &'static [&'static str]| {
        let lower = &lower;
        marks.iter().flat_map(move |mark| {
            lower
                .match_indices(mark)
                .filter_map(|(at, mark)| message.get(at + mark.len()..))
        })
    };
    after(&LENGTHS)
        .find_map(length)
        .or_else(|| after(&POINTS).find_map(|rest| point(rest, now)))
}

/// The longest length of time that a text begins with.
fn length(text: &str) -> Option<Duration> {
    beginnings(text).find_map(|begin| {
        time::length(begin).or_else(|| {
            // Without a unit it is seconds, as in the header of that name.
            let number = begin.parse::<f64>().ok()?;
            Duration::try_from_secs_f64(number).ok()
        })
    })
}

/// The point in time that a text begins with: a date, seconds since 1970, or a time of the day with its zone.
fn point(text: &str, now: Timestamp) -> Option<Duration> {
    beginnings(text).find_map(|begin| {
        if begin.contains([':', '-', 'T']) || begin.len() >= 10 {
            let dated = time::wait(begin, now).filter(|_| time::length(begin).is_none());
            if dated.is_some() {
                return dated;
            }
        }
        let (clock, zone) = begin.rsplit_once(' ')?;
        let zone = zone.trim_start_matches('(').trim_end_matches(')');
        time::time_of_day(time::clock(clock)?, zone, now)
    })
}

/// The first words of a text, the longest beginning first, without what ends a sentence.
fn beginnings(text: &str) -> impl Iterator<Item = &str> {
    let line = text.lines().next().unwrap_or_default();
    let ends = line
        .char_indices()
        .filter(|(_, c)| c.is_whitespace())
        .map(|(at, _)| at)
        .chain([line.len()]);
    let ends: Vec<usize> = ends.take(MAX_WORDS).collect();
    ends.into_iter().rev().filter_map(move |end| {
        let begin = line.get(..end)?.trim();
        Some(begin.trim_end_matches(['.', ',', ';', '!', '"', '\'', '…']))
    })
}
