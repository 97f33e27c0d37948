//! The search for bytes in all files below a directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files below a directory that contain `needle`, or whose name or link target does, in order.
///
/// Links are not followed. A file that cannot be read fails the test, as nothing can be said about it; one that
/// vanishes meanwhile does not.
#[must_use]
pub fn files_containing(directory: impl AsRef<Path>, needle: &[u8]) -> Vec<PathBuf> {
    assert!(!needle.is_empty(), "nothing to search for");
    let mut found = Vec::new();
    let mut open = vec![directory.as_ref().to_path_buf()];
    while let Some(directory) = open.pop() {
        let Some(entries) = unless_gone(fs::read_dir(&directory), &directory) else {
            continue;
        };
        for entry in entries {
            let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
            let path = entry.path();
            let Some(kind) = unless_gone(entry.file_type(), &path) else {
                continue;
            };
            let content = if kind.is_dir() {
                open.push(path.clone());
                None
            } else if kind.is_symlink() {
                unless_gone(fs::read_link(&path), &path)
                    .map(|target| target.into_os_string().into_encoded_bytes())
            } else if kind.is_file() {
                unless_gone(fs::read(&path), &path)
            } else {
                None
            };
            let in_name = contains(entry.file_name().as_encoded_bytes(), needle);
            if in_name || content.is_some_and(|content| contains(&content, needle)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn unless_gone<T>(result: std::io::Result<T>, path: &Path) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Whether the needle is among the bytes.
pub(crate) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}
