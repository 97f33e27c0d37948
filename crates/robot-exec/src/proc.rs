//! Looks at processes through /proc and signals them without hitting a recycled pid.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read as _;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The most bytes read of one file in /proc.
const READ_CAP: u64 = 8 << 20;

/// One process at the moment it was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pid: Pid,
    parent: i32,
    state: u8,
    /// Clock ticks since boot: with the pid, the identity of the process.
    started: u64,
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        parse_stat(pid, &read_file(pid, "stat")?)
    }

    /// Whether it can still run code. A zombie only waits to be reaped.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }

    /// Whether it is alive and not stopped by a signal.
    pub(crate) fn is_running(&self) -> bool {
        self.is_alive() && !matches!(self.state, b'T' | b't')
    }

    /// Sends `signal` to this very process; does nothing when it has ended and its pid is free or reused.
    pub(crate) fn signal(&self, signal: Signal) {
        // The handle first, then the identity: from here on the pid can no longer change hands unnoticed.
        let Ok(handle) = pidfd_open(self.pid, PidfdFlags::empty()) else {
            return;
        };
        if Self::read(self.pid).is_some_and(|now| now.started == self.started) {
            pidfd_send_signal(handle, signal).ok();
        }
    }
}

/// Shows `visit` every descendant of `root`, parents first, each at once when it is seen.
///
/// What forks or ends meanwhile may be missed, so a caller that wants all of them repeats the walk.
pub(crate) fn walk(root: Pid, mut visit: impl FnMut(&Process)) {
    let mut parents = vec![root];
    let mut seen = HashSet::from([root]);
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            // A pid that was reused during the walk must not make it a loop.
            if seen.insert(child.pid) {
                visit(&child);
                parents.push(child.pid);
            }
        }
    }
}

/// Shows `visit` every living process with exactly `entry` (`NAME=value`) in the environment it was started
/// with, the newest pids first, each at once when it is seen.
pub(crate) fn with_environment(entry: &[u8], mut visit: impl FnMut(&Process)) {
    let mut pids = all();
    pids.sort_unstable_by_key(|pid| std::cmp::Reverse(pid.as_raw_nonzero()));
    for process in pids
        .into_iter()
        .filter_map(Process::read)
        .filter(Process::is_alive)
    {
        let environ = read_file(process.pid, "environ").unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|found| found == entry) {
            visit(&process);
        }
    }
}

fn children(parent: Pid) -> Vec<Process> {
    let pids = listed_children(parent).unwrap_or_else(all);
    let is_child = |process: &Process| process.parent == parent.as_raw_nonzero().get();
    pids.into_iter()
        .filter_map(Process::read)
        .filter(is_child)
        .collect()
}

/// The children by the kernel's own list, which is far faster than a look at every process. `None`: this
/// kernel has no such list.
fn listed_children(parent: Pid) -> Option<Vec<Pid>> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero())) else {
        return Some(Vec::new());
    };
    let mut pids = Vec::new();
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        pids.extend(list.split_ascii_whitespace().filter_map(parse_pid));
    }
    Some(pids)
}

fn all() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| parse_pid(entry.ok()?.file_name().to_str()?))
        .collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

fn read_file(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let file = File::open(format!("/proc/{}/{name}", pid.as_raw_nonzero())).ok()?;
    let mut bytes = Vec::new();
    file.take(READ_CAP).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Reads `pid (name) state parent … started …`. The name may hold spaces and brackets: the last bracket counts.
fn parse_stat(pid: Pid, stat: &[u8]) -> Option<Process> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(stat.get(close + 1..)?)
        .ok()?
        .split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // The 3rd and 4th fields are taken; the start time is the 22nd.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        state,
        started,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_bytes_does_not_shift_the_fields() {
        let pid = Pid::from_raw(7).unwrap();
        let line = b"7 (a) R 1 \xff) S 42 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2\n";
        let process = parse_stat(pid, line).unwrap();
        assert_eq!(
            (process.parent, process.state, process.started),
            (42, b'S', 987_654)
        );
        assert!(parse_stat(pid, b"7 (a) S 4").is_none());
        assert!(parse_stat(pid, b"").is_none());
    }

    #[test]
    fn this_process_is_seen_as_running_and_as_a_descendant_of_its_parent() {
        let me = rustix::process::getpid();
        assert!(Process::read(me).unwrap().is_running());
        let mut found = false;
        walk(rustix::process::getppid().unwrap(), |process| {
            found |= process.pid == me
        });
        assert!(found);
    }
}
