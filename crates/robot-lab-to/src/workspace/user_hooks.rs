//! Where the user's git hooks are, and a copy of those that lie in the tree: as the base commit has them, where no
//! robot can reach them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Ledger, Oid, RunRepo, ZoneError, blocking};

/// The hooks that are asked.
const NAMES: [&str; 2] = ["pre-commit", "commit-msg"];
/// Most files that are copied from an untracked directory of hooks, and the largest.
const MAX_FILES: usize = 100;
const MAX_BYTES: u64 = 1 << 20;

/// The hooks that are asked before a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserHooks {
    /// The program that is asked about the files.
    pub pre_commit: Option<PathBuf>,
    /// The program that is asked about the message.
    pub commit_msg: Option<PathBuf>,
    /// Hooks that git passes over because they are not executable.
    pub not_executable: Vec<PathBuf>,
    /// Links that lead nowhere, in place of a hook.
    pub dangling: Vec<PathBuf>,
}

impl UserHooks {
    /// Finds the hooks of the user's repository. Those of a directory in the checkout are copied into the run's own
    /// directory first: tracked files as `base` has them, others as they lie there.
    pub async fn find(ledger: &Ledger, zones: &RunRepo, base: &Oid) -> Result<Self, ZoneError> {
        let dir = ledger.hooks_dir();
        let inside = match dir.strip_prefix(ledger.top()) {
            Ok(inside) if !dir.starts_with(ledger.git_dir()) && !inside.starts_with(".git") => inside,
            _ => return blocking(dir, named_in(dir.to_owned())).await,
        };
        let copy = zones.work().path().join("hooks");
        let (work, gone) = (zones.work().clone(), copy.clone());
        blocking(&copy, move || work.remove(&gone)).await?;
        // Hooks that call what lies beside them, as some tools set them up, find it.
        let shown = match inside.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => inside,
        };
        zones.export(base, shown, &copy.join(shown)).await?;
        let (from, to) = (dir.to_owned(), copy.join(inside));
        if NAMES.iter().any(|name| to.join(name).is_symlink()) {
            // What it leads to may be anywhere in the tree.
            zones.export(base, Path::new(""), &copy).await?;
        }
        blocking(dir, move || {
            copy_missing(&from, &to)?;
            named_in(to)()
        })
        .await
    }
}

impl RunRepo {
    /// Writes the files that a commit has below `dir` to `target`. A commit without it has none.
    async fn export(&self, commit: &Oid, dir: &Path, target: &Path) -> Result<(), ZoneError> {
        let mut wanted = std::ffi::OsString::from(format!("{commit}:"));
        wanted.push(dir);
        let found = self
            .call()
            .args(["rev-parse", "--quiet", "--verify", "--end-of-options"]);
        let found = found.args([&wanted]).output().await?;
        let Some(tree) = Oid::from_output(&found.stdout).filter(|_| found.code == Some(0)) else {
            return Ok(());
        };
        let tmp = self.work().tmp();
        let own = tempfile::Builder::new().prefix("export-").tempdir_in(&tmp);
        let own = own.map_err(|source| ZoneError::Io { path: tmp, source })?;
        let call = || self.call().work_tree(own.path(), &own.path().join("index"));
        call().args(["read-tree", tree.as_str()]).run().await?;
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(target);
        prefix.push("/");
        call()
            .args(["checkout-index", "-q", "-f", "-a"])
            .args([prefix])
            .run()
            .await?;
        Ok(())
    }
}

/// Copies the plain files of a directory that are not there yet.
fn copy_missing(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    fs::create_dir_all(to)?;
    for entry in entries.take(MAX_FILES) {
        let entry = entry?;
        let target = to.join(entry.file_name());
        // A link of the user's counts as what it leads to.
        let Ok(meta) = fs::metadata(entry.path()) else {
            continue;
        };
        if meta.is_file() && meta.len() <= MAX_BYTES && target.symlink_metadata().is_err() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn named_in(dir: PathBuf) -> impl FnOnce() -> io::Result<UserHooks> {
    move || {
        let mut hooks = UserHooks::default();
        let places = [&mut hooks.pre_commit, &mut hooks.commit_msg];
        for (name, place) in NAMES.into_iter().zip(places) {
            let file = dir.join(name);
            match fs::metadata(&file) {
                Ok(meta) if !meta.is_file() => {}
                Ok(meta) if meta.permissions().mode() & 0o111 != 0 => *place = Some(file),
                Ok(_) => hooks.not_executable.push(file),
                Err(_) if file.is_symlink() => hooks.dangling.push(file),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(hooks)
    }
}
