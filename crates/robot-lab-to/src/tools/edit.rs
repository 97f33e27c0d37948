//! `edit`: exact replacement in an existing file. Bytes that it does not name stay as they are.

use super::Root;
use async_trait::async_trait;
use robot_lab::{Abort, ToolCx, ToolOutcome, TypedTool};
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
    let Replaced { bytes, lines } = replace(&bytes, &args.old_text, &args.new_text, args.replace_all)?;
    root.write(&path, &bytes)?;
    let at: Vec<String> = lines.iter().take(20).map(usize::to_string).collect();
    let plural = if lines.len() == 1 { "" } else { "s" };
    Ok(format!(
        "edited {}: {} replacement{plural}, at line {}",
        path.display(),
        lines.len(),
        at.join(", ")
    ))
}

/// A file after its edit.
#[derive(Debug, PartialEq)]
struct Replaced {
    bytes: Vec<u8>,
    /// The line, in the old file, of each replacement.
    lines: Vec<usize>,
}

/// Replaces `old` by `new`. Models see CRLF files with plain line feeds, so there both are taken to mean CRLF.
fn replace(file: &[u8], old: &str, new: &str, all: bool) -> Result<Replaced, String> {
    if old.is_empty() {
        return Err("old_text is empty; give the exact text to replace, or use write for a new file".into());
    }
    if old == new {
        return Err("old_text and new_text are the same; nothing would change".into());
    }
    let (mut old, mut new) = (Cow::Borrowed(old), Cow::Borrowed(new));
    let mut found = find(file, old.as_bytes());
    if uses_crlf(file) {
        if found.is_empty() {
            old = crlf(&old);
            found = find(file, old.as_bytes());
        }
        new = crlf(&new);
    }
    let lines = lines_of(file, &found);
    match lines.as_slice() {
        [] => Err(
            "old_text is not in the file; read the file and copy the text exactly, white space included"
                .into(),
        ),
        [_, _, ..] if !all => {
            let at: Vec<String> = lines.iter().take(20).map(usize::to_string).collect();
            Err(format!(
                "old_text occurs {} times (lines {}); add lines around it so that it is unique, or set replace_all",
                lines.len(),
                at.join(", ")
            ))
        }
        _ => {
            let mut bytes = Vec::with_capacity(file.len() + new.len());
            let mut from = 0;
            for at in found {
                bytes.extend_from_slice(file.get(from..at).unwrap_or_default());
                bytes.extend_from_slice(new.as_bytes());
                from = at + old.len();
            }
            bytes.extend_from_slice(file.get(from..).unwrap_or_default());
            Ok(Replaced { bytes, lines })
        }
    }
}

/// Where `needle` occurs, without overlaps.
fn find(file: &[u8], needle: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(file, needle).collect()
}

/// Whether every line of the file ends in CRLF.
fn uses_crlf(file: &[u8]) -> bool {
    let feeds = file.iter().filter(|byte| **byte == b'\n').count();
    feeds > 0 && file.windows(2).filter(|pair| *pair == b"\r\n").count() == feeds
}

fn crlf(text: &str) -> Cow<'static, str> {
    Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
}

/// The line of each place, in one pass. Places are in order.
fn lines_of(file: &[u8], places: &[usize]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let mut lines = Vec::with_capacity(places.len());
    for &at in places {
        line += memchr::memchr_iter(b'\n', file.get(from..at).unwrap_or_default()).count();
        from = at;
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edited(file: &[u8], old: &str, new: &str) -> Vec<u8> {
        replace(file, old, new, false).unwrap().bytes
    }

    #[test]
    fn bytes_around_an_edit_survive() {
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
                lines: vec![1, 3]
            }
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
