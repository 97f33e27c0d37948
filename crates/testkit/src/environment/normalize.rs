//! The replacement of what differs from run to run by placeholders.

/// The words after which any short run of hexadecimal digits is an object id.
const BEFORE_IDS: [&str; 6] = ["commit ", "commit: ", "object ", "HEAD ", "tree ", ".."];

/// Replaces the literals, the longest first, and then all that has a known shape.
pub(super) fn normalize(text: &str, mut literals: Vec<(String, &str)>) -> String {
    literals.retain(|(literal, _)| !literal.is_empty());
    literals.sort_by_key(|(literal, _)| std::cmp::Reverse(literal.len()));
    let mut text = text.to_owned();
    for (literal, placeholder) in literals {
        text = text.replace(&literal, placeholder);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let found = if is_word(before) {
            None
        } else {
            recognise(rest, before, &out)
        };
        let (length, replacement) = match &found {
            Some((length, replacement)) => (*length, Some(*replacement)),
            None => (first.len_utf8(), None),
        };
        let (taken, left) = rest.split_at(length);
        out.push_str(replacement.unwrap_or(taken));
        before = taken.chars().next_back().unwrap_or(before);
        rest = left;
    }
    out
}

/// The length of what the text starts with, if it is of a known shape, and the placeholder for it.
fn recognise(text: &str, before: char, done: &str) -> Option<(usize, &'static str)> {
    if let Some(length) = timestamp(text) {
        return Some((length, "[WHEN]"));
    }
    if let Some(length) = shaped(text, "99999999-999999-ffffff").filter(|length| ends_word(text, *length)) {
        return Some((length, "[RUN]"));
    }
    for (host, placeholder) in [
        ("127.0.0.1:", "127.0.0.1:[PORT]"),
        ("localhost:", "localhost:[PORT]"),
        ("[::1]:", "[::1]:[PORT]"),
    ] {
        if let Some(port) = text.strip_prefix(host) {
            let digits = count(port, |c| c.is_ascii_digit());
            if digits > 0 {
                return Some((host.len() + digits, placeholder));
            }
        }
    }
    if let Some(length) = object_id(text, done) {
        return Some((length, "[OID]"));
    }
    if before != '.' {
        return duration(text).map(|length| (length, "[TIME]"));
    }
    None
}

fn timestamp(text: &str) -> Option<usize> {
    let mut length = shaped(text, "9999-99-99T99:99").or_else(|| shaped(text, "9999-99-99 99:99"))?;
    for shape in [":99", ".9"] {
        length += text
            .get(length..)
            .and_then(|rest| shaped(rest, shape))
            .unwrap_or(0);
    }
    // More digits of a fraction; the shape took the first.
    length += text
        .get(length..)
        .map_or(0, |rest| count(rest, |c| c.is_ascii_digit()));
    let zone = text.get(length..).unwrap_or_default();
    length += ["Z", "+99:99", "-99:99"]
        .iter()
        .find_map(|shape| shaped(zone, shape))
        .unwrap_or(0);
    Some(length)
}

fn object_id(text: &str, done: &str) -> Option<usize> {
    let length = count(text, is_hex);
    if !ends_word(text, length) {
        return None;
    }
    let id = text.get(..length)?;
    match length {
        40 | 64 => Some(length),
        7..=12 => {
            let mixed =
                id.contains(|c: char| c.is_ascii_digit()) && id.contains(|c: char| !c.is_ascii_digit());
            (mixed || BEFORE_IDS.iter().any(|word| done.ends_with(word))).then_some(length)
        }
        _ => None,
    }
}

/// A duration of one part or of several, such as `1.5s`, `12 ms`, `1m03s` and `1m 3s`.
fn duration(text: &str) -> Option<usize> {
    let mut length = duration_part(text)?;
    loop {
        let rest = text.get(length..)?;
        let spaces = count(rest, |c| c == ' ').min(1);
        match rest.get(spaces..).and_then(duration_part) {
            Some(more) => length += spaces + more,
            None => return ends_word(text, length).then_some(length),
        }
    }
}

