//! Runs shell commands for tools and evals: one helper process each, with the run's environment.

use crate::workspace::HostEnv;
use robot_exec::{Capture, Command, Env, Exec, ExecError, Output, Stderr};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bytes kept of each end of an output. Enough for what models and people are shown.
const KEEP: usize = 64 * 1024;

/// A shell with a fixed environment.
#[derive(Clone, Debug)]
pub struct Shell {
    exec: Exec,
    env: Env,
    program: OsString,
}

impl Shell {
    /// A shell program, such as `/bin/sh`, that takes `-c`.
    pub fn new(exec: Exec, env: Env, program: impl Into<OsString>) -> Self {
        Self {
            exec,
            env,
            program: program.into(),
        }
    }

    /// Runs `script` in `dir`. Everything that it started has ended when this returns.
    pub async fn run(
        &self,
        script: &str,
        dir: &Path,
        timeout: Duration,
        stderr: Stderr,
        cancel: &CancellationToken,
    ) -> Result<Output, ExecError> {
        let command = self.command(script, dir, timeout, stderr);
        self.exec.run(&command, cancel).await
    }

    fn command(&self, script: &str, dir: &Path, timeout: Duration, stderr: Stderr) -> Command {
        Command::new(&self.program, dir)
            .args(["-c", script])
            .env(self.env.clone())
            .timeout(timeout)
            .capture(Capture::new(KEEP, KEEP).stderr(stderr))
    }

    /// Runs `script` on a file, which is its `$1`, as [`run`](Self::run) does.
    pub async fn run_on(
        &self,
        script: &str,
        file: &Path,
        dir: &Path,
        timeout: Duration,
        stderr: Stderr,
        cancel: &CancellationToken,
    ) -> Result<Output, ExecError> {
        let command = self.command(script, dir, timeout, stderr);
        let command = command.args([&self.program]).args([file]);
        self.exec.run(&command, cancel).await
    }

    /// Runs a program without a shell, as [`run`](Self::run) does, with `input` to read and its two outputs apart.
    pub async fn run_program(
        &self,
        program: &Path,
        input: Vec<u8>,
        dir: &Path,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<Output, ExecError> {
        let command = Command::new(program, dir)
            .stdin(input)
            .env(self.env.clone())
            .timeout(timeout)
            .capture(Capture::new(KEEP, KEEP).stderr(Stderr::Separate));
        self.exec.run(&command, cancel).await
    }

    /// Runs a program with further variables, both streams in one, as [`run`](Self::run) runs a script. One without a
    /// `#!` line is a shell script, as git and shells have it.
    pub async fn execute(
        &self,
        program: &Path,
        args: &[&Path],
        vars: &[(&str, &OsStr)],
        dir: &Path,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<Output, ExecError> {
        let mut env = self.env.clone();
        for (name, value) in vars {
            env = env.set(*name, *value);
        }
        let command = Command::new(&self.program, dir)
            .args(["-c", "exec \"$0\" \"$@\""])
            .args([program])
            .args(args.iter().copied())
            .env(env)
            .timeout(timeout)
            .capture(Capture::new(KEEP, KEEP));
        self.exec.run(&command, cancel).await
    }
}

/// The user's bash, where there is one on their `PATH`.
pub fn find_bash(host: &HostEnv) -> Option<PathBuf> {
    let path = host.get("PATH").unwrap_or_default();
    std::env::split_paths(path)
        .map(|dir| dir.join("bash"))
        .find(|bash| bash.is_absolute() && bash.is_file())
}

/// Head and tail of a text, in at most about `max` bytes, with a line between that says how much is left out.
pub fn head_and_tail(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let half = max / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - half)..)
        .unwrap_or_default();
    let left = text.len() - head.len() - tail.len();
    format!("{head}\n[… {left} bytes left out …]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn case_157_head_and_tail_are_bounded_and_never_cut_a_character(text in "[aé🙂\n]{0,200}", max in 0usize..100) {
            let cut = head_and_tail(&text, max);
            if text.len() <= max {
                prop_assert_eq!(cut, text);
            } else {
                let (head, rest) = cut.split_once("\n[… ").unwrap();
                let tail = rest.split_once("…]\n").unwrap().1;
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert!(head.len() + tail.len() <= max);
            }
        }
    }
}
