//! `edit`: replacement of text in an existing file. Bytes that it does not name stay as they are.

mod escape;
mod indent;
mod ladder;
mod lines;
mod nearest;

use super::Root;
use super::root::MAX_FILE;
use async_trait::async_trait;
use lines::{MAX_PLACES, uses_crlf};
use memchr::{memchr_iter, memmem};
use robot_lab::{Abort, ToolCx, ToolOutcome, TypedTool, counted};
use std::borrow::Cow;
use std::sync::Arc;

/// Edits files of the workspace.
pub struct Edit(pub Arc<Root>);

/// What to replace.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArgs {
    /// File to edit, relative to the working directory.
    #[serde(alias = "file_path")]
    path: String,
    /// Exact text to replace, white space included. It must occur once, unless replace_all is set.
    old_text: String,
    /// Replacement text.
    new_text: String,
    /// Replace every occurrence (default false).
    #[serde(default)]
    replace_all: bool,
}

#[async_trait]
impl TypedTool for Edit {
    type Args = EditArgs;
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = "Replace text in an existing file. old_text must match the file exactly and \
                                       occur once, unless replace_all is set.";

    async fn run(&self, args: EditArgs, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        Ok(edit(&self.0, &args).map_or_else(ToolOutcome::Failed, ToolOutcome::text))
    }
}

fn edit(root: &Root, args: &EditArgs) -> Result<String, String> {
    let path = root.resolve(&args.path)?;
    let bytes = root.read(&path)?;
    let Replaced { bytes, lines, note } = replace(&bytes, &args.old_text, &args.new_text, args.replace_all)?;
    root.write(&path, &bytes)?;
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    Ok(format!(
        "edited {}: {}, at line {}{note}",
        path.display(),
        counted(lines.len(), "replacement"),
        first_of(&lines)
    ))
}

/// A file after its edit.
#[derive(Debug, PartialEq)]
struct Replaced {
    bytes: Vec<u8>,
    /// The line, in the old file, of each replacement.
    lines: Vec<usize>,
    /// What differed from the text that was asked for, if it was not there exactly.
    note: Option<&'static str>,
}

/// Replaces `old` by `new`. The text itself comes first; what is almost it counts only when it is not there.
fn replace(file: &[u8], old: &str, new: &str, all: bool) -> Result<Replaced, String> {
    if old.is_empty() {
        return Err("old_text is empty; give the exact text to replace, or use write for a new file".into());
    }
    if old == new {
        return Err("old_text and new_text are the same; nothing would change".into());
    }
    if let Some(replaced) = replace_exactly(file, old, new, all)? {
        return Ok(replaced);
    }
    // What is only almost the text may be meant at one place, never at all of them.
    let fit = if all { None } else { ladder::climb(file, old, new)? };
    let Some(fit) = fit else {
        return Err(not_there(file, old, all));
    };
    let length = fit.span.len();
    Ok(Replaced {
        bytes: spliced(file, &[fit.span.start], length, &fit.text)?,
        lines: vec![fit.line],
        note: Some(fit.note),
    })
}

/// Replaces the text itself. Models see CRLF with plain line feeds, so where the file has CRLF both are taken to mean
/// that.
fn replace_exactly(file: &[u8], old: &str, new: &str, all: bool) -> Result<Option<Replaced>, String> {
    let (mut old, mut new) = (Cow::Borrowed(old), Cow::Borrowed(new));
    let mut found = find(file, old.as_bytes(), all);
    let mut to_crlf = uses_crlf(file);
    if found.is_empty() && old.contains('\n') {
        old = crlf(&old);
        found = find(file, old.as_bytes(), all);
        to_crlf |= !found.is_empty();
    }
    if to_crlf {
        new = crlf(&new);
    }
    let lines = line_numbers(file, &found);
    match lines.as_slice() {
        [] => Ok(None),
        [_, _, ..] if !all => {
            let least = if lines.len() < MAX_PLACES { "" } else { "at least " };
            Err(format!(
                "old_text occurs {least}{} times (lines {}); add lines around it so that it is unique, or set \
                 replace_all",
                lines.len(),
                first_of(&lines)
            ))
        }
        _ => Ok(Some(Replaced {
            bytes: spliced(file, &found, old.len(), new.as_bytes())?,
            lines,
            note: None,
        })),
    }
}

/// The file with `new` in place of `length` bytes at each place. Places are in order and do not overlap.
fn spliced(file: &[u8], places: &[usize], length: usize, new: &[u8]) -> Result<Vec<u8>, String> {
    let kept = file.len().saturating_sub(places.len() * length);
    let size = places.len().saturating_mul(new.len()).saturating_add(kept);
    if u64::try_from(size).is_ok_and(|size| size > MAX_FILE) {
        return Err(format!(
            "the file would have {size} bytes, more than {MAX_FILE}; nothing was changed"
        ));
    }
    let mut bytes = Vec::with_capacity(size);
    let mut from = 0;
    for &at in places {
        bytes.extend_from_slice(file.get(from..at).unwrap_or_default());
        bytes.extend_from_slice(new);
        from = at + length;
    }
    bytes.extend_from_slice(file.get(from..).unwrap_or_default());
    Ok(bytes)
}

/// Where `needle` occurs: all places without overlaps, or the first ones, where overlaps count as they are places too
/// that may be meant.
fn find(file: &[u8], needle: &[u8], all: bool) -> Vec<usize> {
    if all {
        return memmem::find_iter(file, needle).collect();
    }
    let finder = memmem::Finder::new(needle);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(hit) = file.get(from..).and_then(|rest| finder.find(rest))
        && found.len() < MAX_PLACES
    {
        found.push(from + hit);
        from += hit + 1;
    }
    found
}

