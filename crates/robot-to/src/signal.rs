//! Signals: the first one ends a run gently, the second one at once.

use crate::exit::Exit;
use robot_lab_to::iteration::StopReason;
use robot_lab_to::run::Halt;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// After the second signal the run has this long before the program ends without it.
const LAST_MOMENT: Duration = Duration::from_millis(700);

/// Watches SIGINT, SIGTERM and SIGHUP for as long as the program runs. A hang-up ends a run like the others, unless the
/// program was started to ignore it (`nohup`); it never counts as the second signal, since a closing terminal sends it
/// more than once.
pub(crate) fn watch(halt: Halt) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = if ignores_hang_up() {
        None
    } else {
        Some(signal(SignalKind::hangup())?)
    };
    tokio::spawn(async move {
        tokio::select! {
            () = ended(&mut interrupt, &mut terminate) => {}
            () = hung_up(hang_up.as_mut()) => {}
        }
        halt.stop(StopReason::interrupted());
        ended(&mut interrupt, &mut terminate).await;
        halt.stop_now(StopReason::interrupted());
        tokio::time::sleep(LAST_MOMENT).await;
        // Commands end with the program: each has a helper that watches it.
        #[expect(clippy::exit, reason = "the run did not end in time")]
        std::process::exit(i32::from(Exit::Interrupted as u8));
    });
    Ok(())
}

async fn ended(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

async fn hung_up(hang_up: Option<&mut Signal>) {
    match hang_up {
        Some(hang_up) => {
            hang_up.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether whoever started the program set SIGHUP to be ignored.
fn ignores_hang_up() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, SignalKind::hangup()))
}

/// Reads the mask of ignored signals in `/proc/self/status`; signal `n` is bit `n - 1`.
fn ignores(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        assert!(ignores(
            "SigBlk:\t0\nSigIgn:\t0000000000000001\n",
            SignalKind::hangup()
        ));
        assert!(!ignores("SigIgn:\t0000000000001000\n", SignalKind::hangup()));
        assert!(!ignores("", SignalKind::hangup()));
    }
}
