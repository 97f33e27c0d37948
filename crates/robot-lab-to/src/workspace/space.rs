//! Whether there is room on the disk.

use std::path::Path;

/// Bytes that whoever runs this may still write where `path` is, or will be; `None` when the file system does not say.
#[must_use]
pub fn free_space(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|path| path.exists())?;
    let found = rustix::fs::statvfs(existing).ok()?;
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_not_there_yet_is_as_large_as_the_one_above() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_space(dir.path()).is_some_and(|free| free > 0));
        assert!(free_space(&dir.path().join("not/there")).is_some());
    }
}
