//! The user's uncommitted changes: listed, laid over a checkout of ours, and made the commit that a run starts from.
//! The user's index, checkout and stash are only read.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use super::git_call::LONG_TIMEOUT;
use super::{GitError, Ledger, Oid, RunRepo, ZoneError};

/// A path that differs from the commit that is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirtyPath {
    /// From the top; with a slash at the end it is a repository of its own.
    pub path: PathBuf,
    /// Whether git knows of it from a merge that is not finished.
    pub unmerged: bool,
    /// Whether it is new, and said to be added.
    pub staged: bool,
}

impl Ledger {
    /// The uncommitted changes: what was modified, deleted, or is new and not ignored.
    pub async fn dirty(&self) -> Result<Vec<DirtyPath>, GitError> {
        let args = [
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=untracked",
            "--no-renames",
        ];
        let listed = self.trusted().args(args).timeout(LONG_TIMEOUT).run().await?;
        Ok(dirty(&listed))
    }

    /// Takes `commit` for the one that the run starts from, in place of the one that is checked out.
    pub fn start_from(&mut self, commit: Oid) {
        self.facts.base = commit;
    }

    /// Copies what `commit` has and `parent` has not from the run repository, durably. No ref is changed.
    pub async fn take_objects(&self, zones: &RunRepo, commit: &Oid, parent: &Oid) -> Result<(), ZoneError> {
        let pack = zones.pack(commit, parent).await?;
        let unpack = self.call().args(["unpack-objects", "-q", "--strict"]);
        unpack.stdin_file(pack).timeout(LONG_TIMEOUT).run().await?;
        Ok(())
    }
}

/// Reads `XY path NUL …`.
fn dirty(listed: &[u8]) -> Vec<DirtyPath> {
    let entry = |entry: &[u8]| {
        let (state, path) = entry.split_at_checked(3)?;
        let path = OsString::from_vec(path.to_vec()).into();
        let state = state.get(..2)?;
        Some(DirtyPath {
            path,
            unmerged: state.contains(&b'U') || matches!(state, b"AA" | b"DD"),
            staged: state.first() == Some(&b'A'),
        })
    };
    listed.split(|byte| *byte == 0).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read() {
        let found = dirty(b" M a b\0?? n/\0UU c\0AA d\0AM e\0D  f\0");
        let shown: Vec<_> = found
            .iter()
            .map(|entry| (entry.path.to_str().unwrap(), entry.unmerged, entry.staged))
            .collect();
        assert_eq!(
            shown,
            [
                ("a b", false, false),
                ("n/", false, false),
                ("c", true, false),
                ("d", true, true),
                ("e", false, true),
                ("f", false, false)
            ]
        );
        assert_eq!(dirty(b""), []);
    }
}
