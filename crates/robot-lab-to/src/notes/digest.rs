//! The part of the notes that goes into a prompt: recent entries whole, older ones one line each, no learning twice,
//! within a budget.

use crate::commit_message::clip;
use crate::shell::head_and_tail;
use std::collections::HashSet;

const HEADING: &str = "### Iteration ";
const LEARNINGS: &str = "**Learnings";
/// Longest line for an older entry, in characters.
const MAX_OLD: usize = 200;

/// The notes in at most about `max` bytes. Where not all of it fits, a quarter is left for the lines of older entries.
/// A learning that was reported more than once stays where it was reported last.
pub fn digest(notes: &str, max: usize) -> String {
    let entries = without_repeats(entries(notes));
    if entries.iter().map(String::len).sum::<usize>() <= max {
        return entries.concat();
    }
    let mut left = max;
    let mut for_whole = max / 4 * 3;
    let mut whole = true;
    let mut kept: Vec<String> = Vec::new();
    for (older, entry) in entries.iter().rev().enumerate() {
        let mut text = one_line_of(entry);
        if whole && entry.len() <= for_whole {
            text.clone_from(entry);
        } else if older == 0 {
            // The latest says most, also when it alone is too long.
            let cut = format!("{}\n", head_and_tail(entry.trim_end(), for_whole));
            text = if cut.len() <= left { cut } else { text };
            whole = false;
        } else {
            whole = false;
        }
        if text.len() > left {
            kept.push(format!(
                "[{} older entries are left out]\n",
                entries.len() - older
            ));
            break;
        }
        left -= text.len();
        for_whole = for_whole.saturating_sub(text.len());
        kept.push(text);
    }
    kept.reverse();
    kept.concat()
}

/// The entries, in order, each with its heading.
fn entries(notes: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in notes.lines().skip_while(|line| !line.starts_with(HEADING)) {
        if line.starts_with(HEADING) {
            entries.push(String::new());
        }
        if let Some(entry) = entries.last_mut() {
            entry.push_str(line);
            entry.push('\n');
        }
    }
    entries
}

/// Takes learnings away that a later entry has too.
fn without_repeats(entries: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut kept: Vec<String> = entries
        .iter()
        .rev()
        .map(|entry| without_known(entry, &mut seen))
        .collect();
    kept.reverse();
    kept
}

fn without_known(entry: &str, seen: &mut HashSet<String>) -> String {
    let mut lines: Vec<&str> = Vec::new();
    // The title of a list of learnings while none of it is kept.
    let mut title = None;
    let mut listing = false;
    for line in entry.lines() {
        if line.starts_with(LEARNINGS) {
            (title, listing) = (Some(line), true);
            continue;
        }
        match line.strip_prefix("- ") {
            Some(learning) if listing => {
                if seen.insert(normal(learning)) {
                    lines.extend(title.take());
                    lines.push(line);
                }
            }
            _ => {
                listing = false;
                lines.push(line);
            }
        }
    }
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
        .iter()
        .flat_map(|line| [*line, "\n"])
        .chain(["\n"])
        .collect()
}

/// A learning without what does not make it another one: case, punctuation, spacing.
fn normal(learning: &str) -> String {
    let words: Vec<String> = learning
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() {
        learning.trim().to_owned()
    } else {
        words.join(" ")
    }
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

    /// Notes of `n` iterations, with these learnings by turns.
    fn notes(n: usize, learnings: &[&str]) -> String {
        let entry = |i: usize| {
            let learning = learnings
                .get(i % learnings.len().max(1))
                .copied()
                .unwrap_or_default();
            format!("\n### Iteration {i}\n\n**Summary:** did {i}\n\n**Learnings:**\n- {i} {learning}\n")
        };
        format!(
            "# run\n\n## Iteration Log\n{}",
            (1..=n).map(entry).collect::<String>()
        )
    }

    #[test]
    fn recent_entries_are_whole_and_older_ones_are_a_line() {
        let long = ["x".repeat(60)];
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        assert_eq!(digest("# run\n\n## Iteration Log\n", 100), "");
        let text = digest(&notes(4, &long), 300);
        assert!(
            text.starts_with(
                "### Iteration 1: did 1\n### Iteration 2: did 2\n### Iteration 3: did 3\n### Iteration 4\n\n"
            ),
            "{text}"
        );
        let text = digest(&notes(500, &long), 300);
        assert!(text.starts_with("[49"), "{text}");
    }

    #[test]
    fn an_entry_that_is_too_long_by_itself_is_cut_and_not_lost() {
        let notes = format!(
            "{}\n### Iteration 2\n\n**Summary:** {}\n",
            notes(1, &[]),
            "long ".repeat(500)
        );
        let text = digest(&notes, 1_000);
        assert!(
            text.starts_with("### Iteration 1: did 1\n### Iteration 2\n"),
            "{text}"
        );
        assert!(text.contains("bytes left out"), "{text}");
    }

    #[test]
    fn a_learning_stays_where_it_was_reported_last() {
        let notes = "### Iteration 1\n\n**Summary:** a\n\n**Learnings:**\n- The tests need `make deps`.\n- Only here\n\n\
                     ### Iteration 2 [FAIL]\n\n**Summary:** b\n\n**Learnings of a discarded attempt:**\n\
                     - the tests  need make-deps\n\n\
                     ### Iteration 3\n\n**Summary:** c\n\n**Changes:**\n- The tests need make deps\n\n\
                     **Learnings:**\n- THE TESTS NEED MAKE DEPS\n";
        assert_eq!(
            digest(notes, 10_000),
            "### Iteration 1\n\n**Summary:** a\n\n**Learnings:**\n- Only here\n\n\
             ### Iteration 2 [FAIL]\n\n**Summary:** b\n\n\
             ### Iteration 3\n\n**Summary:** c\n\n**Changes:**\n- The tests need make deps\n\n\
             **Learnings:**\n- THE TESTS NEED MAKE DEPS\n\n"
        );
    }

    proptest! {
        #[test]
        fn case_176_a_digest_is_bounded(n in 0usize..60, width in 0usize..300, max in 0usize..2_000) {
            let wide = "y".repeat(width);
            prop_assert!(digest(&notes(n, &[&wide, "b"]), max).len() <= max + 40);
        }

        #[test]
        fn no_learning_comes_twice_and_none_is_lost(
            said in prop::collection::vec(prop::collection::vec("[abAB]( |, )?[abAB]", 0..4), 0..8)
        ) {
            let notes: String = said.iter().enumerate().map(|(i, learnings)| {
                let list: String = learnings.iter().map(|learning| format!("- {learning}\n")).collect();
                format!("\n### Iteration {i}\n\n**Summary:** s\n\n**Learnings:**\n{list}")
            }).collect();
            let text = digest(&notes, usize::MAX);
            let plain = |text: &str| -> String {
                text.to_lowercase().replace(',', " ").split_whitespace().collect::<Vec<_>>().join(" ")
            };
            let mut kept: Vec<String> = text.lines().filter_map(|line| line.strip_prefix("- ")).map(plain).collect();
            let mut expected: Vec<String> = said.iter().flatten().map(|learning| plain(learning)).collect();
            expected.sort();
            expected.dedup();
            kept.sort();
            prop_assert_eq!(kept, expected);
        }
    }
}
