//! Splits an objective into the rules that it states, so that a weak model is given one at a time.

/// Most rules of an objective; what is beyond stays together in the last one.
const MAX_RULES: usize = 8;
/// What is shorter is no rule of its own, in words.
const MIN_WORDS: usize = 3;

/// The rules of an objective, in order: the items of its list, where it has one, else its sentences and what they put
/// in a row. Nothing of the text is lost, but for the marks between them.
pub(super) fn rules(objective: &str) -> Vec<String> {
    let (before, items) = list(objective);
    let mut rules = if items.len() > 1 {
        items
            .iter()
            .map(|item| tidy(&format!("{before} {item}")))
            .collect()
    } else {
        gather(clauses(objective))
    };
    if rules.len() > MAX_RULES {
        let rest = rules.split_off(MAX_RULES - 1).join(" ");
        rules.push(rest);
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

/// The items of a list, each with the lines that belong to it, and what stands before the first.
fn list(text: &str) -> (String, Vec<String>) {
    let (mut before, mut items) = (String::new(), Vec::<String>::new());
    for line in text.lines() {
        match (item(line), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(last)) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            (None, None) => {
                before.push_str(line.trim());
                before.push(' ');
            }
        }
    }
    (before, items)
}

/// What stands after the mark of a list item.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let bullet = ["- ", "* ", "+ ", "• "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark));
    bullet.or_else(|| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = (1..=2).contains(&(line.len() - rest.len()));
        let after = rest
            .strip_prefix(['.', ')'])
            .and_then(|rest| rest.strip_prefix(' '));
        after.filter(|_| is_numbered)
    })
}

/// Cuts at the ends of sentences, at semicolons, and where a row goes on; never inside quotes or brackets.
fn clauses(text: &str) -> Vec<String> {
    let text = tidy(text);
    let mut clauses = Vec::new();
    let (mut depth, mut quote, mut from) = (0_usize, None, 0);
    for (at, c) in text.char_indices() {
        let (before, after) = text.split_at(at);
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => continue,
            (None, '"' | '`') => quote = Some(c),
            // An apostrophe is none.
            (None, '\'') if before.is_empty() || before.ends_with([' ', '(']) => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if quote.is_some() || depth > 0 || at < from {
            continue;
        }
        let Some(mark) = end_of_clause(after) else {
            continue;
        };
        let keep = usize::from(!after.starts_with([';', ',', ' '])) * c.len_utf8();
        clauses.push(text.get(from..at + keep).unwrap_or_default().trim().to_owned());
        from = at + mark;
    }
    clauses.push(text.get(from..).unwrap_or_default().trim().to_owned());
    clauses
}

/// Whether a clause ends here, and how many bytes stand between it and the next.
fn end_of_clause(text: &str) -> Option<usize> {
    for mark in ["; ", ", and then ", ", and ", ", then ", " and then "] {
        if text.starts_with(mark) {
            return Some(mark.len());
        }
    }
    let next = ['.', '!', '?']
        .iter()
        .find_map(|mark| text.strip_prefix(*mark))?
        .strip_prefix(' ')?;
    next.starts_with(|c: char| c.is_uppercase() || c == '`' || c == '"')
        .then_some(2)
}

/// Puts what is too short for a rule to the one before it.
fn gather(clauses: Vec<String>) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    for clause in clauses {
        let is_short = |text: &str| text.split_whitespace().count() < MIN_WORDS;
        match rules.last_mut() {
            Some(last) if is_short(&clause) || is_short(last) => {
                last.push(' ');
                last.push_str(&clause);
            }
            _ => rules.push(clause),
        }
    }
    rules.iter().map(|rule| tidy(rule)).collect()
}

fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_objective_is_split_into_its_rules() {
        for (objective, expected) in [
            ("Make it faster.", vec!["Make it faster."]),
            (
                "Skip empty lines. Skip lines that begin with #.",
                vec!["Skip empty lines.", "Skip lines that begin with #."],
            ),
            (
                "Rename the function area to size, and use it in report.py.",
                vec!["Rename the function area to size", "use it in report.py."],
            ),
            (
                "Greet the first argument; greet \"a; b. C\" without one.",
                vec!["Greet the first argument", "greet \"a; b. C\" without one."],
            ),
            (
                "Add the keys (a; b, and then c) to it, ok, and then run it.",
                vec!["Add the keys (a; b, and then c) to it, ok", "run it."],
            ),
            (
                "Mend x.py:\n- no empty line\n  at the end\n- no tabs",
                vec!["Mend x.py: no empty line at the end", "Mend x.py: no tabs"],
            ),
            ("1. read a\n2) write b", vec!["read a", "write b"]),
            (
                "Use version 2.5 of it, e.g. the newest. It's the user's.",
                vec!["Use version 2.5 of it, e.g. the newest.", "It's the user's."],
            ),
            ("", vec![]),
        ] {
            let rules = rules(objective);
            let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            // Of short ones, the last stays with the one before.
            let joined = vec![expected.join(" ")];
            assert!(
                rules == expected || (expected.len() > 1 && rules == joined),
                "{objective}: {rules:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_rules_are_few(text in "([a-zA-Z#]{1,6}[ .;,]{1,2}|\\(|\\)|\"|`|and then |- |\n|1\\. ){0,60}") {
            let rules = rules(&text);
            prop_assert!(rules.len() <= MAX_RULES);
            let words = |text: &str| -> std::collections::BTreeSet<String> {
                let split = text.split(|c: char| !c.is_alphabetic());
                split.filter(|word| !["", "and", "then"].contains(word)).map(str::to_owned).collect()
            };
            prop_assert_eq!(words(&rules.join(" ")), words(&text));
        }
    }
}
