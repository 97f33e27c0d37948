//! Bytes into the data of events, wherever they are split: server-sent events, or one JSON value per line.

use super::Fault;
use serde::de::IgnoredAny;

/// The most that one event may hold, in bytes.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// How a stream is cut into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events, of which only the data counts.
    Events,
    /// One value per line.
    Lines,
}

/// A stream on its way.
#[derive(Debug)]
pub(super) struct Frames {
    framing: Framing,
    /// The line that has not ended.
    line: Vec<u8>,
    /// The data of the event that has not ended, or of an answer that is no stream.
    data: Option<String>,
    /// Whether the last byte was a carriage return, which a line feed may complete.
    after_return: bool,
    /// Whether any line has ended.
    begun: bool,
    /// Whether the answer is one JSON value in place of a stream.
    whole: bool,
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            data: None,
            after_return: false,
            begun: false,
            whole: false,
        }
    }

    /// Whether the answer is one JSON value in place of a stream.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Takes the next bytes and gives the events that they end.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, Fault> {
        let mut ended = Vec::new();
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let end = match self.framing {
                Framing::Events => memchr::memchr2(b'\n', b'\r', rest),
                Framing::Lines => memchr::memchr(b'\n', rest),
            };
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.line.extend_from_slice(line);
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > MAX_EVENT {
                return Err(Fault::malformed(format!(
                    "an event is longer than {MAX_EVENT} bytes"
                )));
            }
            if let Some(mark) = after.first() {
                self.after_return = *mark == b'\r';
                ended.extend(self.end_line()?);
            }
            rest = after.get(1..).unwrap_or_default();
        }
        Ok(ended)
    }

    /// The end of the stream: what it left open counts as ended.
    pub(super) fn finish(&mut self) -> Result<Vec<String>, Fault> {
        let mut ended = Vec::new();
        if !self.line.is_empty() {
            ended.extend(self.end_line()?);
        }
        ended.extend(self.end_event());
        Ok(ended)
    }

    fn end_line(&mut self) -> Result<Option<String>, Fault> {
        let line = String::from_utf8(std::mem::take(&mut self.line))
            .map_err(|_| Fault::malformed("it is not valid UTF-8"))?;
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        } else {
            &line
        };
        let opens = first && line.trim_start().starts_with(['{', '[']);
        self.whole |= match self.framing {
            Framing::Events => opens,
            // A value that goes on in the next line.
            Framing::Lines => opens && serde_json::from_str::<IgnoredAny>(line).is_err(),
        };
        if self.framing == Framing::Lines && !self.whole {
            return Ok(Some(line.trim().to_owned()).filter(|line| !line.is_empty()));
        }
        if self.whole {
            self.append(line);
            return Ok(None);
        }
        if line.is_empty() {
            return Ok(self.end_event());
        }
        // Everything else is a comment, or a field that says nothing about the reply.
        if let Some(data) = line.strip_prefix("data") {
            match data.strip_prefix(':') {
                Some(data) => self.append(data.strip_prefix(' ').unwrap_or(data)),
                None if data.is_empty() => self.append(""),
                None => {}
            }
        }
        Ok(None)
    }

    fn append(&mut self, line: &str) {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(line);
            }
            None => self.data = Some(line.to_owned()),
        }
    }

    fn end_event(&mut self) -> Option<String> {
        self.data.take().filter(|data| !data.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(framing: Framing, bytes: &[u8], at_a_time: usize) -> Vec<String> {
        let mut frames = Frames::new(framing);
        let mut read = Vec::new();
        for piece in bytes.chunks(at_a_time) {
            read.extend(frames.push(piece).unwrap());
        }
        read.extend(frames.finish().unwrap());
        read
    }

    #[test]
    fn events_are_the_same_wherever_they_are_split() {
        for (text, expected) in [
            ("data: a\n\ndata:b\n\n", vec!["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", vec!["a", "b"]),
            ("data: a\r\rdata: b\r\r", vec!["a", "b"]),
            (
                "\u{feff}: hello\nevent: x\nid: 1\ndata: é👩‍🚀\ndata: b\n\n\n\n:\n",
                vec!["é👩‍🚀\nb"],
            ),
            ("data: a\n\ndata: b", vec!["a", "b"]),
            ("data\n\ndata:\n\ndatum: x\nretry: 3\n\n", vec![]),
            ("{\"error\":\n {}}\n", vec!["{\"error\":\n {}}"]),
            (" [1,\n\n2]", vec![" [1,\n\n2]"]),
            ("<html>\n<p>data: x", vec![]),
            ("", vec![]),
        ] {
            for at_a_time in 1..=text.len().max(1) {
                assert_eq!(
                    read(Framing::Events, text.as_bytes(), at_a_time),
                    expected,
                    "{at_a_time}: {text:?}"
                );
            }
        }
    }

    #[test]
    fn a_value_in_many_lines_is_one_in_place_of_a_stream() {
        for text in ["{\n  \"a\": 1\n}\n", "[{},\n{}]", "{"] {
            for at_a_time in 1..=text.len() {
                assert_eq!(
                    read(Framing::Lines, text.as_bytes(), at_a_time),
                    [text.trim_end()]
                );
            }
        }
    }

    #[test]
    fn lines_are_the_same_wherever_they_are_split() {
        let text = "{\"é\":1}\n\n{\"b\":\"\\r\"}\r\n {} \n{\"last\":1}";
        for at_a_time in 1..=text.len() {
            assert_eq!(
                read(Framing::Lines, text.as_bytes(), at_a_time),
                ["{\"é\":1}", "{\"b\":\"\\r\"}", "{}", "{\"last\":1}"]
            );
        }
    }

    #[test]
    fn what_is_no_text_or_has_no_end_is_refused() {
        for framing in [Framing::Events, Framing::Lines] {
            assert!(Frames::new(framing).push(b"data: \xff\n").is_err());
            let mut frames = Frames::new(framing);
            let half = vec![b'x'; MAX_EVENT / 2 + 1];
            frames.push(&half).unwrap();
            assert!(frames.push(&half).is_err());
        }
        let mut frames = Frames::new(Framing::Events);
        let line = [b"data: ".as_slice(), &vec![b'x'; MAX_EVENT / 2], b"\n"].concat();
        frames.push(&line).unwrap();
        assert!(
            frames.push(&[line.as_slice(), line.as_slice()].concat()).is_err(),
            "also in many lines"
        );
    }
}
