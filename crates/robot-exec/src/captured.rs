//! Keeps the beginning and the end of an output, however long it is.

use std::collections::VecDeque;

/// The first and the last bytes of one output stream, and how long it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Captured {
    /// How many bytes were printed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many bytes between the head and the tail were not kept.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.total.saturating_sub(length(&self.head) + length(&self.tail))
    }

    /// The whole output, if nothing was left out.
    #[must_use]
    pub fn complete(&self) -> Option<&[u8]> {
        (self.left_out() == 0).then_some(&self.head)
    }

    /// The bytes kept from the beginning: all of them when nothing was left out.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The bytes kept from the end: none when nothing was left out.
    #[must_use]
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// The output as text, with `[… N bytes left out …]` on a line of its own where bytes are missing.
    ///
    /// A character that was cut in two by the gap counts as left out. Other invalid UTF-8 becomes `U+FFFD`.
    #[must_use]
    pub fn text(&self) -> String {
        if self.left_out() == 0 {
            return String::from_utf8_lossy(&self.head).into_owned();
        }
        let head = without_cut_end(&self.head);
        let tail = without_cut_start(&self.tail);
        let missing = self.total.saturating_sub(length(head) + length(tail));
        let mut text = String::from_utf8_lossy(head).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[… {missing} bytes left out …]\n"));
        text.push_str(&String::from_utf8_lossy(tail));
        text
    }
}

/// Takes bytes in and keeps only the head and the tail. Memory: proportional to head + tail.
#[derive(Debug)]
pub(crate) struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_cap: usize,
    tail_cap: usize,
    total: u64,
}

impl HeadTail {
    pub(crate) fn new(head_cap: usize, tail_cap: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_cap,
            tail_cap,
            total: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += length(bytes);
        let room = self.head_cap.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        let last = rest
            .get(rest.len().saturating_sub(self.tail_cap)..)
            .unwrap_or_default();
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..surplus);
        self.tail.extend(last);
    }

    /// How many bytes were taken in.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn finish(self) -> Captured {
        let mut captured = Captured {
            head: self.head,
            tail: self.tail.into(),
            total: self.total,
        };
        if captured.left_out() == 0 {
            captured.head.append(&mut captured.tail);
        }
        captured
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// `bytes` without the first part of a character whose other part is missing.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    // A cut character has at most 3 bytes left; it begins at the last byte that is not a continuation.
    let start = bytes
        .iter()
        .rposition(|byte| !is_continuation(*byte))
        .unwrap_or(bytes.len());
    match bytes.split_at_checked(start) {
        Some((whole, last))
            if std::str::from_utf8(last).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none()) =>
        {
            whole
        }
        _ => bytes,
    }
}

/// `bytes` without the last part of a character whose first part is missing.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take_while(|byte| is_continuation(**byte)).count();
    // More than 3 of them are no cut character but no UTF-8 at all.
    if cut <= 3 {
        bytes.get(cut..).unwrap_or_default()
    } else {
        bytes
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(head: usize, tail: usize, chunks: &[&[u8]]) -> Captured {
        let mut ring = HeadTail::new(head, tail);
        for chunk in chunks {
            ring.push(chunk);
        }
        ring.finish()
    }

    #[test]
    fn the_gap_is_said_on_a_line_of_its_own() {
        assert_eq!(
            captured(2, 2, &[b"abcdef"]).text(),
            "ab\n[… 2 bytes left out …]\nef"
        );
        assert_eq!(
            captured(2, 2, &[b"a\nbcdef"]).text(),
            "a\n[… 3 bytes left out …]\nef"
        );
        assert_eq!(captured(0, 2, &[b"abcdef"]).text(), "[… 4 bytes left out …]\nef");
        assert_eq!(captured(0, 0, &[b"abcdef"]).text(), "[… 6 bytes left out …]\n");
        assert_eq!(captured(3, 3, &[b"abcdef"]).text(), "abcdef");
        assert_eq!(captured(2, 2, &[]).text(), "");
    }

    #[test]
    fn case_157_no_cut_position_breaks_a_character() {
        let text = "aé€😀zß漢🦀x".repeat(2);
        let bytes = text.as_bytes();
        for head in 0..=bytes.len() {
            for tail in 0..=bytes.len() {
                let captured = captured(head, tail, &[bytes]);
                let shown = captured.text();
                assert!(!shown.contains('\u{FFFD}'), "head {head}, tail {tail}: {shown}");
                if head + tail >= bytes.len() {
                    assert_eq!(shown, text);
                    continue;
                }
                let (before, rest) = shown.split_once("[… ").unwrap();
                let (count, after) = rest.split_once(" bytes left out …]\n").unwrap();
                let before = before.strip_suffix('\n').unwrap_or(before);
                assert!(
                    text.starts_with(before) && text.ends_with(after),
                    "head {head}, tail {tail}: {shown}"
                );
                assert_eq!(
                    before.len() + after.len() + count.parse::<usize>().unwrap(),
                    bytes.len()
                );
                assert!(head - before.len() <= 3 && tail - after.len() <= 3);
            }
        }
    }

    proptest! {
        #[test]
        fn it_keeps_what_plain_slices_would(
            head in 0usize..40,
            tail in 0usize..40,
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..10),
        ) {
            let mut ring = HeadTail::new(head, tail);
            let mut all = Vec::new();
            for chunk in &chunks {
                ring.push(chunk);
                all.extend_from_slice(chunk);
                prop_assert!(ring.head.len() <= head && ring.tail.len() <= tail);
            }
            let captured = ring.finish();
            prop_assert_eq!(captured.total(), all.len() as u64);
            if all.len() <= head + tail {
                prop_assert_eq!(captured.complete(), Some(&all[..]));
                prop_assert_eq!(captured.text(), String::from_utf8_lossy(&all));
            } else {
                prop_assert_eq!(captured.complete(), None);
                prop_assert_eq!(captured.head(), &all[..head]);
                prop_assert_eq!(captured.tail(), &all[all.len() - tail..]);
                prop_assert_eq!(captured.left_out(), (all.len() - head - tail) as u64);
                prop_assert!(captured.text().contains("bytes left out"));
            }
        }
    }
}
