//! The part of the notes that goes into a prompt: recent entries whole, older ones one line each, within a budget.

use crate::commit_message::clip;

const HEADING: &str = "### Iteration ";
/// Longest line for an older entry, in characters.
const MAX_OLD: usize = 200;

/// The notes in at most about `max` bytes.
pub fn digest(notes: &str, max: usize) -> String {
    let mut entries: Vec<String> = Vec::new();
    let mut lines = notes
        .lines()
        .skip_while(|line| !line.starts_with(HEADING))
        .peekable();
    while let Some(heading) = lines.next() {
        let mut entry = format!("{heading}\n");
        while let Some(line) = lines.next_if(|line| !line.starts_with(HEADING)) {
            entry.push_str(line);
            entry.push('\n');
        }
        entries.push(entry);
    }
    let mut left = max;
    let mut kept: Vec<String> = Vec::new();
    let mut whole = true;
    for (older, entry) in entries.iter().rev().enumerate() {
        let short = one_line_of(entry);
        whole = whole && entry.len() <= left;
        let text = if whole { entry } else { &short };
        if text.len() > left {
            kept.push(format!(
                "[{} older entries are left out]\n",
                entries.len() - older
            ));
            break;
        }
        left -= text.len();
        kept.push(text.clone());
    }
    kept.reverse();
    kept.concat()
}

/// `### Iteration 3 [FAIL]: summary`.
fn one_line_of(entry: &str) -> String {
    let heading = entry.lines().next().unwrap_or_default();
    let summary = entry
        .lines()
        .find_map(|line| line.strip_prefix("**Summary:** "))
        .unwrap_or_default();
    format!("{}\n", clip(&format!("{heading}: {summary}"), MAX_OLD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn notes(n: usize) -> String {
        let entry = |i| {
            format!(
                "\n### Iteration {i}\n\n**Summary:** did {i}\n\n**Learnings:**\n- {}\n",
                "x".repeat(60)
            )
        };
        format!(
            "# run\n\n## Iteration Log\n{}",
            (1..=n).map(entry).collect::<String>()
        )
    }

    #[test]
    fn recent_entries_are_whole_and_older_ones_are_a_line() {
        assert_eq!(digest("# run\n\n## Iteration Log\n", 100), "");
        let text = digest(&notes(4), 300);
        assert!(
            text.starts_with("### Iteration 1: did 1\n### Iteration 2: did 2\n### Iteration 3\n"),
            "{text}"
        );
        assert!(
            digest(&notes(500), 300).starts_with("[4"),
            "{}",
            digest(&notes(500), 300)
        );
    }

    proptest! {
        #[test]
        fn a_digest_is_bounded(n in 0usize..60, max in 0usize..2_000) {
            prop_assert!(digest(&notes(n), max).len() <= max + 40);
        }
    }
}
