//! The start of a run: finds the user's repository and reads, once, everything of it that the run needs.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::git::{Git, GitError};
use super::{Identity, Oid};

const EXCLUDES_CAP: u64 = 1 << 20;

/// Why a run cannot start here. Nothing was changed when this is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No repository around the directory.
    #[error(
        "{0:?} is not in a git repository; nothing was changed; make one with `git init && git add -A && git commit -m start`, or start in another directory"
    )]
    NotARepository(PathBuf),
    /// A repository without files.
    #[error(
        "{0:?} is a bare repository; nothing was changed; start in a clone of it: `git clone {0:?} work && cd work`"
    )]
    Bare(PathBuf),
    /// Inside `.git`.
    #[error(
        "{0:?} is inside a git directory; nothing was changed; start in the working tree: `cd \"$(git rev-parse --git-dir)/..\"`"
    )]
    InsideGitDir(PathBuf),
    /// No commit to start from.
    #[error(
        "the repository at {0:?} has no commit; nothing was changed; make one with `git add -A && git commit -m start`"
    )]
    NoCommit(PathBuf),
    /// Git does not trust the owner of the repository.
    #[error(
        "git does not trust {0:?}, another user owns it; nothing was changed; if you do, say so with `git config --global --add safe.directory {0:?}`"
    )]
    DubiousOwnership(PathBuf),
    /// No name and address for the commits.
    #[error(
        "git knows no author for the commits; nothing was changed; set one with `git config --global user.name \"Your Name\" && git config --global user.email you@example.org` ({0})"
    )]
    NoIdentity(String),
    /// A git call failed for another reason.
    #[error("the repository could not be read; nothing was changed")]
    Git(#[from] GitError),
    /// A file of the user's configuration could not be read.
    #[error("{path:?} could not be read; nothing was changed; mend its rights or the setting that names it")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// What a run knows of the user's repository; read once with the user's own configuration.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) top: PathBuf,
    pub(super) subdir: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) objects: PathBuf,
    pub(super) exclude_file: PathBuf,
    /// Where git looks for hooks.
    pub(super) hooks_dir: PathBuf,
    pub(super) shallow: Option<Vec<u8>>,
    pub(super) format: String,
    pub(super) base: Oid,
    pub(super) identity: Identity,
    pub(super) excludes: Vec<u8>,
    pub(super) settings: Vec<Setting>,
    /// How the user's git signs.
    pub(super) signing: Vec<Setting>,
    pub(super) dirty: usize,
}

/// One setting of the user that is passed on: key in the spelling of git, and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) key: String,
    pub(super) value: Vec<u8>,
}

/// The settings that are passed on; of every other one the run repositories know nothing.
const PASSED_ON: &str = r"^(core\.(filemode|autocrlf|eol|symlinks|ignorecase|precomposeunicode)|filter\.lfs\.(clean|smudge|process|required))$";

/// What decides how a commit is signed.
const SIGNING: &str = r"^(user\.signingkey|gpg\..*)$";

/// The top of the checkout around `cwd`.
pub(super) async fn find_top(git: &Git, cwd: &Path) -> Result<PathBuf, StartError> {
    let probe = [
        "--is-bare-repository",
        "--is-inside-git-dir",
        "--is-inside-work-tree",
    ];
    let probe = rev_parse(git, cwd, &probe)
        .await
        .map_err(|error| explain(error, cwd))?;
    let probe: Vec<bool> = probe
        .split(|byte| *byte == b'\n')
        .map(|word| word == b"true")
        .collect();
    match probe.as_slice() {
        [_, _, true] => {}
        [true, ..] => return Err(StartError::Bare(cwd.to_owned())),
        _ => return Err(StartError::InsideGitDir(cwd.to_owned())),
    }
    Ok(path(git, cwd, &["--show-toplevel"]).await?)
}

/// The git directory of the checkout around `cwd`.
pub(super) async fn find_git_dir(git: &Git, cwd: &Path) -> Result<PathBuf, StartError> {
    Ok(path(git, cwd, &["--absolute-git-dir"]).await?)
}

pub(super) async fn discover(git: &Git, cwd: &Path) -> Result<Facts, StartError> {
    let top = find_top(git, cwd).await?;
    let subdir = path(git, cwd, &["--show-prefix"]).await?;
    let git_dir = find_git_dir(git, cwd).await?;
    let common = path(git, cwd, &["--path-format=absolute", "--git-common-dir"]).await?;
    let objects = path(git, cwd, &["--path-format=absolute", "--git-path", "objects"]).await?;
    let exclude_file = path(
        git,
        cwd,
        &["--path-format=absolute", "--git-path", "info/exclude"],
    )
    .await?;
    // A relative `core.hooksPath` counts from the top.
    let hooks_dir = path(git, &top, &["--path-format=absolute", "--git-path", "hooks"]).await;
    let hooks_dir = match hooks_dir {
        // As git does for an empty `core.hooksPath`.
        Err(error) if error.stderr().contains("empty string") => PathBuf::from("/dev/null/no-hooks"),
        found => found?,
    };
    let format = String::from_utf8_lossy(&rev_parse(git, cwd, &["--show-object-format"]).await?).into_owned();
    let base = git
        .trusted(cwd)
        .args(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])
        .oid()
        .await;
    let base = base.map_err(|error| match error {
        GitError::Failed { stderr, .. } if stderr.is_empty() => StartError::NoCommit(top.clone()),
        other => other.into(),
    })?;
    let identity = git.trusted(cwd).args(["var", "GIT_AUTHOR_IDENT"]).run().await;
    let identity = identity.map_err(|error| no_identity(error.stderr()))?;
    let identity = Identity::from_ident(&identity).ok_or_else(|| no_identity("it is empty"))?;
    Ok(Facts {
        shallow: std::fs::read(common.join("shallow"))
            .ok()
            .filter(|lines| !lines.is_empty()),
        excludes: excludes(git, cwd, &exclude_file).await?,
        settings: settings(git, cwd, PASSED_ON).await?,
        signing: settings(git, cwd, SIGNING).await?,
        dirty: dirty(git, &top).await?,
        top,
        subdir,
        git_dir,
        objects,
        exclude_file,
        hooks_dir,
        format,
        base,
        identity,
    })
}

