//! The trash: where runs go that are cleaned away, until they are old enough to be removed for good. Branches and
//! commits in the user's repository are nothing of a run's that is moved.

use super::{RunDir, RunId};
use crate::workspace::WorkDir;
use jiff::Timestamp;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The form of the time that an entry's name begins with, in UTC.
const TIME: &str = "%Y%m%d-%H%M%S";
/// Its length.
const TIME_LEN: usize = 15;

/// The directory `trash` below the one for private copies. Its entries are `<time>-<run>`, each with the directory of
/// the run as `record` and its private copies as `work`, as far as they were there.
#[derive(Clone, Debug)]
pub struct Trash {
    path: PathBuf,
}

/// Why a run was not moved.
#[derive(Debug, thiserror::Error)]
pub enum TrashError {
    /// A process is at work on it.
    #[error("the run {0} is held by another process; it was left as it is")]
    Held(RunId),
    /// A file or directory cannot be moved.
    #[error("{}: {source}; what was moved is in the trash, and cleaning again moves the rest", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Trash {
    /// The trash of this directory for private copies.
    #[must_use]
    pub fn of(work_root: &Path) -> Self {
        Self {
            path: work_root.join("trash"),
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the private copies of a run, and with `record` also its directory. The run is held meanwhile. Answers the
    /// entry; `None` when there was nothing to move.
    pub fn put(
        &self,
        id: &RunId,
        dir: &RunDir,
        work: &Path,
        record: bool,
        now: Timestamp,
    ) -> Result<Option<PathBuf>, TrashError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| TrashError::Io { path, source }
        };
        let hold = dir.hold().map_err(at(dir.path()))?;
        if hold.is_none() {
            return Err(TrashError::Held(id.clone()));
        }
        let work = WorkDir::existing(work).map_err(at(work))?;
        if work.is_none() && !record {
            return Ok(None);
        }
        let entry = self.path.join(format!("{}-{id}", now.strftime(TIME)));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&entry)
            .map_err(at(&entry))?;
        if let Some(work) = work {
            fs::rename(work.path(), entry.join("work")).map_err(at(work.path()))?;
        }
        if record {
            relocate(dir.path(), &entry.join("record")).map_err(at(dir.path()))?;
        }
        Ok(Some(entry))
    }

    /// Moves private copies whose run is recorded nowhere.
    pub fn put_orphan(&self, id: &RunId, work: &WorkDir, now: Timestamp) -> Result<PathBuf, TrashError> {
        let entry = self.path.join(format!("{}-{id}", now.strftime(TIME)));
        let moved = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&entry)
            .and_then(|()| fs::rename(work.path(), entry.join("work")));
        moved.map_err(|source| TrashError::Io {
            path: work.path().to_owned(),
            source,
        })?;
        Ok(entry)
    }

    /// Where a run is in the trash; the latest entry of several.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<PathBuf> {
        let entries = self.entries().ok()?;
        let found = entries.into_iter().filter(|(_, of, _)| of.as_str() == id);
        found.max_by(|a, b| a.0.cmp(&b.0)).map(|(_, _, path)| path)
    }

    /// The entries that were moved before this time.
    pub fn older(&self, before: Timestamp) -> io::Result<Vec<PathBuf>> {
        let before = before.strftime(TIME).to_string();
        let old = self.entries()?.into_iter().filter(|(time, ..)| *time < before);
        Ok(old.map(|(.., path)| path).collect())
    }

    /// Removes an entry for good.
    pub fn delete(entry: &Path) -> io::Result<()> {
        // What robots made may lack rights and be deep.
        if let Some(work) = WorkDir::existing(&entry.join("work"))? {
            work.remove_all()?;
        }
        fs::remove_dir_all(entry)
    }

    /// Time, run and path of each entry. What has another name is none of ours.
    fn entries(&self) -> io::Result<Vec<(String, RunId, PathBuf)>> {
        let listed = match fs::read_dir(&self.path) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        for entry in listed {
            let entry = entry?;
            let name = entry.file_name();
            if let Some((time, id)) = name.to_str().and_then(parse) {
                entries.push((time.to_owned(), id, entry.path()));
            }
        }
        entries.sort();
        Ok(entries)
    }
}

/// Reads `<time>-<run>`.
fn parse(name: &str) -> Option<(&str, RunId)> {
    let (time, id) = name.split_at_checked(TIME_LEN)?;
    let digits = time.bytes().enumerate().all(|(at, byte)| match at {
        8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let id = RunId::parse(id.strip_prefix('-')?)?;
    digits.then_some((time, id))
}

/// Moves a directory, also to another file system.
fn relocate(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(from, to)?;
            fs::remove_dir_all(from)
        }
        done => done,
    }
}

