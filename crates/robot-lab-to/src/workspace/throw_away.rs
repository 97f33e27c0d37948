//! The `.git` that a robot finds in its workspace: good for `status`, `diff`, `log` and its own commits, read by no
//! git of ours, and as new before every iteration.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::run_repo::{borrow_visible, visible_boundary};
use super::{Checkout, Oid, ZoneError, blocking};

/// Its directories, each after its parent.
const DIRS: [&str; 5] = ["objects", "objects/info", "refs", "refs/heads", "info"];
/// Files whose content is ours.
const CONFIG: &str = "config";
const EXCLUDE: &str = "info/exclude";
const ALTERNATES: &str = "objects/info/alternates";
const SHALLOW: &str = "shallow";
const WORK: &str = "refs/heads/work";
const INDEX: &str = "index";
const HEAD: &str = "HEAD";
const FILES: [&str; 7] = [CONFIG, EXCLUDE, ALTERNATES, SHALLOW, WORK, INDEX, HEAD];

impl Checkout {
    /// Removes a git directory that is not just what we put there. Making one anew costs more than all else that an
    /// iteration does itself, so the usual one, in which nobody worked, stays.
    pub(super) async fn remove_used_git(&self) -> Result<(), ZoneError> {
        let (git_dir, work) = (self.dir.join(".git"), self.zones.work().clone());
        let dir = git_dir.clone();
        blocking(&git_dir, move || {
            if has_our_shape(&dir) {
                return Ok(());
            }
            work.remove(&dir)
        })
        .await
    }

    /// Writes a fresh git directory: branch `work` at `head`, the index of this checkout, the user's ignore rules.
    /// It borrows its objects from the repository of what robots may see.
    pub(super) async fn renew_git(&self, head: &Oid) -> Result<(), ZoneError> {
        let git_dir = self.dir.join(".git");
        let config = self.zones.config().robot().text();
        let excludes = self.zones.excludes().to_owned();
        let (work, head, index) = (self.zones.work().clone(), head.clone(), self.index.clone());
        let dir = git_dir.clone();
        blocking(&git_dir, move || {
            if !dir.is_dir() {
                fs::create_dir(&dir)?;
                DIRS.iter().try_for_each(|part| fs::create_dir(dir.join(part)))?;
            }
            let write = |name: &str, bytes: &[u8]| write_if_other(&dir.join(name), bytes);
            write(CONFIG, &config)?;
            write(EXCLUDE, &excludes)?;
            write(ALTERNATES, &borrow_visible(&work))?;
            match visible_boundary(&work)? {
                Some(boundary) => write(SHALLOW, &boundary)?,
                None => remove_if_there(&dir.join(SHALLOW))?,
            }
            write(WORK, format!("{head}\n").as_bytes())?;
            copy_if_there(&index, &dir.join(INDEX))?;
            // Last: without it git does not take the directory for a repository.
            write(HEAD, b"ref: refs/heads/work\n")
        })
        .await
    }
}

/// Whether a git directory holds our directories, of our files some, and nothing else: no links, no second names of
/// files elsewhere. What the files say is another question.
fn has_our_shape(dir: &Path) -> bool {
    let ours = |inside: &str| -> io::Result<bool> {
        let at = dir.join(inside);
        let meta = at.symlink_metadata()?;
        if !meta.is_dir() || meta.mode() & 0o700 != 0o700 {
            return Ok(false);
        }
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            let name = Path::new(inside).join(entry.file_name());
            let meta = entry.metadata()?;
            let known = if meta.is_dir() {
                DIRS.iter().any(|dir| Path::new(dir) == name)
            } else {
                let usual = meta.is_file() && meta.nlink() == 1 && meta.mode() & 0o600 == 0o600;
                usual && FILES.iter().any(|file| Path::new(file) == name)
            };
            if !known {
                return Ok(false);
            }
        }
        Ok(true)
    };
    std::iter::once("")
        .chain(DIRS)
        .all(|inside| ours(inside).unwrap_or(false))
}

/// Opens a file of ours for writing, as it is: to cut it off first would make the disk wait.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)
}

fn write_if_other(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open(path)?;
    let mut now = Vec::with_capacity(bytes.len() + 1);
    (&file).take(bytes.len() as u64 + 1).read_to_end(&mut now)?;
    if now == bytes {
        return Ok(());
    }
    io::Seek::rewind(&mut file)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// A tree without files has no index.
fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return remove_if_there(to),
        opened => opened?,
    };
    let mut file = open(to)?;
    let length = io::copy(&mut from, &mut file)?;
    file.set_len(length)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn made(dir: &Path) {
        fs::create_dir(dir).unwrap();
        for part in DIRS {
            fs::create_dir(dir.join(part)).unwrap();
        }
        for file in FILES {
            fs::write(dir.join(file), file).unwrap();
        }
    }

    #[test]
    fn only_a_git_directory_in_which_nobody_worked_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let elsewhere = temp.path().join("elsewhere");
        fs::write(&elsewhere, "kept").unwrap();
        let change = |name: &str, change: &dyn Fn(&Path)| {
            let dir = temp.path().join("git");
            made(&dir);
            change(&dir);
            assert_eq!(has_our_shape(&dir), name == "nothing", "{name}");
            drop(fs::set_permissions(
                dir.join("refs"),
                fs::Permissions::from_mode(0o700),
            ));
            fs::remove_dir_all(&dir)
                .or_else(|_| fs::remove_file(&dir))
                .unwrap();
        };
        change("nothing", &|_| {});
        change("a hook", &|dir| fs::create_dir(dir.join("hooks")).unwrap());
        change("an object", &|dir| {
            fs::create_dir(dir.join("objects/ab")).unwrap()
        });
        change("a lock", &|dir| fs::write(dir.join("index.lock"), "").unwrap());
        change("a worktree file", &|dir| {
            fs::write(dir.join("config.worktree"), "").unwrap()
        });
        change("a link", &|dir| {
            fs::remove_file(dir.join(CONFIG)).unwrap();
            symlink(&elsewhere, dir.join(CONFIG)).unwrap();
        });
        change("a second name", &|dir| {
            fs::remove_file(dir.join(CONFIG)).unwrap();
            fs::hard_link(&elsewhere, dir.join(CONFIG)).unwrap();
        });
        change("a linked directory", &|dir| {
            fs::remove_dir_all(dir.join("info")).unwrap();
            symlink(temp.path(), dir.join("info")).unwrap();
        });
        change("a closed directory", &|dir| {
            fs::set_permissions(dir.join("refs"), fs::Permissions::from_mode(0o500)).unwrap();
        });
        change("a missing directory", &|dir| {
            fs::remove_dir_all(dir.join("info")).unwrap()
        });
        change("a file in its place", &|dir| {
            fs::remove_dir_all(dir).unwrap();
            fs::write(dir, "gitdir: elsewhere").unwrap();
        });
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "kept");
    }

    #[test]
    fn a_file_becomes_what_it_should_be_whatever_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        for (before, after) in [("", "ab"), ("ab", "ab"), ("abc", "ab"), ("xyz", "abc"), ("a", "")] {
            fs::write(&path, before).unwrap();
            write_if_other(&path, after.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), after);
        }
    }
}
