//! Runs a command from the calling program's side: starts the helper, listens, and backs it up.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines, Take};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use crate::call::{Call, VARIABLE};
use crate::captured::Captured;
use crate::command::Command;
use crate::error::ExecError;
use crate::helper::{PROCESS_NAME, SUPERVISOR};
use crate::output::{Output, Status};
use crate::reader::Reader;
use crate::wire::{Answer, End, LINE_CAP, Refused, STDIN_CAP, Spec};

/// How long a helper may take to say that the command runs. Long, for machines under load.
const START: Duration = Duration::from_secs(20);

/// How long after timeout and grace the helper may take to report: a little more than it takes at most.
const BACKSTOP: Duration = Duration::from_millis(2500);

/// How long a helper that has reported may take to exit.
const EXIT: Duration = Duration::from_secs(1);

/// The most bytes a helper says.
const ANSWERS_CAP: u64 = 64 << 10;

/// Runs commands, each in a helper process of its own. Cheap to clone; any number may run at once.
#[derive(Debug, Clone)]
pub struct Exec {
    helper: PathBuf,
}

/// What the helper said in the end.
struct Report {
    status: Status,
    elapsed: Duration,
    leaked: u32,
    survivors: u32,
}

impl Exec {
    /// Uses the program `helper`, which is `robot-exec-helper` or calls [`maybe_helper`](crate::maybe_helper).
    #[must_use]
    pub fn new(helper: impl Into<PathBuf>) -> Self {
        Self {
            helper: helper.into(),
        }
    }

    /// Uses the running program, whose `main` must begin with [`maybe_helper`](crate::maybe_helper).
    ///
    /// This holds even if the file of the program is replaced or removed while it runs.
    #[must_use]
    pub fn current_exe() -> Self {
        Self::new("/proc/self/exe")
    }

    /// Runs `command` and returns once nothing of it is alive.
    ///
    /// When `cancel` is cancelled, the command is ended as at its timeout. When the future is dropped, it is
    /// ended too, within about half a second, but nobody waits for that. The runtime must have IO and time
    /// enabled.
    ///
    /// # Errors
    ///
    /// [`ExecError`] says why nothing was run. A command that ran and failed is an [`Output`].
    pub async fn run(&self, command: &Command, cancel: &CancellationToken) -> Result<Output, ExecError> {
        if cancel.is_cancelled() {
            return Ok(cancelled_before_start());
        }
        if command.stdin.len() > STDIN_CAP {
            return Err(ExecError::Stdin {
                bytes: command.stdin.len(),
            });
        }
        let call = Call::new();
        let (reader, stdout, stderr) = Reader::open(&command.capture).await?;
        let mut helper = self.start(stdout, stderr)?;

        let finished = CancellationToken::new();
        let conversation = async {
            let report = helper.run(self, command, &call, cancel).await;
            if !matches!(&report, Ok(report) if report.survivors == 0 && report.status != Status::HelperLost)
            {
                helper.child.start_kill().ok();
            }
            let report = match report {
                Ok(report) => Ok(clean_up(report, &call).await),
                error => error,
            };
            finished.cancel();
            report
        };
        let (report, streams) = tokio::join!(conversation, reader.run(finished.cancelled()));
        helper.exit().await;

        let Report {
            status,
            elapsed,
            leaked,
            survivors,
        } = report?;
        let (stdout, stderr, full) = (streams.stdout, streams.stderr, streams.full);
        Ok(Output {
            status,
            stdout,
            stderr,
            full,
            elapsed,
            leaked,
            survivors,
        })
    }

    fn start(&self, stdout: Stdio, stderr: Stdio) -> Result<Helper, ExecError> {
        let connect = |source| ExecError::Connect { source };
        let (ours, theirs) = StdUnixStream::pair().map_err(connect)?;
        ours.set_nonblocking(true).map_err(connect)?;
        let (from, to) = UnixStream::from_std(ours).map_err(connect)?.into_split();
        let child = tokio::process::Command::new(&self.helper)
            .arg0(PROCESS_NAME)
            .arg(SUPERVISOR)
            // The command can read its parent's environment in /proc, so there must be nothing in it.
            .env_clear()
            // A key press on the terminal is for the caller, which then decides.
            .process_group(0)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(|source| ExecError::Helper {
                path: self.helper.clone(),
                source,
            })?;
        Ok(Helper {
            child,
            from: BufReader::new(from.take(ANSWERS_CAP)).lines(),
            to,
        })
    }
}

/// A running helper. Dropping it closes the socket, and the helper ends the command.
struct Helper {
    child: Child,
    from: Lines<BufReader<Take<OwnedReadHalf>>>,
    to: OwnedWriteHalf,
}

