//! From a directory to a tree id: what a robot left becomes a candidate, or is rejected with the reasons.
//!
//! The tree is made with the run repository and the private index; of the robot's own `.git` nothing is read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checkout::{in_dirs, paths};
use super::diff::{Change, Entry, Mode};
use super::git::GitError;
use super::git_call::LONG_TIMEOUT;
use super::listing::Listing;
use super::rejection::rejected;
use super::strays::Strays;
use super::{Checkout, Oid, Rejection, RejectionKind, ZoneError, blocking, rules};

/// At most this many reasons are told.
const MAX_REASONS: usize = 50;

/// The limits of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRules {
    /// The size of the largest new or changed file.
    pub max_file_bytes: u64,
}

impl Default for SnapshotRules {
    fn default() -> Self {
        Self {
            max_file_bytes: 50 << 20,
        }
    }
}

/// What a directory became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// A candidate: the id of its tree, which may be that of the parent.
    Tree(Oid),
    /// Something that may not enter a commit.
    Rejected(Vec<Rejection>),
}

impl Checkout {
    /// Makes a tree of the files as they are now, compared with the commit or tree `parent`.
    ///
    /// Ignored are the files that the candidate's own `.gitignore` files and the user's rules ignore. Every process
    /// that could write to the directory must have ended.
    pub async fn snapshot(&mut self, parent: &Oid, limits: &SnapshotRules) -> Result<Snapshot, ZoneError> {
        let mut made = self.candidate(parent, limits).await;
        if matches!(&made, Err(ZoneError::Git(error)) if error.is_refusal()) {
            // The index may not be what we left.
            self.holds = None;
            made = self.candidate(parent, limits).await;
        }
        match made? {
            Ok(tree) => Ok(Snapshot::Tree(tree)),
            Err(mut reasons) => {
                reasons.sort_by(|a, b| a.path.cmp(&b.path));
                reasons.dedup();
                reasons.truncate(MAX_REASONS);
                Ok(Snapshot::Rejected(reasons))
            }
        }
    }

    async fn candidate(
        &mut self,
        parent: &Oid,
        limits: &SnapshotRules,
    ) -> Result<Result<Oid, Vec<Rejection>>, ZoneError> {
        if !self.is_ours() {
            return Ok(Err(vec![rejected("", RejectionKind::Replaced)]));
        }
        let strays = self.strays().await?;
        if !strays.traps.is_empty() {
            let traps = strays.traps.into_iter();
            return Ok(Err(traps
                .map(|trap| rejected(trap, RejectionKind::Special))
                .collect()));
        }
        self.unlock().await?;
        let before = self.known_listing(parent).await?;
        // Before git looks at the files: it would ask a repository in the place of a submodule for its state.
        let nested = planted(&before, &strays);
        if !nested.is_empty() {
            return Ok(Err(nested));
        }
        let touched = match self.touched().await {
            Err(ZoneError::Git(GitError::TooLarge { .. })) => {
                return Ok(Err(vec![rejected("", RejectionKind::TooMany)]));
            }
            touched => touched?,
        };
        let unfit = self.unfit(touched, *limits).await?;
        if !unfit.is_empty() {
            return Ok(Err(unfit));
        }
        self.holds = None;
        if let Some(said) = self.add_all().await? {
            return Ok(Err(vec![rejected("", RejectionKind::Refused { said })]));
        }
        let mut tree = self.write_tree().await?;
        let mut changes = self.zones.changed_paths(parent, &tree).await?;
        if self.undo_noise(&before, &changes).await? {
            tree = self.write_tree().await?;
            changes = self.zones.changed_paths(parent, &tree).await?;
        }
        self.holds = Some(tree.clone());
        let parent_tree = self.zones.tree_of(parent).await?;
        if let Some(known) = self.zones.known_listing(&parent_tree) {
            self.zones.know_listing(&tree, &Arc::new(known.with(&changes)));
        }
        let mut reasons = self.bad_links(&changes).await?;
        reasons.extend(self.collisions(&changes).await?);
        reasons.extend(self.unignored(&changes).await?);
        Ok(if reasons.is_empty() {
            Ok(tree)
        } else {
            Err(reasons)
        })
    }

    /// What the private index holds; a missing or broken one is made again from the parent.
    async fn known_listing(&mut self, parent: &Oid) -> Result<Arc<Listing>, ZoneError> {
        if self.index.exists() {
            match self.listing().await {
                Err(error) if error.is_refusal() => {}
                listing => return Ok(listing?),
            }
            self.forget(&self.index).await?;
        }
        self.holds = None;
        self.call().args(["read-tree", parent.as_str()]).run().await?;
        Ok(self.listing().await?)
    }

