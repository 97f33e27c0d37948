//! Reads the files that a model answers with: whole ones, in code blocks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most files of one answer.
const MAX_FILES: usize = 5;
/// Lines of a file from which on an answer that has less than a third of them is no new file but a piece of it.
const LONG: usize = 15;

/// Files, by what they are named in prompts, with their text.
pub(super) type Texts = BTreeMap<PathBuf, String>;

/// The files that an answer changes, of those that the model was shown, and new ones that the rule names. `Err` is the
/// one sentence that the model is told instead. `all` are the files of the repository, to see what is used where.
pub(super) fn files(answer: &str, shown: &Texts, all: &Texts, rule: &str) -> Result<Texts, String> {
    let mut changed = Texts::new();
    let mut blocks = blocks(answer);
    if blocks.is_empty() {
        blocks.extend(bare(answer, shown));
    }
    if blocks.is_empty() {
        return Err("Answer with the whole file in one code block.".into());
    }
    for block in blocks.into_iter().take(MAX_FILES) {
        if let Some(line) = block.text.lines().find(|line| is_placeholder(line)) {
            let line = line.trim();
            return Err(format!("Write the whole file, without a line such as `{line}`."));
        }
        let Some(path) = block.file(shown, rule) else {
            continue;
        };
        let before = shown.get(&path).map(String::as_str).unwrap_or_default();
        if before.trim_end() == block.text.trim_end() {
            continue;
        }
        let (old, new) = (before.lines().count(), block.text.lines().count());
        if old >= LONG && new * 3 < old {
            return Err(format!("Write all of {}, not a piece of it.", path.display()));
        }
        changed.insert(path, ended_as(before, block.text));
    }
    if let Some(name) = dropped(&changed, shown, all, rule) {
        return Err(format!("Keep `{name}`, which is still used."));
    }
    match changed.is_empty() {
        true => Err("The file is the same as before. Do what the rule says.".into()),
        false => Ok(changed),
    }
}

/// A code block, and what stands before it.
struct Block {
    /// The line before, and what is said at its opening.
    title: String,
    text: String,
}

/// The code blocks of an answer that are closed, without the marks that prompts put around files. An answer that was
/// cut has one that is not, and that one is no file.
fn blocks(answer: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut open, mut before): (Option<Block>, &str) = (None, "");
    for line in answer.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(title)) => {
                let title = format!("{before} {title}");
                open = Some(Block {
                    title,
                    text: String::new(),
                });
            }
            (Some(_), Some(rest)) if rest.trim().is_empty() => blocks.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
        if !line.trim().is_empty() {
            before = line;
        }
    }
    for block in &mut blocks {
        block.drop_marks();
    }
    blocks
}

/// An answer without any mark, where it can only be the file that was shown: it begins as that one does, and has most
/// of its lines.
fn bare(answer: &str, shown: &Texts) -> Option<Block> {
    let (1, Some(text)) = (shown.len(), shown.values().next()) else {
        return None;
    };
    let first = |text: &str| {
        text.lines()
            .find(|line| !line.trim().is_empty())
            .map(str::to_owned)
    };
    let (same, lines) = (likeness(text, answer), likeness(text, text));
    let is_file = !answer.contains("```") && first(answer) == first(text) && 2 * same >= lines;
    is_file.then(|| Block {
        title: String::new(),
        text: format!("{}\n", answer.trim_end()),
    })
}

impl Block {
    /// Takes the lines away that a model copies from a prompt: a name of the file before it.
    fn drop_marks(&mut self) {
        let mut lines = self.text.lines().peekable();
        let is_mark = |line: &&str| {
            let line = line.trim();
            line.starts_with("--- ") || (line.starts_with("The file ") && line.ends_with(':'))
        };
        let mut marks = String::new();
        while let Some(line) = lines.next_if(is_mark) {
            marks.push_str(line);
            lines.next_if(|line| line.trim().is_empty());
        }
        if !marks.is_empty() {
            self.title.push_str(&marks);
            self.text = lines
                .filter(|line| !is_mark(line))
                .map(|line| format!("{line}\n"))
                .collect();
        }
    }

