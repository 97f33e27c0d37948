//! Signals: the first one ends a run gently, the second one at once.

use crate::exit::Exit;
use robot_lab_to::iteration::StopReason;
use robot_lab_to::run::Halt;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// After the second signal the run has this long before the program ends without it.
const LAST_MOMENT: Duration = Duration::from_millis(700);

/// Watches SIGINT, SIGTERM and SIGHUP for as long as the program runs.
pub(crate) fn watch(halt: Halt) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        any(&mut interrupt, &mut terminate, &mut hang_up).await;
        halt.stop(StopReason::interrupted());
        any(&mut interrupt, &mut terminate, &mut hang_up).await;
        halt.stop_now(StopReason::interrupted());
        tokio::time::sleep(LAST_MOMENT).await;
        // Commands end with the program: each has a helper that watches it.
        #[expect(clippy::exit, reason = "the run did not end in time")]
        std::process::exit(i32::from(Exit::Interrupted as u8));
    });
    Ok(())
}

async fn any(interrupt: &mut Signal, terminate: &mut Signal, hang_up: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}
