//! Finds text that is almost as it was given, by a few differences that leave no doubt about what is meant.
//!
//! Each rung lets one kind of difference pass and nothing else. A rung counts only with exactly one place; nothing is
//! ever taken because it is similar.

use super::escape::{self, Escapes, line_feeds, unescape};
use super::indent::Shift;
use super::lines::{Cursor, Folded, Line, MAX_PLACES, split_indent, trim_end, uses_crlf};
use std::ops::Range;

/// Fewest characters, blanks not counted, of a text that need not be exact; shorter ones fit by chance.
const MIN_CHARS: usize = 10;
/// The same for a text of one line, which has nothing around it to be told by.
const MIN_CHARS_OF_ONE_LINE: usize = 16;
/// Fewest lines of a text whose white space inside of lines may differ.
const MIN_LINES_FOR_SPACING: usize = 3;

/// The one place that is meant, and what to put there.
#[derive(Debug, PartialEq)]
pub(super) struct Fit {
    /// The bytes of the file that are replaced.
    pub(super) span: Range<usize>,
    pub(super) text: Vec<u8>,
    /// The line that the span starts in.
    pub(super) line: usize,
    /// What differed, for the answer.
    pub(super) note: &'static str,
}

/// A kind of difference, in the words of the answer and of the refusal.
struct Rung {
    note: &'static str,
    /// Follows "old_text is not in the file as it is; ".
    how: &'static str,
}

const LINE_ENDS: Rung = Rung {
    note: "white space at line ends differed",
    how: "with white space at line ends ignored",
};
const INDENTATION: Rung = Rung {
    note: "indentation differed; matched by shifting it",
    how: "with its indentation shifted",
};
const TABS: &str = "indentation differed; matched by exchanging tabs and spaces";
const ESCAPES: Rung = Rung {
    note: "old_text was escaped once too often; unescaped both texts",
    how: "with its escapes taken back",
};
const LOOK_ALIKES: Rung = Rung {
    note: "look-alike quotes, dashes or spaces differed; those that new_text keeps stay as they were",
    how: "with look-alike quotes, dashes and spaces taken as equal",
};
const SPACING: Rung = Rung {
    note: "white space inside of unchanged lines differed; those lines stay as they were",
    how: "with white space inside of lines ignored",
};

/// Where `old` is meant to be, and `new` made to fit there. None when no rung finds a place; an error when one finds
/// several, or the one cannot be replaced without a guess. `old` is not in the file exactly.
pub(super) fn climb(file: &[u8], old: &str, new: &str) -> Result<Option<Fit>, String> {
    let (old, new) = (&*line_feeds(old), &*line_feeds(new));
    if is_short(old) {
        return Ok(None);
    }
    let rungs = [line_ends, indentation, escapes, look_alikes, spacing];
    for rung in rungs {
        if let Some(fit) = rung(file, old, new)? {
            if file.get(fit.span.clone()) == Some(fit.text.as_slice()) {
                return Err(format!(
                    "nothing would change: line {} has new_text already ({})",
                    fit.line, fit.note
                ));
            }
            return Ok(Some(fit));
        }
    }
    Ok(None)
}

/// Whether a text is too short to be taken for another.
pub(super) fn is_short(old: &str) -> bool {
    let chars = old.chars().filter(|char| !char.is_whitespace()).count();
    let lines = old.lines().filter(|line| !line.trim().is_empty()).count();
    chars < MIN_CHARS || (lines < 2 && chars < MIN_CHARS_OF_ONE_LINE)
}

/// The only place, or why there is no such.
fn only<T>(places: Option<Vec<(usize, T)>>, rung: &Rung) -> Result<Option<T>, String> {
    let Some(places) = places else {
        return Err(format!(
            "old_text is not in the file as it is; {} too many places resemble it; {COPY}",
            rung.how
        ));
    };
    if places.len() > 1 {
        let at: Vec<String> = places.iter().map(|(line, _)| line.to_string()).collect();
        let least = if places.len() < MAX_PLACES {
            ""
        } else {
            "at least "
        };
        return Err(format!(
            "old_text is not in the file as it is; {} it fits {least}{} places (lines {}); {COPY}",
            rung.how,
            places.len(),
            at.join(", "),
        ));
    }
    Ok(places.into_iter().next().map(|(_, place)| place))
}