impl Helper {
    async fn run(
        &mut self,
        exec: &Exec,
        command: &Command,
        call: &Call,
        cancel: &CancellationToken,
    ) -> Result<Report, ExecError> {
        let begun = Instant::now();
        let line = spec_line(command, call).map_err(|source| start_error(command, source))?;
        let ready = tokio::select! {
            answer = async {
                // A helper that is gone before it has read everything is noticed by its missing answer.
                self.to.write_all(&line).await.ok();
                self.answer().await
            } => matches!(answer, Some(Answer::Ready)),
            () = sleep_until(Instant::now().checked_add(START)) => false,
        };
        if !ready {
            return Err(ExecError::NotAHelper {
                path: exec.helper.clone(),
            });
        }
        match self.listen(command, cancel).await {
            Some(Answer::Finished {
                end,
                elapsed_us,
                leaked,
                survivors,
            }) => {
                let elapsed = Duration::from_micros(elapsed_us);
                Ok(Report {
                    status: status(end, command),
                    elapsed,
                    leaked,
                    survivors,
                })
            }
            Some(Answer::Refused {
                what: Refused::Cwd,
                failure,
            }) => Err(ExecError::Cwd {
                path: command.cwd.clone(),
                source: failure.into(),
            }),
            Some(Answer::Refused {
                what: Refused::Start,
                failure,
            }) => Err(start_error(command, failure.into())),
            Some(Answer::Ready) | None => Ok(Report {
                status: Status::HelperLost,
                elapsed: begun.elapsed(),
                leaked: 0,
                survivors: 0,
            }),
        }
    }

    /// Waits for the last answer and passes on a cancellation. `None`: the helper is lost, or it hangs.
    async fn listen(&mut self, command: &Command, cancel: &CancellationToken) -> Option<Answer> {
        let ending = command.grace.saturating_add(BACKSTOP);
        let mut until = Instant::now().checked_add(command.timeout.saturating_add(ending));
        let mut cancelled = false;
        loop {
            tokio::select! {
                answer = self.answer() => return answer,
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.to.write_all(b"cancel\n").await.ok();
                    until = [until, Instant::now().checked_add(ending)].into_iter().flatten().min();
                }
                () = sleep_until(until) => return None,
            }
        }
    }

    /// The next thing the helper says. `None`: it is gone, or what it says makes no sense.
    async fn answer(&mut self) -> Option<Answer> {
        let line = self.from.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    /// Waits for the helper to exit, so that no zombie stays.
    async fn exit(mut self) {
        if tokio::time::timeout(EXIT, self.child.wait()).await.is_err() {
            self.child.start_kill().ok();
            tokio::time::timeout(EXIT, self.child.wait()).await.ok();
        }
    }
}

/// Kills what the helper could not, by its mark.
async fn clean_up(report: Report, call: &Call) -> Report {
    if report.survivors == 0 && report.status != Status::HelperLost {
        return report;
    }
    let call = call.clone();
    let survivors = tokio::task::spawn_blocking(move || call.sweep())
        .await
        .unwrap_or(report.survivors);
    Report { survivors, ..report }
}

fn spec_line(command: &Command, call: &Call) -> io::Result<Vec<u8>> {
    let env = command.env.clone().set(VARIABLE, call.name());
    let milliseconds = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let spec = Spec {
        program: command.program.as_os_str().into(),
        args: command.args.iter().map(|arg| arg.as_os_str().into()).collect(),
        env: env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: command.cwd.as_os_str().into(),
        stdin: OsStr::from_bytes(&command.stdin).into(),
        timeout_ms: milliseconds(command.timeout),
        grace_ms: milliseconds(command.grace),
        limits: command.limits,
    };
    let mut line = serde_json::to_vec(&spec)?;
    if line.len() > LINE_CAP {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    line.push(b'\n');
    Ok(line)
}

fn status(end: End, command: &Command) -> Status {
    match end {
        End::Exited(code) => Status::Exited(code),
        End::Signaled(number) => Status::Signaled(number),
        End::TimedOut => Status::TimedOut {
            after: command.timeout,
        },
        End::Cancelled => Status::Cancelled,
    }
}

fn start_error(command: &Command, source: io::Error) -> ExecError {
    ExecError::Start {
        program: command.program.clone(),
        source,
    }
}

fn cancelled_before_start() -> Output {
    Output {
        status: Status::Cancelled,
        stdout: Captured::default(),
        stderr: Captured::default(),
        full: None,
        elapsed: Duration::ZERO,
        leaked: 0,
        survivors: 0,
    }
}

/// Sleeps by the system's clock, also where the runtime's clock is paused; for ever without a moment.
async fn sleep_until(moment: Option<Instant>) {
    let Some(moment) = moment else {
        return std::future::pending().await;
    };
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}
