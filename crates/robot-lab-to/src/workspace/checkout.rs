//! A directory that is brought exactly to a tree, over and over: the workspace of a robot, or a bench.
//!
//! Its index lies outside of it. Of what is inside, only the files count: a `.git` that a robot left, whatever it
//! is, is read by no git, and removed unless it is as we left it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::git::GitError;
use super::git_call::{Call, LONG_TIMEOUT};
use super::listing::Listing;
use super::strays::{self, Strays};
use super::{Oid, RunRepo, ZoneError, blocking, disk};

/// Rounds in which stray `.gitignore` files are removed before everything else is.
const IGNORE_ROUNDS: usize = 64;
/// Bytes of the list of a tree's entries: some two million of them.
const MAX_LISTING: usize = 256 << 20;
const GITIGNORES: &str = ":(glob)**/.gitignore";
const GITATTRIBUTES: &str = ":(glob)**/.gitattributes";

/// A working directory of the run, under a stable path, with an index that nothing inside can reach.
#[derive(Debug)]
pub struct Checkout {
    pub(super) zones: RunRepo,
    name: String,
    pub(super) dir: PathBuf,
    pub(super) index: PathBuf,
    /// Device and inode of the directory that we made.
    root: Option<(u64, u64)>,
    /// The tree that the index is known to be.
    pub(super) holds: Option<Oid>,
}

/// What to mend before the next attempt to bring the directory to a tree; each step costs more than the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Nothing,
    Access,
    Index,
    Everything,
}

