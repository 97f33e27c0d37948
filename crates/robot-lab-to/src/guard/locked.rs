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
    pathspecs: Vec<String>,
    /// The same as plain paths, when no pattern is more than one.
    plain: Option<Vec<PathBuf>>,
    /// What they match in the base commit.
    files: BTreeSet<PathBuf>,
}

/// Why a list of locked files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// It would protect nothing.
    #[error(
        "the path to protect {0:?} matches no file of the commit that the run starts from; mend the pattern"
    )]
    MatchesNothing(String),
    /// Git does not take it for a pattern.
    #[error(
        "--protect-path {pattern:?} is no pattern of git's below the top of the repository: {said}; nothing was changed"
    )]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What git said.
        said: String,
    },
    /// Git cannot be asked.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Locked {
    /// Resolves patterns, which are git pathspecs from the top of the repository. One that matches nothing is an error.
    pub(crate) async fn resolve(zones: &RunRepo, base: &Oid, patterns: &[String]) -> Result<Self, LockError> {
        for pattern in patterns {
            let matched = zones.files_under(base, std::slice::from_ref(pattern)).await;
            let matched = matched.map_err(|error| match error {
                GitError::Failed {
                    code: Some(128),
                    stderr,
                    ..
                } => LockError::Pattern {
                    pattern: pattern.clone(),
                    said: stderr.trim().to_owned(),
                },
                other => LockError::Git(other),
            })?;
            if matched.is_empty() {
                return Err(LockError::MatchesNothing(pattern.clone()));
            }
        }
        let pathspecs: Vec<String> = patterns
            .iter()
            .cloned()
            .chain([format!(":(top,literal){SETTINGS}")])
            .collect();
        let files = zones.files_under(base, &pathspecs).await?.into_iter().collect();
        let plain: Option<Vec<PathBuf>> = patterns.iter().map(|pattern| plain(pattern)).collect();
        let plain = plain.map(|mut paths| {
            paths.push(SETTINGS.into());
            paths
        });
        Ok(Self {
            pathspecs,
            plain,
            files,
        })
    }

    /// The locked files in which a tree differs from the base commit.
    pub(crate) async fn changed(
        &self,
        zones: &RunRepo,
        base: &Oid,
        tree: &Oid,
    ) -> Result<Vec<PathBuf>, GitError> {
        if let Some(plain) = &self.plain
            && let Some(changed) = zones.known_differences(base, tree, plain).await?
        {
            return Ok(changed);
        }
        zones.changed_under(base, tree, &self.pathspecs).await
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

/// Whether a pattern surely locks every file of a directory, those that are not there yet included. `false` for one that
/// would have to be asked of git.
pub(crate) fn is_whole(pattern: &str, dir: &Path) -> bool {
    let bare = pattern
        .strip_suffix("/**")
        .or_else(|| pattern.strip_suffix("/*"))
        .unwrap_or(pattern);
    plain(bare).is_some_and(|locked| dir.starts_with(locked))
}

/// A pathspec that is a plain path below the top, as a path.
fn plain(pattern: &str) -> Option<PathBuf> {
    let magic = pattern.is_empty() || pattern.contains(['*', '?', '[', '\\', ':', '!', '^']);
    let path = PathBuf::from(pattern);
    let below = path
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    (!magic && below).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_whole_only_where_new_files_of_it_are_locked_too() {
        for pattern in [
            "tools",
            "tools/",
            "tools/*",
            "tools/**",
            "tools/eval",
            "tools/eval/*",
        ] {
            assert!(is_whole(pattern, Path::new("tools/eval")), "{pattern}");
        }
        for pattern in [
            "tools/eval/score",
            "tools/*.py",
            "tool",
            "tools/ev",
            "*/eval",
            "",
            ":!tools",
        ] {
            assert!(!is_whole(pattern, Path::new("tools/eval")), "{pattern}");
        }
        assert!(!is_whole("tools", Path::new("")));
    }

    #[test]
    fn only_a_path_below_the_top_is_plain() {
        for pattern in ["tests", "tests/", "a b/c.rs"] {
            assert_eq!(plain(pattern), Some(PathBuf::from(pattern)), "{pattern}");
        }
        for pattern in [
            "",
            ".",
            "/etc",
            "../x",
            "*.rs",
            "a?",
            "[ab]",
            ":(glob)**/x",
            ":!x",
            "a\\*",
        ] {
            assert_eq!(plain(pattern), None, "{pattern}");
        }
    }
}
