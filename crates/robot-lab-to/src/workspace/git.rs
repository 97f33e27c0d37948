//! The git command line, run so that nothing planted in a repository can make it do more than asked.
//!
//! There are two kinds of calls. A *trusted* call reads the user's repository with the user's own
//! configuration; it happens only at the start of a run. A *hardened* call sees no configuration but that of
//! the git directory it names, with hooks, file-system monitors, transports and background work switched off.
//! Both start from an empty environment, have a deadline, and bound what they keep of the output.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::git_call::Call;

/// The oldest git that works: two numbers of its version.
const OLDEST: (u32, u32) = (2, 34);

/// Variables of the host that a trusted call sees: where the user's configuration is, and configuration that
/// is given by variables. None of those that name a repository.
const TRUSTED: [&str; 17] = [
    "HOME",
    "PATH",
    "XDG_CONFIG_HOME",
    "USER",
    "LOGNAME",
    "EMAIL",
    "TMPDIR",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// Environment of a hardened call, besides the repository it names.
const HARDENED: [(&str, &str); 13] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_DEFAULT_REF_FORMAT", "files"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_ADVICE", "0"),
    ("GIT_LFS_SKIP_DOWNLOAD_ERRORS", "1"),
    ("LC_ALL", "C"),
];

/// Settings of a hardened call; they win over every configuration file.
const PINNED: [&str; 20] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.splitIndex=false",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "core.fsync=all",
    "core.fsyncMethod=batch",
    "core.safecrlf=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=dirty",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "index.sparse=false",
    "commit.gpgSign=false",
];

/// What the workspace needs to know of the process environment; the caller reads it, this crate does not.
#[derive(Clone, Debug, Default)]
pub struct HostEnv {
    vars: Vec<(OsString, OsString)>,
}

impl HostEnv {
    /// Takes the variables of the host, for example those of `std::env::vars_os()`.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(vars: impl IntoIterator<Item = (K, V)>) -> Self {
        Self {
            vars: vars
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.vars
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_os_str())
    }

    /// All variables.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    fn trusted(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        let named = self
            .iter()
            .filter_map(|(key, value)| Some((key.to_str()?, value)));
        named.filter(|(key, _)| {
            let given = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"];
            TRUSTED.contains(key) || given.iter().any(|prefix| key.starts_with(prefix))
        })
    }
}

/// Why a git that can be used was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindGitError {
    /// No executable `git` in an absolute directory of `PATH`.
    #[error("git was not found on PATH; nothing was changed; install git 2.34 or newer and try again")]
    Missing,
    /// The git that was found is too old.
    #[error("{path:?} is git {found}; nothing was changed; install git 2.34 or newer and try again")]
    TooOld {
        /// Where it was found.
        path: PathBuf,
        /// Its version, as it prints it.
        found: String,
    },
    /// It does not run, or does not tell its version.
    #[error("the version of {path:?} could not be read; nothing was changed; see what `git version` prints")]
    Broken {
        /// Where it was found.
        path: PathBuf,
        /// What happened.
        source: GitError,
    },
}

/// A git call that did not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The process could not be started, fed or read.
    #[error("`{command}` could not be run")]
    Run {
        /// The call, shortened.
        command: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Git ended with an error.
    #[error("`{command}` failed{}: {stderr}", code.map(|code| format!(" (exit {code})")).unwrap_or_default())]
    Failed {
        /// The call, shortened.
        command: String,
        /// Exit code; none when it was ended by a signal.
        code: Option<i32>,
        /// The first part of what it said.
        stderr: String,
    },
    /// The deadline passed; the process group was ended.
    #[error("`{command}` was ended after {} s", after.as_secs())]
    Timeout {
        /// The call, shortened.
        command: String,
        /// The deadline.
        after: Duration,
    },
    /// The output is larger than what is kept.
    #[error("`{command}` printed more than {cap} bytes")]
    TooLarge {
        /// The call, shortened.
        command: String,
        /// The limit.
        cap: usize,
    },
    /// The output is not what this program understands.
    #[error("the output of `{command}` was not understood")]
    Output {
        /// The call, shortened.
        command: String,
    },
}

impl GitError {
    /// What git said, when it ended with an error.
    pub(super) fn stderr(&self) -> &str {
        match self {
            Self::Failed { stderr, .. } => stderr,
            _ => "",
        }
    }