    /// Paths that are new, changed or deleted. Directories that cannot be read are opened first.
    async fn touched(&self) -> Result<Vec<PathBuf>, ZoneError> {
        let list = || {
            self.call()
                .args(["ls-files", "-z", "--modified", "--others", "--exclude-standard"])
        };
        let mut output = list().timeout(LONG_TIMEOUT).output().await?;
        if output.code != Some(0) || output.stderr.contains("ermission denied") {
            self.restore_access().await?;
            output = list().timeout(LONG_TIMEOUT).output().await?;
        }
        if output.code != Some(0) {
            let command = "git ls-files".to_owned();
            return Err(GitError::Failed {
                command,
                code: output.code,
                stderr: output.stderr,
            }
            .into());
        }
        Ok(paths(&output.stdout).collect())
    }

    /// What may not even be read: it is told from the names and from `lstat`.
    async fn unfit(&self, touched: Vec<PathBuf>, limits: SnapshotRules) -> Result<Vec<Rejection>, ZoneError> {
        let (dir, zones) = (self.dir.clone(), self.zones.clone());
        blocking(&self.dir, move || {
            let kind = |path: &Path| {
                if path.as_os_str().as_bytes().ends_with(b"/") {
                    return Some(RejectionKind::NestedRepository);
                }
                if rules::has_git_name(path) {
                    return Some(RejectionKind::GitName);
                }
                if zones.is_copied(path) {
                    return Some(RejectionKind::Copied);
                }
                let meta = dir.join(path).symlink_metadata().ok()?;
                let (kind, bytes, limit) = (meta.file_type(), meta.len(), limits.max_file_bytes);
                let special =
                    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device();
                match (special, kind.is_file() && bytes > limit) {
                    (true, _) => Some(RejectionKind::Special),
                    (_, true) => Some(RejectionKind::TooLarge { bytes, limit }),
                    _ => None,
                }
            };
            Ok(touched
                .into_iter()
                .filter_map(|path| {
                    kind(&path).map(|kind| rejected(path.components().collect::<PathBuf>(), kind))
                })
                .collect())
        })
        .await
    }

    /// Adds everything; the text of git when it refuses even after the rights were mended.
    async fn add_all(&self) -> Result<Option<String>, ZoneError> {
        let add = || self.call().args(["add", "--all"]).timeout(LONG_TIMEOUT).run();
        let first = add().await;
        match first {
            Ok(_) => return Ok(None),
            Err(error) if !error.is_refusal() => return Err(error.into()),
            Err(_) => self.restore_access().await?,
        }
        self.unlock().await?;
        match add().await {
            Ok(_) => Ok(None),
            Err(error) if !error.is_refusal() => Err(error.into()),
            Err(error) => Ok(Some(error.stderr().to_owned())),
        }
    }

    async fn write_tree(&self) -> Result<Oid, GitError> {
        let tree = self.call().args(["write-tree"]).oid().await?;
        self.zones.know_tree(&tree, &tree);
        Ok(tree)
    }

    /// Takes back changes that nobody made: files that are just as a checkout writes them but that git would store
    /// differently (line ends, filters), and submodules whose empty directory went away. True when there were any.
    async fn undo_noise(&self, before: &Listing, changes: &[Change]) -> Result<bool, ZoneError> {
        let named = |path: &Path, name: &str| path.file_name() == Some(OsStr::new(name));
        let modules = changes.iter().any(|change| named(&change.path, ".gitmodules"));
        let converts = self.zones.converts()
            || before.named(".gitattributes").next().is_some()
            || changes.iter().any(|change| named(&change.path, ".gitattributes"));
        let mut noise: Vec<(&Path, &Entry)> = Vec::new();
        let mut suspects = Vec::new();
        for change in changes {
            match (&change.old, &change.new) {
                (Some(old), None) if old.mode == Mode::Gitlink && !modules => noise.push((&change.path, old)),
                (Some(old), Some(new)) if converts && old.mode.is_file() && old.mode == new.mode => {
                    suspects.push((change.path.as_path(), old));
                }
                _ => {}
            }
        }
        noise.extend(self.as_checked_out(suspects).await?);
        if noise.is_empty() {
            return Ok(false);
        }
        self.call()
            .args(["update-index", "-z", "--index-info"])
            .stdin(index_info(&noise))
            .run()
            .await?;
        Ok(true)
    }

