//! The directory of a run outside the user's repository: its layout, and the only code that removes from it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Says that a directory was made by this program; without it nothing is removed as a whole.
const MARKER: &str = ".robot-to-work";
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The private directory of one run (mode 0700).
///
/// ```text
/// run.git/        the refs of what the run made and kept, borrowing its objects and the user's
/// made/           the objects that the run made
/// visible.git/    what robots may read besides: the latest ancestors of the commit that the run starts from
/// hooks/          the user's hooks that lie in the tree, as the base commit has them
/// index/NAME      the private index of a checkout
/// checkouts/NAME  a workspace of a robot, or a bench
/// notes.md        a copy of the notes, for robots to read
/// bench-cache/    ignored files of the bench, put aside
/// tmp/, trash/    packs on their way, directories about to be removed
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkDir {
    path: PathBuf,
}

impl WorkDir {
    /// Makes the directory, or takes the one of an earlier process of the same run.
    pub fn create(path: &Path) -> io::Result<Self> {
        private_dir(path)?;
        let path = path.canonicalize()?;
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        if path.join(MARKER).symlink_metadata().is_err() {
            if fs::read_dir(&path)?.next().is_some() {
                return Err(io::Error::new(
                    io::ErrorKind::DirectoryNotEmpty,
                    format!(
                        "{path:?} holds files of others; nothing was changed; name an empty work directory"
                    ),
                ));
            }
            fs::write(
                path.join(MARKER),
                "The work directory of a robot-to run. Safe to delete when no run uses it.\n",
            )?;
        }
        for part in ["index", "checkouts", "made", "tmp", "trash"] {
            private_dir(&path.join(part))?;
        }
        Ok(Self { path })
    }

    /// The directory of an earlier or another process, as it is; `None` when there is none.
    pub fn existing(path: &Path) -> io::Result<Option<Self>> {
        match path.join(MARKER).symlink_metadata() {
            Ok(_) => Ok(Some(Self {
                path: path.canonicalize()?,
            })),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run repository.
    #[must_use]
    pub fn run_git(&self) -> PathBuf {
        self.path.join("run.git")
    }

    /// The objects of the user's repository that the run repository borrows; `None` when it does not say, or when its
    /// words are not to be read as they stand.
    #[must_use]
    pub fn borrows_from(&self) -> Option<PathBuf> {
        let line = fs::read(self.run_git().join("objects/info/alternates")).ok()?;
        let path = line.strip_suffix(b"\n")?;
        let plain = !path.starts_with(b"\"") && !path.contains(&b'\n');
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
        (plain && path.is_absolute()).then_some(path)
    }

    /// The repository that robots borrow objects from.
    #[must_use]
    pub fn visible_git(&self) -> PathBuf {
        self.path.join("visible.git")
    }

    /// The objects that the run made, and no others.
    #[must_use]
    pub fn made(&self) -> PathBuf {
        self.path.join("made")
    }

    /// The directory of a checkout.
    #[must_use]
    pub fn checkout(&self, name: &str) -> PathBuf {
        self.path.join("checkouts").join(name)
    }

    /// The private index of a checkout.
    #[must_use]
    pub fn index(&self, name: &str) -> PathBuf {
        self.path.join("index").join(name)
    }

    /// The copy of the notes that robots read.
    #[must_use]
    pub fn notes(&self) -> PathBuf {
        self.path.join("notes.md")
    }

    /// The ignored files of the bench as the last accepted grade left them.
    #[must_use]
    pub fn bench_cache(&self) -> PathBuf {
        self.path.join("bench-cache")
    }

    /// A directory for files that live only for one call.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Removes a file or a directory tree below this directory; a missing one is fine.
    ///
    /// Links are removed, never followed; missing rights of the owner are added first; the depth of the tree does
    /// not matter. A path that is not strictly below the work directory is refused.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let inside = path.strip_prefix(&self.path).ok().filter(|rest| {
            rest.components().next().is_some()
                && rest.components().all(|part| matches!(part, Component::Normal(_)))
        });
        let parent = path.parent().map(Path::canonicalize);
        match (inside, parent) {
            (Some(_), Some(Ok(parent))) if parent.starts_with(&self.path) => {}
            (Some(_), Some(Err(error))) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("{path:?} is not inside {:?}; nothing was removed", self.path),
                ));
            }
        }
        let kind = match path.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if !kind.is_dir() {
            return fs::remove_file(path);
        }
        self.empty_trash(self.to_trash(path)?)
    }

    /// Removes the whole work directory.
    pub fn remove_all(self) -> io::Result<()> {
        if self.path.join(MARKER).symlink_metadata().is_err() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{:?} does not carry the mark of a work directory; nothing was removed",
                    self.path
                ),
            ));
        }
        let trash = self.path.join("trash");
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?.path();
            if entry != trash && entry != self.path.join(MARKER) {
                self.remove(&entry)?;
            }
        }
        for left in fs::read_dir(&trash)? {
            self.empty_trash(left?.path())?;
        }
        fs::remove_dir(trash)?;
        fs::remove_file(self.path.join(MARKER))?;
        fs::remove_dir(&self.path)
    }

    fn to_trash(&self, dir: &Path) -> io::Result<PathBuf> {
        grant(dir)?;
        let target = self.path.join("trash").join(format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        fs::rename(dir, &target)?;
        Ok(target)
    }

    /// Removes a directory of the trash. Its directories are lifted into the trash one by one, so that neither
    /// recursion nor path length grows with the depth of the tree.
    fn empty_trash(&self, dir: PathBuf) -> io::Result<()> {
        let mut waiting = vec![dir];
        while let Some(dir) = waiting.pop() {
            grant(&dir)?;
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    waiting.push(self.to_trash(&entry.path())?);
                } else {
                    fs::remove_file(entry.path())?;
                }
            }
            fs::remove_dir(&dir)?;
        }
        Ok(())
    }
}

