//! The way of an answer onto the socket, with all that is to go wrong there.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::dialect::Dialect;
use super::reply::{Content, End, Manner, Reply};
use super::request::Request;
use super::{Stop, http, openai};

/// How long to wait before a reset, so that the client has the bytes before it.
const BEFORE_RESET: Duration = Duration::from_millis(20);

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum After {
    KeepOpen,
    Close,
    Reset,
}

/// Sends answers over one connection.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    pub(super) stream: &'a TcpStream,
    pub(super) stop: &'a Stop,
}

impl Delivery<'_> {
    /// Sends the reply to a request; `serial` makes the ids in it unique.
    pub(super) fn deliver(&self, reply: Reply, request: &Request, serial: u64) -> io::Result<After> {
        let Reply {
            content,
            headers,
            manner,
        } = reply;
        if let Some(delay) = manner.delay {
            self.stop.sleep(delay)?;
        }
        let dialect = Dialect::of(request).unwrap_or(Dialect::OpenAi);
        match content {
            Content::Hang => self.hang(),
            Content::Message(message) if request.is_streaming() => {
                let mut events = dialect.events(&message, request, serial);
                if let End::Truncate(_) = manner.end {
                    events.pop();
                }
                self.stream(dialect, &events, &headers, &manner)
            }
            Content::Message(message) => {
                let body = dialect
                    .body(&message, request, serial)
                    .ok_or(io::ErrorKind::Unsupported)?;
                self.whole(200, &body, &headers, &manner)
            }
            Content::Events(events) if request.is_streaming() => {
                let events: Vec<Vec<u8>> = events.iter().map(|data| dialect.event(data)).collect();
                self.stream(dialect, &events, &headers, &manner)
            }
            Content::Events(events) => self.whole(200, &events.join(&b'\n'), &headers, &manner),
            Content::Status { code, body } => {
                let body = body.unwrap_or_else(|| openai::default_body(code));
                self.whole(code, &body, &headers, &manner)
            }
        }
    }

    /// Says nothing until the server stops.
    fn hang(&self) -> io::Result<After> {
        loop {
            self.stop.sleep(Duration::from_secs(3600))?;
        }
    }

    fn stream(
        &self,
        dialect: Dialect,
        events: &[Vec<u8>],
        headers: &[(String, String)],
        manner: &Manner,
    ) -> io::Result<After> {
        let own = [
            ("content-type", dialect.content_type().to_owned()),
            ("cache-control", "no-cache".to_owned()),
            ("transfer-encoding", "chunked".to_owned()),
        ];
        self.send(&http::head(200, headers, &own))?;
        let mut chunks = Chunks {
            delivery: self,
            size: manner.chunk,
            held: Vec::new(),
        };
        if let Some((count, every)) = manner.pings {
            for _ in 0..count {
                chunks.push(dialect.ping())?;
                chunks.flush()?;
                self.stop.sleep(every)?;
            }
        }
        let (last, after) = match manner.end {
            End::Complete => (events.len(), After::KeepOpen),
            End::Cut(count) => (count.min(events.len()), After::Reset),
            End::Truncate(count) => (count.min(events.len()), After::KeepOpen),
        };
        let stall = manner.stall.map(|(count, pause)| (count.min(last), pause));
        for sent in 0..=last {
            if let Some((_, pause)) = stall.filter(|(count, _)| *count == sent) {
                chunks.flush()?;
                self.stop.sleep(pause)?;
            }
            if let Some(event) = events.get(sent).filter(|_| sent < last) {
                chunks.push(event)?;
            }
        }
        chunks.flush()?;
        match after {
            After::Reset => self.stop.sleep(BEFORE_RESET)?,
            After::KeepOpen | After::Close => self.send(b"0\r\n\r\n")?,
        }
        Ok(after)
    }

    fn whole(
        &self,
        code: u16,
        body: &[u8],
        headers: &[(String, String)],
        manner: &Manner,
    ) -> io::Result<After> {
        let own = [
            ("content-type", "application/json".to_owned()),
            ("content-length", body.len().to_string()),
        ];
        self.send(&http::head(code, headers, &own))?;
        let (first, second) = body.split_at(body.len() / 2);
        self.send_in_pieces(first, manner.chunk)?;
        if let Some((_, pause)) = manner.stall {
            self.stop.sleep(pause)?;
        }
        match manner.end {
            End::Cut(_) => {
                self.stop.sleep(BEFORE_RESET)?;
                return Ok(After::Reset);
            }
            End::Truncate(_) => return Ok(After::Close),
            End::Complete => {}
        }
        self.send_in_pieces(second, manner.chunk)?;
        Ok(After::KeepOpen)
    }

    fn send_in_pieces(&self, bytes: &[u8], size: Option<usize>) -> io::Result<()> {
        bytes
            .chunks(size.unwrap_or(usize::MAX))
            .try_for_each(|piece| self.send(piece))
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(bytes)?;
        stream.flush()
    }
}

/// Writes a body as HTTP chunks, which are what a client reads at a time: one per event, or of a fixed size.
struct Chunks<'a> {
    delivery: &'a Delivery<'a>,
    size: Option<usize>,
    held: Vec<u8>,
}

impl Chunks<'_> {
    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        let Some(size) = self.size else {
            return self.flush();
        };
        while self.held.len() >= size {
            let rest = self.held.split_off(size);
            let piece = std::mem::replace(&mut self.held, rest);
            self.write(&piece)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            Ok(())
        } else {
            self.write(&held)
        }
    }

    fn write(&self, piece: &[u8]) -> io::Result<()> {
        let frame = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        self.delivery.send(&frame)
    }
}
