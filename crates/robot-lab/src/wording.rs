//! Counts in words for people.

use std::fmt::Display;

/// A count with its noun, which is given for one: `1 commit`, `3 commits`, `2 replies`.
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    match noun.strip_suffix('y') {
        _ if count == "1" => format!("1 {noun}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ if noun.ends_with(['s', 'x']) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_all_others_are_many() {
        for (count, noun, text) in [
            (0, "commit", "0 commits"),
            (1, "commit", "1 commit"),
            (11, "commit", "11 commits"),
            (1, "reply", "1 reply"),
            (2, "reply", "2 replies"),
            (2, "day", "2 days"),
            (2, "process", "2 processes"),
            (1, "wrong tool call", "1 wrong tool call"),
            (2, "wrong tool call", "2 wrong tool calls"),
        ] {
            assert_eq!(counted(count, noun), text);
        }
    }
}
