//! What a run made, opened to be read: its kept attempts, and what commits change. Reading holds nothing and writes
//! nothing, so the run may go on meanwhile.

use std::path::{Path, PathBuf};

use super::diff::{self, DiffStat, Patch};
use super::git_call::Call;
use super::{Git, GitError, Oid, StartError, WorkDir, discover};

/// A git directory to read from: the run repository, or the user's.
#[derive(Clone, Debug)]
pub struct Archive {
    git: Git,
    dir: PathBuf,
}

/// A candidate that was not committed, and is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its iteration.
    pub iteration: u32,
    /// Its number within the iteration.
    pub candidate: u32,
    /// The commit that keeps it.
    pub commit: Oid,
    /// What it made.
    pub tree: Oid,
    /// The commit that it was made from.
    pub parent: Oid,
}

impl Archive {
    /// The run repository in this work directory; `None` when it is gone.
    pub fn of_run(git: &Git, work_dir: &Path) -> std::io::Result<Option<Self>> {
        let work = WorkDir::existing(work_dir)?;
        let dir = work.map(|work| work.run_git()).filter(|dir| dir.is_dir());
        Ok(dir.map(|dir| Self {
            git: git.clone(),
            dir,
        }))
    }

    /// The user's repository around `cwd`.
    pub async fn of_user(git: &Git, cwd: &Path) -> Result<Self, StartError> {
        Ok(Self {
            git: git.clone(),
            dir: discover::find_git_dir(git, cwd).await?,
        })
    }

    /// The git directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is kept, in the order in which it was made.
    pub async fn kept(&self) -> Result<Vec<Kept>, GitError> {
        let format = "--format=%(refname:lstrip=2) %(objectname) %(tree) %(parent)";
        let listed = self
            .call()
            .args(["for-each-ref", format, "refs/attempts"])
            .run()
            .await?;
        let mut kept: Vec<Kept> = String::from_utf8_lossy(&listed)
            .lines()
            .filter_map(parse)
            .collect();
        kept.sort_by_key(|kept| (kept.iteration, kept.candidate));
        Ok(kept)
    }

    /// Where a branch is; `None` when there is none of this name.
    pub async fn tip(&self, branch: &str) -> Result<Option<Oid>, GitError> {
        let reference = format!("refs/heads/{branch}");
        let args = ["for-each-ref", "--format=%(objectname)", &reference];
        let listed = self.call().args(args).run().await?;
        // A pattern without wildcards also matches what is below it; the branch itself comes first.
        let first = listed.split(|byte| *byte == b'\n').next();
        Ok(first.and_then(Oid::from_output))
    }

    /// How much `tree` changes.
    pub async fn diff_stat(&self, parent: &Oid, tree: &Oid) -> Result<DiffStat, GitError> {
        diff::diff_stat(self.call(), parent, tree).await
    }

    /// How much the second tree of each pair changes of the first; `None` where objects are missing. Both must be trees.
    pub async fn diff_stats(&self, pairs: &[(Oid, Oid)]) -> Result<Vec<Option<DiffStat>>, GitError> {
        diff::diff_stats(self.call(), pairs).await
    }

    /// The patch, at most `cap` bytes of it.
    pub async fn patch(&self, parent: &Oid, tree: &Oid, cap: usize) -> Result<Patch, GitError> {
        diff::patch(self.call(), parent, tree, cap).await
    }

    fn call(&self) -> Call {
        self.git.hardened(&self.dir)
    }
}

/// Reads `<iteration>-<candidate> <commit> <tree> <parent>`; a ref of another form is none of ours.
fn parse(line: &str) -> Option<Kept> {
    let mut words = line.split(' ');
    let (iteration, candidate) = words.next()?.split_once('-')?;
    let mut oid = || words.next()?.parse().ok();
    let (commit, tree, parent) = (oid()?, oid()?, oid()?);
    Some(Kept {
        iteration: iteration.parse().ok()?,
        candidate: candidate.parse().ok()?,
        commit,
        tree,
        parent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refs_of_attempts_are_read() {
        let (a, b, c) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
        let kept = parse(&format!("12-1 {a} {b} {c}")).unwrap();
        assert_eq!((kept.iteration, kept.candidate), (12, 1));
        assert_eq!(
            (kept.commit.as_str(), kept.parent.as_str()),
            (a.as_str(), c.as_str())
        );
        for other in [
            format!("x {a} {b} {c}"),
            format!("1-0 {a} {b}"),
            format!("1-0 {a} {b} "),
        ] {
            assert_eq!(parse(&other), None, "{other}");
        }
    }
}