    /// Of the given files of the parent, those that lie there byte by byte as a checkout would write them.
    async fn as_checked_out<'a>(
        &self,
        suspects: Vec<(&'a Path, &'a Entry)>,
    ) -> Result<Vec<(&'a Path, &'a Entry)>, ZoneError> {
        if suspects.is_empty() {
            return Ok(suspects);
        }
        let tmp = self.zones.work().tmp();
        let made = tempfile::Builder::new()
            .prefix("as-checked-out-")
            .tempdir_in(&tmp);
        let made = made.map_err(|source| ZoneError::Io { path: tmp, source })?;
        let index = made.path().join("index");
        let mut prefix = made.path().join("files").into_os_string();
        prefix.push("/");
        let call = || self.call().env("GIT_INDEX_FILE", &index);
        call()
            .args(["update-index", "-z", "--index-info"])
            .stdin(index_info(&suspects))
            .run()
            .await?;
        let mut option = std::ffi::OsString::from("--prefix=");
        option.push(&prefix);
        call()
            .args(["checkout-index", "-q", "-a"])
            .args([option])
            .timeout(LONG_TIMEOUT)
            .run()
            .await?;
        let (dir, files) = (self.dir.clone(), PathBuf::from(prefix));
        let owned: Vec<PathBuf> = suspects.iter().map(|(path, _)| path.to_path_buf()).collect();
        let same = blocking(&self.dir, move || {
            let same = |path: &PathBuf| same_bytes(&dir.join(path), &files.join(path));
            let same: Vec<bool> = owned.iter().map(same).collect();
            drop(made);
            Ok(same)
        })
        .await?;
        Ok(suspects
            .into_iter()
            .zip(same)
            .filter_map(|(suspect, same)| same.then_some(suspect))
            .collect())
    }

    /// New or changed links and submodules that may not enter.
    async fn bad_links(&self, changes: &[Change]) -> Result<Vec<Rejection>, ZoneError> {
        let mut reasons = Vec::new();
        let mut links = Vec::new();
        for change in changes {
            let modes = (
                change.old.as_ref().map(|old| old.mode),
                change.new.as_ref().map(|new| new.mode),
            );
            match (modes, &change.new) {
                ((_, Some(Mode::Gitlink)) | (Some(Mode::Gitlink), Some(_)), _) => {
                    reasons.push(rejected(&change.path, RejectionKind::NestedRepository));
                }
                ((_, Some(Mode::Symlink)), Some(new)) => links.push((&change.path, &new.oid)),
                _ => {}
            }
        }
        if links.is_empty() {
            return Ok(reasons);
        }
        let ids: String = links.iter().map(|(_, oid)| format!("{oid}\n")).collect();
        let texts = self
            .zones
            .call()
            .args(["cat-file", "--batch"])
            .stdin(ids)
            .run()
            .await?;
        let mut rest = texts.as_slice();
        for (path, _) in links {
            let command = || GitError::Output {
                command: "git cat-file --batch".to_owned(),
            };
            let (text, after) = next_object(rest).ok_or_else(command)?;
            rest = after;
            if !rules::stays_inside(path, text) {
                reasons.push(rejected(path, RejectionKind::LinkLeaves));
            }
        }
        Ok(reasons)
    }

    /// New paths that are another path of the tree where case does not count.
    async fn collisions(&self, changes: &[Change]) -> Result<Vec<Rejection>, GitError> {
        let added = changes.iter().filter(|change| change.old.is_none());
        let added: Vec<&Path> = added.map(|change| change.path.as_path()).collect();
        if added.is_empty() {
            return Ok(Vec::new());
        }
        let listing = self.listing().await?;
        let all: Vec<&Path> = listing.paths().collect();
        let pairs = rules::collisions(&all, &added).into_iter();
        Ok(pairs
            .map(|(path, other)| rejected(path, RejectionKind::CaseCollision { other }))
            .collect())
    }
}

/// Repositories inside directories of the tree, and in the places of submodules.
fn planted(before: &Listing, strays: &Strays) -> Vec<Rejection> {
    let repositories = in_dirs(&strays.planted, before).into_iter();
    repositories
        .filter(|path| path.file_name() == Some(OsStr::new(".git")))
        .filter_map(|path| {
            path.parent()
                .map(|dir| rejected(dir, RejectionKind::NestedRepository))
        })
        .collect()
}

/// Input of `update-index --index-info`.
fn index_info(entries: &[(&Path, &Entry)]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (path, Entry { mode, oid }) in entries {
        let mode = match mode {
            Mode::File => "100644",
            Mode::Executable => "100755",
            Mode::Symlink => "120000",
            Mode::Gitlink => "160000",
        };
        lines.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
        lines.extend_from_slice(path.as_os_str().as_bytes());
        lines.push(0);
    }
    lines
}

/// Splits `id type size LF content LF` off the output of `cat-file --batch`.
fn next_object(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, rest) = bytes.split_at_checked(end)?;
    let size: usize = std::str::from_utf8(head).ok()?.rsplit(' ').next()?.parse().ok()?;
    let (text, rest) = rest.get(1..)?.split_at_checked(size)?;
    Some((text, rest.get(1..)?))
}

fn same_bytes(a: &Path, b: &Path) -> bool {
    let size = |path: &Path| {
        path.symlink_metadata()
            .ok()
            .filter(fs::Metadata::is_file)
            .map(|meta| meta.len())
    };
    size(a).is_some() && size(a) == size(b) && matches!((fs::read(a), fs::read(b)), (Ok(a), Ok(b)) if a == b)
}
