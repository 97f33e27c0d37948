//! One git process: what it is given, how long it may take, how much of its output is kept.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use super::GitError;

const TIMEOUT: Duration = Duration::from_secs(120);
/// Deadline of calls whose work grows with the history or the size of the tree.
pub(super) const LONG_TIMEOUT: Duration = Duration::from_secs(900);
const OUTPUT_CAP: usize = 64 << 20;
const STDERR_CAP: usize = 16 << 10;

/// What a call reads.
#[derive(Debug)]
enum Input {
    Nothing,
    Bytes(Vec<u8>),
    File(File),
}

/// What a call printed and how it ended.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    pub(super) truncated: bool,
}

/// One git process, described and then run once.
#[derive(Debug)]
pub(super) struct Call {
    binary: PathBuf,
    cwd: PathBuf,
    env: Vec<(OsString, OsString)>,
    config: Vec<OsString>,
    args: Vec<OsString>,
    input: Input,
    to_file: Option<File>,
    cap: usize,
    truncate: bool,
    timeout: Duration,
}

impl Call {
    pub(super) fn new(binary: &Path, cwd: &Path) -> Self {
        Self {
            binary: binary.to_owned(),
            cwd: cwd.to_owned(),
            env: Vec::new(),
            config: Vec::new(),
            args: Vec::new(),
            input: Input::Nothing,
            to_file: None,
            cap: OUTPUT_CAP,
            truncate: false,
            timeout: TIMEOUT,
        }
    }

    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(key, _)| key != name);
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn config(mut self, setting: &str) -> Self {
        self.config.extend(["-c".into(), setting.into()]);
        self
    }

    pub(super) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Works on the files below `dir`, with `index` as the index.
    pub(super) fn work_tree(mut self, dir: &Path, index: &Path) -> Self {
        self.cwd = dir.to_owned();
        self.env("GIT_WORK_TREE", dir).env("GIT_INDEX_FILE", index)
    }

    pub(super) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    pub(super) fn stdin_file(mut self, file: File) -> Self {
        self.input = Input::File(file);
        self
    }

    pub(super) fn stdout_file(mut self, file: File) -> Self {
        self.to_file = Some(file);
        self
    }

    /// Takes this many bytes of output, where that is more than usual.
    pub(super) fn at_most(mut self, cap: usize) -> Self {
        self.cap = cap;
        self
    }

    /// Keeps the first `cap` bytes of the output and ends the process there.
    pub(super) fn first(mut self, cap: usize) -> Self {
        self.cap = cap;
        self.truncate = true;
        self
    }

    pub(super) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn label(&self) -> String {
        let mut label = "git".to_owned();
        for arg in self.args.iter().take(4) {
            label.push(' ');
            label.extend(arg.to_string_lossy().chars().take(80));
        }
        label
    }

    /// Runs the call; every exit code but 0 is an error.
    pub(super) async fn run(self) -> Result<Vec<u8>, GitError> {
        let command = self.label();
        let output = self.output().await?;
        if output.code == Some(0) || output.truncated {
            return Ok(output.stdout);
        }
        Err(GitError::Failed {
            command,
            code: output.code,
            stderr: output.stderr,
        })
    }

    /// Runs the call and reads one object id from its output.
    pub(super) async fn oid(self) -> Result<super::Oid, GitError> {
        let command = self.label();
        let output = self.run().await?;
        super::Oid::from_output(&output).ok_or(GitError::Output { command })
    }

    /// Runs the call, whatever its exit code.
    pub(super) async fn output(mut self) -> Result<Output, GitError> {
        let command = self.label();
        let failed = |source| GitError::Run {
            command: command.clone(),
            source,
        };
        let (bytes, stdin) = match std::mem::replace(&mut self.input, Input::Nothing) {
            Input::Nothing => (None, Stdio::null()),
            Input::Bytes(bytes) => (Some(bytes), Stdio::piped()),
            Input::File(file) => (None, Stdio::from(file)),
        };
        let stdout = self.to_file.take().map_or_else(Stdio::piped, Stdio::from);
        let mut child = tokio::process::Command::new(&self.binary)
            .args(&self.config)
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let group = Group::of(child.id());
        let (pipe_in, pipe_out, pipe_err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let (Some(mut pipe), Some(bytes)) = (pipe_in, bytes) {
                // A reader that ends early is seen by its exit code.
                drop(pipe.write_all(&bytes).await);
                drop(pipe.shutdown().await);
            }
        };
        let work = async {
            let read_out = async {
                let kept = keep(pipe_out, self.cap).await;
                if kept.as_ref().is_ok_and(|(_, more)| *more) {
                    group.signal(Signal::KILL);
                }
                kept
            };
            let read_err = async {
                let mut pipe = pipe_err;
                let kept = keep(pipe.as_mut(), STDERR_CAP).await;
                if let Some(mut pipe) = pipe {
                    drop(tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await);
                }
                kept
            };
            let ((), out, err) = tokio::join!(feed, read_out, read_err);
            let status = child.wait().await?;
            Ok::<(ExitStatus, _, _), std::io::Error>((status, out?, err?))
        };
        let mut work = std::pin::pin!(work);
        let ended = tokio::time::timeout(self.timeout, &mut work).await;
        let Ok(ended) = ended else {
            // A git that is asked to end takes its lock files away; one that is killed leaves them.
            group.signal(Signal::TERM);
            drop(tokio::time::timeout(TERM_GRACE, &mut work).await);
            return Err(GitError::Timeout {
                command,
                after: self.timeout,
            });
        };
        let (status, (stdout, more), (stderr, _)) = ended.map_err(failed)?;
        group.forget();
        if more && !self.truncate {
            return Err(GitError::TooLarge {
                command,
                cap: self.cap,
            });
        }
        let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
        Ok(Output {
            code: status.code(),
            stdout,
            stderr,
            truncated: more,
        })
    }
}

/// How long git may take to end once it is asked to.
const TERM_GRACE: std::time::Duration = std::time::Duration::from_secs(1);

/// Reads at most `cap` bytes; the second value tells whether there was more.
async fn keep(pipe: Option<impl AsyncRead + Unpin>, cap: usize) -> std::io::Result<(Vec<u8>, bool)> {
    let mut kept = Vec::new();
    let Some(pipe) = pipe else {
        return Ok((kept, false));
    };
    pipe.take(cap as u64 + 1).read_to_end(&mut kept).await?;
    let more = kept.len() > cap;
    kept.truncate(cap);
    Ok((kept, more))
}

/// The process group of one call; ended when the call is given up, so that no filter outlives it.
struct Group(AtomicI32);

impl Group {
    fn of(id: Option<u32>) -> Self {
        Self(AtomicI32::new(
            id.and_then(|id| i32::try_from(id).ok()).unwrap_or(0),
        ))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.0.load(Ordering::SeqCst)) {
            // It may have ended by itself.
            kill_process_group(group, signal).ok();
        }
    }

    fn forget(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
