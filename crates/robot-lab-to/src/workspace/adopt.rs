//! Takes a candidate that was not accepted into the user's repository, on a branch of its own, because the user asked.

use super::git_call::LONG_TIMEOUT;
use super::{Branch, BranchError, CommitSpec, GitError, Ledger, Oid, RunRepo, ZoneError};

/// Why there is no such branch. No ref was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdoptError {
    /// A branch of that name is there.
    #[error(
        "the branch {0} is there already; it was left as it is; merge it with `git merge {0}`, or delete it with \
         `git branch -D {0}` and apply again"
    )]
    Exists(String),
    /// What the candidate was made from is not in the repository any more.
    #[error(
        "the commit {parent} that the attempt was made from is not in the repository any more; nothing was changed; \
         see the attempt with `robot-to show`"
    )]
    ParentGone {
        /// The commit.
        parent: Oid,
    },
    /// The branch has no name that git takes.
    #[error(transparent)]
    Branch(#[from] BranchError),
    /// A git call failed.
    #[error("the branch could not be made; branches and checkout are as they were; try again")]
    Git(#[from] GitError),
    /// The run's own repositories failed.
    #[error("the run repository could not be read; branches and checkout are as they were; try again")]
    Zone(#[from] ZoneError),
}

impl Ledger {
    /// Makes the branch `robot-to/<name>` (or `robot-to-<name>`) with this commit, of which the tree is in the run
    /// repository: copies exactly the objects that its parent does not have, durably, and then makes the branch, which
    /// must not be there. Nothing else is touched, and nothing is checked out.
    pub async fn adopt(
        &self,
        zones: &RunRepo,
        name: &str,
        spec: &CommitSpec,
    ) -> Result<(Branch, Oid), AdoptError> {
        let branch = self.branch_named(name).await?;
        let reference = branch.reference();
        let exists = || AdoptError::Exists(branch.name().to_owned());
        if self.resolve(&reference).await?.is_some() {
            return Err(exists());
        }
        if self.resolve(spec.parent.as_str()).await?.is_none() {
            return Err(AdoptError::ParentGone {
                parent: spec.parent.clone(),
            });
        }
        let commit = zones.commit_tree(spec).await?;
        let pack = zones.pack(&commit, &spec.parent).await?;
        let unpack = self.call().args(["unpack-objects", "-q", "--strict"]);
        unpack.stdin_file(pack).timeout(LONG_TIMEOUT).run().await?;
        let swapped = self
            .swap(&reference, &commit, &commit.zero(), "robot-to: applied")
            .await;
        if let Err(error) = swapped {
            // A call that failed may have made the branch all the same.
            match self.resolve(&reference).await? {
                None => return Err(error.into()),
                Some(tip) if tip != commit => return Err(exists()),
                Some(_) => {}
            }
        }
        Ok((branch, commit))
    }
}