fn no_identity(said: &str) -> StartError {
    StartError::NoIdentity(
        said.lines()
            .last()
            .unwrap_or("git var GIT_AUTHOR_IDENT failed")
            .to_owned(),
    )
}

fn explain(error: GitError, cwd: &Path) -> StartError {
    let said = error.stderr();
    if said.contains("dubious ownership") || said.contains("unsafe repository") {
        return StartError::DubiousOwnership(owned_by_others(said).unwrap_or_else(|| cwd.to_owned()));
    }
    if said.contains("not a git repository") {
        return StartError::NotARepository(cwd.to_owned());
    }
    error.into()
}

/// The directory that git names when it does not trust its owner.
fn owned_by_others(said: &str) -> Option<PathBuf> {
    let (_, rest) = said.split_once('\'')?;
    rest.split_once('\'').map(|(path, _)| path.into())
}

async fn rev_parse(git: &Git, cwd: &Path, args: &[&str]) -> Result<Vec<u8>, GitError> {
    let mut output = git.trusted(cwd).args(["rev-parse"]).args(args).run().await?;
    // Exactly the line end of git: a path may end with one of its own.
    if output.last() == Some(&b'\n') {
        output.pop();
    }
    Ok(output)
}

async fn path(git: &Git, cwd: &Path, args: &[&str]) -> Result<PathBuf, GitError> {
    Ok(OsString::from_vec(rev_parse(git, cwd, args).await?).into())
}

/// The user's own ignore rules: `core.excludesFile`, then `info/exclude`, in the order of their weight.
async fn excludes(git: &Git, cwd: &Path, info: &Path) -> Result<Vec<u8>, StartError> {
    let call = git
        .trusted(cwd)
        .args(["config", "-z", "--type=path", "--get", "core.excludesFile"]);
    let set = call.output().await?;
    let file = match set.stdout.split(|byte| *byte == 0).next() {
        Some(file) if set.code == Some(0) && !file.is_empty() => Some(PathBuf::from(OsStr::from_bytes(file))),
        Some(_) if set.code == Some(0) => None,
        _ => git
            .host()
            .get("XDG_CONFIG_HOME")
            .filter(|dir| !dir.is_empty())
            .map_or_else(
                || {
                    git.host()
                        .get("HOME")
                        .map(|home| Path::new(home).join(".config/git/ignore"))
                },
                |dir| Some(Path::new(dir).join("git/ignore")),
            ),
    };
    let mut all = Vec::new();
    for file in file.iter().map(PathBuf::as_path).chain([info]) {
        let rules = read_capped(&cwd.join(file)).map_err(|source| StartError::Read {
            path: file.to_owned(),
            source,
        })?;
        all.extend_from_slice(rules.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&rules));
        if all.last().is_some_and(|byte| *byte != b'\n') {
            all.push(b'\n');
        }
    }
    Ok(all)
}

/// Reads a rules file; a missing one has no rules.
fn read_capped(file: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::{Error, ErrorKind};
    let mut rules = Vec::new();
    match std::fs::File::open(file) {
        Ok(open) if open.metadata()?.is_file() => {
            open.take(EXCLUDES_CAP + 1).read_to_end(&mut rules)?;
        }
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        Err(error) => return Err(error),
    }
    if rules.len() as u64 > EXCLUDES_CAP {
        return Err(Error::new(
            ErrorKind::FileTooLarge,
            format!("more than {EXCLUDES_CAP} bytes of ignore rules"),
        ));
    }
    Ok(rules)
}

async fn settings(git: &Git, cwd: &Path, wanted: &str) -> Result<Vec<Setting>, GitError> {
    let found = git
        .trusted(cwd)
        .args(["config", "-z", "--get-regexp", wanted])
        .output()
        .await?;
    if !matches!(found.code, Some(0 | 1)) {
        return Err(GitError::Failed {
            command: "git config --get-regexp".to_owned(),
            code: found.code,
            stderr: found.stderr,
        });
    }
    let mut settings: Vec<Setting> = Vec::new();
    for entry in found
        .stdout
        .split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
    {
        let mut parts = entry.splitn(2, |byte| *byte == b'\n');
        let key = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        // A key without a value means true.
        let value = parts.next().unwrap_or(b"true").to_vec();
        settings.retain(|known| known.key != key);
        settings.push(Setting { key, value });
    }
    Ok(settings)
}

/// How many paths have changes that no commit holds.
async fn dirty(git: &Git, top: &Path) -> Result<usize, GitError> {
    let args = [
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=normal",
        "--no-renames",
    ];
    let listed = git
        .trusted(top)
        .args(args)
        .timeout(super::git_call::LONG_TIMEOUT)
        .run()
        .await?;
    Ok(listed
        .split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
        .count())
}
