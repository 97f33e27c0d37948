//! The locked files of a run: resolved once on the base commit, additions under a pattern included.

use crate::workspace::{GitError, Oid, RunRepo};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A run's own settings in the repository, which no robot may change.
const SETTINGS: &str = "robot-to.yml";

/// Locked files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locked {
    /// What git is asked with. Never empty, so that an empty list cannot mean everything.
    pub(crate) pathspecs: Vec<String>,
    /// What they match in the base commit.
    files: BTreeSet<PathBuf>,
}

/// Why a list of locked files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It would protect nothing.
    #[error("--protect-path {0:?} matches no file of the commit that the run starts from; mend the pattern")]
    MatchesNothing(String),
    /// Git cannot be asked.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Locked {
    /// Resolves patterns, which are git pathspecs from the top of the repository. One that matches nothing is an error.
    pub(crate) async fn resolve(zones: &RunRepo, base: &Oid, patterns: &[String]) -> Result<Self, LockError> {
        for pattern in patterns {
            if zones
                .files_under(base, std::slice::from_ref(pattern))
                .await?
                .is_empty()
            {
                return Err(LockError::MatchesNothing(pattern.clone()));
            }
        }
        let pathspecs: Vec<String> = patterns
            .iter()
            .cloned()
            .chain([format!(":(top,literal){SETTINGS}")])
            .collect();
        let files = zones.files_under(base, &pathspecs).await?.into_iter().collect();
        Ok(Self { pathspecs, files })
    }

    /// Whether this path, relative to the top, is known to be locked. New files under a pattern are not known here.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.files.contains(path) || path == Path::new(SETTINGS)
    }

    /// The locked files of the base commit.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }
}
