//! Copies files from one directory into another: what git ignores and a checkout needs all the same. No link is
//! followed, nothing outside of the two directories is read or written, and it has limits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;
use tokio_util::sync::CancellationToken;

use super::rules;

/// How much may be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarryLimits {
    /// Files, links and directories.
    pub entries: u64,
    /// The sum of their sizes.
    pub bytes: u64,
}

impl Default for CarryLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            bytes: 10 << 30,
        }
    }
}

/// What is done with links, and with what lies in directories that are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// Only links that stay inside, and nothing of a repository: for files of the user.
    Careful,
    /// Everything as it is: for files of our own directories.
    Exact,
}

/// Why files were not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarryError {
    /// More than is allowed.
    #[error(
        "it would copy more than is allowed: {} with {bytes} bytes so far, and the limits are {} files \
         and {} bytes", robot_lab::counted(entries, "file"), limits.entries, limits.bytes
    )]
    TooMuch {
        /// Counted until a limit was passed.
        entries: u64,
        /// Their sizes.
        bytes: u64,
        /// The limits.
        limits: CarryLimits,
    },
    /// A file could not be read or written.
    #[error("{path:?} could not be copied: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The run ends.
    #[error("copying was given up, since the run ends")]
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Dir,
    File { mode: u32, modified: Option<SystemTime> },
    Link(PathBuf),
}

/// What tells whether a file was touched: the system keeps the last two, and nobody sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    inode: u64,
    changed: (i64, i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    kind: Kind,
    /// None for directories, whose names are what counts.
    stamp: Option<Stamp>,
}

/// Files that are ready to be copied: counted, and found to be within the limits.
#[derive(Clone, Debug)]
pub struct Carry {
    from: PathBuf,
    /// In order, so that a directory comes before what is in it.
    items: BTreeMap<PathBuf, Item>,
    /// Their sizes together.
    pub bytes: u64,
    /// What was left out: links that leave the directory, repositories, FIFOs and their like.
    pub left_out: Vec<PathBuf>,
}

