//! The `.git` that a robot finds in its workspace: good for `status`, `diff`, `log` and its own commits, read by
//! nobody else, and renewed before every iteration.

use std::fs;
use std::io;
use std::path::Path;

use super::run_repo::{borrow_visible, visible_boundary};
use super::{Checkout, Oid, ZoneError, blocking};

impl Checkout {
    /// Writes a fresh git directory: branch `work` at `head`, the index of this checkout, the user's ignore rules.
    /// It borrows its objects from the repository of what robots may see.
    pub(super) async fn renew_git(&self, head: &Oid) -> Result<(), ZoneError> {
        let git_dir = self.dir.join(".git");
        let config = self.zones.config().robot().text();
        let excludes = self.zones.excludes().to_owned();
        let (work, head, index) = (self.zones.work().clone(), head.clone(), self.index.clone());
        let dir = git_dir.clone();
        blocking(&git_dir, move || {
            for part in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
                fs::create_dir_all(dir.join(part))?;
            }
            let write = |name: &str, bytes: &[u8]| -> io::Result<()> { fs::write(dir.join(name), bytes) };
            write("config", &config)?;
            write("info/exclude", &excludes)?;
            write("objects/info/alternates", &borrow_visible(&work))?;
            if let Some(boundary) = visible_boundary(&work)? {
                write("shallow", &boundary)?;
            }
            write("refs/heads/work", format!("{head}\n").as_bytes())?;
            copy_if_there(&index, &dir.join("index"))?;
            // Last: without it git does not take the directory for a repository.
            write("HEAD", b"ref: refs/heads/work\n")
        })
        .await
    }
}

/// A tree without files has no index.
fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::copy(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map(drop),
    }
}