const COPY: &str = "copy the text exactly, with lines around it so that it is unique";

/// Spaces and tabs before line ends, and which line end it is, do not count.
fn line_ends(file: &[u8], old: &str, new: &str) -> Result<Option<Fit>, String> {
    trimmed(file, old, new, &LINE_ENDS)
}

/// Like an exact search, with the ends of lines trimmed in both. It may start and end within lines, as the exact search
/// may.
fn trimmed(file: &[u8], old: &str, new: &str, rung: &Rung) -> Result<Option<Fit>, String> {
    let parts: Vec<&[u8]> = old.split('\n').map(str::as_bytes).collect();
    let kept: Vec<&[u8]> = parts.iter().map(|part| trim_end(part)).collect();
    let needle = kept.join(&b'\n');
    let is_trimmed = |part: Option<&&[u8]>, kept: Option<&&[u8]>| part != kept;
    // White space that was trimmed was before the end of a line, so the file must have the end of a line there.
    let to_line_end = is_trimmed(parts.last(), kept.last());
    // A blank first line is a line, not the end of one that has text.
    let from_line_start = needle.starts_with(b"\n") && is_trimmed(parts.first(), kept.first());

    let folded = Folded::new(file, |body, out| out.extend_from_slice(trim_end(body)));
    let places = folded.find(&needle, 0, |at, cursor| {
        let fits = (!to_line_end || folded.ends_line(at + needle.len()))
            && (!from_line_start || folded.ends_line(at.saturating_sub(1)));
        let line = cursor.line().filter(|_| fits)?;
        Some((line.number, (at, line, cursor.clone())))
    });
    let Some((at, first, mut cursor)) = only(places, rung)? else {
        return Ok(None);
    };
    let column = cursor.column(at);
    let start = if needle.starts_with(b"\n") && column > 0 {
        // Of a line that has text only the end is named; the white space before it is not.
        first.body_end()
    } else {
        first.start + column
    };
    let to = at + needle.len();
    let ends_file = covers_missing_feed(file, old, &mut cursor, to);
    cursor.seek(to);
    let end = match cursor.line() {
        // The trimmed white space goes with the line.
        Some(line) if folded.ends_line(to) && !old.ends_with('\n') => line.body_end(),
        Some(line) => line.start + cursor.column(to),
        None => file.len(),
    };
    Ok(Some(Fit {
        span: start..end,
        text: with_line_end(without_feed(new, ends_file), line_end(file, &first)),
        line: first.number,
        note: rung.note,
    }))
}

/// Whether the last `\n` of the text stands for the end of a file that has no final `\n`. `to` is where the text ends
/// in the folded copy. A file stays without one.
fn covers_missing_feed(file: &[u8], old: &str, cursor: &mut Cursor<'_, '_>, to: usize) -> bool {
    cursor.seek(to.saturating_sub(1));
    old.ends_with('\n')
        && cursor
            .line()
            .is_some_and(|line| line.end.is_empty() && line.body_end() == file.len())
}

fn without_feed(new: &str, cut: bool) -> &str {
    new.strip_suffix('\n').filter(|_| cut).unwrap_or(new)
}

/// The line end to write in place of this line.
fn line_end<'a>(file: &[u8], line: &Line<'a>) -> &'a [u8] {
    match line.end {
        [] if uses_crlf(file) => b"\r\n",
        [] => b"\n",
        end => end,
    }
}

fn with_line_end(text: &str, end: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = text.split('\n').map(str::as_bytes).collect();
    parts.join(end)
}

/// Whole lines, all indented by the same more or less.
fn indentation(file: &[u8], old: &str, new: &str) -> Result<Option<Fit>, String> {
    let trim = |body: &[u8], out: &mut Vec<u8>| out.extend_from_slice(trim_end(split_indent(body).1));
    let Some(Block { lines, shift, .. }) = block(file, old, trim, &INDENTATION)? else {
        return Ok(None);
    };
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        return Ok(None);
    };
    let ended = old.ends_with('\n');
    let new = without_feed(new, ended && last.end.is_empty());
    let text = shifted(&shift, new.split('\n'), line_end(file, first)).ok_or_else(|| {
        format!(
            "old_text is at line {} with another indentation; {UNCLEAR}",
            first.number
        )
    })?;
    Ok(Some(Fit {
        span: first.start..if ended { last.next_start() } else { last.body_end() },
        text,
        line: first.number,
        note: note_of(&shift, &INDENTATION),
    }))
}

