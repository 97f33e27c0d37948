//! Special files under names that git opens while it looks around: a FIFO there would hold it up for ever.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What git reads in every directory.
const READ_BY_GIT: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// Finds them below `dir`. Links are not followed, and what cannot be read is passed over: git cannot read it either.
pub(super) fn traps(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if !kind.is_file()
                && !kind.is_symlink()
                && READ_BY_GIT.iter().any(|name| entry.file_name() == *name)
            {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_special_files_that_git_would_open_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("deep/er")).unwrap();
        fs::write(at(".gitignore"), "x").unwrap();
        std::os::unix::fs::symlink("/", at("deep/.gitattributes")).unwrap();
        for fifo in ["pipe", "deep/er/.gitignore", ".mailmap"] {
            std::process::Command::new("mkfifo")
                .arg(at(fifo))
                .status()
                .unwrap();
        }
        let mut found = traps(dir.path()).unwrap();
        found.sort();
        assert_eq!(found, [at(".mailmap"), at("deep/er/.gitignore")]);
    }
}
