//! What lies in a checkout that git does not show: found in one walk, before git looks around there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What git reads in every directory.
const READ_BY_GIT: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// What a walk found, as paths below the directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Strays {
    /// Special files under names that git opens: a FIFO there would hold it up for ever.
    pub(super) traps: Vec<PathBuf>,
    /// Repositories inside, by their `.git`, and special files.
    pub(super) planted: Vec<PathBuf>,
    /// Files that say what is ignored.
    pub(super) ignores: Vec<PathBuf>,
    /// Files that say how others are written.
    pub(super) attributes: Vec<PathBuf>,
    /// Directories that cannot be read. Git passes them over without an error, and what lies there would stay.
    pub(super) closed: Vec<PathBuf>,
}

/// Walks below `dir`, without its own `.git`. Links are not followed.
pub(super) fn strays(dir: &Path) -> io::Result<Strays> {
    let mut found = Strays::default();
    let mut open = vec![PathBuf::new()];
    while let Some(inside) = open.pop() {
        let entries = match fs::read_dir(dir.join(&inside)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                found.closed.push(inside);
                continue;
            }
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            if name == ".git" {
                if !inside.as_os_str().is_empty() {
                    found.planted.push(inside.join(name));
                }
            } else if kind.is_dir() {
                open.push(inside.join(name));
            } else if !kind.is_file() && !kind.is_symlink() {
                let path = inside.join(&name);
                if READ_BY_GIT.iter().any(|read| name == *read) {
                    found.traps.push(path.clone());
                }
                found.planted.push(path);
            } else if name == ".gitignore" {
                found.ignores.push(inside.join(name));
            } else if name == ".gitattributes" {
                found.attributes.push(inside.join(name));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_does_not_show_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("deep/er")).unwrap();
        fs::create_dir_all(at(".git/deep/.git")).unwrap();
        fs::create_dir_all(at("deep/.git/deep")).unwrap();
        fs::write(at(".gitignore"), "x").unwrap();
        fs::write(at("deep/er/.git"), "x").unwrap();
        std::os::unix::fs::symlink("/", at("deep/.gitattributes")).unwrap();
        for fifo in ["pipe", "deep/er/.gitignore", ".mailmap"] {
            std::process::Command::new("mkfifo")
                .arg(at(fifo))
                .status()
                .unwrap();
        }
        let mut found = strays(dir.path()).unwrap();
        found.traps.sort();
        found.planted.sort();
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            found,
            Strays {
                traps: paths(&[".mailmap", "deep/er/.gitignore"]),
                planted: paths(&[
                    ".mailmap",
                    "deep/.git",
                    "deep/er/.git",
                    "deep/er/.gitignore",
                    "pipe"
                ]),
                ignores: paths(&[".gitignore"]),
                attributes: paths(&["deep/.gitattributes"]),
                closed: paths(&[]),
            }
        );
    }
}
