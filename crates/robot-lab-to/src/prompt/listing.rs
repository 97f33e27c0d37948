//! The files of a project in a few lines: all of them, or the upper directories with their numbers of files.

use crate::commit_message::{clip, steers};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Most lines, but for one that says what is left out.
const MAX_LINES: usize = 200;
/// Longest line, in characters.
const MAX_LINE: usize = 160;

/// What a line stands for, in the sorted list of all paths.
enum Line {
    File(usize),
    /// The files of a directory, and where its path ends in each of theirs.
    Dir {
        files: Range<usize>,
        end: usize,
        /// Whether it was tried to show what is in it.
        closed: bool,
    },
}

/// The files by name as long as there is room for 200 lines, else `dir/ (12 files)`. What lies high up is opened
/// first, and of that the smallest. `partial`: there are more files than these.
pub fn listing(paths: &[PathBuf], partial: bool) -> String {
    let mut paths: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
    paths.sort_unstable();
    let mut lines = children(&paths, &(0..paths.len()), 0, usize::MAX).unwrap_or_default();
    let mut left_out = 0;
    if lines.len() > MAX_LINES {
        lines.sort_by_key(|line| matches!(line, Line::File(_)));
        left_out = lines.drain(MAX_LINES..).map(|line| line.count()).sum();
    }
    while let Some(opened) = open_level(&paths, &mut lines) {
        lines = opened;
    }
    let mut text: Vec<String> = lines.iter().map(|line| line.text(&paths)).collect();
    if left_out > 0 {
        text.push(format!("[and {left_out} more files]"));
    }
    if partial {
        text.push("[there are more files than could be counted]".into());
    }
    text.join("\n")
}

/// Opens the directories that there is room for, of those that were not tried before; `None` when there are none.
fn open_level(paths: &[&[u8]], lines: &mut [Line]) -> Option<Vec<Line>> {
    let mut spare = MAX_LINES.saturating_sub(lines.len());
    let mut fitting: Vec<(usize, Vec<Line>)> = Vec::new();
    for (at, line) in lines.iter_mut().enumerate() {
        if let Line::Dir { files, end, closed } = line
            && !std::mem::replace(closed, true)
        {
            let inside = children(paths, files, *end, spare + 1);
            fitting.extend(inside.map(|inside| (at, inside)));
        }
    }
    fitting.sort_by_key(|(at, inside)| (inside.len(), *at));
    fitting.retain(|(_, inside)| {
        let needed = inside.len().saturating_sub(1);
        let fits = needed <= spare;
        spare -= if fits { needed } else { 0 };
        fits
    });
    if fitting.is_empty() {
        return None;
    }
    fitting.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut opened = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match fitting.pop_if(|(next, _)| *next == at) {
            Some((_, inside)) => opened.extend(inside),
            None => opened.push(line.copy()),
        }
    }
    Some(opened)
}

/// What is directly in a directory; `None` when it is more than `most`.
fn children(paths: &[&[u8]], files: &Range<usize>, end: usize, most: usize) -> Option<Vec<Line>> {
    let start = if end == 0 { 0 } else { end + 1 };
    let mut found: Vec<Line> = Vec::new();
    let mut name: &[u8] = &[];
    for at in files.clone() {
        let rest = paths.get(at)?.get(start..).unwrap_or_default();
        let slash = rest.iter().position(|byte| *byte == b'/');
        match (slash, found.last_mut()) {
            (Some(slash), Some(Line::Dir { files, .. })) if rest.get(..slash) == Some(name) => {
                files.end = at + 1
            }
            (Some(slash), _) => {
                name = rest.get(..slash).unwrap_or_default();
                found.push(Line::Dir {
                    files: at..at + 1,
                    end: start + slash,
                    closed: false,
                });
            }
            (None, _) => found.push(Line::File(at)),
        }
        if found.len() > most {
            return None;
        }
    }
    Some(found)
}

impl Line {
    fn copy(&self) -> Self {
        match self {
            Self::File(at) => Self::File(*at),
            Self::Dir { files, end, closed } => Self::Dir {
                files: files.clone(),
                end: *end,
                closed: *closed,
            },
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::File(_) => 1,
            Self::Dir { files, .. } => files.len(),
        }
    }

