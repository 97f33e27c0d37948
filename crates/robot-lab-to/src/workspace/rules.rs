//! What a path or a link must be to enter a commit; pure functions over bytes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// True when a symbolic link stays in the tree, seen from its text alone: relative, and with `..` only at its
/// start. After another component `..` may mean anything, since that component may be a link itself.
pub(super) fn stays_inside(link: &Path, target: &[u8]) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    let mut down = false;
    for part in Path::new(OsStr::from_bytes(target)).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if !down && depth > 0 => depth -= 1,
            Component::Normal(name) if !is_git_name(name) => down = true,
            _ => return false,
        }
    }
    !target.is_empty()
}

/// True for `.git` and the names that other systems take for it.
pub(super) fn is_git_name(name: &OsStr) -> bool {
    let name = fold(name);
    let name = name.trim_end_matches([' ', '.']);
    name == ".git" || name == "git~1"
}

/// True when a component of the path is such a name.
pub(super) fn has_git_name(path: &Path) -> bool {
    path.iter().any(is_git_name)
}

/// Pairs of a new path and another path of the tree that are one and the same where case does not count: equal
/// names, or a file where the other has a directory.
pub(super) fn collisions<'a>(all: &[&'a Path], added: &[&'a Path]) -> Vec<(PathBuf, PathBuf)> {
    let mut spellings: HashMap<String, Vec<&Path>> = HashMap::new();
    for path in all {
        spellings.entry(fold(path.as_os_str())).or_default().push(path);
    }
    let mut found = Vec::new();
    for path in added {
        for place in path.ancestors().filter(|place| !place.as_os_str().is_empty()) {
            let others = spellings
                .get(&fold(place.as_os_str()))
                .map(Vec::as_slice)
                .unwrap_or_default();
            if let Some(other) = others.iter().find(|other| **other != place) {
                found.push((path.to_path_buf(), other.to_path_buf()));
                break;
            }
        }
    }
    found
}

fn fold(path: &OsStr) -> String {
    path.to_string_lossy().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_may_enter() {
        for (link, target, good) in [
            ("a", "b", true),
            ("a", "./b/c", true),
            ("d/a", "../b", true),
            ("d/e/a", "../../b", true),
            ("a", "../b", false),
            ("d/a", "../../b", false),
            ("a", "/etc/passwd", false),
            ("a", "b/../../c", false),
            ("a", "b/../c", false),
            ("a", ".git/config", false),
            ("d/a", "../.GIT/hooks", false),
            ("a", "", false),
        ] {
            assert_eq!(
                stays_inside(Path::new(link), target.as_bytes()),
                good,
                "{link} -> {target}"
            );
        }
    }

    #[test]
    fn names_of_git_in_disguise() {
        for bad in [".git", ".GIT", "x/.Git/hooks", "git~1", ".git ", ".git."] {
            assert!(has_git_name(Path::new(bad)), "{bad}");
        }
        for good in [".gitignore", "..git", "git", ".github/x"] {
            assert!(!has_git_name(Path::new(good)), "{good}");
        }
    }

    #[test]
    fn collisions_need_a_new_path() {
        let path = |text: &'static str| Path::new(text);
        let old = [path("Readme"), path("README"), path("src/a")];
        assert!(collisions(&old, &[]).is_empty());
        let all = [old.as_slice(), &[path("src/A"), path("SRC")]].concat();
        let found = collisions(&all, &[path("src/A"), path("SRC")]);
        assert_eq!(found[0], ("src/A".into(), "src/a".into()));
        assert_eq!(
            collisions(&[path("src"), path("Src/b")], &[path("Src/b")]).len(),
            1
        );
        assert!(collisions(&[path("src/b"), path("Src/c")], &[path("Src/c")]).is_empty());
    }
}
