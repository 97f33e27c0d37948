//! Reads how long a provider asks to wait.

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use std::time::Duration;

/// The wait that these headers ask for. What cannot be read, or lies in the past, asks for nothing.
///
/// `retry-after-ms` is more exact than `retry-after`, which is in seconds or a date. A date is compared with the
/// date of the answer itself, so that a wrong clock here does not matter.
pub(crate) fn read<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let number = |name: &str| header(name)?.trim().parse::<f64>().ok();
    let wait = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    if let Some(asked) = number("retry-after-ms").and_then(|ms| wait(ms / 1000.0)) {
        return Some(asked);
    }
    if let Some(seconds) = number("retry-after") {
        return wait(seconds);
    }
    let until = date(header("retry-after")?)?;
    let now = header("date").and_then(date).unwrap_or_else(Timestamp::now);
    Duration::try_from(until.duration_since(now)).ok()
}

fn date(text: &str) -> Option<Timestamp> {
    const PARSER: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    PARSER.parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(headers: &[(&str, &str)]) -> Option<Duration> {
        read(|name| {
            headers
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        })
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_read() {
        let date = ("date", "Mon, 30 Nov 2026 16:39:14 GMT");
        for (headers, millis) in [
            (vec![("retry-after", "2")], 2_000),
            (vec![("retry-after", " 0.25 ")], 250),
            (vec![("retry-after", "0")], 0),
            (vec![("retry-after", "3600")], 3_600_000),
            (vec![("retry-after", "2"), ("retry-after-ms", "1500")], 1_500),
            (vec![("retry-after", "2"), ("retry-after-ms", "soon")], 2_000),
            (
                vec![("retry-after", "Mon, 30 Nov 2026 16:40:14 GMT"), date],
                60_000,
            ),
            (
                vec![("retry-after", "Tue, 30 Nov 2026 16:40:14 GMT"), date],
                60_000,
            ),
        ] {
            assert_eq!(
                read_from(&headers),
                Some(Duration::from_millis(millis)),
                "{headers:?}"
            );
        }
        let far = read_from(&[("retry-after", "Wed, 01 Jan 2200 00:00:00 GMT")]);
        assert!(
            far.is_some_and(|wait| wait > Duration::from_secs(1_000_000)),
            "{far:?}"
        );
    }

    #[test]
    fn nonsense_asks_for_nothing() {
        let date = ("date", "Mon, 30 Nov 2026 16:39:14 GMT");
        for value in [
            "",
            "soon",
            "-1",
            "NaN",
            "inf",
            "1e300",
            "Mon, 30 Nov 2026 16:38:00 GMT",
            "2026-11-30",
        ] {
            assert_eq!(read_from(&[("retry-after", value), date]), None, "{value}");
            assert_eq!(read_from(&[("retry-after-ms", value)]), None, "{value}");
        }
        assert_eq!(read_from(&[]), None);
    }
}
