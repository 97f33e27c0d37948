//! A file as lines, and a folded copy of it to search in. Every place in the copy leads back to a place in the file.

use memchr::memmem::{self, Finder};
use memchr::{memchr, memchr_iter};

/// Most places that are told apart; more are as ambiguous.
pub(super) const MAX_PLACES: usize = 20;
/// Most bytes that one search compares at hits. It bounds the time that a file of equal lines can take.
const MAX_WORK: usize = 64 * 1024 * 1024;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    /// Where it starts in the file, in bytes. A byte order mark is before the first line.
    pub(super) start: usize,
    /// The line without its end.
    pub(super) body: &'a [u8],
    /// `\n`, `\r\n`, or nothing at the end of the file.
    pub(super) end: &'a [u8],
}

impl Line<'_> {
    /// Where the body ends in the file.
    pub(super) fn body_end(&self) -> usize {
        self.start + self.body.len()
    }

    /// Where the next line starts.
    pub(super) fn next_start(&self) -> usize {
        self.body_end() + self.end.len()
    }
}

/// The lines of a file, in order.
#[derive(Debug, Clone)]
pub(super) struct Lines<'a> {
    file: &'a [u8],
    at: usize,
    number: usize,
}

/// Splits a file into lines.
pub(super) fn lines(file: &[u8]) -> Lines<'_> {
    let at = if file.starts_with(BOM) { BOM.len() } else { 0 };
    Lines { file, at, number: 0 }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.file.get(self.at..).filter(|rest| !rest.is_empty())?;
        let whole = rest
            .get(..memchr(b'\n', rest).map_or(rest.len(), |feed| feed + 1))
            .unwrap_or_default();
        let body = match whole.strip_suffix(b"\n") {
            Some(body) => body.strip_suffix(b"\r").unwrap_or(body),
            None => whole,
        };
        let line = Line {
            number: self.number + 1,
            start: self.at,
            body,
            end: whole.get(body.len()..).unwrap_or_default(),
        };
        self.at = line.next_start();
        self.number = line.number;
        Some(line)
    }
}

/// Writes what counts of a line. It adds no line feed and never more bytes than the line has.
pub(super) type Fold = fn(&[u8], &mut Vec<u8>);

/// A copy of a file in which every line is folded, and has a `\n` before and after it, also the first and the last.
#[derive(Debug)]
pub(super) struct Folded<'a> {
    file: &'a [u8],
    text: Vec<u8>,
}

impl<'a> Folded<'a> {
    pub(super) fn new(file: &'a [u8], fold: Fold) -> Self {
        let mut text = Vec::with_capacity(file.len() + 2);
        text.push(b'\n');
        for line in lines(file) {
            fold(line.body, &mut text);
            text.push(b'\n');
        }
        Self { file, text }
    }

    /// Whether a line ends at this place of the copy.
    pub(super) fn ends_line(&self, at: usize) -> bool {
        self.text.get(at) == Some(&b'\n')
    }

    /// What `accept` makes of the places of `needle`, overlaps included, up to [`MAX_PLACES`]. It is given where the
    /// hit starts in the copy, and a cursor on the line that holds the byte `skip` bytes after that.
    /// None when the file has so many places of this kind that looking at all would take too long.
    pub(super) fn find<'f, T>(
        &'f self,
        needle: &[u8],
        skip: usize,
        mut accept: impl FnMut(usize, &Cursor<'f, 'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let finder = Finder::new(needle);
        let mut cursor = self.cursor();
        let (mut from, mut work) = (0, 0);
        let mut found = Vec::new();
        while let Some(hit) = self.text.get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + hit;
            from = at + 1;
            work += needle.len();
            if work > MAX_WORK {
                return None;
            }
            // The first `\n` is before all lines and no part of the file.
            if at + skip == 0 {
                continue;
            }
            cursor.seek(at + skip);
            found.extend(accept(at, &cursor));
            if found.len() >= MAX_PLACES {
                break;
            }
        }
        Some(found)
    }

    fn cursor(&self) -> Cursor<'_, 'a> {
        let mut rest = lines(self.file);
        Cursor {
            line: rest.next(),
            rest,
            text: &self.text,
            start: 1,
        }
    }
}

