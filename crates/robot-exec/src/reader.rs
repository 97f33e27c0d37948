//! Reads the output of a command within fixed memory, until it ends or must no longer be waited for.

use std::future::{Future, pending};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

use crate::captured::{Captured, HeadTail};
use crate::command::{Capture, Stderr};
use crate::error::ExecError;
use crate::output::FullText;

/// How long the pipes are waited for once the command is reported as finished.
const DRAIN: Duration = Duration::from_millis(200);

/// How much is read at once, and at most read after [`DRAIN`] of what is in a pipe: no pipe holds more.
const CHUNK: usize = 64 << 10;
const LAST: usize = 1 << 20;

/// The reading ends of a command's pipes, and where their bytes go.
#[derive(Debug)]
pub(crate) struct Reader {
    stdout: Stream,
    stderr: Stream,
    full: Option<FullFile>,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) full: Option<FullText>,
}

impl Reader {
    /// Makes the pipes, and the file for the full output. Returns the ends for the command too.
    pub(crate) async fn open(capture: &Capture) -> Result<(Self, Stdio, Stdio), ExecError> {
        let connect = |source| ExecError::Connect { source };
        let full = match &capture.full {
            Some((path, cap)) => Some(FullFile::create(path, *cap).await?),
            None => None,
        };
        let (stdout, to_stdout) = Stream::open(capture).map_err(connect)?;
        let (stderr, to_stderr) = match capture.stderr {
            Stderr::Merged => (Stream::closed(), to_stdout.try_clone().map_err(connect)?),
            Stderr::Separate => Stream::open(capture).map_err(connect)?,
        };
        Ok((Self { stdout, stderr, full }, to_stdout.into(), to_stderr.into()))
    }

    /// Reads to the end, or until shortly after `finished` when something still holds a pipe open.
    pub(crate) async fn run(mut self, finished: impl Future<Output = ()>) -> Streams {
        let late = async {
            finished.await;
            tokio::time::sleep(DRAIN).await;
        };
        let gave_up = tokio::select! {
            () = self.read_to_end() => false,
            () = late => true,
        };
        if gave_up {
            self.stdout.read_ready();
            self.stderr.read_ready();
        }
        let full = match self.full {
            Some(full) => Some(
                full.finish(self.stdout.ring.total() + self.stderr.ring.total())
                    .await,
            ),
            None => None,
        };
        Streams {
            stdout: self.stdout.ring.finish(),
            stderr: self.stderr.ring.finish(),
            full,
        }
    }

    async fn read_to_end(&mut self) {
        let Self { stdout, stderr, full } = self;
        while stdout.pipe.is_some() || stderr.pipe.is_some() {
            let bytes = tokio::select! {
                bytes = stdout.read() => bytes,
                bytes = stderr.read() => bytes,
            };
            if let Some(full) = full {
                full.write(bytes).await;
            }
        }
    }
}

/// One pipe.
#[derive(Debug)]
struct Stream {
    pipe: Option<pipe::Receiver>,
    ring: HeadTail,
    chunk: Vec<u8>,
}

impl Stream {
    fn open(capture: &Capture) -> io::Result<(Self, io::PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let pipe = Some(pipe::Receiver::from_owned_fd(reader.into())?);
        Ok((
            Self {
                pipe,
                ring: HeadTail::new(capture.head, capture.tail),
                chunk: vec![0; CHUNK],
            },
            writer,
        ))
    }

    fn closed() -> Self {
        Self {
            pipe: None,
            ring: HeadTail::new(0, 0),
            chunk: Vec::new(),
        }
    }

    /// The next bytes; none at the end. Never returns once the end was seen. Loses nothing when dropped.
    async fn read(&mut self) -> &[u8] {
        let Some(pipe) = &mut self.pipe else {
            return pending().await;
        };
        let count = pipe.read(&mut self.chunk).await.unwrap_or(0);
        if count == 0 {
            self.pipe = None;
        }
        let bytes = self.chunk.get(..count).unwrap_or_default();
        self.ring.push(bytes);
        bytes
    }

    /// Takes what is in the pipe now.
    fn read_ready(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        let mut taken = 0;
        while taken < LAST
            && let Ok(count @ 1..) = pipe.try_read(&mut self.chunk)
        {
            self.ring.push(self.chunk.get(..count).unwrap_or_default());
            taken += count;
        }
    }
}

/// The file for the full output.
#[derive(Debug)]
struct FullFile {
    file: File,
    path: PathBuf,
    room: u64,
    written: u64,
}

impl FullFile {
    async fn create(path: &Path, cap: u64) -> Result<Self, ExecError> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        match options.open(path).await {
            Ok(file) => Ok(Self {
                file,
                path: path.to_owned(),
                room: cap,
                written: 0,
            }),
            Err(source) => Err(ExecError::FullText {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Writes what fits. After an error nothing more is written: the command matters more than its log.
    async fn write(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX).min(bytes.len());
        let fits = bytes.get(..room).unwrap_or_default();
        if fits.is_empty() {
            return;
        }
        let count = u64::try_from(room).unwrap_or(u64::MAX);
        // Flushed each time, so that an error belongs to these bytes and a crash leaves what was printed.
        if self.file.write_all(fits).await.is_ok() && self.file.flush().await.is_ok() {
            self.room -= count;
            self.written += count;
        } else {
            self.room = 0;
        }
    }

    async fn finish(mut self, total: u64) -> FullText {
        self.file.flush().await.ok();
        FullText {
            path: self.path,
            written: self.written,
            left_out: total.saturating_sub(self.written),
        }
    }
}
