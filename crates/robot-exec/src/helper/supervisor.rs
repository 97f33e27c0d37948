//! Stage 1: starts one command, watches it, and ends all of it for good.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, WaitStatus};

use super::{PROCESS_NAME, launcher, tree::Tree};
use crate::wire::{Answer, End, LINE_CAP, Refused, Spec};

/// After the command ended by itself: how long what it left behind may take to end by itself too.
const SETTLE: Duration = Duration::from_millis(100);

/// After that, and when the caller is gone: how long processes have to react to SIGTERM.
const SHORT_GRACE: Duration = Duration::from_millis(300);

/// How often orphans are reaped while the command runs.
const REAP_EVERY: Duration = Duration::from_millis(500);

/// Why watching is over.
enum Wake {
    Ended(WaitStatus),
    /// It ended, but the caller was itself started with SIGCHLD ignored, so the kernel kept no status.
    EndedUntold,
    TimedOut,
    Cancelled,
    CallerGone,
}

/// Runs the whole stage.
pub(super) fn run() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn supervise() -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some((spec, rest)) = read_spec(&mut control)? else {
        return Ok(());
    };
    answer(&mut control, &Answer::Ready)?;
    let timeout = Duration::from_millis(spec.timeout_ms);
    let grace = Duration::from_millis(spec.grace_ms);

    let started = Instant::now();
    let (main, pidfd) = match start(spec) {
        Ok(started) => started,
        Err((what, error)) => {
            return answer(
                &mut control,
                &Answer::Refused {
                    what,
                    failure: error.into(),
                },
            );
        }
    };
    let mut tree = Tree::new(main);
    release_output().ok();

    let wake = if rest.is_empty() {
        watch(&mut tree, &mut control, &pidfd, started, timeout)
    } else {
        Wake::Cancelled
    };
    let elapsed = started.elapsed();
    let mut leaked = 0;
    let (end, survivors) = match wake {
        Wake::Ended(status) => {
            if tree.reap_for(SETTLE) {
                leaked = tree.alive();
            }
            (end_of(status), tree.end(SHORT_GRACE))
        }
        Wake::EndedUntold => return Err(io::Error::other("the status of the command was lost")),
        Wake::TimedOut => (End::TimedOut, tree.end(grace)),
        // Whoever cancels is in a hurry.
        Wake::Cancelled => (End::Cancelled, tree.end(SHORT_GRACE.min(grace))),
        Wake::CallerGone => (End::Cancelled, tree.end(SHORT_GRACE.min(grace))),
    };
    let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    answer(
        &mut control,
        &Answer::Finished {
            end,
            elapsed_us,
            leaked,
            survivors,
        },
    )
}

/// Reads the first line, and whatever came after it. `None`: the caller is gone already.
fn read_spec(control: &mut UnixStream) -> io::Result<Option<(Spec, Vec<u8>)>> {
    let mut line = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        let read = control.read(&mut chunk)?;
        let chunk = chunk.get(..read).unwrap_or_default();
        if chunk.is_empty() || line.len() > LINE_CAP {
            return Ok(None);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(end.and_then(|end| chunk.get(..end)).unwrap_or(chunk));
        if let Some(end) = end {
            let rest = chunk.get(end + 1..).unwrap_or_default().to_vec();
            return Ok(Some((serde_json::from_slice(&line)?, rest)));
        }
    }
}

/// Starts the launcher. The handle becomes readable when it, or rather the command it became, ends.
fn start(spec: Spec) -> Result<(Pid, OwnedFd), (Refused, io::Error)> {
    let refused = |error: io::Error| (Refused::Start, error);
    let me = rustix::process::getpid();
    if let Ok(name) = CString::new(PROCESS_NAME) {
        rustix::thread::set_name(&name).ok();
    }
    // Orphans of the command come up to this process instead of init.
    rustix::process::set_child_subreaper(Some(me)).map_err(|error| refused(error.into()))?;
    // The command must not reach into this process, which holds the socket to the caller.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    std::env::set_current_dir(OsString::from(spec.cwd)).map_err(|error| (Refused::Cwd, error))?;
    let stdin = input(spec.stdin.into()).map_err(refused)?;

    let args = spec.args.into_iter().map(OsString::from).collect();
    let child = Command::new("/proc/self/exe")
        .arg0(PROCESS_NAME)
        .args(launcher::arguments(me, spec.limits, spec.program.into(), args))
        .env_clear()
        .envs(
            spec.env
                .into_iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
        .stdin(stdin)
        .spawn()
        .map_err(refused)?;
    let main = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let main = main.ok_or_else(|| refused(io::Error::other("the command has no process id")))?;
    let pidfd =
        rustix::process::pidfd_open(main, PidfdFlags::empty()).map_err(|error| refused(error.into()))?;
    Ok((main, pidfd))
}

/// Standard input with these bytes: a file in memory, which no reader has to wait for, and which has no name.
fn input(bytes: OsString) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = File::from(memfd_create("robot-exec-stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Lets go of the command's pipes, so that they end with the last process of the command.
fn release_output() -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Waits for the end of the command, its deadline, or a word from the caller.
fn watch(
    tree: &mut Tree,
    control: &mut UnixStream,
    pidfd: &OwnedFd,
    started: Instant,
    timeout: Duration,
) -> Wake {
    loop {
        let left = tree.reap();
        match tree.status() {
            Some(status) => return Wake::Ended(status),
            None if !left => return Wake::EndedUntold,
            None => {}
        }
        let left = timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Wake::TimedOut;
        }
        let mut fds = [
            PollFd::new(&*control, PollFlags::IN),
            PollFd::new(pidfd, PollFlags::IN),
        ];
        let pause = Timespec::try_from(left.min(REAP_EVERY)).ok();
        if poll(&mut fds, pause.as_ref()).is_err() {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let [asked, _] = fds.map(|fd| !fd.revents().is_empty());
        if asked {
            return match control.read(&mut [0; 64]) {
                Ok(1..) => Wake::Cancelled,
                Ok(0) | Err(_) => Wake::CallerGone,
            };
        }
    }
}

fn end_of(status: WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Exited(code),
        (None, signal) => End::Signaled(signal.unwrap_or_default()),
    }
}

fn answer(control: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    control.write_all(&line)
}
