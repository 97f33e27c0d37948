//! Words that are other in every run, and so must not count when two requests are compared: ids and directories of
//! runs, marks, ids of commits, times.

use std::collections::HashMap;

/// The shortest word of hexadecimal digits that is taken for an id: what git abbreviates commits to.
const MIN_ID: usize = 7;
/// The longest: a SHA-256.
const MAX_ID: usize = 64;
/// What stands before the id in the path of a run's directory.
const RUNS: &str = "/runs/";
/// What ends a path to the left.
const BEFORE_PATH: &[char] = &[
    ' ', '\t', '\n', '"', '\'', '`', '\\', '(', '[', '{', '<', '=', ',', ':',
];

/// The words of one run, each with a number: the order in which they came up.
#[derive(Debug, Default)]
pub(super) struct Names {
    words: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Names {
    /// The text with each of these words replaced by its number.
    pub(super) fn number(&mut self, text: &str) -> String {
        replace(text, |word| {
            let next = self.words.len();
            let number = *self.numbers.entry(word.to_owned()).or_insert(next);
            if number == next {
                self.words.push(word.to_owned());
            }
            format!("\u{27e6}{number}\u{27e7}")
        })
    }

    /// A text of another run in the words of this one, where they have the same number.
    pub(super) fn translate(&self, text: &str, other: &Self) -> String {
        replace(text, |word| {
            let number = other.numbers.get(word);
            let ours = number.and_then(|number| self.words.get(*number));
            ours.map_or(word, String::as_str).to_owned()
        })
    }
}

/// The text with each word that is other in every run replaced.
fn replace(text: &str, mut new: impl FnMut(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    // Where in `out` the part begins that was copied since the last replacement.
    let mut copied = 0;
    let mut rest = text;
    let mut before = None;
    // Requests are JSON: there, a new line ends in a letter.
    let mut escaped = false;
    while let Some(c) = rest.chars().next() {
        let inside = before.is_some_and(|c: char| c.is_alphanumeric()) && !escaped;
        let length = if inside { None } else { word(rest) };
        let Some((word, after)) = length.and_then(|length| rest.split_at_checked(length)) else {
            out.push(c);
            escaped = before == Some('\\') && matches!(c, 'n' | 't' | 'r');
            before = Some(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        };
        let done = out.split_off(copied.min(out.len()));
        // The directory of a run is one word with its path.
        let path = done
            .strip_suffix(RUNS)
            .filter(|_| is_run_id(word))
            .map(|path| path.rfind(BEFORE_PATH).map_or(0, |at| at + 1));
        match path.and_then(|at| done.split_at_checked(at)) {
            Some((other, path)) => {
                out.push_str(other);
                out.push_str(&new(&format!("{path}{word}")));
            }
            None => {
                out.push_str(&done);
                out.push_str(&new(word));
            }
        }
        copied = out.len();
        before = word.chars().last();
        escaped = false;
        rest = after;
    }
    out
}

/// The length of such a word at the beginning of a text.
fn word(text: &str) -> Option<usize> {
    let ends = |length: usize| {
        let after = text.get(length..).unwrap_or_default();
        !after.starts_with(|c: char| c.is_alphanumeric())
    };
    const RUN_ID: usize = 22;
    if text.get(..RUN_ID).is_some_and(is_run_id) && ends(RUN_ID) {
        return Some(RUN_ID);
    }
    if let Some(length) = time(text) {
        return Some(length);
    }
    let hex = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let length = text.bytes().take(MAX_ID + 1).take_while(hex).count();
    ((MIN_ID..=MAX_ID).contains(&length) && ends(length)).then_some(length)
}

fn is_run_id(text: &str) -> bool {
    follows(text, "dddddddd-dddddd-xxxxxx") && text.len() == 22
}

/// The length of a date and time at the beginning of a text.
fn time(text: &str) -> Option<usize> {
    ["dddd-dd-ddTdd:dd", "dddd-dd-dd dd:dd"]
        .iter()
        .find(|pattern| follows(text, pattern))?;
    let minutes = "dddd-dd-ddTdd:dd".len();
    let rest = text.get(minutes..).unwrap_or_default();
    let seconds = rest
        .find(|c: char| !matches!(c, '0'..='9' | ':' | '.' | 'Z'))
        .unwrap_or(rest.len());
    let seconds = rest
        .get(..seconds)
        .unwrap_or_default()
        .trim_end_matches([':', '.']);
    Some(minutes + seconds.len())
}

/// Whether a text begins like a pattern: `d` stands for a digit, `x` for a hexadecimal one.
fn follows(text: &str, pattern: &str) -> bool {
    let fits = |(c, p): (u8, u8)| match p {
        b'd' => c.is_ascii_digit(),
        b'x' => matches!(c, b'0'..=b'9' | b'a'..=b'f'),
        other => c == other,
    };
    text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = "You are in /tmp/a b/state/runs/20261201-015456-951905/checkouts/robot-0/.\n\
        --- files 20261201-015456-951905\n--- end 0123456789ab\ncommit c4812e5749 at 2026-12-01T01:54:56Z: 3 files";
    const TWO: &str = "You are in /home/x/runs/20270101-000000-abcdef/checkouts/robot-0/.\n\
        --- files 20270101-000000-abcdef\n--- end ffffffffffff\ncommit 00000000aa at 2027-01-01T00:00:01.25Z: 3 files";

    #[test]
    fn two_runs_that_differ_in_such_words_alone_are_the_same() {
        let (mut one, mut two) = (Names::default(), Names::default());
        let numbered = one.number(&ONE.replace("a b", "ab"));
        assert_eq!(numbered, two.number(TWO));
        assert_eq!(
            numbered,
            "You are in ⟦0⟧/checkouts/robot-0/.\n--- files ⟦1⟧\n--- end ⟦2⟧\ncommit ⟦3⟧ at ⟦4⟧: 3 files"
        );
        assert_eq!(
            two.translate("look at c4812e5749 and feedbeef", &one),
            "look at 00000000aa and feedbeef"
        );
        let path = "/tmp/ab/state/runs/20261201-015456-951905/checkouts/robot-0/a.txt";
        assert_eq!(
            two.translate(path, &one),
            "/home/x/runs/20270101-000000-abcdef/checkouts/robot-0/a.txt"
        );
    }

    #[test]
    fn a_word_that_is_only_used_in_another_place_is_a_difference() {
        let (mut one, mut two) = (Names::default(), Names::default());
        assert_ne!(one.number("abcdef1 abcdef2"), two.number("abcdef1 abcdef1"));
    }

    #[test]
    fn words_are_found_behind_the_escapes_of_json() {
        let text = serde_json::json!("at\nabcdef1\tabcdef2").to_string();
        assert_eq!(Names::default().number(&text), r#""at\n⟦0⟧\t⟦1⟧""#);
    }

    #[test]
    fn ordinary_words_and_numbers_stay() {
        let text = "added 123456 lines, defaces, facade, 0x1234567g, v1.2.3, a1b2c3";
        assert_eq!(Names::default().number(text), text);
    }

    proptest! {
        #[test]
        fn any_text_survives_in_its_own_words(text in ".*|[0-9a-f /-]{0,80}|(/runs/)?[0-9]{8}-[0-9]{6}-[0-9a-f]{6}") {
            let mut names = Names::default();
            names.number(&text);
            prop_assert_eq!(names.translate(&text, &names), text);
        }
    }
}
