//! Runs real commands through the real helper and looks for what survives.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod containment;
mod ending;
mod host;
mod input;
mod output;
mod status;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use robot_exec::{Command, Env, Exec, ExecError, Output};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const MARK: &str = "ROBOT_EXEC_TEST";

/// Far more than anything here needs, even on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

fn exec() -> Exec {
    Exec::new(env!("CARGO_BIN_EXE_robot-exec-helper"))
}

/// One test: a directory, and a mark in the environment of all its commands.
struct Case {
    dir: TempDir,
    mark: String,
}

impl Case {
    fn new() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let start = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        Self {
            dir: tempfile::tempdir().unwrap(),
            mark: format!("{}-{count}-{start}", std::process::id()),
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn env(&self) -> Env {
        Env::allow_listed(std::env::vars_os(), &[]).set(MARK, &self.mark)
    }

    fn shell(&self, script: &str) -> Command {
        Command::shell(script, self.path()).env(self.env()).timeout(LONG)
    }

    /// Runs a script; nothing of it may be alive afterwards.
    async fn run(&self, script: &str) -> Output {
        self.run_command(&self.shell(script)).await.unwrap()
    }

    async fn run_command(&self, command: &Command) -> Result<Output, ExecError> {
        let output = exec().run(command, &CancellationToken::new()).await;
        assert_eq!(survivors(&self.mark), [0; 0]);
        if let Ok(output) = &output {
            assert_eq!(output.survivors, 0);
        }
        output
    }

    /// Waits until the script has made the file `name`.
    async fn made(&self, name: &str) {
        let path = self.path().join(name);
        eventually("the file is made", || path.exists()).await;
    }
}

/// The processes with the mark in their environment that are alive.
fn survivors(mark: &str) -> Vec<u32> {
    let entry = format!("{MARK}={mark}");
    let pids = std::fs::read_dir("/proc").unwrap();
    pids.filter_map(|pid| pid.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ
                    .split(|byte| *byte == 0)
                    .any(|found| found == entry.as_bytes())
            })
        })
        .collect()
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Perl code for a daemon: double fork, new session, no open files, deaf to SIGTERM and SIGHUP.
const DAEMON: &str = r#"perl -MPOSIX -e '
    fork and exit; POSIX::setsid(); fork and exit;
    $SIG{TERM} = $SIG{HUP} = "IGNORE"; POSIX::close($_) for 0 .. 20;
    sleep 1000;'"#;

/// Perl code for a process that is a new one every 2 ms, in a new session each time.
const RESPAWNER: &str = r#"perl -MPOSIX -e '
    $SIG{TERM} = "IGNORE";
    while (1) { fork and POSIX::_exit(0); POSIX::setsid(); select(undef, undef, undef, 0.002); }'"#;
