//! Ignored files: those of the user's checkout that a run may copy, those that a run copied and that may enter no
//! commit, and those that lie in a checkout of our own.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::git_call::LONG_TIMEOUT;
use super::{
    Change, Checkout, GitError, Ledger, Rejection, RejectionKind, RunRepo, ZoneError, blocking, checkout,
    disk,
};

/// Paths that came from the user's checkout, and the directories above them.
#[derive(Debug, Default)]
pub(super) struct Copied {
    files: HashSet<PathBuf>,
    above: HashSet<PathBuf>,
}

/// Which directory a checkout is. Another one in its place has lost all ignored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    inode: (u64, u64),
    made: Option<SystemTime>,
}

impl Ledger {
    /// The ignored files of the user's checkout that match a pattern of git from its top: `*` matches no slash, `**`
    /// does, and a directory stands for everything in it. A path that ends with a slash is a repository of its own.
    pub async fn ignored(&self, pattern: &str) -> Result<Vec<PathBuf>, GitError> {
        let args = [
            "status",
            "--porcelain",
            "-z",
            "--ignored=traditional",
            "--untracked-files=all",
            "--no-renames",
            "--",
        ];
        let mut pattern = pattern.trim_end_matches('/');
        while let Some(rest) = pattern.strip_prefix("./") {
            pattern = rest.trim_start_matches('/');
        }
        // A pattern with wildcards does not stand for what is in a directory by itself.
        let patterns = [
            format!(":(top,glob){pattern}"),
            format!(":(top,glob){pattern}/**"),
        ];
        let mut found = self.ignored_by(&args, &patterns).await?;
        if !pattern.contains(['*', '?', '[']) {
            // Git names every repository in which the pattern might match, since it does not look into them.
            found.retain(|path| path.starts_with(pattern));
        }
        Ok(found)
    }

    /// The ignored files and directories of the user's checkout with one of these names, at any depth.
    pub async fn ignored_named(&self, names: &[&str]) -> Result<Vec<PathBuf>, GitError> {
        let args = [
            "status",
            "--porcelain",
            "-z",
            "--ignored=matching",
            "--untracked-files=normal",
            "--no-renames",
            "--",
        ];
        let patterns: Vec<String> = names.iter().map(|name| format!(":(top,glob)**/{name}")).collect();
        let mut found = self.ignored_by(&args, &patterns).await?;
        found.retain(|path| {
            path.file_name()
                .is_some_and(|last| names.iter().any(|name| last == *name))
        });
        Ok(found)
    }

    async fn ignored_by(&self, args: &[&str], patterns: &[String]) -> Result<Vec<PathBuf>, GitError> {
        let call = self.trusted().args(args).args(patterns).timeout(LONG_TIMEOUT);
        let listed = call.run().await?;
        let entries = listed.split(|byte| *byte == 0);
        Ok(entries
            .filter_map(|entry| entry.strip_prefix(b"!! "))
            .map(|path| OsString::from_vec(path.to_vec()).into())
            .collect())
    }
}

impl RunRepo {
    /// Says which files came from the user's checkout: no snapshot may hold one, whatever a robot does to the rules
    /// for ignoring. Said once.
    pub fn keep_out<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) {
        let mut copied = Copied::default();
        for path in paths {
            for above in path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
                if !copied.above.insert(above.to_owned()) {
                    break;
                }
            }
            copied.files.insert(path.to_owned());
        }
        // A second word would be a fault of ours, and the first one holds.
        drop(self.copied().set(copied));
    }

    /// Whether a path is one that was copied from the user's checkout, or lies in its way.
    pub(super) fn is_copied(&self, path: &Path) -> bool {
        let copied = self.copied().get();
        copied.is_some_and(|copied| copied.files.contains(path) || copied.above.contains(path))
    }
}

impl Checkout {
    /// Which directory this is at the moment.
    #[must_use]
    pub fn incarnation(&self) -> Option<Incarnation> {
        let made = fs::symlink_metadata(&self.dir).ok()?.created().ok();
        Some(Incarnation {
            inode: disk::identity(&self.dir)?,
            made,
        })
    }

    /// The ignored files and directories, as the files for ignoring that lie there say.
    pub async fn ignored(&self) -> Result<Vec<PathBuf>, ZoneError> {
        let args = [
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
            "-z",
        ];
        let listed = self.call().args(args).timeout(LONG_TIMEOUT).run().await?;
        // Without the slash at the end of a directory.
        Ok(checkout::paths(&listed)
            .map(|path| path.components().collect())
            .collect())
    }

    /// Copied files that a change of the rules for ignoring would let into a commit, now or later.
    pub(super) async fn unignored(&self, changes: &[Change]) -> Result<Vec<Rejection>, ZoneError> {
        let rules = |change: &Change| change.path.file_name() == Some(OsStr::new(".gitignore"));
        let Some(copied) = self.zones.copied().get() else {
            return Ok(Vec::new());
        };
        if copied.files.is_empty() || !changes.iter().any(rules) {
            return Ok(Vec::new());
        }
        let links = self.links_above_copied().await?;
        let behind = |path: &PathBuf| links.iter().any(|link| path.starts_with(link));
        let mut names = Vec::new();
        // Git refuses to say anything of what is behind a link.
        for path in copied.files.iter().filter(|path| !behind(path)) {
            names.extend_from_slice(path.as_os_str().as_bytes());
            names.push(0);
        }
        let args = ["check-ignore", "--no-index", "-z", "--stdin"];
        let output = self
            .call()
            .args(args)
            .stdin(names)
            .timeout(LONG_TIMEOUT)
            .output()
            .await?;
        // It ends with 1 when nothing at all is ignored.
        if !matches!(output.code, Some(0 | 1)) {
            return Err(GitError::Failed {
                command: "git check-ignore".to_owned(),
                code: output.code,
                stderr: output.stderr,
            }
            .into());
        }
        let ignored: HashSet<PathBuf> = checkout::paths(&output.stdout).collect();
        let asked = copied.files.iter().filter(|path| !behind(path));
        let open = asked.filter(|path| !ignored.contains(*path));
        Ok(open
            .chain(&links)
            .map(|path| Rejection {
                path: path.clone(),
                kind: RejectionKind::Copied,
            })
            .collect())
    }

    /// Links in the places of directories of copied files, without what is behind such a link.
    async fn links_above_copied(&self) -> Result<Vec<PathBuf>, ZoneError> {
        let (dir, zones) = (self.dir.clone(), self.zones.clone());
        blocking(&self.dir, move || {
            let copied = zones.copied().get();
            let mut above: Vec<&PathBuf> = copied.iter().flat_map(|copied| &copied.above).collect();
            // A directory comes before what is in it.
            above.sort_unstable();
            let mut links: Vec<PathBuf> = Vec::new();
            for path in above {
                let behind = links.last().is_some_and(|link| path.starts_with(link));
                let meta = dir.join(path).symlink_metadata();
                if !behind && meta.is_ok_and(|meta| meta.is_symlink()) {
                    links.push(path.clone());
                }
            }
            Ok(links)
        })
        .await
    }

    /// Removes files or directories below the top.
    pub async fn discard(&self, paths: Vec<PathBuf>) -> Result<(), ZoneError> {
        let (dir, work) = (self.dir.clone(), self.zones.work().clone());
        blocking(&self.dir, move || {
            paths.iter().try_for_each(|path| work.remove(&dir.join(path)))
        })
        .await
    }

    /// Removes everything; preparing makes the directory anew.
    pub async fn empty(&mut self) -> Result<(), ZoneError> {
        self.forget(&self.dir).await?;
        self.forget(&self.index).await
    }
}
