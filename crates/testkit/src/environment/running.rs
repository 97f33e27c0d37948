//! A process under test: its output, its signals and its end.

use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How often to look whether the process has ended.
const POLL: Duration = Duration::from_millis(5);

/// How long to wait for the end of the output, which a process that outlives its parent may hold open.
const GRACE: Duration = Duration::from_secs(2);

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The exit code, unless a signal ended the process.
    pub code: Option<i32>,
    /// The number of the signal that ended the process, if one did.
    pub signal: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
    /// The time from the start to the end.
    pub elapsed: Duration,
}

impl Finished {
    /// Fails the test, with the output, if the exit code is another.
    pub fn assert_code(&self, code: i32) -> &Self {
        assert!(
            self.code == Some(code),
            "the exit code is {:?} (signal {:?}) and not {code}\n{}",
            self.code,
            self.signal,
            report(&self.stdout, &self.stderr),
        );
        self
    }
}

/// A process that runs in a process group of its own, which is killed when this is dropped before its end.
#[derive(Debug)]
pub struct Running {
    child: Child,
    label: String,
    started: Instant,
    ended: bool,
    stdout: Arc<Capture>,
    stderr: Arc<Capture>,
}

impl Running {
    /// Starts a command and captures its output.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let label = format!("{command:?}");
        let started = Instant::now();
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{label} does not start: {error}"));
        let stdout = Capture::of(child.stdout.take().expect("a pipe for the output"));
        let stderr = Capture::of(child.stderr.take().expect("a pipe for the errors"));
        Self {
            child,
            label,
            started,
            ended: false,
            stdout,
            stderr,
        }
    }

    /// The id of the process, and of its process group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process alone.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a process that takes signals");
    }

    /// Sends a signal to the whole process group, as a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).expect("a process group that takes signals");
    }

    /// The standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// The standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Whether the process has ended.
    #[must_use]
    pub fn has_ended(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("the status of the process")
            .is_some()
    }

    /// Waits until the standard output contains a text, and fails the test if it does not within the limit.
    pub fn wait_for_stdout(&self, text: &str, limit: Duration) {
        let found = self.stdout.wait_until(limit, |seen| seen.contains(text));
        assert!(
            found,
            "{} did not print {text:?} within {limit:?}\n{}",
            self.label,
            self.output()
        );
    }

    /// Waits until the standard error contains a text, and fails the test if it does not within the limit.
    pub fn wait_for_stderr(&self, text: &str, limit: Duration) {
        let found = self.stderr.wait_until(limit, |seen| seen.contains(text));
        assert!(
            found,
            "{} did not report {text:?} within {limit:?}\n{}",
            self.label,
            self.output()
        );
    }

    /// Waits for the end; a process that takes longer than the limit from now is killed and fails the test.
    pub fn wait(mut self, limit: Duration) -> Finished {
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the status of the process") {
                break status;
            }
            if Instant::now() >= deadline {
                self.kill();
                panic!("{} did not end within {limit:?}\n{}", self.label, self.output());
            }
            thread::sleep(POLL);
        };
        let elapsed = self.started.elapsed();
        self.ended = true;
        self.stdout.wait_for_end(GRACE);
        self.stderr.wait_for_end(GRACE);
        Finished {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            elapsed,
        }
    }

    fn kill(&mut self) {
        if !self.ended {
            self.ended = true;
            // The group is gone if the process has just ended by itself.
            kill_process_group(self.pid(), Signal::KILL).ok();
            drop(self.child.wait());
            self.stdout.wait_for_end(GRACE);
            self.stderr.wait_for_end(GRACE);
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn output(&self) -> String {
        report(&self.stdout(), &self.stderr())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn report(stdout: &str, stderr: &str) -> String {
    format!("--- stdout ---\n{stdout}\n--- stderr ---\n{stderr}")
}

/// The output of a process so far, which a thread of its own reads.
#[derive(Debug, Default)]
struct Capture {
    state: Mutex<Captured>,
    change: Condvar,
}

#[derive(Debug, Default)]
struct Captured {
    bytes: Vec<u8>,
    ended: bool,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Arc<Self> {
        let capture = Arc::new(Self::default());
        let written = Arc::clone(&capture);
        // The thread ends with the pipe, which may outlive the process under test.
        drop(thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let bytes = match pipe.read(&mut buffer) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Ok(count) if count > 0 => buffer.get(..count),
                    Ok(_) | Err(_) => None,
                };
                let mut state = written.lock();
                match bytes {
                    Some(bytes) => state.bytes.extend_from_slice(bytes),
                    None => state.ended = true,
                }
                let ended = state.ended;
                drop(state);
                written.change.notify_all();
                if ended {
                    return;
                }
            }
        }));
        capture
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    fn wait_until(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> bool {
        let seen = |state: &Captured| wanted(&String::from_utf8_lossy(&state.bytes));
        let (state, _) = self
            .change
            .wait_timeout_while(self.lock(), limit, |state| !state.ended && !seen(state))
            .unwrap_or_else(PoisonError::into_inner);
        seen(&state)
    }

    fn wait_for_end(&self, limit: Duration) {
        self.wait_until(limit, |_| false);
    }

    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
