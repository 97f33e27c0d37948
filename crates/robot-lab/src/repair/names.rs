//! Which tool a name means: the tool of that name, or the only one that it can mean.

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known<'a> {
    /// A tool of this very name.
    Exactly(&'a str),
    /// The only tool that can be meant.
    Surely(&'a str),
    /// No tool, or more than one. With the nearest name, where one is near.
    Not(Option<&'a str>),
}

/// How alike two names are, from 0 to 1, for one to be worth a mention.
const NEAR: f64 = 0.75;
/// Words that say nothing about which tool is meant.
const FILLERS: [&str; 4] = ["file", "tool", "function", "fn"];

/// Finds the tool that is meant. Namespaces (`functions.write`, `tools/write`), case and separators do not matter, nor
/// do words that fit every tool (`Write_File`); the beginning of a longer name is enough.
pub(crate) fn find<'a>(names: &[&'a str], written: &str) -> Known<'a> {
    if let Some(name) = names.iter().find(|name| **name == written) {
        return Known::Exactly(name);
    }
    let own = written.rsplit(['.', '/', ':']).next().unwrap_or_default().trim();
    let words = words_of(own);
    if words.is_empty() {
        return Known::Not(None);
    }
    let bare = without_fillers(&words);
    let ways: [&dyn Fn(&str) -> bool; 4] = [
        &|name| name == own,
        &|name| words_of(name).concat() == words.concat(),
        &|name| without_fillers(&words_of(name)) == bare,
        &|name| words_of(name).starts_with(&words),
    ];
    for way in ways {
        let mut fitting = names.iter().filter(|name| way(name));
        match (fitting.next(), fitting.next()) {
            (Some(name), None) => return Known::Surely(name),
            (Some(_), Some(_)) => break,
            (None, _) => {}
        }
    }
    let written = own.to_lowercase();
    let near = names
        .iter()
        .map(|name| (strsim::jaro_winkler(&written, &name.to_lowercase()), *name))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    Known::Not(near.map(|(_, name)| name))
}

/// The words of a name, in lower case: `Write_File`, `write-file` and `writeFile` have the same.
fn words_of(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(std::mem::take(&mut word));
        }
        after_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn without_fillers(words: &[String]) -> Vec<&str> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let bare: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !FILLERS.contains(word))
        .collect();
    if bare.is_empty() { words } else { bare }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 5] = ["read", "write", "edit", "bash", "submit_iteration_result"];

    #[test]
    fn case_137_a_name_that_can_mean_one_tool_means_it() {
        for (written, tool) in [
            ("Write", "write"),
            ("WRITE", "write"),
            ("Write_File", "write"),
            ("writeFile", "write"),
            ("functions.write", "write"),
            ("tools/write", "write"),
            ("default_api:read_file", "read"),
            (" bash ", "bash"),
            ("submit", "submit_iteration_result"),
            ("SubmitIterationResult", "submit_iteration_result"),
            ("submititerationresult", "submit_iteration_result"),
        ] {
            assert_eq!(find(&TOOLS, written), Known::Surely(tool), "{written}");
        }
        assert_eq!(find(&TOOLS, "read"), Known::Exactly("read"));
    }

    #[test]
    fn case_137_other_names_mean_nothing_and_the_nearest_is_named() {
        for (written, near) in [
            ("wriet", Some("write")),
            ("submit_result", Some("submit_iteration_result")),
            ("edits", Some("edit")),
            ("", None),
            ("_", None),
            ("functions.", None),
            ("file", None),
            ("delete", None),
            ("read_and_write", Some("read")),
            ("写", None),
        ] {
            assert_eq!(find(&TOOLS, written), Known::Not(near), "{written}");
        }
        for (tools, written) in [
            (vec!["read_file", "read_tool"], "Read"),
            (vec!["submit_now", "submit_later"], "submit"),
            (vec!["do_it", "doIt"], "DO-IT"),
            (vec![], "read"),
        ] {
            assert!(
                matches!(find(&tools, written), Known::Not(_)),
                "{written} could be more than one of {tools:?}"
            );
        }
        assert_eq!(
            find(&["read", "read_file"], "Read_File"),
            Known::Surely("read_file"),
            "more alike is nearer"
        );
    }
}
