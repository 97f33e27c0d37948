//! One point in time or length of time, in any of the ways in which providers write them.

use jiff::civil::Time;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp, ToSpan as _};
use std::time::Duration;

/// A number from here on is no count of seconds but a time, in seconds since 1970, and from here on in milliseconds.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLIS: f64 = 1e11;

/// The wait until what a value says: seconds (`30`, `0.5`), a length (`6m0s`, `20ms`, `5 minutes`), seconds or
/// milliseconds since 1970, or a date. `None` for what cannot be read, and for what is over.
pub(super) fn wait(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) => number_wait(number, now),
        Err(_) => length(text).or_else(|| until(date(text)?, now)),
    }
}

fn number_wait(number: f64, now: Timestamp) -> Option<Duration> {
    if number < EPOCH_SECONDS {
        return Duration::try_from_secs_f64(number).ok();
    }
    let seconds = if number < EPOCH_MILLIS {
        number
    } else {
        number / 1_000.0
    };
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    let then = Timestamp::UNIX_EPOCH.checked_add(since).ok()?;
    until(then, now)
}

/// A length of time with its units, such as `1h30m`, `7m12.5s` or `5 minutes`.
pub(super) fn length(text: &str) -> Option<Duration> {
    let span: Span = text.parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(length).ok()
}

/// A date of RFC 2822 or RFC 3339.
pub(super) fn date(text: &str) -> Option<Timestamp> {
    const PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    let text = text.trim();
    PARSER.parse_timestamp(text).or_else(|_| text.parse()).ok()
}

fn until(then: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(then.duration_since(now)).ok()
}

/// The wait until it is this time of the day in a zone: today, or tomorrow when that is over.
pub(super) fn time_of_day(time: Time, zone: &str, now: Timestamp) -> Option<Duration> {
    let zone = match zone.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" | "Z" => TimeZone::UTC,
        _ => TimeZone::get(zone).ok()?,
    };
    let here = now.to_zoned_datetime(zone.clone());
    let on = |day: jiff::civil::Date| {
        Some(
            day.to_datetime(time)
                .to_zoned_datetime(zone.clone())
                .ok()?
                .timestamp(),
        )
    };
    let today = on(here.date())?;
    let next = if today > now {
        today
    } else {
        on(here.date().checked_add(1.day()).ok()?)?
    };
    until(next, now)
}

/// A time of the day: `3am`, `3:30 pm`, `15:00`.
pub(super) fn clock(text: &str) -> Option<Time> {
    let text = text.trim().to_ascii_lowercase();
    let (digits, half) = if let Some(digits) = text.strip_suffix("am") {
        (digits, Some(0))
    } else if let Some(digits) = text.strip_suffix("pm") {
        (digits, Some(12))
    } else {
        (text.as_str(), None)
    };
    let digits = digits.trim();
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    // A bare number could be anything.
    if half.is_none() && !digits.contains(':') {
        return None;
    }
    let (hour, minute) = (hour.parse::<i8>().ok()?, minute.parse::<i8>().ok()?);
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(half) => hour % 12 + half,
        None => hour,
    };
    Time::new(hour, minute, 0, 0).ok()
}