fn duration_part(text: &str) -> Option<usize> {
    const UNITS: &[&str] = &[
        "ns", "us", "µs", "ms", "s", "m", "h", "sec", "secs", "second", "seconds", "min", "mins", "minute",
        "minutes",
    ];
    let mut length = count(text, |c| c.is_ascii_digit());
    if length == 0 {
        return None;
    }
    if let Some(fraction) = text.get(length..).and_then(|rest| rest.strip_prefix('.')) {
        let digits = count(fraction, |c| c.is_ascii_digit());
        length += if digits > 0 { digits + 1 } else { 0 };
    }
    let rest = text.get(length..)?;
    let spaces = count(rest, |c| c == ' ').min(1);
    let unit_length: usize = rest
        .get(spaces..)?
        .chars()
        .take_while(|c| c.is_alphabetic())
        .map(char::len_utf8)
        .sum();
    let unit = rest.get(spaces..spaces + unit_length)?;
    // A lone letter after a space may be any other thing.
    let known = UNITS.contains(&unit) && !(spaces == 1 && matches!(unit, "m" | "h"));
    known.then_some(length + spaces + unit_length)
}

/// The length of a shape at the start of a text: `9` is any digit, `f` any hexadecimal one.
fn shaped(text: &str, shape: &str) -> Option<usize> {
    let mut characters = text.chars();
    let fits = shape.chars().all(|wanted| {
        characters.next().is_some_and(|c| match wanted {
            '9' => c.is_ascii_digit(),
            'f' => is_hex(c),
            other => c == other,
        })
    });
    fits.then_some(shape.len())
}

fn count(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.chars().take_while(|c| wanted(*c)).map(char::len_utf8).sum()
}

fn ends_word(text: &str, length: usize) -> bool {
    text.get(length..)
        .is_some_and(|rest| !rest.chars().next().is_some_and(is_word))
}

fn is_hex(c: char) -> bool {
    matches!(c, '0'..='9' | 'a'..='f')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shapes_are_replaced() {
        for (text, expected) in [
            ("run 20261130-171339-0a1b2c ended", "run [RUN] ended"),
            ("robot/20261130-171339-0a1b2c/x", "robot/[RUN]/x"),
            ("at 2026-11-30T17:13:39.264Z.", "at [WHEN]."),
            ("2026-11-30 17:13:39+01:00", "[WHEN]"),
            ("http://127.0.0.1:45671/v1/", "http://127.0.0.1:[PORT]/v1/"),
            ("localhost:80, [::1]:81", "localhost:[PORT], [::1]:[PORT]"),
            ("4b825dc642cb6eb9a060e54bf8d69288fbee4904", "[OID]"),
            ("4b825dc: text", "[OID]: text"),
            ("commit 1234567", "commit [OID]"),
            (
                "took 1.25s, 12 ms, 1m03s, 1m 3s, 40µs",
                "took [TIME], [TIME], [TIME], [TIME], [TIME]",
            ),
            ("3 seconds", "[TIME]"),
        ] {
            assert_eq!(normalize(text, Vec::new()), expected, "{text}");
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "",
            "defaced 1234567 bytes",
            "3 files, 12 messages",
            "v1.5s",
            "x4b825dc",
            "4b825dcg",
            "20261130-171339-0a1b2x",
            "größer 2x",
        ] {
            assert_eq!(normalize(text, Vec::new()), text);
        }
    }

    #[test]
    fn the_longest_literal_goes_first() {
        let literals = vec![
            ("/t".to_owned(), "[ROOT]"),
            ("/t/home".to_owned(), "[HOME]"),
            (String::new(), "no"),
        ];
        assert_eq!(normalize("/t/home/a /t/b", literals), "[HOME]/a [ROOT]/b");
    }
}