/// Gives the owner all rights on a directory, without following a link.
fn grant(dir: &Path) -> io::Result<()> {
    let meta = dir.symlink_metadata()?;
    let mode = meta.permissions().mode();
    if meta.is_dir() && mode & 0o700 != 0o700 {
        fs::set_permissions(dir, Permissions::from_mode(mode & 0o7777 | 0o700))?;
    }
    Ok(())
}

/// Gives the owner back what it needs to work below `root`: everything on directories, reading and writing on
/// files. Links are not followed; what cannot be mended is left for git to report.
pub(super) fn restore_access(root: &Path) {
    let mut waiting = vec![root.to_owned()];
    while let Some(dir) = waiting.pop() {
        if grant(&dir).is_err() {
            continue;
        }
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let mode = meta.permissions().mode();
            if meta.is_dir() {
                waiting.push(entry.path());
            } else if meta.is_file() && mode & 0o600 != 0o600 {
                drop(fs::set_permissions(
                    entry.path(),
                    Permissions::from_mode(mode & 0o7777 | 0o600),
                ));
            }
        }
    }
}

/// Makes a directory and its parents, readable by the owner alone.
pub(super) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Device and inode of a directory that is no link.
pub(super) fn identity(dir: &Path) -> Option<(u64, u64)> {
    dir.symlink_metadata()
        .ok()
        .filter(fs::Metadata::is_dir)
        .map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn work() -> (tempfile::TempDir, WorkDir) {
        let temp = tempfile::tempdir().unwrap();
        let work = WorkDir::create(&temp.path().join("a work dir")).unwrap();
        (temp, work)
    }

    #[test]
    fn links_are_removed_and_never_followed() {
        let (temp, work) = work();
        let canary = temp.path().join("canary");
        fs::create_dir(&canary).unwrap();
        fs::write(canary.join("alive"), "yes").unwrap();
        let dir = work.checkout("x");
        fs::create_dir_all(dir.join("deep")).unwrap();
        symlink(&canary, dir.join("deep/link")).unwrap();
        symlink(&canary, work.checkout("root-link")).unwrap();
        work.remove(&dir).unwrap();
        work.remove(&work.checkout("root-link")).unwrap();
        work.remove(&work.checkout("never-was")).unwrap();
        assert!(canary.join("alive").exists() && !dir.exists());
        work.remove_all().unwrap();
        assert!(canary.join("alive").exists() && !temp.path().join("a work dir").exists());
    }

    #[test]
    fn case_16_nothing_outside_is_removed() {
        let (temp, work) = work();
        let canary = temp.path().join("canary");
        fs::create_dir(&canary).unwrap();
        for path in [
            canary.clone(),
            work.path().to_owned(),
            work.path().join("tmp/../../canary"),
        ] {
            assert_eq!(
                work.remove(&path).unwrap_err().kind(),
                io::ErrorKind::PermissionDenied,
                "{path:?}"
            );
        }
        symlink(temp.path(), work.checkout("out")).unwrap();
        assert!(work.remove(&work.checkout("out").join("canary")).is_err());
        assert!(canary.exists());
    }

    #[test]
    fn case_166_closed_directories_and_great_depth_are_no_obstacle() {
        let (_temp, work) = work();
        let dir = work.checkout("x");
        fs::create_dir_all(dir.join("closed/inner")).unwrap();
        fs::write(dir.join("closed/inner/file"), "").unwrap();
        fs::set_permissions(dir.join("closed/inner"), Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(dir.join("closed"), Permissions::from_mode(0o500)).unwrap();
        // Build the depth by moving the tree into a new parent, so that no path here is ever long.
        let (inner, outer) = (work.tmp().join("inner"), work.tmp().join("outer"));
        fs::create_dir(&inner).unwrap();
        for _ in 0..3000 {
            fs::create_dir(&outer).unwrap();
            fs::rename(&inner, outer.join("d")).unwrap();
            fs::rename(&outer, &inner).unwrap();
        }
        fs::rename(&inner, dir.join("deep")).unwrap();
        work.remove(&dir).unwrap();
        assert!(!dir.exists());
    }

    #[test]
    fn access_is_given_back_below_the_root_only() {
        let (temp, work) = work();
        let outside = temp.path().join("outside");
        fs::write(&outside, "").unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o0)).unwrap();
        let dir = work.checkout("x");
        fs::create_dir_all(dir.join("sub")).unwrap();
        fs::write(dir.join("sub/file"), "").unwrap();
        symlink(&outside, dir.join("sub/link")).unwrap();
        fs::set_permissions(dir.join("sub/file"), Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(dir.join("sub"), Permissions::from_mode(0o0)).unwrap();
        restore_access(&dir);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (
                mode(&dir.join("sub")),
                mode(&dir.join("sub/file")),
                mode(&outside)
            ),
            (0o700, 0o600, 0)
        );
    }

    #[test]
    fn a_directory_of_others_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("theirs"), "").unwrap();
        assert!(WorkDir::create(temp.path()).is_err());
        assert!(temp.path().join("theirs").exists());
    }
}
