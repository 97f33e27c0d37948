//! Names one call, and finds the processes of that call again by the name.
//!
//! The name is a variable in the command's environment. It is needed only when the supervisor is gone, since
//! the supervisor knows its descendants by kinship.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::proc;

/// The variable that holds the name.
pub(crate) const VARIABLE: &str = "ROBOT_EXEC_CALL";

/// How long [`Call::sweep`] tries.
const SWEEP: Duration = Duration::from_secs(2);

/// How many rounds in a row must find nothing: one may miss a process that keeps forking.
const CLEAN_ROUNDS: u32 = 5;

/// The unique name of one call.
#[derive(Debug, Clone)]
pub(crate) struct Call(String);

impl Call {
    /// A name that no other call on this host has.
    pub(crate) fn new() -> Self {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let random = RandomState::new().build_hasher().finish();
        Self(format!("{}-{count}-{random:016x}", std::process::id()))
    }

    /// The name as text.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Kills every process that carries the name, in rounds, for at most 2 s. Returns how many are left.
    pub(crate) fn sweep(&self) -> u32 {
        let entry = format!("{VARIABLE}={}", self.0);
        let until = Instant::now() + SWEEP;
        let mut clean = 0;
        loop {
            let mut found = 0;
            proc::with_environment(entry.as_bytes(), |process| {
                process.signal(Signal::KILL);
                found += 1;
            });
            clean = if found == 0 { clean + 1 } else { 0 };
            if clean == CLEAN_ROUNDS || Instant::now() >= until {
                return found;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
