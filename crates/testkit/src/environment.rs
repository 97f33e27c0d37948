//! A hermetic environment to run the built binary in.

mod normalize;
mod running;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub use rustix::process::Signal;
use tempfile::TempDir;

pub use self::running::{Finished, Running};

/// The wall clock limit of a run, unless a test sets another.
const LIMIT: Duration = Duration::from_secs(120);

/// A binary with directories and environment variables of its own, which go away when it is dropped.
///
/// Nothing of the environment of the test itself reaches the binary but `PATH` and the place for coverage data.
#[derive(Debug)]
pub struct TestEnvironment {
    binary: PathBuf,
    root: PathBuf,
    cwd: PathBuf,
    variables: BTreeMap<OsString, OsString>,
    placeholders: Vec<(String, String)>,
    limit: Duration,
    _directory: TempDir,
}

impl TestEnvironment {
    /// Makes the directories `home`, `state`, `config`, `tmp` and `work` for runs of `binary`.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory
            .path()
            .canonicalize()
            .expect("the path of the temporary directory");
        for name in ["home", "state", "config", "tmp", "work"] {
            fs::create_dir(root.join(name)).expect("a directory of the environment");
        }
        let git_config = root.join("home/.gitconfig");
        let settings =
            "[user]\n\tname = Test\n\temail = test@example.invalid\n[init]\n\tdefaultBranch = main\n";
        fs::write(&git_config, settings).expect("the settings of git");
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let mut environment = Self {
            binary: binary.into(),
            cwd: root.join("work"),
            variables: BTreeMap::new(),
            placeholders: Vec::new(),
            limit: LIMIT,
            _directory: directory,
            root,
        };
        let directories = [
            ("HOME", environment.home()),
            ("XDG_STATE_HOME", environment.state()),
            ("XDG_CONFIG_HOME", environment.config()),
            ("TMPDIR", environment.tmp()),
        ];
        for (name, directory) in directories {
            environment.env(name, directory);
        }
        environment
            .env("PATH", path)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", git_config)
            .env("GIT_TERMINAL_PROMPT", "0");
        if let Some(place) = std::env::var_os("LLVM_PROFILE_FILE") {
            environment.env("LLVM_PROFILE_FILE", place);
        }
        environment
    }

    /// Sets a variable for the runs to come.
    pub fn env(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> &mut Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Removes a variable for the runs to come.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.variables.remove(name.as_ref());
        self
    }

    /// Sets the working directory of the runs to come, which is `work` otherwise.
    pub fn cwd(&mut self, directory: impl Into<PathBuf>) -> &mut Self {
        self.cwd = directory.into();
        self
    }

    /// Sets the wall clock limit of the runs to come, which is two minutes otherwise.
    pub fn limit(&mut self, limit: Duration) -> &mut Self {
        self.limit = limit;
        self
    }

    /// Makes [`TestEnvironment::normalize`] replace a text by a placeholder.
    pub fn placeholder(&mut self, text: impl Into<String>, placeholder: impl Into<String>) -> &mut Self {
        self.placeholders.push((text.into(), placeholder.into()));
        self
    }

    /// The directory that all others are in; processes of a run carry its path in their environment.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The home directory.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The directory for state.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// The directory for configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.root.join("config")
    }

    /// The directory for temporary files.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// An empty directory, in which runs start unless they are given another.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// A text that is in the environment of each process of a run, to find those that outlive it.
    #[must_use]
    pub fn marker(&self) -> &str {
        self.root
            .to_str()
            .expect("a temporary directory with a path of UTF-8")
    }

    /// The command of a run, with an empty standard input, for tests that start it themselves.
    #[must_use]
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.command_of(&self.binary, arguments)
    }

    /// The command of another program in the same environment.
    #[must_use]
    pub fn command_of<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(&self.cwd)
            .stdin(Stdio::null());
        command
    }

    /// A script of the shell in which the binary is found by its name.
    #[must_use]
    pub fn shell(&self, script: impl AsRef<OsStr>) -> Command {
        let mut command = self.command_of("/bin/sh", [OsStr::new("-c"), script.as_ref()]);
        let own = self.binary.parent().map(Path::to_owned).unwrap_or_default();
        let known = self.variables.get(OsStr::new("PATH"));
        let others = known.map(std::env::split_paths).into_iter().flatten();
        if let Ok(path) = std::env::join_paths([own].into_iter().chain(others)) {
            command.env("PATH", path);
        }
        command
    }

    /// Runs the binary to its end; a run over the limit is killed and fails the test.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Finished {
        self.spawn(arguments).wait(self.limit)
    }

    /// Starts the binary and leaves it running.
    #[must_use]
    pub fn spawn<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        Running::start(self.command(arguments))
    }

    /// Replaces what differs from run to run by placeholders, for snapshots.
    ///
    /// These are the directories of the environment, the binary, the texts given to
    /// [`TestEnvironment::placeholder`], run ids, object ids, ports of loopback addresses, timestamps and
    /// durations. Short object ids are recognised by having both digits and letters, or by the word before.
    #[must_use]
    pub fn normalize(&self, text: &str) -> String {
        let mut literals: Vec<(String, &str)> = [
            (self.home(), "[HOME]"),
            (self.state(), "[STATE]"),
            (self.config(), "[CONFIG]"),
            (self.tmp(), "[TMP]"),
            (self.work(), "[WORK]"),
            (self.root.clone(), "[ROOT]"),
            (self.cwd.clone(), "[CWD]"),
            (self.binary.clone(), "[BINARY]"),
        ]
        .into_iter()
        .map(|(path, placeholder)| (path.to_string_lossy().into_owned(), placeholder))
        .collect();
        literals.extend(
            self.placeholders
                .iter()
                .map(|(text, placeholder)| (text.clone(), placeholder.as_str())),
        );
        normalize::normalize(text, literals)
    }
}