fn crlf(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
}

/// The line of each place, in one pass. Places are in order.
fn line_numbers(file: &[u8], places: &[usize]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let mut lines = Vec::with_capacity(places.len());
    for &at in places {
        line += memchr_iter(b'\n', file.get(from..at).unwrap_or_default()).count();
        from = at;
        lines.push(line);
    }
    lines
}

fn first_of(lines: &[usize]) -> String {
    let at: Vec<String> = lines.iter().take(MAX_PLACES).map(usize::to_string).collect();
    at.join(", ")
}

/// The refusal of a text that is nowhere, with what the file has in its place.
fn not_there(file: &[u8], old: &str, all: bool) -> String {
    let exact = if all {
        " (replace_all takes exact text only)"
    } else if ladder::is_short(old) {
        " (so short a text must match exactly)"
    } else {
        ""
    };
    let refusal = format!("old_text is not in the file{exact}; ");
    match nearest::nearest(file, old) {
        Some(lines) => format!(
            "{refusal}copy the text exactly, white space included. The nearest lines, after their number and `|`:{lines}"
        ),
        None => format!("{refusal}read the file and copy the text exactly, white space included"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edited(file: &[u8], old: &str, new: &str) -> Vec<u8> {
        replace(file, old, new, false).unwrap().bytes
    }

    #[test]
    fn case_156_160_bytes_around_an_edit_survive() {
        assert_eq!(
            edited(b"\xef\xbb\xbfone\ntwo", "one", "1"),
            b"\xef\xbb\xbf1\ntwo",
            "BOM, no final newline"
        );
        assert_eq!(
            edited(b"\xff\xfe one \x80\n", "one", "1"),
            b"\xff\xfe 1 \x80\n",
            "not UTF-8"
        );
        assert_eq!(
            edited(b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n"),
            b"x\r\ny\r\nc\r\n",
            "CRLF"
        );
        assert_eq!(
            edited(b"a\r\nb\r\n", "b", "x\ny"),
            b"a\r\nx\r\ny\r\n",
            "new lines in a CRLF file"
        );
        assert_eq!(
            edited(b"a\r\nb\n", "b", "x\ny"),
            b"a\r\nx\ny\n",
            "mixed ends stay as they are"
        );
    }

    #[test]
    fn refusals_say_what_to_do() {
        let text = |old, new| replace(b"x\ny\nx\n", old, new, false).unwrap_err();
        assert!(text("", "a").contains("old_text is empty"));
        assert!(text("x", "x").contains("the same"));
        assert!(text("z", "a").contains("not in the file"));
        assert!(text("x", "a").contains("occurs 2 times (lines 1, 3)"));
        assert_eq!(
            replace(b"x\ny\nx\n", "x", "", true).unwrap(),
            Replaced {
                bytes: b"\ny\n\n".to_vec(),
                lines: vec![1, 3],
                note: None,
            }
        );
    }

    #[test]
    fn the_answer_names_what_differed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path(), "".as_ref(), "/none".as_ref()).unwrap();
        std::fs::write(
            dir.path().join("x"),
            "one\n    alpha_beta();\n    gamma_delta();\n",
        )
        .unwrap();
        let mut args = EditArgs {
            path: "x".into(),
            old_text: "alpha_beta();\ngamma_delta();\n".into(),
            new_text: "alpha();\n".into(),
            replace_all: false,
        };
        assert_eq!(
            edit(&root, &args).unwrap(),
            "edited x: 1 replacement, at line 2 (indentation differed; matched by shifting it)"
        );
        assert_eq!(
            std::fs::read_to_string(dir.path().join("x")).unwrap(),
            "one\n    alpha();\n"
        );
        args.old_text = "one".into();
        assert_eq!(edit(&root, &args).unwrap(), "edited x: 1 replacement, at line 1");
    }

    #[test]
    fn places_that_overlap_are_two() {
        let refusal = replace(b"aXaXa", "aXa", "b", false).unwrap_err();
        assert!(refusal.contains("occurs 2 times (lines 1, 1)"), "{refusal}");
        assert_eq!(replace(b"aXaXa", "aXa", "b", true).unwrap().bytes, b"bXa");
        let refusal = replace("x".repeat(50).as_bytes(), "x", "y", false).unwrap_err();
        assert!(refusal.contains("at least 20 times"), "{refusal}");
    }

    #[test]
    fn an_edit_does_not_make_a_file_too_large_to_read() {
        let refusal = replace(&[b'a'; 40_000], "a", &"b".repeat(1_000), true).unwrap_err();
        assert!(refusal.contains("40000000 bytes, more than"), "{refusal}");
    }

    #[test]
    fn case_156_line_feeds_mean_crlf_where_the_file_has_it() {
        let replaced = replace(b"a\r\nb\r\nc\n", "a\nb", "x\ny", false).unwrap();
        assert_eq!(
            (replaced.bytes.as_slice(), replaced.note),
            (b"x\r\ny\r\nc\n".as_slice(), None)
        );
    }

    proptest! {
        /// The oracle is the standard library's own replacement.
        #[test]
        fn replacing_all_is_what_str_replace_does(file in "[ab\n]{0,40}", old in "[ab\n]{1,3}", new in "[abc\n]{0,3}") {
            prop_assume!(old != new);
            match replace(file.as_bytes(), &old, &new, true) {
                Ok(replaced) => prop_assert_eq!(String::from_utf8(replaced.bytes).unwrap(), file.replace(&old, &new)),
                Err(_) => prop_assert!(!file.contains(&old)),
            }
        }
    }
}