/// A line of the file and where it is in the folded copy. It only moves forwards.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'f, 'a> {
    line: Option<Line<'a>>,
    rest: Lines<'a>,
    text: &'f [u8],
    start: usize,
}

impl<'a> Cursor<'_, 'a> {
    /// Goes to the line that holds this place of the copy; the `\n` after a line belongs to it.
    pub(super) fn seek(&mut self, at: usize) {
        while let Some(length) = self.text.get(self.start..).and_then(|rest| memchr(b'\n', rest))
            && self.start + length < at
        {
            self.start += length + 1;
            self.line = self.rest.next();
        }
    }

    /// The line. There is none past the end of the file.
    pub(super) fn line(&self) -> Option<Line<'a>> {
        self.line
    }

    /// The column of a place of the copy in the folded line, in bytes.
    pub(super) fn column(&self, at: usize) -> usize {
        at.saturating_sub(self.start)
    }

    /// This line and those after it.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'a>> + Clone + use<'a> {
        self.line.into_iter().chain(self.rest.clone())
    }
}

/// Whether every line of the file ends in CRLF.
pub(super) fn uses_crlf(file: &[u8]) -> bool {
    let feeds = memchr_iter(b'\n', file).count();
    feeds > 0 && memmem::find_iter(file, b"\r\n").count() == feeds
}

/// Spaces and tabs at the end are left out.
pub(super) fn trim_end(mut body: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t'] = body {
        body = rest;
    }
    body
}

/// The spaces and tabs at the start, and what follows.
pub(super) fn split_indent(body: &[u8]) -> (&[u8], &[u8]) {
    let length = body
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    body.split_at_checked(length).unwrap_or((body, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_have_numbers_places_and_ends() {
        let all: Vec<_> = lines(b"\xef\xbb\xbfa\r\n\n\rb\r")
            .map(|line| (line.number, line.start, line.body, line.end))
            .collect();
        let expected: [(usize, usize, &[u8], &[u8]); 3] =
            [(1, 3, b"a", b"\r\n"), (2, 6, b"", b"\n"), (3, 7, b"\rb\r", b"")];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_search_with_too_many_hits_ends() {
        let file = "same\n".repeat(10_000);
        let folded = Folded::new(file.as_bytes(), |body, out| out.extend_from_slice(body));
        let needle = "same\n".repeat(5_000);
        assert!(folded.find(needle.as_bytes(), 0, |_, _| None::<()>).is_none());
        let found = folded.find(needle.as_bytes(), 0, |at, _| Some(at)).unwrap();
        assert_eq!(found.len(), MAX_PLACES);
    }

    proptest! {
        /// The copy without folding, and a plain count of lines, are the oracle.
        #[test]
        fn places_lead_back_to_the_file(file in "[ab\n]{0,40}", needle in "[ab\n]{1,4}") {
            let folded = Folded::new(file.as_bytes(), |body, out| out.extend_from_slice(body));
            let ended = if file.is_empty() || file.ends_with('\n') { file.clone() } else { format!("{file}\n") };
            let found = folded
                .find(needle.as_bytes(), 0, |at, cursor| Some((at, cursor.line().unwrap(), cursor.column(at))))
                .unwrap();
            let expected: Vec<usize> = (0..ended.len()).filter(|at| ended.as_bytes()[*at..].starts_with(needle.as_bytes())).collect();
            let places: Vec<usize> = found.iter().map(|(at, ..)| at - 1).collect();
            prop_assert_eq!(places, expected.into_iter().take(MAX_PLACES).collect::<Vec<_>>());
            for (at, line, column) in found {
                prop_assert_eq!(line.start + column, at - 1);
                prop_assert_eq!(line.number, 1 + memchr_iter(b'\n', &ended.as_bytes()[..at - 1]).count());
            }
        }
    }
}
