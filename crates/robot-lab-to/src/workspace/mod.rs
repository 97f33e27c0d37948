//! Where robots work and candidates are graded, and the one door back into the user's repository.
//!
//! Three zones, one arrow between each:
//!
//! ```text
//!  user zone                     robot zone                      grader zone
//!  Ledger: the user's            Checkout "robot-N": a           Checkout "bench": a tree id,
//!  repository; read at the       private copy whose `.git`       and nothing that a robot left
//!  start, then one branch        is thrown away unread           lying around
//!  and its objects                      │ snapshot → tree id            ▲
//!        ▲                              ▼                               │ prepare
//!        └── accept: compare-and-swap ── RunRepo: commit_tree ──────────┘
//! ```
//!
//! - A second door opens only when the user asks: [`Ledger::adopt`] makes a branch of what was not accepted.
//! - What is graded and committed is always a tree id, never a directory.
//! - A robot's `.git` is read by nobody: snapshots use the run repository and an index outside the checkout.
//! - All git runs through one hardened runner; a repository cannot make it execute anything.
//! - Nothing here assumes one workspace or one bench: a [`Checkout`] has a name, and there may be many.
//!
//! ```no_run
//! # async fn tour() -> Result<(), Box<dyn std::error::Error>> {
//! use robot_lab_to::workspace::*;
//! # let (env, cwd, state) = (Vec::<(String, String)>::new(), std::path::Path::new("."), std::path::Path::new("/"));
//! let git = Git::find(&HostEnv::new(env)).await?;
//! let ledger = Ledger::discover(&git, cwd).await?;
//! let parent = ledger.base().clone();
//! let zones = RunRepo::create(&git, &ledger, &WorkDir::create(state)?, &parent).await?;
//! let branch = ledger.create_branch("faster-parser-20260101-000000-abcdef").await?;
//!
//! let mut robot = Checkout::create(&zones, "robot-0").await?;
//! robot.prepare(&parent, &parent).await?;
//! // … a robot works in robot.path() …
//! if let Snapshot::Tree(tree) = robot.snapshot(&parent, &SnapshotRules::default()).await? {
//!     let mut bench = Checkout::create(&zones, "bench").await?;
//!     bench.prepare(&tree, &parent).await?;
//!     // … the candidate is graded in bench.path() …
//!     let identity = ledger.identity().clone();
//!     let spec = CommitSpec { tree, parent: parent.clone(), message: b"robot-to 1: faster".to_vec(), identity, at: 0, sign: false };
//!     let commit = zones.commit_tree(&spec).await?;
//!     ledger.accept(&zones, &branch, &commit, &parent).await?;
//! }
//! # Ok(())
//! # }
//! ```

use std::path::PathBuf;

mod adopt;
mod archive;
mod carry;
mod checkout;
mod config_text;
mod diff;
mod dirty;
mod discover;
mod disk;
mod git;
mod git_call;
mod ignored;
mod ledger;
mod listing;
mod lock_files;
mod look;
mod oid;
mod rejection;
mod rules;
mod run_repo;
mod snapshot;
mod space;
mod strays;
mod throw_away;
mod user_hooks;

pub use adopt::AdoptError;
pub use archive::{Archive, Kept};
pub use carry::{Carry, CarryError, CarryLimits, Fidelity};
pub use checkout::Checkout;
pub use diff::{Change, DiffStat, Entry, Mode, Patch};
pub use dirty::DirtyPath;
pub use discover::StartError;
pub use disk::WorkDir;
pub use git::{FindGitError, Git, GitError, HostEnv};
pub use ignored::Incarnation;
pub use ledger::{AcceptError, Branch, BranchError, Identity, Ledger};
pub use lock_files::is_lock_file;
pub use look::{FileHead, Listed};
pub use oid::{InvalidOid, Oid};
pub use rejection::{Rejection, RejectionKind};
pub use run_repo::{CommitSpec, RunRepo};
pub use snapshot::{Snapshot, SnapshotRules};
pub use space::free_space;
pub use user_hooks::UserHooks;

/// A failure in the run's own directories. The user's repository is never affected by one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneError {
    /// A git call failed.
    #[error("a git call in the run's own directories failed; your repository is as it was")]
    Git(#[from] GitError),
    /// A file or directory could not be made, read or removed.
    #[error("{path:?} could not be made, read or removed; your repository is as it was; mend it and resume")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The user's repository does not hold all files of the commit (a partial clone).
    #[error(
        "objects of {} are not in the repository (a partial clone?); nothing was changed; fetch them with \
         `git fetch --refetch --no-filter`: {said}", commit.short()
    )]
    MissingObjects {
        /// The commit.
        commit: Oid,
        /// What git said.
        said: String,
    },
    /// The name of a checkout is not made of lower-case letters, digits and hyphens.
    #[error("{0:?} cannot name a checkout; use lower-case letters, digits and hyphens")]
    Name(String),
}

impl ZoneError {
    /// True when the machine is at fault (disk, memory), so that rebuilding things would not help.
    fn is_of_the_machine(&self) -> bool {
        match self {
            Self::Git(error) => !error.is_refusal(),
            Self::Io { source, .. } => matches!(
                source.kind(),
                std::io::ErrorKind::StorageFull
                    | std::io::ErrorKind::QuotaExceeded
                    | std::io::ErrorKind::ReadOnlyFilesystem
                    | std::io::ErrorKind::OutOfMemory
            ),
            Self::MissingObjects { .. } | Self::Name(_) => true,
        }
    }
}

/// Runs file system work off the event loop. `path` is named in the error.
async fn blocking<T: Send + 'static>(
    path: &std::path::Path,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, ZoneError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(|source| ZoneError::Io {
            path: path.to_owned(),
            source,
        })
}