impl Carry {
    /// Looks at the files below `from` with these paths, and at everything in directories among them. What is not
    /// there any more is passed over.
    pub fn survey(
        from: &Path,
        paths: impl IntoIterator<Item = PathBuf>,
        fidelity: Fidelity,
        limits: CarryLimits,
        cancel: &CancellationToken,
    ) -> Result<Self, CarryError> {
        let dir = open(from)?;
        let mut carry = Self {
            from: from.to_owned(),
            items: BTreeMap::new(),
            bytes: 0,
            left_out: Vec::new(),
        };
        let mut waiting: Vec<PathBuf> = paths.into_iter().collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        while let Some(path) = waiting.pop() {
            if cancel.is_cancelled() {
                return Err(CarryError::Cancelled);
            }
            let failed = |source| CarryError::Io {
                path: path.clone(),
                source,
            };
            let meta = match dir.symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                meta => meta.map_err(failed)?,
            };
            let careful = fidelity == Fidelity::Careful;
            let kind = if meta.is_file() {
                carry.bytes = carry.bytes.saturating_add(meta.len());
                Kind::File {
                    mode: meta.mode() & 0o777,
                    modified: meta.modified().ok().map(cap_std::time::SystemTime::into_std),
                }
            } else if meta.is_symlink() {
                let target = dir.read_link_contents(&path).map_err(failed)?;
                if careful && !rules::stays_inside(&path, target.as_os_str().as_bytes()) {
                    carry.left_out.push(path);
                    continue;
                }
                Kind::Link(target)
            } else if meta.is_dir() && !careful {
                for entry in dir.read_dir(&path).map_err(failed)? {
                    waiting.push(path.join(entry.map_err(failed)?.file_name()));
                }
                Kind::Dir
            } else {
                carry.left_out.push(path);
                continue;
            };
            if careful && rules::has_git_name(&path) {
                carry.left_out.push(path);
                continue;
            }
            let stamp = (kind != Kind::Dir).then(|| Stamp {
                bytes: meta.len(),
                inode: meta.ino(),
                changed: (meta.ctime(), meta.ctime_nsec()),
            });
            carry.items.insert(path, Item { kind, stamp });
            let entries = carry.items.len() as u64;
            if entries > limits.entries || carry.bytes > limits.bytes {
                return Err(CarryError::TooMuch {
                    entries,
                    bytes: carry.bytes,
                    limits,
                });
            }
        }
        Ok(carry)
    }

    /// The directory that was looked at.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.from
    }

    /// The paths, from the top of either directory.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.items.keys().map(PathBuf::as_path)
    }

    /// Of these, what `other` has not, or has as it was touched at another time. Both are of the same directory.
    #[must_use]
    pub fn unlike(&self, other: &Self) -> BTreeSet<PathBuf> {
        let same = |path: &PathBuf, item: &Item| {
            other
                .items
                .get(path)
                .is_some_and(|known| known.kind == item.kind && known.stamp == item.stamp)
        };
        let unlike = self.items.iter().filter(|(path, item)| !same(path, item));
        unlike.map(|(path, _)| path.clone()).collect()
    }

    /// Of these, what `other` has not at all.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Vec<PathBuf> {
        let beyond = self.items.keys().filter(|path| !other.items.contains_key(*path));
        beyond.cloned().collect()
    }

    /// Copies everything below `to`, in place of what has the same names there. Data is shared with the original
    /// where the file system can do that.
    pub fn copy_to(&self, to: &Path, cancel: &CancellationToken) -> Result<(), CarryError> {
        Self::copy_of(&self.from, to, self.items.iter(), cancel)
    }

    /// Copies only some of it, out of `from`, which holds the same.
    pub fn copy_some(
        &self,
        from: &Path,
        to: &Path,
        which: &BTreeSet<PathBuf>,
        cancel: &CancellationToken,
    ) -> Result<(), CarryError> {
        let items = self.items.iter().filter(|(path, _)| which.contains(*path));
        Self::copy_of(from, to, items, cancel)
    }

    fn copy_of<'a>(
        from: &Path,
        to: &Path,
        items: impl Iterator<Item = (&'a PathBuf, &'a Item)>,
        cancel: &CancellationToken,
    ) -> Result<(), CarryError> {
        let (from, to) = (open(from)?, open(to)?);
        let mut parent: Option<&Path> = None;
        for (path, item) in items {
            if cancel.is_cancelled() {
                return Err(CarryError::Cancelled);
            }
            let failed = |source| CarryError::Io {
                path: path.clone(),
                source,
            };
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            if let Some(above) = above
                && parent != Some(above)
            {
                make_dirs(&to, above).map_err(failed)?;
                parent = Some(above);
            }
            put(&from, &to, path, &item.kind).map_err(failed)?;
        }
        Ok(())
    }
}

fn open(dir: &Path) -> Result<Dir, CarryError> {
    Dir::open_ambient_dir(dir, ambient_authority()).map_err(|source| CarryError::Io {
        path: dir.to_owned(),
        source,
    })
}

/// Makes a directory and those above it. What is in the place of one goes, also a link to a directory inside: what is
/// copied belongs behind none.
fn make_dirs(to: &Dir, dir: &Path) -> io::Result<()> {
    let mut made = PathBuf::new();
    for name in dir {
        made.push(name);
        put_dir(to, &made)?;
    }
    Ok(())
}

fn put_dir(to: &Dir, path: &Path) -> io::Result<()> {
    match to.create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if to.symlink_metadata(path)?.is_dir() {
                return Ok(());
            }
            to.remove_file(path)?;
            to.create_dir(path)
        }
        made => made,
    }
}

fn put(from: &Dir, to: &Dir, path: &Path, kind: &Kind) -> io::Result<()> {
    match kind {
        Kind::Dir => put_dir(to, path),
        Kind::Link(target) => in_place_of(to, path, || to.symlink_contents(target, path)),
        Kind::File { mode, modified } => {
            let source = match read(from, path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                source => source?,
            };
            in_place_of(to, path, || {
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).mode(0o600);
                let copy = to.open_with(path, &options)?.into_std();
                fill(&source, &copy)?;
                copy.set_permissions(fs::Permissions::from_mode(*mode))?;
                // Build tools tell by this what is up to date.
                modified.map_or(Ok(()), |modified| copy.set_modified(modified))
            })
        }
    }
}

