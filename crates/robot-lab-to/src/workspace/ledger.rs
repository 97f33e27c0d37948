//! The user's repository, and the only four things that a run changes in it: a new branch, one line in
//! `info/exclude`, the objects of accepted commits, and the branch again, always by compare-and-swap. What the user
//! takes over by hand is in `adopt.rs`.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::discover::{self, Facts, StartError};
use super::git::{Git, GitError};
use super::git_call::Call;
use super::{Oid, RunRepo, ZoneError};

/// Name and address of an author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The mail address.
    pub email: String,
}

impl Identity {
    /// Reads `Name <address> time zone`, as `git var` prints it.
    pub(super) fn from_ident(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let (name, rest) = line.rsplit_once('<')?;
        let (email, _) = rest.rsplit_once('>')?;
        let name = name.trim();
        (!name.is_empty()).then(|| Self {
            name: name.to_owned(),
            email: email.to_owned(),
        })
    }
}

/// A run branch: its name without `refs/heads/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Branch {
    name: String,
}

impl Branch {
    /// The branch that the log of a run names.
    pub(crate) fn of_run(name: &str) -> Self {
        Self {
            name: name.to_owned(),
        }
    }

    /// The name, as `git log` takes it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

/// Why the run branch was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BranchError {
    /// The name is not one that git takes.
    #[error("{0:?} is no name of a branch; nothing was changed")]
    Invalid(String),
    /// A branch of that name is there.
    #[error("the branch {0:?} exists already; nothing was changed; resume its run, or start a new one")]
    Exists(String),
    /// A git call failed.
    #[error("the run branch could not be made; the repository is as it was")]
    Git(#[from] GitError),
}

/// Why an accepted commit is not on the run branch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// Somebody else moved or deleted the branch.
    #[error(
        "the branch {branch} was moved by somebody else: expected {}, found {}; it was left as it is; the commit is \
         kept in the run repository; put the branch back with `git update-ref refs/heads/{branch} {expected}` and resume",
        expected.short(), found.as_ref().map_or("nothing", Oid::short)
    )]
    BranchMoved {
        /// Name of the branch.
        branch: String,
        /// Where the run left it.
        expected: Oid,
        /// Where it is now.
        found: Option<Oid>,
    },
    /// Somebody works on the branch: moving it would turn the new commit into a change that they did not make.
    #[error(
        "the branch {branch} is checked out in {}; it was left as it is, and the commit is kept in the run repository; \
         switch to another branch there (`git switch -`) and resume", worktree.display()
    )]
    CheckedOut {
        /// Name of the branch.
        branch: String,
        /// Where it is checked out.
        worktree: PathBuf,
    },
    /// A git call failed.
    #[error("the commit could not be put on the run branch; the branch is as it was; resume tries again")]
    Git(#[from] GitError),
    /// The run's own repositories failed.
    #[error("the run repository failed while a commit was accepted; resume tries again")]
    Zone(#[from] ZoneError),
}

/// The user's repository.
#[derive(Clone, Debug)]
pub struct Ledger {
    git: Git,
    pub(super) facts: Facts,
}

impl Ledger {
    /// Finds the repository around `cwd` and reads what the run needs to know of it. Changes nothing.
    pub async fn discover(git: &Git, cwd: &Path) -> Result<Self, StartError> {
        Ok(Self {
            git: git.clone(),
            facts: discover::discover(git, cwd).await?,
        })
    }

    /// The top of the checkout around `cwd`, which needs neither a commit nor an identity. Changes nothing.
    pub async fn find_top(git: &Git, cwd: &Path) -> Result<PathBuf, StartError> {
        discover::find_top(git, cwd).await
    }

    /// The top directory of the user's checkout.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.facts.top
    }

    /// Where in the checkout the run was started, relative to the top; empty at the top itself.
    #[must_use]
    pub fn subdir(&self) -> &Path {
        &self.facts.subdir
    }

    /// Takes this directory, relative to the top, for the one that the run was started in.
    pub(crate) fn work_in(&mut self, subdir: &str) {
        self.facts.subdir = subdir.into();
    }

    /// The git directory of the checkout (of a linked worktree: its own).
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.facts.git_dir
    }

    /// Where the user's git looks for hooks.
    #[must_use]
    pub fn hooks_dir(&self) -> &Path {
        &self.facts.hooks_dir
    }

    /// The commit that `HEAD` named at the start.
    #[must_use]
    pub fn base(&self) -> &Oid {
        &self.facts.base
    }

    /// The user's identity.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.facts.identity
    }

    /// How many paths had changes that are in no commit, at the start.
    #[must_use]
    pub fn dirty_paths(&self) -> usize {
        self.facts.dirty
    }

    /// The ignore rules of the user that are in no tree.
    #[must_use]
    pub fn excludes(&self) -> &[u8] {
        &self.facts.excludes
    }

    /// Makes the branch `robot-to/<slug_and_id>` at the base; when a branch named `robot-to` is in the way,
    /// `robot-to-<slug_and_id>`. It is not checked out, and an existing one is never moved.
    pub async fn create_branch(&self, slug_and_id: &str) -> Result<Branch, BranchError> {
        let branch = self.branch_named(slug_and_id).await?;
        let reference = branch.reference();
        let base = self.base();
        match self.swap(&reference, base, &base.zero(), "robot-to: start").await {
            Ok(()) => Ok(branch),
            Err(error) if self.resolve(&reference).await?.is_none() => Err(error.into()),
            Err(_) => Err(BranchError::Exists(branch.name)),
        }
    }

    /// The branch of this name, with the prefix that is free. Makes nothing.
    pub(super) async fn branch_named(&self, name: &str) -> Result<Branch, BranchError> {
        let blocked = self.resolve("refs/heads/robot-to").await?.is_some();
        let prefix = if blocked { "robot-to-" } else { "robot-to/" };
        let branch = Branch {
            name: format!("{prefix}{name}"),
        };
        let reference = branch.reference();
        let valid = self
            .call()
            .args(["check-ref-format", reference.as_str()])
            .output()
            .await?;
        if valid.code != Some(0) {
            return Err(BranchError::Invalid(branch.name));
        }
        Ok(branch)
    }

    /// The commit that the branch points to; none when it was deleted.
    pub async fn tip(&self, branch: &Branch) -> Result<Option<Oid>, GitError> {
        self.resolve(&branch.reference()).await
    }

    /// Puts a commit of the run repository on the branch: copies exactly its objects that `old` does not have,
    /// durably, and then moves the branch from `old` to it. Doing it again after a crash is harmless.
    pub async fn accept(
        &self,
        zones: &RunRepo,
        branch: &Branch,
        commit: &Oid,
        old: &Oid,
    ) -> Result<(), AcceptError> {
        let moved = |found| AcceptError::BranchMoved {
            branch: branch.name.clone(),
            expected: old.clone(),
            found,
        };
        let (tip, worktree) = self.stands_at(branch).await?;
        if tip.as_ref() == Some(commit) {
            return Ok(());
        }
        if tip.as_ref() != Some(old) {
            return Err(moved(tip));
        }
        if let Some(worktree) = worktree {
            let branch = branch.name.clone();
            return Err(AcceptError::CheckedOut { branch, worktree });
        }
        self.take_objects(zones, commit, old).await?;
        let swapped = self
            .swap(&branch.reference(), commit, old, "robot-to: accepted")
            .await;
        if let Err(error) = swapped {
            // A call that failed may have moved the branch all the same.
            let tip = self.tip(branch).await?;
            if tip.as_ref() == Some(old) {
                return Err(error.into());
            }
            if tip.as_ref() != Some(commit) {
                return Err(moved(tip));
            }
        }
        Ok(())
    }

    /// The commit that a branch points to, and the worktree in which it is checked out; none of them where there is none.
    pub(crate) async fn stands_at(
        &self,
        branch: &Branch,
    ) -> Result<(Option<Oid>, Option<PathBuf>), GitError> {
        let reference = branch.reference();
        let format = "--format=%(objectname) %(worktreepath)";
        let listed = self
            .call()
            .args(["for-each-ref", format, reference.as_str()])
            .run()
            .await?;
        let line = listed.strip_suffix(b"\n").unwrap_or(&listed);
        let mut parts = line.splitn(2, |byte| *byte == b' ');
        let tip = parts.next().and_then(Oid::from_output);
        let path = parts.next().filter(|path| !path.is_empty());
        Ok((tip, path.map(|path| OsStr::from_bytes(path).into())))
    }

    /// Takes a branch away that a run made and never used: only if it still points to the base.
    pub async fn remove_branch(&self, branch: &Branch) -> Result<(), GitError> {
        let reference = branch.reference();
        self.call()
            .args(["update-ref", "--no-deref", "-d", &reference, self.base().as_str()])
            .run()
            .await
            .map(drop)
    }

    /// Keeps the run directory out of the user's `git status`: appends one exact line to `info/exclude`, once.
    /// Every other byte of the file stays. Returns whether the line was written now; a directory outside the
    /// checkout needs none. The rule holds for workspaces too, so that no candidate has files there.
    pub fn exclude_line(&mut self, run_dir: &Path) -> io::Result<bool> {
        let Some(line) = self.line_for(run_dir) else {
            return Ok(false);
        };
        let file = &self.facts.exclude_file;
        let known = match fs::read(file) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        if known.split(|byte| *byte == b'\n').any(|other| other == line) {
            return Ok(false);
        }
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut added = Vec::new();
        if known.last().is_some_and(|byte| *byte != b'\n') {
            added.push(b'\n');
        }
        added.extend_from_slice(&line);
        added.push(b'\n');
        let mut open = OpenOptions::new().append(true).create(true).open(file)?;
        open.write_all(&added)?;
        open.sync_all()?;
        self.facts.excludes.extend_from_slice(&line);
        self.facts.excludes.push(b'\n');
        Ok(true)
    }

    /// Takes the line away again. Every other byte of the file stays.
    pub fn remove_exclude_line(&self, run_dir: &Path) -> io::Result<()> {
        let Some(mut line) = self.line_for(run_dir) else {
            return Ok(());
        };
        line.push(b'\n');
        let file = &self.facts.exclude_file;
        let known = match fs::read(file) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let lines: Vec<&[u8]> = known.split_inclusive(|byte| *byte == b'\n').collect();
        let Some(at) = lines.iter().rposition(|other| *other == line) else {
            return Ok(());
        };
        let (before, after) = lines.split_at(at);
        let before = before.concat();
        let after = after.get(1..).unwrap_or_default().concat();
        if after.is_empty() {
            return OpenOptions::new()
                .write(true)
                .open(file)?
                .set_len(before.len() as u64);
        }
        // Whole or not at all, with the rights that it has, and through a link.
        let file = &file.canonicalize()?;
        let dir = file.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::NamedTempFile::new_in(dir)?;
        new.write_all(&before)?;
        new.write_all(&after)?;
        new.as_file().set_permissions(fs::metadata(file)?.permissions())?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|error| error.error).map(drop)
    }

    /// The pattern that matches the directory and nothing else.
    fn line_for(&self, run_dir: &Path) -> Option<Vec<u8>> {
        let absolute = if run_dir.is_absolute() {
            run_dir.to_owned()
        } else {
            self.top().join(run_dir)
        };
        let inside = real(&absolute)
            .strip_prefix(real(self.top()))
            .ok()?
            .as_os_str()
            .as_bytes()
            .to_owned();
        if inside.is_empty() || inside.contains(&b'\n') {
            return None;
        }
        let mut line = vec![b'/'];
        for byte in inside {
            if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b' ') {
                line.push(b'\\');
            }
            line.push(byte);
        }
        line.push(b'/');
        Some(line)
    }

    /// A reading call at the top of the user's checkout, with the user's own configuration.
    pub(super) fn trusted(&self) -> Call {
        self.git.trusted(&self.facts.top)
    }

    pub(super) fn call(&self) -> Call {
        let Identity { name, email } = self.identity();
        // For the log of the branch, which git keeps.
        self.git
            .hardened(&self.facts.git_dir)
            .env("GIT_COMMITTER_NAME", name)
            .env("GIT_COMMITTER_EMAIL", email)
    }

    pub(super) async fn swap(
        &self,
        reference: &str,
        new: &Oid,
        old: &Oid,
        why: &str,
    ) -> Result<(), GitError> {
        let args = [
            "update-ref",
            "--no-deref",
            "-m",
            why,
            reference,
            new.as_str(),
            old.as_str(),
        ];
        self.call().args(args).run().await.map(drop)
    }

    pub(super) async fn resolve(&self, reference: &str) -> Result<Option<Oid>, GitError> {
        let wanted = format!("{reference}^{{commit}}");
        let args = [
            "rev-parse",
            "--quiet",
            "--verify",
            "--end-of-options",
            wanted.as_str(),
        ];
        let found = self.call().args(args).output().await?;
        Ok(if found.code == Some(0) {
            Oid::from_output(&found.stdout)
        } else {
            None
        })
    }
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = known.canonicalize() {
            return missing.iter().rev().fold(real, |path, part| path.join(part));
        }
        match (known.parent(), known.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                known = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_as_git_prints_them() {
        let read = |line: &str| Identity::from_ident(line.as_bytes());
        let some = read("A <B> C <a@b> 1700000000 +0100\n").unwrap();
        assert_eq!((some.name.as_str(), some.email.as_str()), ("A <B> C", "a@b"));
        assert!(read(" <a@b> 1 +0000").is_none());
        assert!(read("nonsense").is_none());
    }
}
