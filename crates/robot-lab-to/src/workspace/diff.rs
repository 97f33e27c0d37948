//! What a candidate changes, compared with its parent: paths, line counts, patch.

use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use super::git::GitError;
use super::git_call::{Call, LONG_TIMEOUT};
use super::{Oid, RunRepo};

/// One path that differs. Renames are an addition and a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path in the tree.
    pub path: PathBuf,
    /// Before; none for an added path.
    pub old: Option<Entry>,
    /// After; none for a deleted path.
    pub new: Option<Entry>,
}

/// What a tree holds at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File, executable file, symbolic link or submodule.
    pub mode: Mode,
    /// The object.
    pub oid: Oid,
}

/// The kinds of entries in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 100644, and old spellings of it.
    File,
    /// 100755.
    Executable,
    /// 120000.
    Symlink,
    /// 160000: the commit of a submodule.
    Gitlink,
}

impl Mode {
    /// Reads the six digits; none for the absent side of a change.
    pub(super) fn parse(digits: &[u8]) -> Option<Self> {
        match digits {
            b"120000" => Some(Self::Symlink),
            b"160000" => Some(Self::Gitlink),
            b"100755" => Some(Self::Executable),
            _ if digits.starts_with(b"100") => Some(Self::File),
            _ => None,
        }
    }

    /// True for files with content of their own.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// Counts of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiffStat {
    /// Paths that differ.
    pub files: u64,
    /// Lines added; binary files count none.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// A patch, whole or its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The text; its encoding is that of the files.
    pub bytes: Vec<u8>,
    /// True when there is more.
    pub truncated: bool,
}

impl RunRepo {
    /// The paths in which `tree` differs from `parent`; both may be commits or trees.
    pub async fn changed_paths(&self, parent: &Oid, tree: &Oid) -> Result<Vec<Change>, GitError> {
        let listed = diff(self.call(), &["--raw", "-z", "--abbrev=64"], parent, tree)
            .run()
            .await?;
        changes(&listed).ok_or_else(|| GitError::Output {
            command: "git diff-tree --raw".to_owned(),
        })
    }

    /// The paths at or below `dirs` in which two trees differ, when it is known without asking git.
    pub(crate) async fn known_differences(
        &self,
        parent: &Oid,
        tree: &Oid,
        dirs: &[PathBuf],
    ) -> Result<Option<Vec<PathBuf>>, GitError> {
        let before = self.known_listing(&self.tree_of(parent).await?);
        let after = self.known_listing(&self.tree_of(tree).await?);
        Ok(before
            .zip(after)
            .map(|(before, after)| before.differences(&after, dirs)))
    }

    /// The paths that match one of `pathspecs` and in which `tree` differs from `parent`.
    pub async fn changed_under(
        &self,
        parent: &Oid,
        tree: &Oid,
        pathspecs: &[String],
    ) -> Result<Vec<PathBuf>, GitError> {
        let listed = diff(self.call(), &["--name-only", "-z"], parent, tree)
            .args(pathspecs)
            .run()
            .await?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths
            .map(|path| OsString::from_vec(path.to_vec()).into())
            .collect())
    }

    /// The files of `tree` that match one of `pathspecs`.
    pub async fn files_under(&self, tree: &Oid, pathspecs: &[String]) -> Result<Vec<PathBuf>, GitError> {
        let empty = self
            .call()
            .args(["hash-object", "-t", "tree", "-w", "--stdin"])
            .stdin(Vec::new())
            .oid()
            .await?;
        self.changed_under(&empty, tree, pathspecs).await
    }

    /// How much `tree` changes.
    pub async fn diff_stat(&self, parent: &Oid, tree: &Oid) -> Result<DiffStat, GitError> {
        diff_stat(self.call(), parent, tree).await
    }

    /// The patch, at most `cap` bytes of it.
    pub async fn patch(&self, parent: &Oid, tree: &Oid, cap: usize) -> Result<Patch, GitError> {
        patch(self.call(), parent, tree, cap).await
    }
}

/// How much `tree` changes, by a call in a repository that has both.
pub(super) async fn diff_stat(call: Call, parent: &Oid, tree: &Oid) -> Result<DiffStat, GitError> {
    let listed = diff(call, &["--numstat", "-z"], parent, tree).run().await?;
    let mut stat = DiffStat::default();
    for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let mut counts = entry.splitn(3, |byte| *byte == b'\t').map(number);
        stat.files += 1;
        stat.added += counts.next().unwrap_or_default();
        stat.removed += counts.next().unwrap_or_default();
    }
    Ok(stat)
}

