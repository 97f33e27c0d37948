//! The lines of a file that a text was most likely copied from, to be shown when it is not there.

use super::lines::{Line, lines};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Most lines that are shown, and most characters of each.
const MAX_SHOWN: usize = 6;
const MAX_CHARS: usize = 160;
/// Most bytes of a line that are compared, and most words of the text.
const MAX_COMPARED: usize = 1_000;
const MAX_WORDS: usize = 64;
/// Least likeness of a line that is shown, in percent.
const MIN_LIKENESS: usize = 40;

/// Lines of the file from the one that is most like the first line of `old` that has words, numbered from 1.
/// It only serves to be read; nothing is edited by likeness.
pub(super) fn nearest(file: &[u8], old: &str) -> Option<String> {
    let significant = |line: &str| words(line.as_bytes()).map(<[u8]>::len).sum::<usize>() >= 3;
    let before = old.lines().take_while(|line| !significant(line)).count();
    let wanted = Wanted::new(old.lines().nth(before)?);
    let mut best: Option<(usize, Line<'_>)> = None;
    for line in lines(file) {
        let likeness = wanted.likeness(line.body);
        if likeness >= MIN_LIKENESS && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, line));
        }
    }
    let (_, best) = best?;
    let count = old.lines().count().clamp(3, MAX_SHOWN);
    // Lines of the text before the one that was looked for are shown too, unless that leaves it out.
    let first = best.number.saturating_sub(before.min(count - 1)).max(1);
    let mut text = String::new();
    for line in lines(file).skip(first - 1).take(count) {
        let start = line.body.get(..MAX_CHARS * 4).unwrap_or(line.body);
        let shown = String::from_utf8_lossy(start);
        let kept: String = shown.chars().take(MAX_CHARS).collect();
        let cut = if kept.len() < shown.len() || start.len() < line.body.len() {
            "[…]"
        } else {
            ""
        };
        let _ = write!(text, "\n{}|{kept}{cut}", line.number);
    }
    Some(text)
}

/// The words of a line, each with its bit.
struct Wanted<'a> {
    bits: HashMap<&'a [u8], usize>,
    length: usize,
}

impl<'a> Wanted<'a> {
    fn new(line: &'a str) -> Self {
        let mut bits = HashMap::new();
        for word in words(line.as_bytes()) {
            if bits.len() < MAX_WORDS {
                let next = bits.len();
                bits.entry(word).or_insert(next);
            }
        }
        let length = bits.keys().map(|word| word.len()).sum();
        Self { bits, length }
    }

    /// How much of both lines is words that they share, in percent.
    fn likeness(&self, body: &[u8]) -> usize {
        let (mut seen, mut shared, mut length) = (0u64, 0, 0);
        for word in words(body) {
            let bit = self.bits.get(word).map(|bit| 1u64 << (bit % MAX_WORDS));
            match bit {
                Some(bit) if seen & bit != 0 => {}
                Some(bit) => {
                    seen |= bit;
                    shared += word.len();
                    length += word.len();
                }
                None => length += word.len(),
            }
        }
        (200 * shared).checked_div(self.length + length).unwrap_or(0)
    }
}

/// Runs of letters, digits and `_`; bytes above ASCII count as letters.
fn words(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.get(..MAX_COMPARED)
        .unwrap_or(body)
        .split(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_most_like_the_text_are_shown() {
        let file = b"fn a() {\n    let total = count + 1;\n    total\n}\n\nfn b() {\n    let other = 2;\n}\n";
        assert_eq!(
            nearest(file, "let total = count + 2;\n    total\n").unwrap(),
            "\n2|    let total = count + 1;\n3|    total\n4|}"
        );
        assert_eq!(
            nearest(file, "{\n\nlet other = 3;").unwrap(),
            "\n5|\n6|fn b() {\n7|    let other = 2;"
        );
        assert_eq!(nearest(file, "unheard of words"), None);
        assert_eq!(nearest(file, "}\n"), None, "no words");
        assert_eq!(nearest(b"", "some words"), None);
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let file = "word é€ ".repeat(100_000);
        let shown = nearest(file.as_bytes(), "word é€").unwrap();
        assert!(shown.ends_with("[…]") && shown.chars().count() < 200, "{shown}");
        let many = "same words\n".repeat(1_000);
        let shown = nearest(many.as_bytes(), &many).unwrap();
        assert_eq!(shown.lines().count(), 1 + MAX_SHOWN);
    }
}
