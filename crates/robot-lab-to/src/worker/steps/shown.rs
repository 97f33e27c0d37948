//! Chooses the files that a weak model is shown whole with a rule.

use super::answer::{Texts, names};
use crate::tools::Root;
use std::path::{Path, PathBuf};

/// Bytes of the files that are shown at once: about 1,500 tokens, which the answer has again.
const BUDGET: usize = 6_000;
/// The largest file that is looked at, how many are, and how much they may be together, in bytes.
const MAX_FILE: usize = 16 * 1024;
const MAX_FILES: usize = 200;
const MAX_TOTAL: usize = 512 * 1024;

/// The texts of the files that may be changed, in so far as they are small.
pub(super) fn texts(root: &Root, paths: impl IntoIterator<Item = PathBuf>) -> Texts {
    let mut total = 0;
    let mut texts = Texts::new();
    for path in paths.into_iter().take(MAX_FILES) {
        let Ok(bytes) = root.read(&path) else { continue };
        if bytes.len() > MAX_FILE || total + bytes.len() > MAX_TOTAL {
            continue;
        }
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        total += text.len();
        texts.insert(path, text);
    }
    texts
}

/// The files that a rule is about: those that it names, else those that hold what it names, else the same of the whole
/// objective, else all. None where they are too much to be shown, or where it names one of `files` that is too large.
pub(super) fn choose(rule: &str, objective: &str, all: &Texts, files: &[PathBuf]) -> Texts {
    let mut large = files.iter().filter(|path| !all.contains_key(*path));
    if large.any(|path| names(rule, path)) {
        return Texts::new();
    }
    let named = |text: &str| of(all, |path, _| names(text, path));
    let about = |text: &str| of(all, |_, content| is_about(text, content));
    let choices = [
        named(rule),
        about(rule),
        named(objective),
        about(objective),
        all.clone(),
    ];
    let chosen = choices
        .into_iter()
        .find(|chosen| !chosen.is_empty())
        .unwrap_or_default();
    let size: usize = chosen.values().map(String::len).sum();
    if size > BUDGET { Texts::new() } else { chosen }
}

fn of(all: &Texts, is_meant: impl Fn(&Path, &str) -> bool) -> Texts {
    let meant = all.iter().filter(|(path, text)| is_meant(path, text));
    meant.map(|(path, text)| (path.clone(), text.clone())).collect()
}

/// Whether a text speaks of what a file defines.
fn is_about(text: &str, content: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.any(|word| super::answer::top_level(content).any(|name| name == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_chosen_by_what_is_said_of_them() {
        let all: Texts = [
            ("src/slug.py", "def slug(text):\n    return text\n"),
            (
                "report.py",
                "from slug import slug\n\n\ndef report(x):\n    return x\n",
            ),
            ("big.txt", &"x\n".repeat(BUDGET)),
        ]
        .into_iter()
        .map(|(path, text)| (path.into(), text.to_owned()))
        .collect();
        let chosen = |rule: &str, objective: &str| -> Vec<String> {
            let files = [PathBuf::from("huge.txt"), PathBuf::from("report.py")];
            let chosen = choose(rule, objective, &all, &files);
            chosen.keys().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(chosen("use it in report.py.", "slug"), ["report.py"]);
        assert_eq!(chosen("Mend `src/slug.py`", ""), ["src/slug.py"]);
        assert_eq!(chosen("Make slug(text) lower.", ""), ["src/slug.py"]);
        assert_eq!(
            chosen("Make it strip.", "Make report print. Make it strip."),
            ["report.py"]
        );
        assert!(
            chosen("Make it fast.", "Make it fast.").is_empty(),
            "all is too much"
        );
        assert!(chosen("Shorten big.txt.", "").is_empty());
        assert!(chosen("Put huge.txt into report.py.", "").is_empty());
    }
}
