//! A real git repository in a temporary directory, and a fingerprint of all that a run must leave alone.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A repository with a home and a configuration of its own, which go away when it is dropped.
#[derive(Debug)]
pub struct TestRepo {
    root: PathBuf,
    path: PathBuf,
    _directory: TempDir,
}

impl Default for TestRepo {
    fn default() -> Self {
        Self::new()
    }
}

impl TestRepo {
    /// An empty repository on branch `main` with a user.
    #[must_use]
    pub fn new() -> Self {
        Self::named("repo", &[])
    }

    /// An empty repository in a directory of that name, made with these options of `git init`.
    #[must_use]
    pub fn named(name: impl AsRef<OsStr>, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory
            .path()
            .canonicalize()
            .expect("the path of the temporary directory");
        let path = root.join(name.as_ref());
        fs::create_dir(root.join("home")).expect("a home");
        fs::create_dir(&path).expect("a directory for the repository");
        let repo = Self {
            root,
            path,
            _directory: directory,
        };
        repo.git(&[&["init", "--quiet", "--initial-branch=main"], options].concat());
        repo.git(&["config", "user.name", "Test User"]);
        repo.git(&["config", "user.email", "test@example.invalid"]);
        repo
    }

    /// The top directory of the checkout.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory beside the repository for whatever a test needs.
    #[must_use]
    pub fn beside(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.root.join(name.as_ref())
    }

    /// The environment that git runs in; nothing of the host's configuration is in it.
    #[must_use]
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut env = vec![
            (OsString::from("PATH"), path),
            ("HOME".into(), self.root.join("home").into()),
        ];
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C"),
        ] {
            env.push((name.into(), value.into()));
        }
        env
    }

    /// Runs git in the checkout and gives its output without the last line end.
    ///
    /// # Panics
    /// When git fails.
    #[track_caller]
    pub fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        self.git_in(&self.path, args)
    }

    /// Runs git in another directory.
    ///
    /// # Panics
    /// When git fails.
    #[track_caller]
    pub fn git_in<S: AsRef<OsStr>>(&self, dir: &Path, args: &[S]) -> String {
        let output = self.try_git(dir, args);
        let shown: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
        assert!(
            output.status.success(),
            "git {shown:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
    }

    /// Runs git, whatever its exit code. Dates are fixed, so that ids are the same in every run.
    ///
    /// # Panics
    /// When git cannot be started.
    #[track_caller]
    pub fn try_git<S: AsRef<OsStr>>(&self, dir: &Path, args: &[S]) -> Output {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(dir)
            .env_clear()
            .envs(self.env())
            .stdin(Stdio::null());
        command
            .env("GIT_AUTHOR_DATE", "@1700000000 +0000")
            .env("GIT_COMMITTER_DATE", "@1700000000 +0000");
        command.output().expect("git to be installed")
    }

    /// Writes a file of the checkout, with the directories it needs.
    ///
    /// # Panics
    /// When it cannot be written.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("the directories of a file");
        fs::write(path, bytes).expect("a file of the checkout");
    }

    /// Commits everything and gives the id of the commit.
    ///
    /// # Panics
    /// When git fails.
    #[track_caller]
    pub fn commit_all(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&[
            "commit",
            "--quiet",
            "--allow-empty",
            "--no-verify",
            "--message",
            message,
        ]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Every object in the store, sorted.
    ///
    /// # Panics
    /// When git fails.
    #[must_use]
    #[track_caller]
    pub fn objects(&self) -> Vec<String> {
        let listed = self.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// What a run must leave as it is: the checkout with its modes, the index, `HEAD`, the configuration, hooks, logs,
    /// the stash and every other ref. Left out: the run directory, run branches, added objects, the line of the run
    /// directory in `info/exclude`.
    ///
    /// # Panics
    /// When something cannot be read.
    #[must_use]
    #[track_caller]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut facts = BTreeMap::new();
        walk(&self.path, &self.path, &mut facts);
        let own = ["refs/heads/robot-to", "logs/refs/heads/robot-to"];
        facts.retain(|name, _| {
            let inside = name.strip_prefix(".git/").unwrap_or_default();
            !name.starts_with(".robot_lab_to")
                && !own.iter().any(|own| inside.starts_with(own))
                && !["objects", "reftable"]
                    .iter()
                    .any(|store| inside.starts_with(store))
                && !matches!(
                    inside,
                    "info/exclude" | "refs/heads" | "logs/refs/heads" | "logs/refs" | "info"
                )
        });
        let refs = self.git(&["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
        for line in refs
            .lines()
            .filter(|line| !line.starts_with("refs/heads/robot-to"))
        {
            facts.insert(
                format!("ref {}", line.split(' ').next().unwrap_or(line)),
                line.to_owned(),
            );
        }
        for (name, args) in [
            ("HEAD", &["rev-parse", "--symbolic-full-name", "HEAD"][..]),
            ("log of HEAD", &["reflog", "show", "--format=%H %gs", "HEAD"]),
            ("stash", &["stash", "list"]),
            ("index", &["ls-files", "--stage", "-v", "-z"]),
        ] {
            let output = self.try_git(&self.path, args);
            facts.insert(
                format!("git: {name}"),
                String::from_utf8_lossy(&output.stdout).into_owned(),
            );
        }
        let exclude = self.git(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "info/exclude",
        ]);
        let exclude = fs::read(exclude).unwrap_or_default();
        let exclude = String::from_utf8_lossy(&exclude).into_owned();
        let kept: Vec<_> = exclude
            .lines()
            .filter(|line| *line != "/.robot_lab_to/")
            .collect();
        facts.insert("info/exclude".to_owned(), kept.join("\n"));
        Fingerprint(facts)
    }
}

/// What [`TestRepo::fingerprint`] saw.
#[derive(Clone, PartialEq, Eq)]
pub struct Fingerprint(BTreeMap<String, String>);

impl Fingerprint {
    /// Fails the test when something differs, and says what.
    ///
    /// # Panics
    /// When the two are not equal.
    #[track_caller]
    pub fn assert_same(&self, later: &Self) {
        let mut differences = String::new();
        for name in self
            .0
            .keys()
            .chain(later.0.keys().filter(|name| !self.0.contains_key(*name)))
        {
            let (before, after) = (self.0.get(name), later.0.get(name));
            if before != after {
                differences.push_str(&format!("{name}\n  before: {before:?}\n  after:  {after:?}\n"));
            }
        }
        assert!(
            differences.is_empty(),
            "the repository was changed:\n{differences}"
        );
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0).finish()
    }
}