/// How much each tree changes against the one before it in its pair, by one call in a repository that has them. A pair
/// of which an object is missing has none.
pub(super) async fn diff_stats(call: Call, pairs: &[(Oid, Oid)]) -> Result<Vec<Option<DiffStat>>, GitError> {
    let asked: String = pairs
        .iter()
        .map(|(parent, tree)| format!("{parent} {tree}\n"))
        .collect();
    let call = call.args(["diff-tree", "--stdin", "-r", "--no-renames", "--no-ext-diff"]);
    let call = call.args(["--no-textconv", "--ignore-submodules=none", "--numstat"]);
    let listed = call.stdin(asked).timeout(LONG_TIMEOUT).output().await?;
    let mut stats = stats(pairs, &listed.stdout);
    // Where git gave up, the last count may not be whole.
    if listed.code != Some(0)
        && let Some(last) = stats.iter_mut().rev().find(|stat| stat.is_some())
    {
        *last = None;
    }
    Ok(stats)
}

/// Reads what git prints of pairs: each pair in a line of its own, and then a line per path.
fn stats(pairs: &[(Oid, Oid)], listed: &[u8]) -> Vec<Option<DiffStat>> {
    let mut lines = listed
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .peekable();
    let mut stats = Vec::with_capacity(pairs.len());
    for (parent, tree) in pairs {
        let head = format!("{parent} {tree}");
        if lines.next_if(|line| *line == head.as_bytes()).is_none() {
            stats.push(None);
            continue;
        }
        let mut stat = DiffStat::default();
        while let Some(line) = lines.next_if(|line| line.contains(&b'\t')) {
            let mut counts = line.splitn(3, |byte| *byte == b'\t').map(number);
            stat.files += 1;
            stat.added += counts.next().unwrap_or_default();
            stat.removed += counts.next().unwrap_or_default();
        }
        stats.push(Some(stat));
    }
    stats
}

/// The first `cap` bytes of the patch, by a call in a repository that has both.
pub(super) async fn patch(call: Call, parent: &Oid, tree: &Oid, cap: usize) -> Result<Patch, GitError> {
    let output = diff(call, &["--patch", "--full-index"], parent, tree)
        .first(cap)
        .output()
        .await?;
    if output.code != Some(0) && !output.truncated {
        let command = "git diff-tree --patch".to_owned();
        return Err(GitError::Failed {
            command,
            code: output.code,
            stderr: output.stderr,
        });
    }
    Ok(Patch {
        bytes: output.stdout,
        truncated: output.truncated,
    })
}

fn diff(call: Call, options: &[&str], parent: &Oid, tree: &Oid) -> Call {
    let call = call.args([
        "diff-tree",
        "-r",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
    ]);
    call.args(options).args([parent.as_str(), tree.as_str(), "--"])
}

/// Line counts are decimal; git prints `-` for binary files.
fn number(digits: &[u8]) -> u64 {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_default()
}

/// Reads `:mode mode oid oid status NUL path NUL …`.
fn changes(listed: &[u8]) -> Option<Vec<Change>> {
    let mut parts = listed.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    while let Some(head) = parts.next().filter(|head| !head.is_empty()) {
        let mut words = head.strip_prefix(b":")?.split(|byte| *byte == b' ');
        let (old, new) = (Mode::parse(words.next()?), Mode::parse(words.next()?));
        let (old_oid, new_oid) = (Oid::from_output(words.next()?)?, Oid::from_output(words.next()?)?);
        changes.push(Change {
            path: OsString::from_vec(parts.next()?.to_vec()).into(),
            old: old.map(|mode| Entry { mode, oid: old_oid }),
            new: new.map(|mode| Entry { mode, oid: new_oid }),
        });
    }
    Some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_many_pairs_are_told_apart() {
        let oid = |digit: &str| digit.repeat(40).parse::<Oid>().unwrap();
        let (a, b, gone) = (oid("a"), oid("b"), oid("0"));
        let listed = format!("{a} {b}\n1\t0\ta\n-\t-\tpicture\n{a} {a}\n{b} {a}\n0\t7\t\"we\\tird\"\n");
        let pairs = [
            (a.clone(), b.clone()),
            (a.clone(), a.clone()),
            (a.clone(), gone),
            (b, a),
        ];
        let counts = stats(&pairs, listed.as_bytes());
        let counts = counts
            .iter()
            .map(|stat| stat.map(|stat| (stat.files, stat.added, stat.removed)));
        let expected = [Some((2, 1, 0)), Some((0, 0, 0)), None, Some((1, 0, 7))];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn raw_lists_are_read_as_bytes() {
        let (a, z) = ("a".repeat(40), "0".repeat(40));
        let raw = format!(":000000 120000 {z} {a} A\0x\ny\0:100755 000000 {a} {z} D\0-rf\0");
        let found = changes(raw.as_bytes()).unwrap();
        assert_eq!(found[0].path, PathBuf::from("x\ny"));
        assert_eq!(
            (found[0].old.as_ref(), found[0].new.as_ref().unwrap().mode),
            (None, Mode::Symlink)
        );
        assert_eq!(
            (found[1].old.as_ref().unwrap().mode, found[1].new.as_ref()),
            (Mode::Executable, None)
        );
        assert!(changes(b"junk\0").is_none());
        assert_eq!(changes(b""), Some(Vec::new()));
    }
}