    /// True when git itself refused, and not the machine (disk, memory, descriptors) under it.
    pub(super) fn is_refusal(&self) -> bool {
        const MACHINE: [&str; 8] = [
            "No space left",
            "Disk quota",
            "Input/output error",
            "Read-only file system",
            "Cannot allocate",
            "ut of memory",
            "Too many open files",
            "Resource temporarily",
        ];
        matches!(self, Self::Failed { code: Some(_), stderr, .. }
            if !MACHINE.iter().any(|sign| stderr.contains(sign)))
    }
}

/// The git of this machine: found once, its version checked.
#[derive(Clone, Debug)]
pub struct Git {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    binary: PathBuf,
    version: (u32, u32),
    host: HostEnv,
}

impl Git {
    /// Finds git in the absolute directories of the host's `PATH` and checks that it is new enough.
    pub async fn find(host: &HostEnv) -> Result<Self, FindGitError> {
        let path = host.get("PATH").unwrap_or_default();
        let binary = std::env::split_paths(path)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join("git"))
            .find(|file| is_executable(file))
            .ok_or(FindGitError::Missing)?;
        let mut shared = Shared {
            binary,
            version: (0, 0),
            host: host.clone(),
        };
        let unchecked = Self {
            shared: Arc::new(Shared {
                binary: shared.binary.clone(),
                version: (0, 0),
                host: host.clone(),
            }),
        };
        let broken = |source| FindGitError::Broken {
            path: shared.binary.clone(),
            source,
        };
        let said = unchecked
            .trusted(Path::new("/"))
            .args(["version"])
            .run()
            .await
            .map_err(broken)?;
        let said = String::from_utf8_lossy(&said)
            .trim()
            .trim_start_matches("git version ")
            .to_owned();
        let version = parse_version(&said).ok_or_else(|| {
            broken(GitError::Output {
                command: "git version".to_owned(),
            })
        })?;
        if version < OLDEST {
            return Err(FindGitError::TooOld {
                path: shared.binary,
                found: said,
            });
        }
        shared.version = version;
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// The absolute path of the executable.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.shared.binary
    }

    /// The first two numbers of the version.
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.shared.version
    }

    /// The environment that was given.
    pub(super) fn host(&self) -> &HostEnv {
        &self.shared.host
    }

    /// A reading call with the user's own configuration, in a directory of the user.
    pub(super) fn trusted(&self, cwd: &Path) -> Call {
        let mut call = Call::new(&self.shared.binary, cwd);
        for (name, value) in self.shared.host.trusted() {
            call = call.env(name, value);
        }
        for (name, value) in [
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C"),
        ] {
            call = call.env(name, value);
        }
        call.config("core.fsmonitor=false").config("core.pager=cat")
    }

    /// A call that sees no configuration but that of `git_dir`, and runs nothing but git.
    pub(super) fn hardened(&self, git_dir: &Path) -> Call {
        let mut call = Call::new(&self.shared.binary, git_dir);
        for name in ["PATH", "TMPDIR"] {
            if let Some(value) = self.shared.host.get(name) {
                call = call.env(name, value);
            }
        }
        for (name, value) in HARDENED {
            call = call.env(name, value);
        }
        for setting in PINNED {
            call = call.config(setting);
        }
        if self.shared.version < (2, 36) {
            call = call.config("core.fsyncObjectFiles=true");
        }
        // An index that is not there: a call that needs one names it.
        call.env("GIT_DIR", git_dir)
            .env("GIT_INDEX_FILE", git_dir.join("no-index"))
            .env("HOME", "/dev/null")
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_vendors_are_understood() {
        assert_eq!(parse_version("2.47.3"), Some((2, 47)));
        assert_eq!(parse_version("2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(parse_version("2.34.GIT"), Some((2, 34)));
        assert_eq!(parse_version("nonsense"), None);
    }

    #[test]
    fn variables_that_name_a_repository_do_not_pass() {
        let host = HostEnv::new([
            ("GIT_DIR", "/other"),
            ("GIT_INDEX_FILE", "/other"),
            ("GIT_OBJECT_DIRECTORY", "/other"),
            ("GIT_CONFIG_PARAMETERS", "'core.fsmonitor=evil'"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("HOME", "/home/me"),
        ]);
        let passed: Vec<_> = host.trusted().map(|(name, _)| name).collect();
        assert_eq!(passed, ["GIT_CONFIG_KEY_0", "HOME"]);
    }
}