const UNCLEAR: &str = "what that makes of the indentation of new_text is not clear; \
                       copy the indentation of the file in both texts";

fn note_of(shift: &Shift, rung: &Rung) -> &'static str {
    match shift {
        Shift::ToSpaces(_) | Shift::ToTabs(_) => TABS,
        Shift::Add(_) | Shift::Remove(_) => rung.note,
    }
}

/// Lines of the file that a text fits.
struct Block<'a> {
    lines: Vec<Line<'a>>,
    /// What makes the indentation of the text that of the file.
    shift: Shift,
    /// The lines of the text.
    old: Vec<&'a [u8]>,
}

/// The only lines of the file that are those of `old` when both are folded, and whose indentation is a shift of theirs.
fn block<'a>(
    file: &'a [u8],
    old: &'a str,
    fold: super::lines::Fold,
    rung: &Rung,
) -> Result<Option<Block<'a>>, String> {
    let old = lines_of(old);
    let mut needle = vec![b'\n'];
    for line in &old {
        fold(line, &mut needle);
        needle.push(b'\n');
    }
    let folded = Folded::new(file, fold);
    // The needle starts with the end of the line before.
    let places = folded.find(&needle, 1, |_, cursor| {
        let pairs = old.iter().copied().zip(cursor.lines().map(|line| line.body));
        let shift = Shift::between(pairs)?;
        Some((cursor.line()?.number, (shift, cursor.clone())))
    });
    let Some((shift, cursor)) = only(places, rung)? else {
        return Ok(None);
    };
    let lines = cursor.lines().take(old.len()).collect();
    Ok(Some(Block { lines, shift, old }))
}

/// The lines of a text; a final `\n` ends the last and starts no other.
fn lines_of(text: &str) -> Vec<&[u8]> {
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .map(str::as_bytes)
        .collect()
}

fn shifted<'a>(shift: &Shift, lines: impl Iterator<Item = &'a str>, end: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for (index, line) in lines.enumerate() {
        if index > 0 {
            text.extend_from_slice(end);
        }
        if !shift.apply(line.as_bytes(), &mut text) {
            return None;
        }
    }
    Some(text)
}

/// The text was escaped once too often, as in a string inside a string.
fn escapes(file: &[u8], old: &str, new: &str) -> Result<Option<Fit>, String> {
    for which in [Escapes::All, Escapes::Quotes] {
        let (plain_old, kinds) = unescape(old, which);
        if !kinds.any() || is_short(&plain_old) {
            continue;
        }
        let (plain_new, new_kinds) = unescape(new, which);
        let Some(fit) = trimmed(file, &line_feeds(&plain_old), &line_feeds(&plain_new), &ESCAPES)? else {
            continue;
        };
        // An escape that the place does not explain may be meant as it is written.
        let mixed = kinds.control && new_kinds.control && !old.contains('\n') && new.contains('\n');
        if mixed || !new_kinds.within(kinds) {
            return Err(format!(
                "old_text is at line {} when its escapes are taken back, but which escapes of new_text are meant as \
                 they are is not clear; write both texts as they are in the file",
                fit.line
            ));
        }
        return Ok(Some(fit));
    }
    Ok(None)
}

/// Typographic quotes, dashes and spaces count as their ASCII forms. What both texts start and end with stays as the
/// file has it, so that an edit of one word does not change the quotes around it.
fn look_alikes(file: &[u8], old: &str, new: &str) -> Result<Option<Fit>, String> {
    let mut needle = Vec::new();
    escape::fold(old.as_bytes(), &mut needle);
    let folded = Folded::new(file, escape::fold);
    let places = folded.find(&needle, 0, |at, cursor| {
        Some((cursor.line()?.number, (at, cursor.clone())))
    });
    let Some((at, mut cursor)) = only(places, &LOOK_ALIKES)? else {
        return Ok(None);
    };
    let (head, tail) = common_ends(old, new);
    let mut offset = |at: usize| {
        cursor.seek(at);
        cursor.line().map(|line| {
            let within = escape::unfold(line.body, cursor.column(at));
            (line.start + within, line)
        })
    };
    let Some((start, first)) = offset(at + escape::folded_len(head)) else {
        return Ok(None);
    };
    let to = at + needle.len() - escape::folded_len(tail);
    // Past the last line there is the end of the file.
    let end = offset(to).map_or(file.len(), |(end, _)| end);
    let changed = new.get(head.len()..new.len() - tail.len()).unwrap_or_default();
    Ok(Some(Fit {
        span: start..end,
        text: with_line_end(changed, line_end(file, &first)),
        line: first.number,
        note: LOOK_ALIKES.note,
    }))
}

