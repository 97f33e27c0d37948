//! Ends everything under a supervisor, however it forks.

use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, wait};

use crate::proc;

/// How long killing may take before the rest is given up.
const KILL: Duration = Duration::from_secs(2);

/// The most passes that stop what is still running before a round of killing.
const STOP_PASSES: u32 = 4;

/// All processes under this one. It must be a child subreaper, so that orphans come up to it.
#[derive(Debug)]
pub(super) struct Tree {
    main: Pid,
    status: Option<WaitStatus>,
}

impl Tree {
    /// The tree whose first process is `main`, a child of this process.
    pub(super) fn new(main: Pid) -> Self {
        Self { main, status: None }
    }

    /// How the main process ended, once it was reaped.
    pub(super) fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Reaps what has ended. Returns whether any process is left; this is the kernel's word, not a guess.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Reaps until nothing is left or `limit` has passed. Returns whether any process is left.
    pub(super) fn reap_for(&mut self, limit: Duration) -> bool {
        let until = Instant::now().checked_add(limit);
        let mut pause = Duration::from_millis(1);
        while self.reap() {
            if until.is_some_and(|until| Instant::now() >= until) {
                return true;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        false
    }

    /// How many processes are alive, after [`reap`](Self::reap) said that some are: so at least 1.
    pub(super) fn alive(&self) -> u32 {
        let mut alive = 0;
        proc::walk(getpid(), |process| alive += u32::from(process.is_alive()));
        alive.max(1)
    }

    /// Ends all processes: SIGTERM, up to `grace`, then SIGKILL. Returns how many are left, usually 0.
    pub(super) fn end(&mut self, grace: Duration) -> u32 {
        if !self.reap() {
            return 0;
        }
        proc::walk(getpid(), |process| process.signal(Signal::TERM));
        if !self.reap_for(grace) {
            return 0;
        }
        let until = Instant::now() + KILL;
        while Instant::now() < until {
            kill_round();
            if !self.reap_for(Duration::from_millis(2)) {
                return 0;
            }
        }
        self.alive()
    }
}

/// Stops everything first, so that nothing forks while it is killed; then kills everything.
///
/// A process that forked during a pass has left a child that the next pass or the next round sees.
fn kill_round() {
    for _ in 0..STOP_PASSES {
        let mut running = 0;
        proc::walk(getpid(), |process| {
            if process.is_running() {
                process.signal(Signal::STOP);
                running += 1;
            }
        });
        if running == 0 {
            break;
        }
    }
    proc::walk(getpid(), |process| process.signal(Signal::KILL));
}