/// Copies a directory of a run: files, links as links, and directories; it holds nothing else.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut waiting = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = waiting.pop() {
        DirBuilder::new().mode(0o700).create(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                waiting.push((path, target));
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&path)?, target)?;
            } else if kind.is_file() {
                fs::copy(&path, &target)?;
                fs::File::open(&target)?.sync_all()?;
            }
        }
    }
    Ok(())
}

/// The private copies below `work_root` whose user's repository is gone, with the time of their last change.
pub fn orphans(work_root: &Path) -> io::Result<Vec<(RunId, WorkDir, Timestamp)>> {
    let listed = match fs::read_dir(work_root.join("runs")) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut orphans = Vec::new();
    for entry in listed {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().and_then(RunId::parse) else {
            continue;
        };
        let Some(work) = WorkDir::existing(&entry.path())? else {
            continue;
        };
        let changed = Timestamp::try_from(entry.metadata()?.modified()?).map_err(io::Error::other)?;
        if work.borrows_from().is_some_and(|objects| is_gone(&objects)) {
            orphans.push((id, work, changed));
        }
    }
    orphans.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(orphans)
}

/// Whether nothing is there, for sure: a disk that is not mounted has no repository either, but also no parent of it.
fn is_gone(objects: &Path) -> bool {
    let missing = |path: &Path| {
        path.symlink_metadata()
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    // The directory of the repository, above `.git/objects`.
    let top = objects
        .parent()
        .filter(|git| git.file_name() == Some(OsStr::new(".git")));
    let around = top.and_then(Path::parent).and_then(Path::parent);
    missing(objects) && around.is_some_and(|around| around.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn id(digit: char) -> RunId {
        RunId::parse(&format!("20261130-010203-{}", digit.to_string().repeat(6))).unwrap()
    }

    #[test]
    fn a_run_moves_into_the_trash_and_is_removed_when_it_is_old() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("state");
        let work = root.join("runs").join(id('a').as_str());
        WorkDir::create(&work).unwrap();
        let dir = RunDir::create(&home.path().join("records"), &id('a')).unwrap();
        let log = dir.create_log().unwrap();
        let trash = Trash::of(&root);
        let held = trash.put(&id('a'), &dir, &work, true, at(0)).unwrap_err();
        assert!(matches!(held, TrashError::Held(_)), "{held}");
        assert!(work.exists() && dir.log().exists());
        drop(log);
        let entry = trash.put(&id('a'), &dir, &work, true, at(0)).unwrap().unwrap();
        assert!(!work.exists() && !dir.path().exists());
        assert!(entry.join("record/run.log").is_file() && entry.join("work/run.git").parent().is_some());
        assert_eq!(trash.find(id('a').as_str()), Some(entry.clone()));
        assert_eq!(trash.find(id('b').as_str()), None);
        fs::create_dir(trash.path().join("somebody's")).unwrap();
        assert!(trash.older(at(0)).unwrap().is_empty());
        assert_eq!(trash.older(at(1)).unwrap(), std::slice::from_ref(&entry));
        Trash::delete(&entry).unwrap();
        assert!(!entry.exists() && trash.path().join("somebody's").exists());
    }

    #[test]
    fn only_private_copies_of_a_repository_that_is_gone_are_orphans() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("state");
        assert!(orphans(&root).unwrap().is_empty());
        let here = home.path().join("here/.git/objects");
        fs::create_dir_all(&here).unwrap();
        for (digit, objects) in [
            ('a', here),
            ('b', home.path().join("gone/.git/objects")),
            ('c', home.path().join("not/mounted/.git/objects")),
        ] {
            let work = root.join("runs").join(id(digit).as_str());
            WorkDir::create(&work).unwrap();
            let info = work.join("run.git/objects/info");
            fs::create_dir_all(&info).unwrap();
            fs::write(info.join("alternates"), format!("{}\n", objects.display())).unwrap();
        }
        let found: Vec<_> = orphans(&root).unwrap().into_iter().map(|(id, ..)| id).collect();
        assert_eq!(found, [id('b')]);
    }

    #[test]
    fn a_directory_is_copied_with_its_links() {
        let home = tempfile::tempdir().unwrap();
        let from = home.path().join("from");
        fs::create_dir_all(from.join("decisions")).unwrap();
        fs::write(from.join("decisions/1"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", from.join("link")).unwrap();
        let to = home.path().join("to");
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("decisions/1")).unwrap(), "x");
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("nowhere"));
    }

    #[test]
    fn only_names_of_ours_are_read() {
        assert!(parse("20261130-010203-20261130-010203-abcdef").is_some());
        for other in [
            "",
            "20261130-010203",
            "2026113x-010203-20261130-010203-abcdef",
            "größer-als-das-20261130-010203-abcdef",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