/// What both texts start with, and what they end with after that.
fn common_ends<'a>(old: &'a str, new: &str) -> (&'a str, &'a str) {
    let equal = |(one, two): &(char, char)| one == two;
    let length = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
        pairs.map(|(char, _)| char.len_utf8()).sum()
    };
    let head = length(&mut old.chars().zip(new.chars()).take_while(equal));
    let (head, rest) = old.split_at_checked(head).unwrap_or((old, ""));
    let new_rest = new.get(head.len()..).unwrap_or_default();
    let tail = length(&mut rest.chars().rev().zip(new_rest.chars().rev()).take_while(equal));
    (head, rest.get(rest.len() - tail..).unwrap_or_default())
}

/// White space inside of lines differs, in lines that the edit keeps. Those stay as the file has them; the others must
/// fit as in [`indentation`].
fn spacing(file: &[u8], old: &str, new: &str) -> Result<Option<Fit>, String> {
    if lines_of(old).len() < MIN_LINES_FOR_SPACING {
        return Ok(None);
    }
    let Some(Block {
        lines,
        shift,
        old: old_lines,
    }) = block(file, old, collapse, &SPACING)?
    else {
        return Ok(None);
    };
    let new_lines = lines_of(new);
    let (ended, new_ended) = (old.ends_with('\n'), new.ends_with('\n'));
    let most = old_lines.len().min(new_lines.len());
    let pairs = || old_lines.iter().zip(&new_lines);
    let ends = || old_lines.iter().rev().zip(new_lines.iter().rev());
    let tail = if ended == new_ended {
        ends().take_while(|(old, new)| old == new).count()
    } else {
        0
    };
    // Without a line after the change, the last line of both is part of it, as its end may be.
    let head = pairs()
        .take_while(|(old, new)| old == new)
        .count()
        .min(most.saturating_sub(tail.max(1)));
    let changed = head..lines.len().saturating_sub(tail);
    for (line, old) in lines.iter().zip(&old_lines).take(changed.end).skip(head) {
        if trim_end(split_indent(line.body).1) != trim_end(split_indent(old).1) {
            return Err(format!(
                "old_text is at line {}, but white space inside line {} differs from the file, and new_text changes \
                 that line; copy it exactly",
                lines.first().map_or(1, |first| first.number),
                line.number
            ));
        }
    }
    let (Some(first), Some(last)) = (lines.get(head), lines.last()) else {
        return Ok(None);
    };
    let end = line_end(file, first);
    let mut text = Vec::new();
    let kept = new_lines
        .get(head..new_lines.len().saturating_sub(tail))
        .unwrap_or_default();
    for (index, line) in kept.iter().enumerate() {
        if !shift.apply(line, &mut text) {
            return Err(format!(
                "old_text is at line {} with another indentation; {UNCLEAR}",
                first.number
            ));
        }
        let feeds_file = !(ended && last.end.is_empty());
        if index + 1 < kept.len() || tail > 0 || (new_ended && feeds_file) {
            text.extend_from_slice(end);
        }
    }
    let to = match lines.get(changed.end) {
        Some(after) => after.start,
        None if ended => last.next_start(),
        None => last.body_end(),
    };
    Ok(Some(Fit {
        span: first.start..to,
        text,
        line: first.number,
        note: SPACING.note,
    }))
}

/// Writes the words of a line with one space between them.
fn collapse(body: &[u8], out: &mut Vec<u8>) {
    let words = body
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty());
    for (index, word) in words.enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
}

#[cfg(test)]
mod tests;