fn walk(root: &Path, dir: &Path, facts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).expect("a directory of the checkout").flatten() {
        let path = entry.path();
        let meta = path.symlink_metadata().expect("a file of the checkout");
        let mode = meta.permissions().mode();
        let content = if meta.is_symlink() {
            format!("link to {:?}", fs::read_link(&path).expect("a link"))
        } else if meta.is_file() {
            let mut hasher = DefaultHasher::new();
            fs::read(&path).expect("a file").hash(&mut hasher);
            format!("{} bytes {:016x}", meta.len(), hasher.finish())
        } else {
            "directory".to_owned()
        };
        let name = path.strip_prefix(root).expect("a path below the root");
        facts.insert(name.to_string_lossy().into_owned(), format!("{mode:o} {content}"));
        if meta.is_dir() {
            walk(root, &path, facts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_sees_what_counts_and_only_that() {
        let repo = TestRepo::new();
        repo.write("a", "1");
        let first = repo.commit_all("first");
        let before = repo.fingerprint();
        repo.write(".robot_lab_to/x", "1");
        repo.git(&["branch", "robot-to/x", &first]);
        fs::create_dir_all(repo.path().join(".git/info")).unwrap();
        let exclude = repo.path().join(".git/info/exclude");
        let kept = fs::read_to_string(&exclude).unwrap_or_default();
        fs::write(&exclude, kept + "/.robot_lab_to/\n").unwrap();
        before.assert_same(&repo.fingerprint());
        for change in [
            &["branch", "other"][..],
            &["config", "x.y", "z"],
            &["update-index", "--chmod=+x", "a"],
        ] {
            let before = repo.fingerprint();
            repo.git(change);
            assert_ne!(before, repo.fingerprint(), "{change:?}");
        }
        let before = repo.fingerprint();
        repo.write("a", "2");
        assert_ne!(before, repo.fingerprint());
    }
}