/// Opens a file that is no link, and that cannot hold us up.
fn read(from: &Dir, path: &Path) -> io::Result<fs::File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags);
    let file = from.open_with(path, &options)?.into_std();
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("not a regular file any more"))
    }
}

/// Makes something new; what has its place is removed first.
fn in_place_of(to: &Dir, path: &Path, make: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if to.symlink_metadata(path)?.is_dir() {
                to.remove_dir_all(path)?;
            } else {
                to.remove_file(path)?;
            }
            make()
        }
        made => made,
    }
}

/// Shares the data where that is possible, and else copies it.
fn fill(mut source: &fs::File, mut copy: &fs::File) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if rustix::fs::ioctl_ficlone(copy, source).is_ok() {
        return Ok(());
    }
    io::copy(&mut source, &mut copy).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn survey(
        from: &Path,
        names: &[&str],
        fidelity: Fidelity,
        limits: CarryLimits,
    ) -> Result<Carry, CarryError> {
        let paths = names.iter().map(PathBuf::from);
        Carry::survey(from, paths, fidelity, limits, &CancellationToken::new())
    }

    fn dirs() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("from"), temp.path().join("to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("sub/run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("sub/run"), fs::Permissions::from_mode(0o755)).unwrap();
        (temp, from, to)
    }

    #[test]
    fn content_mode_and_time_are_copied() {
        let (_temp, from, to) = dirs();
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::open(from.join("sub/run"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        symlink("run", from.join("sub/link")).unwrap();
        let carry = survey(
            &from,
            &["sub/run", "sub/link", "gone"],
            Fidelity::Careful,
            CarryLimits::default(),
        )
        .unwrap();
        assert_eq!((carry.bytes, carry.left_out.len()), (10, 0));
        // Twice: what is there already is replaced.
        for _ in 0..2 {
            carry.copy_to(&to, &CancellationToken::new()).unwrap();
            let meta = to.join("sub/run").metadata().unwrap();
            assert_eq!(fs::read(to.join("sub/run")).unwrap(), b"#!/bin/sh\n");
            assert_eq!(
                (meta.permissions().mode() & 0o777, meta.modified().unwrap()),
                (0o755, old)
            );
            assert_eq!(fs::read_link(to.join("sub/link")).unwrap(), Path::new("run"));
            fs::remove_file(to.join("sub/link")).unwrap();
            fs::create_dir(to.join("sub/link")).unwrap();
        }
    }

    #[test]
    fn links_that_leave_and_what_is_no_file_stay_behind() {
        let (temp, from, to) = dirs();
        fs::write(temp.path().join("outside"), "secret").unwrap();
        symlink("../outside", from.join("out")).unwrap();
        symlink("/etc/passwd", from.join("absolute")).unwrap();
        fs::create_dir(from.join(".git")).unwrap();
        fs::write(from.join(".git/config"), "x").unwrap();
        let names = ["out", "absolute", "sub", ".git/config"];
        let carry = survey(&from, &names, Fidelity::Careful, CarryLimits::default()).unwrap();
        assert_eq!(carry.left_out.len(), 4, "{carry:?}");
        carry.copy_to(&to, &CancellationToken::new()).unwrap();
        assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
        // A path that leads through a link out of the directory is refused altogether.
        symlink(temp.path(), from.join("up")).unwrap();
        assert!(survey(&from, &["up/outside"], Fidelity::Careful, CarryLimits::default()).is_err());
    }

    #[test]
    fn nothing_is_written_through_a_link_in_the_target() {
        let (temp, from, to) = dirs();
        let outside = temp.path().join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, to.join("sub")).unwrap();
        fs::create_dir_all(from.join("deep/er")).unwrap();
        fs::write(from.join("deep/er/run"), "x").unwrap();
        fs::write(to.join("deep"), "a file in the way").unwrap();
        let names = ["sub/run", "deep/er/run"];
        let carry = survey(&from, &names, Fidelity::Careful, CarryLimits::default()).unwrap();
        carry.copy_to(&to, &CancellationToken::new()).unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert!(to.join("sub/run").is_file() && to.join("deep/er/run").is_file());
        // A link that stays inside is none to write through either.
        fs::remove_dir_all(to.join("sub")).unwrap();
        fs::create_dir(to.join("src")).unwrap();
        symlink("src", to.join("sub")).unwrap();
        carry.copy_to(&to, &CancellationToken::new()).unwrap();
        assert_eq!(fs::read_dir(to.join("src")).unwrap().count(), 0);
        assert!(to.join("sub").symlink_metadata().unwrap().is_dir() && to.join("sub/run").is_file());
    }

    #[test]
    fn too_much_is_refused_with_numbers() {
        let (_temp, from, _) = dirs();
        fs::write(from.join("b"), "12345").unwrap();
        let refused = |entries, bytes| {
            let limits = CarryLimits { entries, bytes };
            survey(&from, &["sub/run", "b"], Fidelity::Careful, limits)
                .err()
                .map(|error| error.to_string())
        };
        assert_eq!(refused(2, 15), None);
        let many = refused(1, 100).unwrap();
        assert!(
            many.contains("2 files with 15 bytes") && many.contains("limits are 1 files"),
            "{many}"
        );
        assert!(refused(9, 14).unwrap().contains("14 bytes"));
    }

    #[test]
    fn our_own_directories_are_copied_as_they_are() {
        let (_temp, from, to) = dirs();
        fs::create_dir_all(from.join("cache/empty")).unwrap();
        fs::create_dir(from.join("cache/.git")).unwrap();
        fs::write(from.join("cache/.git/HEAD"), "x").unwrap();
        symlink("/nowhere", from.join("cache/link")).unwrap();
        let carry = survey(&from, &["cache"], Fidelity::Exact, CarryLimits::default()).unwrap();
        carry.copy_to(&to, &CancellationToken::new()).unwrap();
        assert!(to.join("cache/empty").is_dir() && to.join("cache/.git/HEAD").is_file());
        assert_eq!(
            fs::read_link(to.join("cache/link")).unwrap(),
            Path::new("/nowhere")
        );
    }

    #[test]
    fn what_was_touched_since_is_told_even_when_its_time_is_put_back() {
        let (_temp, from, to) = dirs();
        for name in ["same", "touched", "gone"] {
            fs::write(from.join("sub").join(name), name).unwrap();
        }
        let look = || survey(&from, &["sub"], Fidelity::Exact, CarryLimits::default()).unwrap();
        let before = look();
        before.copy_to(&to, &CancellationToken::new()).unwrap();
        assert_eq!(
            (look().unlike(&before).len(), look().beyond(&before).len()),
            (0, 0)
        );
        // Longer than the clock of the file system needs to go on.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let time = fs::metadata(from.join("sub/touched"))
            .unwrap()
            .modified()
            .unwrap();
        fs::write(from.join("sub/touched"), "TOUCHED").unwrap();
        fs::File::open(from.join("sub/touched"))
            .unwrap()
            .set_modified(time)
            .unwrap();
        fs::remove_file(from.join("sub/gone")).unwrap();
        fs::write(from.join("sub/new"), "new").unwrap();
        let now = look();
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names(now.beyond(&before)), ["sub/new"]);
        let lost = before.unlike(&now);
        assert_eq!(names(lost.iter().cloned().collect()), ["sub/gone", "sub/touched"]);
        before
            .copy_some(&to, &from, &lost, &CancellationToken::new())
            .unwrap();
        assert_eq!(fs::read(from.join("sub/touched")).unwrap(), b"touched");
        assert_eq!(fs::read(from.join("sub/gone")).unwrap(), b"gone");
    }

    #[test]
    fn a_run_that_ends_is_not_held_up() {
        let (_temp, from, to) = dirs();
        let carry = survey(&from, &["sub/run"], Fidelity::Careful, CarryLimits::default()).unwrap();
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        assert!(matches!(
            carry.copy_to(&to, &cancelled),
            Err(CarryError::Cancelled)
        ));
    }
}
