//! Every way in which providers say when to come back, and what must ask for nothing.

use super::*;
use jiff::tz::TimeZone;
use proptest::prelude::*;

/// The time of the answers in these tests: half past four in London, a winter afternoon.
const DATE: &str = "Mon, 30 Nov 2026 16:39:14 GMT";

fn from<'a>(headers: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
    move |name| {
        let found = headers.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| *value)
    }
}

fn at() -> Timestamp {
    time::date(DATE).unwrap()
}

fn ms(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

#[test]
fn f51_seconds_milliseconds_and_dates_are_read() {
    let date = ("date", DATE);
    for (headers, millis) in [
        (vec![("retry-after", "2")], 2_000),
        (vec![("retry-after", " 0.25 ")], 250),
        (vec![("retry-after", "0")], 0),
        (vec![("retry-after", "3600")], 3_600_000),
        (vec![("retry-after", "1m30s")], 90_000),
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
        (vec![("retry-after", "2026-11-30T16:40:14Z"), date], 60_000),
    ] {
        assert_eq!(asked(from(&headers)), ms(millis), "{headers:?}");
    }
    let far = asked(from(&[("retry-after", "Wed, 01 Jan 2200 00:00:00 GMT")]));
    assert!(
        far.is_some_and(|wait| wait > Duration::from_secs(1_000_000)),
        "{far:?}"
    );
}

#[test]
fn f51_nonsense_asks_for_nothing() {
    let date = ("date", DATE);
    for value in [
        "",
        "soon",
        "-1",
        "-1s",
        "NaN",
        "inf",
        "1e300",
        "Mon, 30 Nov 2026 16:38:00 GMT",
        "2026-11-30",
        "1764520000",
    ] {
        assert_eq!(asked(from(&[("retry-after", value), date])), None, "{value}");
        assert_eq!(
            limits(from(&[("x-ratelimit-reset", value), date])),
            None,
            "{value}"
        );
    }
    for value in ["", "soon", "-1", "NaN", "inf", "1e300"] {
        assert_eq!(asked(from(&[("retry-after-ms", value)])), None, "{value}");
    }
    assert_eq!(asked(from(&[])), None);
    assert_eq!(limits(from(&[])), None);
}

#[test]
fn case_121_limits_say_when_they_are_over_in_headers_of_their_own() {
    let date = ("date", DATE);
    for (headers, millis) in [
        (vec![("x-ratelimit-reset-requests", "1s")], 1_000),
        (vec![("x-ratelimit-reset-tokens", "6m0s")], 360_000),
        (vec![("x-ratelimit-reset-tokens", "20ms")], 20),
        (vec![("x-ratelimit-reset-requests", "2m59.56s")], 179_560),
        (vec![("x-ratelimit-reset-requests", "12")], 12_000),
        (
            vec![
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            360_000,
        ),
        // What is not used up need not be waited for.
        (
            vec![
                ("x-ratelimit-reset-requests", "1s"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-tokens", "6m0s"),
                ("x-ratelimit-remaining-tokens", "149000"),
            ],
            1_000,
        ),
        (vec![("x-ratelimit-reset", "1796056814"), date], 60_000),
        (vec![("x-ratelimit-reset", "1796056814000"), date], 60_000),
        (vec![("ratelimit-reset", "30"), date], 30_000),
        (
            vec![
                ("anthropic-ratelimit-requests-reset", "2026-11-30T21:39:14Z"),
                date,
            ],
            5 * 3_600_000,
        ),
        (
            vec![("anthropic-ratelimit-unified-reset", "1796074754"), date],
            5 * 3_600_000,
        ),
    ] {
        let at = at().as_second();
        assert_eq!(limits(from(&headers)), ms(millis), "{headers:?} at {at}");
    }
}

#[test]
fn case_121_sentences_say_how_long_to_wait() {
    for (message, seconds) in [
        (
            "Rate limit reached. Please try again in 7m12.5s. Visit the page.",
            432.5,
        ),
        ("Please try again in 20ms.", 0.02),
        ("try again in 6s", 6.0),
        ("Try Again In 5 minutes, please", 300.0),
        ("Please retry in 27.5s.", 27.5),
        ("Please retry after 30 seconds", 30.0),
        ("retry after 30", 30.0),
        ("your limit resets in 4h 20m", 15_600.0),
        ("resets at 2026-11-30T17:39:14Z", 3_600.0),
        ("The limit resets at 2026-12-01T03:00:00+01:00.", 33_646.0),
        ("usage limit reached|1796074754", 18_000.0),
        // It is 17:39:14 in Berlin, 16:39:14 in London and 11:39:14 in New York.
        ("You've hit your limit · resets 3am (Europe/Berlin)", 33_646.0),
        ("resets 3:30 pm (America/New_York)", 13_846.0),
        ("resets at 17:00 UTC", 1_246.0),
        ("resets 16:39 (Europe/London).", 86_386.0),
        ("resets 12am (UTC)", 26_446.0),
        ("resets 12pm (UTC)", 69_646.0),
    ] {
        let expected = Duration::from_secs_f64(seconds);
        assert_eq!(
            said(from(&[("date", DATE)]), message),
            Some(expected),
            "{message}"
        );
    }
}

#[test]
fn sentences_without_a_time_or_with_an_unknown_zone_ask_for_nothing() {
    for message in [
        "",
        "try again in a while",
        "try again in -5s",
        "try again in ",
        "please wait",
        "resets 3am",
        "resets 3 (Europe/Berlin)",
        "resets 25:00 (UTC)",
        "resets 13pm (UTC)",
        "resets 3am (Europe/Atlantis)",
        "resets 3am (../../etc/passwd)",
        "resets at 2026-11-30T16:00:00Z",
        "resets at 99999999999999999999",
        "limit reached|soon",
        "try again in 99999999999999999999999999 years",
        "wait é",
    ] {
        assert_eq!(said(from(&[("date", DATE)]), message), None, "{message}");
    }
}

#[test]
fn daylight_saving_time_is_minded() {
    // Clocks go back in Berlin in the night to 25 October 2026, and forward in the night to 28 March 2027.
    for (now, hours) in [
        ("2026-10-24T20:00:00Z", 9),
        ("2026-10-23T20:00:00Z", 8),
        ("2027-03-27T20:00:00Z", 8),
    ] {
        let now: Timestamp = now.parse().unwrap();
        let message = "resets 6am (Europe/Berlin)";
        assert_eq!(
            text::read(message, now),
            Some(Duration::from_secs(hours * 3_600)),
            "{now}"
        );
    }
}

#[test]
fn a_clock_that_is_wrong_is_noticed() {
    let now = Timestamp::now();
    let format = |at: Timestamp| jiff::fmt::rfc2822::to_string(&at.to_zoned_datetime(TimeZone::UTC)).unwrap();
    let date = format(now - jiff::SignedDuration::from_secs(3_600));
    let ahead = skew(from(&[("date", &date)])).unwrap();
    assert!((3_590..3_700).contains(&ahead), "{ahead}");
    assert_eq!(skew(from(&[])), None);
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    (0i64..4_000_000_000).prop_map(|second| Timestamp::from_second(second).unwrap())
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in ".{0,80}", now in any_time()) {
        for mark in ["", "try again in ", "resets ", "resets at ", "limit reached|"] {
            std::hint::black_box(text::read(&format!("{mark}{text}"), now));
        }
        std::hint::black_box(time::wait(&text, now));
        std::hint::black_box(asked(|_| Some(text.as_str())));
        std::hint::black_box(limits(|_| Some(text.as_str())));
    }

    #[test]
    fn times_that_look_like_times_are_not_too_strange(
        text in "[-+0-9]{0,20}[.:]?[0-9]{0,12} ?(ms|s|m|h|d|y|am|pm|seconds|minutes)?( [(]?(UTC|Europe/Berlin|Asia/Kathmandu)[)]?)?",
        now in any_time(),
    ) {
        for mark in ["try again in ", "resets ", "resets at ", "limit reached|"] {
            std::hint::black_box(text::read(&format!("{mark}{text}"), now));
        }
        std::hint::black_box(time::wait(&text, now));
    }

    /// The oracle adds the parts up by itself.
    #[test]
    fn a_length_of_time_is_the_sum_of_its_parts(h in 0u64..100, m in 0u64..60, s in 0u64..60, millis in 0u64..1_000) {
        let expected = Duration::from_millis(((h * 60 + m) * 60 + s) * 1_000 + millis);
        for text in [
            format!("{h}h{m}m{s}.{millis:03}s"),
            format!("{h}h {m}m {s}s {millis}ms"),
            format!("{h} hours {m} minutes {s} seconds {millis} ms"),
        ] {
            prop_assert_eq!(time::wait(&text, at()), Some(expected), "{}", text);
            let message = format!("Limit reached, please try again in {text}.");
            prop_assert_eq!(text::read(&message, at()), Some(expected), "{}", message);
        }
    }

    /// The oracle looks at the clock when the wait is over.
    #[test]
    fn after_the_wait_it_is_that_time_in_that_zone(
        hour in 1u8..13,
        minute in 0u8..60,
        pm: bool,
        zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Auckland", "UTC"]),
        now in any_time(),
    ) {
        let half = if pm { "pm" } else { "am" };
        let wait = text::read(&format!("resets {hour}:{minute:02}{half} ({zone})"), now).unwrap();
        prop_assert!(wait > Duration::ZERO && wait <= Duration::from_secs(26 * 3_600));
        let then = (now + wait).in_tz(zone).unwrap();
        let expected = (i8::try_from(hour % 12).unwrap() + if pm { 12 } else { 0 }, i8::try_from(minute).unwrap());
        let skipped = wait > Duration::from_secs(22 * 3_600) || then.hour() == expected.0 + 1;
        prop_assert!((then.hour(), then.minute()) == expected || skipped, "{then}");
    }

    #[test]
    fn a_moment_is_the_same_in_every_way_to_write_it(now in 1_500_000_000i64..4_000_000_000, wait in 1u64..100_000_000) {
        let now = Timestamp::from_second(now).unwrap();
        let then = now + Duration::from_secs(wait);
        let second = then.as_second();
        let rfc2822 = jiff::fmt::rfc2822::to_string(&then.to_zoned_datetime(TimeZone::UTC)).unwrap();
        for text in [second.to_string(), format!("{second}000"), then.to_string(), rfc2822] {
            prop_assert_eq!(time::wait(&text, now), Some(Duration::from_secs(wait)), "{}", text);
        }
    }
}
