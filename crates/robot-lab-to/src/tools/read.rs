//! `read`: a text file, or some of its lines.

use super::Root;
use async_trait::async_trait;
use robot_lab::{Abort, ToolCx, ToolOutcome, TypedTool, counted};
use std::sync::Arc;

/// Most lines of one answer, and most bytes of one line and of the whole answer.
const MAX_LINES: usize = 2_000;
const MAX_LINE: usize = 2_000;
const MAX_BYTES: usize = 100_000;

/// Reads files of the workspace.
pub struct Read(pub Arc<Root>);

/// What to read.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArgs {
    /// File to read, relative to the working directory.
    #[serde(alias = "file_path")]
    path: String,
    /// First line to return, from 1.
    #[serde(default)]
    offset: Option<usize>,
    /// Most lines to return (at most 2000).
    #[serde(default)]
    limit: Option<usize>,
}

#[async_trait]
impl TypedTool for Read {
    type Args = ReadArgs;
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str =
        "Read a text file, whole or a range of lines. Long files come in parts.";

    async fn run(&self, args: ReadArgs, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        let read = self.0.resolve(&args.path).and_then(|path| self.0.read(&path));
        Ok(match read {
            Ok(bytes) => show(&bytes, args.offset.unwrap_or(1), args.limit.unwrap_or(MAX_LINES)),
            Err(why) => ToolOutcome::Failed(why),
        })
    }
}

fn show(bytes: &[u8], offset: usize, limit: usize) -> ToolOutcome {
    if bytes.iter().take(8_000).any(|byte| *byte == 0) {
        return ToolOutcome::Failed(format!(
            "a binary file of {}; look at it with bash",
            counted(bytes.len(), "byte")
        ));
    }
    if bytes.is_empty() {
        return ToolOutcome::text("[the file is empty]");
    }
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let total = body.split_inclusive(|byte| *byte == b'\n').count();
    let first = offset.max(1);
    let mut text = String::new();
    let mut shown = 0;
    for line in body
        .split_inclusive(|byte| *byte == b'\n')
        .skip(first - 1)
        .take(limit.clamp(1, MAX_LINES))
    {
        if text.len() >= MAX_BYTES {
            break;
        }
        push_line(&mut text, line);
        shown += 1;
    }
    if shown == 0 {
        return ToolOutcome::Failed(format!(
            "line {first} is past the end; the file has {}",
            counted(total, "line")
        ));
    }
    let last = first + shown - 1;
    if last < total || first > 1 {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[lines {first}-{last} of {total}"));
        if last < total {
            text.push_str(&format!("; read on with offset={}", last + 1));
        }
        text.push(']');
    }
    ToolOutcome::text(text)
}

/// Adds one line as the model sees it: with `\n` at its end, bytes that are no UTF-8 as `�`, and cut when very long.
fn push_line(text: &mut String, line: &[u8]) {
    let (content, end) = match line.strip_suffix(b"\n") {
        Some(content) => (content.strip_suffix(b"\r").unwrap_or(content), "\n"),
        None => (line, ""),
    };
    let kept = content.get(..MAX_LINE).unwrap_or(content);
    text.push_str(&String::from_utf8_lossy(kept));
    if content.len() > kept.len() {
        text.push_str(&format!(
            "[… {} more bytes in this line]",
            content.len() - kept.len()
        ));
    }
    text.push_str(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(outcome: ToolOutcome) -> String {
        robot_lab::ToolResult {
            call_id: String::new(),
            ok: true,
            parts: outcome.into_parts(),
        }
        .text()
    }

    #[test]
    fn case_164_lines_are_counted_and_bounded() {
        assert_eq!(text(show(b"a\nb\n", 1, 10)), "a\nb\n");
        assert_eq!(
            text(show(b"a\nb\nc", 2, 1)),
            "b\n[lines 2-2 of 3; read on with offset=3]"
        );
        assert_eq!(text(show(b"a\nb\nc", 3, 9)), "c\n[lines 3-3 of 3]");
        assert_eq!(
            text(show(b"a\n", 5, 1)),
            "error: line 5 is past the end; the file has 1 line"
        );
        assert_eq!(text(show(b"", 1, 1)), "[the file is empty]");
        assert_eq!(text(show(b"\xef\xbb\xbfa\r\n\xff\r\n", 1, 9)), "a\n\u{fffd}\n");
        assert!(text(show(b"a\0b", 1, 1)).contains("binary"));
        let long = text(show("é".repeat(5_000).as_bytes(), 1, 1));
        assert!(
            long.contains("[… 8000 more bytes in this line]"),
            "{} bytes",
            long.len()
        );
        let many = text(show("x\n".repeat(3_000).as_bytes(), 1, 9_999));
        assert!(many.ends_with("[lines 1-2000 of 3000; read on with offset=2001]"));
    }
}
