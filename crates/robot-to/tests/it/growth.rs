//! What a run holds on to: however much is printed and however long the night, memory, open files and prompts stay small.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use testkit::{Call, Reply};

use crate::lab::{Lab, PATIENCE, Ran, Started};
use crate::replies::{good, write};

/// The most memory that the process may ever have, in KiB.
const MOST: u64 = 64 << 10;
/// Iterations of a night, and how many of them are only the beginning.
const NIGHT: usize = 40;
const EVENING: usize = 20;

/// The most memory that a process had so far, in KiB; none when it has ended.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().trim_end_matches(" kB").parse().ok()
}

/// Waits until the run ends, and gives the most memory that it had by the time of each request, and at the end.
fn watched<'a>(lab: &'a Lab, mut run: Started<'a>) -> (Ran<'a>, Vec<u64>) {
    let mut peaks = Vec::new();
    while !run.process.has_ended() {
        if let Some(peak) = peak_memory(run.process.id()) {
            peaks.resize(lab.server.requests().len(), peak);
            peaks.push(peak);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    (run.end(PATIENCE), peaks)
}

#[test]
fn a_verify_that_prints_two_hundred_megabytes_takes_little_memory() {
    let mut lab = Lab::new([good("one")]);
    lab.verify = Some("yes 'a line of a test suite that says too much' | head -c 200000000".into());
    let (ran, peaks) = watched(&lab, lab.start(&["--max-iterations", "1"]));
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let peak = peaks.last().unwrap();
    assert!((1..MOST).contains(peak), "{peak} KiB");
}

#[test]
fn a_long_night_takes_no_more_than_its_beginning() {
    // So many bytes that the notes fill their part of a prompt in the evening.
    let wordy = |n: usize| {
        let summary = format!("{n} {}", "𝄞".repeat(200));
        let learnings = ["one", "two"].map(|which| format!("{which} of {n} {}", "wordy ".repeat(300)));
        let report =
            json!({ "success": !n.is_multiple_of(5), "summary": summary, "key_learnings": learnings });
        let report = Call::new("submit_iteration_result", report);
        Reply::calls([write(&format!("parts/n{n}"), "ok\n"), report])
    };
    let lab = Lab::new((1..=NIGHT).map(wordy));
    let run = lab.start(&["--max-iterations", &NIGHT.to_string()]);
    // A descriptor that each iteration forgot would end the run.
    let few = Some(48);
    let limit = Rlimit {
        current: few,
        maximum: few,
    };
    let pid = i32::try_from(run.process.id()).ok().and_then(Pid::from_raw);
    prlimit(pid, Resource::Nofile, limit).unwrap();
    let (ran, peaks) = watched(&lab, run);
    ran.assert_end(0, &format!("max iterations reached ({NIGHT})"));
    assert_eq!(ran.outcomes().len(), NIGHT);
    let grown = peaks.last().unwrap() - peaks[EVENING];
    assert!(grown < 8 << 10, "{grown} KiB more: {peaks:?}");
    let prompts: Vec<usize> = ran
        .requests()
        .iter()
        .map(|request| request.body.to_string().len())
        .collect();
    let (early, late) = (prompts[EVENING - 1], prompts[NIGHT - 1]);
    assert!(late.abs_diff(early) * 50 <= early, "{prompts:?}");
}
