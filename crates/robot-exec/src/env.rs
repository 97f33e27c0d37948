//! Builds the environment of a command from an allow-list, so that no secret gets in by accident.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// Names that pass from the host.
#[rustfmt::skip]
const ALLOWED: &[&str] = &[
    // who and where
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
    // certificates: where they are, not what they are
    "SSL_CERT_FILE", "SSL_CERT_DIR",
    // toolchains
    "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_TARGET_DIR",
    "GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOTOOLCHAIN",
    "JAVA_HOME", "MAVEN_HOME", "GRADLE_USER_HOME", "ANDROID_HOME",
    "NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "COREPACK_HOME",
    "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "PIPX_HOME", "UV_CACHE_DIR",
    "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "BUNDLE_GEMFILE",
    "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR", "DOTNET_ROOT", "NIX_PATH",
    "CC", "CXX", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH",
];

/// Beginnings of names that pass from the host.
const ALLOWED_PREFIXES: &[&str] = &["LC_"];

/// A name with one of these in it never passes unless it is listed by the caller.
const SECRET: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "AUTH",
];

/// Variables every command gets: nothing asks, pages, colours or opens an editor.
const PINNED: &[(&str, &str)] = &[
    ("CI", "1"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// The whole environment of a command.
///
/// [`Env::default`] holds only the pinned variables: `CI=1`, `TERM=dumb`, `NO_COLOR=1`, pagers that are `cat`,
/// editors that are `true`, and no prompts from git or apt. Its `Debug` form shows names, never values.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Env(BTreeMap<OsString, OsString>);

impl Default for Env {
    fn default() -> Self {
        Self(
            PINNED
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl Env {
    /// The pinned variables, and of `host` those on a short list or in `extra_names`.
    ///
    /// The list: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `LANG`, `LC_*`, `TZ`, `TMPDIR`, the XDG directories,
    /// and where toolchains and their caches are (`CARGO_HOME`, `GOPATH`, `JAVA_HOME`, `VIRTUAL_ENV`, …). A name
    /// with `KEY`, `TOKEN`, `SECRET`, `PASSWORD`, `PASSWD`, `CREDENTIAL` or `AUTH` in it passes only when it is
    /// in `extra_names`. `GIT_*` is not on the list, so a command never works on the repository its caller
    /// happens to be in. `extra_names` win over the pinned variables.
    pub fn allow_listed(
        host: impl IntoIterator<Item = (OsString, OsString)>,
        extra_names: &[String],
    ) -> Self {
        let passes = |name: &OsStr| {
            name.to_str()
                .is_some_and(|name| extra_names.iter().any(|extra| extra == name) || is_allowed(name))
        };
        let mut env = Self::default();
        env.0.extend(host.into_iter().filter(|(name, _)| passes(name)));
        env
    }

    /// Sets a variable.
    pub fn set(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn is_allowed(name: &str) -> bool {
    let listed = ALLOWED.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let upper = name.to_ascii_uppercase();
    listed && !SECRET.iter().any(|secret| upper.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn only_listed_names_pass() {
        let env = Env::allow_listed(
            host(&[
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("CARGO_HOME", "/c"),
                ("ANTHROPIC_API_KEY", "s"),
                ("GITHUB_TOKEN", "s"),
                ("LC_SECRET", "s"),
                ("LC_auth_x", "s"),
                ("GIT_DIR", "/r"),
                ("GIT_WORK_TREE", "/r"),
                ("GIT_INDEX_FILE", "/r"),
                ("SSH_AUTH_SOCK", "/s"),
                ("LD_PRELOAD", "/x.so"),
                ("BASH_ENV", "/x"),
                ("RANDOM_OTHER", "1"),
                ("TERM", "xterm"),
            ]),
            &[],
        );
        let from_host: Vec<_> = env
            .iter()
            .filter(|(name, _)| !PINNED.iter().any(|(pinned, _)| pinned == name))
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(from_host, ["CARGO_HOME", "LC_ALL", "PATH"]);
        assert_eq!(env.get("TERM"), Some(OsStr::new("dumb")));
        assert_eq!(env.get("GIT_TERMINAL_PROMPT"), Some(OsStr::new("0")));
    }

    #[test]
    fn no_listed_name_looks_like_a_secret() {
        for name in ALLOWED {
            assert!(is_allowed(name), "{name} is on the list but refused");
        }
    }

    #[test]
    fn the_caller_can_add_names_and_values() {
        let given = host(&[("MY_TOKEN", "t"), ("TERM", "xterm"), ("MY_OTHER_TOKEN", "t")]);
        let env = Env::allow_listed(given, &["MY_TOKEN".into(), "TERM".into()]).set("CI", "0");
        assert_eq!(env.get("MY_TOKEN"), Some(OsStr::new("t")));
        assert_eq!(env.get("TERM"), Some(OsStr::new("xterm")));
        assert_eq!(env.get("CI"), Some(OsStr::new("0")));
        assert_eq!(env.get("MY_OTHER_TOKEN"), None);
    }

    #[test]
    fn debug_shows_no_value() {
        let shown = format!("{:?}", Env::default().set("MY_TOKEN", "hunter2"));
        assert!(
            shown.contains("MY_TOKEN") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