    /// The file that it is: one that its title names, else the only one shown, else the one that is most like it.
    fn file(&self, shown: &Texts, rule: &str) -> Option<PathBuf> {
        let named = shown.keys().filter(|path| names(&self.title, path));
        if let Some(path) = named.max_by_key(|path| path.as_os_str().len()) {
            return Some(path.clone());
        }
        let new = self
            .title
            .split(|c: char| c.is_whitespace() || "`*\"'():,".contains(c));
        if let Some(new) = new
            .map(Path::new)
            .find(|word| word.extension().is_some() && names(rule, word))
        {
            return Some(new.to_owned());
        }
        if let (1, Some(only)) = (shown.len(), shown.keys().next()) {
            return Some(only.clone());
        }
        let (path, same) = shown
            .iter()
            .map(|(path, text)| (path, likeness(text, &self.text)))
            .max_by_key(|(_, same)| *same)?;
        (same > 0).then(|| path.clone())
    }
}

/// Whether a text names a file, by its path or its last part.
pub(super) fn names(text: &str, path: &Path) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let mut words = text
        .split(|c: char| !is_word(c))
        .map(|word| word.trim_end_matches('.'));
    words.any(|word| !word.is_empty() && (Path::new(word) == path || Some(word.as_ref()) == path.file_name()))
}

/// How many lines of the one are in the other.
fn likeness(one: &str, other: &str) -> usize {
    let lines = |text: &str| -> std::collections::BTreeSet<String> {
        text.lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| line.len() > 2)
            .collect()
    };
    lines(one).intersection(&lines(other)).count()
}

/// Whether a line stands for others, which a model left out.
fn is_placeholder(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    let comment = ["#", "//", "--", "/*", "<!--", "..."]
        .iter()
        .find_map(|mark| line.strip_prefix(mark));
    comment.is_some_and(|said| {
        let is_rest = [
            "rest of",
            "existing code",
            "remains the same",
            "unchanged",
            "same as before",
        ];
        said.contains("...") && is_rest.iter().any(|rest| said.contains(rest))
            || ["... rest", "rest of the code", "existing code here"]
                .iter()
                .any(|rest| said.contains(rest))
    })
}

/// The text with the end of line that the file had.
fn ended_as(before: &str, mut text: String) -> String {
    while text.ends_with("\n\n") && !before.ends_with("\n\n") {
        text.pop();
    }
    if !before.is_empty() && !before.ends_with('\n') && text.ends_with('\n') {
        text.pop();
    }
    if before.contains("\r\n") {
        text = text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    text
}

/// A name that a file defined at its top and that none defines any more, while some file still uses it. One that the
/// rule speaks of may go.
fn dropped(changed: &Texts, shown: &Texts, all: &Texts, rule: &str) -> Option<String> {
    let after = |path: &PathBuf| {
        changed
            .get(path)
            .or_else(|| shown.get(path))
            .or_else(|| all.get(path))
    };
    let paths: std::collections::BTreeSet<&PathBuf> =
        all.keys().chain(shown.keys()).chain(changed.keys()).collect();
    let now: Vec<&String> = paths.into_iter().filter_map(after).collect();
    let defined: std::collections::BTreeSet<&str> = now.iter().flat_map(|text| top_level(text)).collect();
    let before = changed
        .keys()
        .filter_map(|path| shown.get(path))
        .flat_map(|text| top_level(text));
    let mut gone = before.filter(|name| !defined.contains(name));
    let used = |name: &str| now.iter().any(|text| has_word(text, name));
    gone.find(|name| used(name) && !has_word(rule, name))
        .map(str::to_owned)
}

/// The names that a text defines without indentation, in the languages that say so with a word.
pub(super) fn top_level(text: &str) -> impl Iterator<Item = &str> {
    const WORDS: [&str; 12] = [
        "def ",
        "class ",
        "fn ",
        "pub fn ",
        "function ",
        "export function ",
        "export class ",
        "func ",
        "struct ",
        "pub struct ",
        "const ",
        "async def ",
    ];
    text.lines().filter_map(|line| {
        let rest = WORDS.iter().find_map(|word| line.strip_prefix(word))?;
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}

fn has_word(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|word| word == name)
}

#[cfg(test)]
mod tests;
