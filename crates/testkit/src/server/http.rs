//! The part of HTTP/1.1 that the model server needs: reading requests, and the heads of answers.

use std::io::{self, BufRead, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::request::Request;

const HEAD_LIMIT: u64 = 64 * 1024;
const BODY_LIMIT: usize = 32 * 1024 * 1024;

/// Why there is no request.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// The connection ended or was silent for too long.
    Lost(io::Error),
    /// The request is to be refused with this status and reason.
    Refused(u16, &'static str),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// Reads one request; there is none if the client closed the connection in good order.
pub(super) fn read_request(
    reader: &mut impl BufRead,
    mut stream: &TcpStream,
) -> Result<Option<Request>, Unreadable> {
    let mut head = reader.take(HEAD_LIMIT);
    let Some(first) = read_line(&mut head)? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(path), Some("HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Unreadable::Refused(
            400,
            "the request line is not one of HTTP/1.1",
        ));
    };
    let mut headers = Vec::new();
    loop {
        let line = read_line(&mut head)?.ok_or(Unreadable::Refused(431, "the head does not end"))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or(Unreadable::Refused(400, "a header has no colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: Value::Null,
        at: Instant::now(),
    };
    if request
        .header("expect")
        .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = read_body(reader, &request)?;
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    request.at = Instant::now();
    Ok(Some(request))
}

fn read_body(reader: &mut impl BufRead, request: &Request) -> Result<Vec<u8>, Unreadable> {
    const TOO_LARGE: Unreadable = Unreadable::Refused(413, "the body is larger than 32 MiB");
    let mut body = Vec::new();
    if request
        .header("transfer-encoding")
        .is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    {
        loop {
            let line = read_line(&mut reader.take(HEAD_LIMIT))?.unwrap_or_default();
            let digits = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(digits.trim(), 16)
                .map_err(|_| Unreadable::Refused(400, "the size of a chunk is not a number"))?;
            if body.len().saturating_add(size) > BODY_LIMIT {
                return Err(TOO_LARGE);
            }
            read_exactly(reader, size, &mut body)?;
            // The line after a chunk is empty, and so is the one after the last chunk but for trailers.
            while read_line(&mut reader.take(HEAD_LIMIT))?.is_some_and(|line| size == 0 && !line.is_empty()) {
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }
    if let Some(length) = request.header("content-length") {
        let length = length
            .parse()
            .map_err(|_| Unreadable::Refused(400, "the length is not a number"))?;
        if length > BODY_LIMIT {
            return Err(TOO_LARGE);
        }
        read_exactly(reader, length, &mut body)?;
    }
    Ok(body)
}

fn read_exactly(reader: &mut impl BufRead, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
    let read = reader
        .take(u64::try_from(length).unwrap_or(u64::MAX))
        .read_to_end(into)?;
    if read == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Reads a line without its end; there is none at the end of the input or of its limit.
fn read_line(reader: &mut impl BufRead) -> Result<Option<String>, Unreadable> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return if line.is_empty() {
            Ok(None)
        } else {
            Err(Unreadable::Refused(400, "a line does not end"))
        };
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line)
        .map(Some)
        .map_err(|_| Unreadable::Refused(400, "the head is not UTF-8"))
}

/// Writes the head of an answer: the given headers, and those of `own` that are not among them.
pub(super) fn head(code: u16, given: &[(String, String)], own: &[(&str, String)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {code} {}\r\n", reason(code));
    let missing = own
        .iter()
        .filter(|(name, _)| !given.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    let given = given.iter().map(|(name, value)| (name.as_str(), value));
    for (name, value) in given.chain(missing.map(|(name, value)| (*name, value))) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn reason(code: u16) -> &'static str {
    match code {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

/// Makes the closing of the socket a reset, which the client sees as an error and not as an end.
pub(super) fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_linger(
        stream,
        Some(Duration::ZERO),
    )?)
}