    fn text(&self, paths: &[&[u8]]) -> String {
        let (bytes, count) = match self {
            Self::File(at) => (paths.get(*at).copied(), None),
            Self::Dir { files, end, .. } => {
                let first = paths.get(files.start).and_then(|path| path.get(..*end));
                (first, Some(files.len()))
            }
        };
        let path: String = String::from_utf8_lossy(bytes.unwrap_or_default())
            .chars()
            .map(|c| if steers(c) { '\u{fffd}' } else { c })
            .collect();
        let path = clip(&path, MAX_LINE);
        match count {
            None => path,
            Some(1) => format!("{path}/ (1 file)"),
            Some(n) => format!("{path}/ ({n} files)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paths(names: impl IntoIterator<Item = String>) -> Vec<PathBuf> {
        names.into_iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_small_project_is_listed_by_name() {
        let small = ["src/main.rs", "README.md", "src/a\nb.rs"].map(str::to_owned);
        assert_eq!(
            listing(&paths(small), false),
            "README.md\nsrc/a\u{fffd}b.rs\nsrc/main.rs"
        );
        assert_eq!(listing(&[], false), "");
    }

    #[test]
    fn of_a_large_one_upper_directories_are_opened_and_deep_ones_counted() {
        let many = (0..150).flat_map(|n| {
            [
                format!("src/mod{n:03}/deep/x.rs"),
                format!("src/mod{n:03}/deep/y.rs"),
            ]
        });
        let more = ["a/one".into(), "a/two".into(), "README.md".into()];
        let text = listing(&paths(many.chain(more)), false);
        assert!(text.starts_with("README.md\na/one\na/two\nsrc/mod000/"), "{text}");
        assert_eq!(text.lines().count(), 200);
        assert!(text.ends_with("\nsrc/mod149/deep/ (2 files)"), "{text}");
    }

    #[test]
    fn a_directory_that_would_not_fit_is_counted() {
        let wide = (0..1_000).map(|n| format!("data/{n}"));
        let text = listing(&paths(wide.chain(["src/main.rs".into()])), true);
        assert_eq!(
            text,
            "data/ (1000 files)\nsrc/main.rs\n[there are more files than could be counted]"
        );
        let flat = listing(&paths((0..1_000).map(|n| n.to_string())), false);
        assert_eq!(flat.lines().count(), 201);
        assert!(flat.ends_with("[and 800 more files]"), "{flat}");
    }

    #[test]
    fn case_55_a_million_files_are_a_few_lines() {
        let all = (0..1_000_000).map(|n| format!("d{}/e{}/f{}/{n}", n % 7, n % 97, n % 1_009));
        let text = listing(&paths(all), false);
        assert!(text.lines().count() <= 201 && text.len() < 20_000, "{text}");
        assert!(text.contains("files)"), "{text}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Each file is a line, or is counted in exactly one.
        #[test]
        fn every_file_counts_once(names in prop::collection::btree_set("[ab]{1,2}(/[a-z]{1,2}){0,4}", 0..400)) {
            // A name cannot be a file and a directory.
            let names: Vec<String> = names.iter().filter(|name| {
                let inside = format!("{name}/");
                !names.iter().any(|other| other.starts_with(&inside))
            }).cloned().collect();
            let text = listing(&paths(names.clone()), false);
            prop_assert!(text.lines().count() <= MAX_LINES + 1);
            let mut total = 0;
            for line in text.lines() {
                match line.split_once("/ (") {
                    Some((dir, count)) => {
                        let inside = format!("{dir}/");
                        let expected = names.iter().filter(|name| name.starts_with(&inside)).count();
                        prop_assert_eq!(count.split(' ').next().unwrap().parse(), Ok(expected));
                        total += expected;
                    }
                    None if line.starts_with("[and ") => {
                        total += line.split(' ').nth(1).unwrap().parse::<usize>().unwrap();
                    }
                    None => {
                        prop_assert!(names.iter().any(|name| name == line));
                        total += 1;
                    }
                }
            }
            prop_assert_eq!(total, names.len());
        }
    }
}