impl Checkout {
    /// Names a checkout and makes its directory; one of an earlier process is taken over with its ignored files.
    pub async fn create(zones: &RunRepo, name: &str) -> Result<Self, ZoneError> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if name.is_empty() || !name.bytes().all(plain) || name.starts_with('-') {
            return Err(ZoneError::Name(name.to_owned()));
        }
        let work = zones.work();
        let mut checkout = Self {
            zones: zones.clone(),
            name: name.to_owned(),
            dir: work.checkout(name),
            index: work.index(name),
            root: None,
            holds: None,
        };
        checkout.root = disk::identity(&checkout.dir);
        checkout.guard().await?;
        Ok(checkout)
    }

    /// The directory. It stays the same as long as the run lives.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The name it was created with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Brings the directory exactly to a tree: tracked files as the tree has them, no other files, a fresh `.git`
    /// whose `HEAD` is the commit `head` and whose index is the tree. Ignored files (build caches) stay.
    ///
    /// `tree` may be a commit. Nothing may run in the directory meanwhile.
    pub async fn prepare(&mut self, tree: &Oid, head: &Oid) -> Result<(), ZoneError> {
        let mut repairs = [Repair::Nothing, Repair::Access, Repair::Index, Repair::Everything]
            .into_iter()
            .peekable();
        while let Some(repair) = repairs.next() {
            match self.bring(tree, head, repair).await {
                Err(error) if repairs.peek().is_none() || error.is_of_the_machine() => return Err(error),
                Err(_) => {}
                Ok(()) => break,
            }
        }
        Ok(())
    }

    /// Removes the directory and its index.
    pub async fn remove(self) -> Result<(), ZoneError> {
        self.forget(&self.dir).await?;
        self.forget(&self.index).await
    }

    async fn bring(&mut self, target: &Oid, head: &Oid, repair: Repair) -> Result<(), ZoneError> {
        match repair {
            Repair::Nothing => {}
            Repair::Access => self.restore_access().await?,
            Repair::Index => self.forget(&self.index).await?,
            Repair::Everything => {
                self.forget(&self.index).await?;
                self.forget(&self.dir).await?;
            }
        }
        self.guard().await?;
        self.remove_used_git().await?;
        let strays = self.strays().await?;
        for trap in &strays.traps {
            self.forget(&self.dir.join(trap)).await?;
        }
        self.unlock().await?;
        let tree = self.zones.tree_of(target).await?;
        let planted = self.remove_planted_attributes(&strays, &tree).await?;
        let reread = self.attributes_differ(&tree).await? || planted;
        self.read_tree(&tree).await?;
        if reread {
            // Attributes decide how files are written, also files that did not change.
            self.forget(&self.index).await?;
            self.read_tree(&tree).await?;
        }
        let listing = self.listing().await?;
        self.remove_planted(&listing, &strays).await?;
        self.clean(&listing, &strays).await?;
        self.renew_git(head).await
    }

    /// What git would not show of the directory.
    pub(super) async fn strays(&self) -> Result<Strays, ZoneError> {
        let dir = self.dir.clone();
        blocking(&self.dir, move || {
            let found = strays::strays(&dir)?;
            if found.closed.is_empty() {
                return Ok(found);
            }
            disk::restore_access(&dir);
            let found = strays::strays(&dir)?;
            match found.closed.first() {
                Some(closed) => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("{} cannot be read", closed.display()),
                )),
                None => Ok(found),
            }
        })
        .await
    }

    async fn read_tree(&mut self, tree: &Oid) -> Result<(), GitError> {
        self.holds = None;
        let call = self.call().config("checkout.workers=0").timeout(LONG_TIMEOUT);
        call.args(["read-tree", "--reset", "-u", tree.as_str()])
            .run()
            .await?;
        self.holds = Some(tree.clone());
        Ok(())
    }

    /// Removes attributes that no tree brought here: git would write files by them. True when there were any.
    async fn remove_planted_attributes(&self, strays: &Strays, target: &Oid) -> Result<bool, ZoneError> {
        if strays.attributes.is_empty() {
            return Ok(false);
        }
        let now = if self.index.exists() {
            Some(self.listing().await?)
        } else {
            None
        };
        let then = self.zones.known_listing(target);
        let dirs = now.as_ref().zip(then.as_ref()).map(|(now, then)| {
            let mut dirs = now.dirs();
            dirs.extend(then.dirs());
            dirs
        });
        let planted: Vec<&PathBuf> = strays
            .attributes
            .iter()
            .filter(|path| now.as_ref().is_none_or(|now| !now.holds(path)))
            // Those in build caches decide over no file of a tree.
            .filter(|path| {
                let dir = path.parent().unwrap_or(Path::new(""));
                dirs.as_ref().is_none_or(|dirs| dirs.contains(dir))
            })
            .collect();
        for path in &planted {
            self.forget(&self.dir.join(path)).await?;
        }
        Ok(!planted.is_empty())
    }

    async fn attributes_differ(&self, target: &Oid) -> Result<bool, GitError> {
        if !self.index.exists() {
            return Ok(false);
        }
        let now = self
            .holds
            .as_ref()
            .and_then(|tree| self.zones.known_listing(tree));
        if let (Some(now), Some(then)) = (now, self.zones.known_listing(target)) {
            return Ok(!now.named(".gitattributes").eq(then.named(".gitattributes")));
        }
        let args = [
            "diff-index",
            "--cached",
            "--name-only",
            "-z",
            target.as_str(),
            "--",
            GITATTRIBUTES,
        ];
        Ok(!self.call().args(args).run().await?.is_empty())
    }

    /// Removes untracked files. Ignore files go first, so that a stray one protects nothing.
    async fn clean(&self, listing: &Listing, strays: &Strays) -> Result<(), ZoneError> {
        let mut rounds = 0..IGNORE_ROUNDS;
        if strays.ignores.iter().all(|path| listing.holds(path)) {
            // There is none, so git need not be asked which of them are ignored themselves.
            rounds = 0..0;
        }
        for _ in rounds {
            let args = ["ls-files", "-o", "-z", "--exclude-standard", "--", GITIGNORES];
            let stray = self.call().args(args).run().await?;
            let stray: Vec<PathBuf> = paths(&stray).map(|path| self.dir.join(path)).collect();
            if stray.is_empty() {
                break;
            }
            let work = self.zones.work().clone();
            blocking(&self.dir, move || {
                stray.iter().try_for_each(|path| work.remove(path))
            })
            .await?;
        }
        self.call()
            .args(["clean", "-ffdq"])
            .timeout(LONG_TIMEOUT)
            .run()
            .await?;
        Ok(())
    }

    /// Removes what git does not see: repositories planted in directories of the tree, FIFOs, sockets and devices
    /// there, and what lies in the directories of submodules.
    async fn remove_planted(&self, listing: &Listing, strays: &Strays) -> Result<(), ZoneError> {
        let planted = in_dirs(&strays.planted, listing);
        let submodules: Vec<PathBuf> = listing.gitlinks().map(Path::to_owned).collect();
        if planted.is_empty() && submodules.is_empty() {
            return Ok(());
        }
        let (dir, work) = (self.dir.clone(), self.zones.work().clone());
        blocking(&self.dir, move || {
            for path in planted {
                let path = dir.join(path);
                // By now the file of the tree may be in its place.
                let kind = path.symlink_metadata().map(|meta| meta.file_type());
                let usual = kind.is_ok_and(|kind| kind.is_dir() || kind.is_file() || kind.is_symlink());
                if !usual || path.ends_with(".git") {
                    work.remove(&path)?;
                }
            }
            for path in submodules {
                let path = dir.join(path);
                let empty = disk::identity(&path).is_some()
                    && fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
                if !empty {
                    work.remove(&path)?;
                    fs::create_dir(&path)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Makes sure that the directory is the one we made, and no link; anything else is removed and made anew.
    async fn guard(&mut self) -> Result<(), ZoneError> {
        let (dir, work, root) = (self.dir.clone(), self.zones.work().clone(), self.root);
        let now = blocking(&self.dir, move || {
            if root.is_none() || disk::identity(&dir) != root {
                work.remove(&dir)?;
                disk::private_dir(&dir)?;
            }
            disk::identity(&dir).ok_or_else(|| io::Error::other("the directory disappears"))
        });
        self.root = Some(now.await?);
        Ok(())
    }

    pub(super) fn is_ours(&self) -> bool {
        self.root.is_some() && disk::identity(&self.dir) == self.root
    }

    /// Removes the lock of a git call of ours that did not end well.
    pub(super) async fn unlock(&self) -> Result<(), ZoneError> {
        let mut lock = self.index.clone().into_os_string();
        lock.push(".lock");
        self.forget(Path::new(&lock)).await
    }

    pub(super) async fn restore_access(&self) -> Result<(), ZoneError> {
        let dir = self.dir.clone();
        blocking(&self.dir, move || {
            disk::restore_access(&dir);
            Ok(())
        })
        .await
    }

    pub(super) async fn forget(&self, path: &Path) -> Result<(), ZoneError> {
        let (work, owned) = (self.zones.work().clone(), path.to_owned());
        blocking(path, move || work.remove(&owned)).await
    }

    /// A call on the files of the directory, with the private index and the objects that robots may see: what is added
    /// is then complete for them, also where the user's repository has the same object on another branch.
    pub(super) fn call(&self) -> Call {
        self.zones.visible_call().work_tree(&self.dir, &self.index)
    }

    /// What the private index holds.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, GitError> {
        if let Some(known) = self
            .holds
            .as_ref()
            .and_then(|tree| self.zones.known_listing(tree))
        {
            return Ok(known);
        }
        let call = self.call().args(["ls-files", "--stage", "-z"]);
        let listed = call.at_most(MAX_LISTING).timeout(LONG_TIMEOUT).run().await?;
        let listing = Arc::new(Listing::parse(&listed)?);
        if let Some(tree) = &self.holds {
            self.zones.know_listing(tree, &listing);
        }
        Ok(listing)
    }
}

/// The paths of a NUL-delimited list.
pub(super) fn paths(listed: &[u8]) -> impl Iterator<Item = PathBuf> {
    listed
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| OsString::from_vec(path.to_vec()).into())
}

/// Those that lie directly in a directory of the tree, or in that of a submodule.
pub(super) fn in_dirs(paths: &[PathBuf], listing: &Listing) -> Vec<PathBuf> {
    if paths.is_empty() {
        return Vec::new();
    }
    let mut dirs = listing.dirs();
    dirs.extend(listing.gitlinks());
    let inside = paths
        .iter()
        .filter(|path| path.parent().is_some_and(|dir| dirs.contains(dir)));
    inside.cloned().collect()
}
