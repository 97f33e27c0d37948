//! What one helper process per command costs, beside the raw command: `cargo bench -p robot-exec`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails loudly"
)]

use robot_exec::{Command, Env, Exec};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Pairs of samples. They are interleaved, so that both see the same machine.
const PAIRS: usize = 300;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let exec = Exec::new(env!("CARGO_BIN_EXE_robot-exec-helper"));
    let dir = tempfile::tempdir().unwrap();
    let command = Command::shell("true", dir.path()).env(Env::default());
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        raw.push(time(|| {
            let status = std::process::Command::new("/bin/sh")
                .args(["-c", "true"])
                .status()
                .unwrap();
            assert!(status.success());
        }));
        ours.push(time(|| {
            let output = runtime
                .block_on(exec.run(&command, &CancellationToken::new()))
                .unwrap();
            assert!(output.status.success());
        }));
    }
    let (raw, ours) = (median(raw), median(ours));
    println!("sh -c true, median of {PAIRS}: raw {raw:.2?}, by helper {ours:.2?}");
    println!(
        "ratio {:.1}, added {:.2?}",
        ours.as_secs_f64() / raw.as_secs_f64(),
        ours.saturating_sub(raw)
    );
}

fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples[samples.len() / 2]
}
