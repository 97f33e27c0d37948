//! Reads a log: drops a torn last line, passes over unknown events, names a damaged line.

use crate::event::{LineError, Record, parse_line};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

/// What a log holds.
#[derive(Debug, Default)]
pub struct ReadLog {
    /// The records, in order.
    pub records: Vec<Record>,
    /// Events that this version does not know, by name.
    pub unknown: Vec<String>,
    /// Whether the last line was torn, and dropped.
    pub torn: bool,
    /// Bytes up to the end of the last whole line.
    pub whole_bytes: u64,
}

/// Reads a log. A line that is damaged anywhere but at the end is an error that names it; nothing is changed.
pub fn read_log(path: &Path) -> io::Result<ReadLog> {
    let mut log = ReadLog::default();
    let mut file = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    for index in 0.. {
        line.clear();
        if file.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        // Only a line that was not written to its end lacks its line feed. It is dropped even if nothing else is missing,
        // so that whoever goes on begins a new line. What another process adds meanwhile is not part of what was read.
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            log.torn = true;
            break;
        }
        log.whole_bytes += line.len() as u64 + 1;
        match parse_line(&line) {
            Ok(record) => log.records.push(record),
            Err(LineError::Unknown(name)) => log.unknown.push(name),
            Err(error) => {
                let text = format!(
                    "{}: line {}: {error}; nothing was changed",
                    path.display(),
                    index + 1
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, to_line};

    #[test]
    fn case_185_a_torn_last_line_is_dropped_and_a_damaged_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.log");
        let line = |seq| {
            let ts = "2026-11-30T02:03:04Z".parse().unwrap();
            to_line(&Record {
                seq,
                ts,
                iteration: 0,
                event: Event::Notice { message: "x".into() },
            })
            .unwrap()
        };
        std::fs::write(
            &path,
            format!("{}\n{}\n{}", line(1), line(2), line(3).get(..30).unwrap()),
        )
        .unwrap();
        let log = read_log(&path).unwrap();
        assert_eq!((log.records.len(), log.torn), (2, true));
        std::fs::write(
            &path,
            format!("{}\n{}\n{}\n", line(1), line(2).replace('x', "y"), line(3)),
        )
        .unwrap();
        let error = read_log(&path).unwrap_err().to_string();
        assert!(error.contains("line 2: the checksum does not match"), "{error}");
        std::fs::write(&path, format!("{}\n{}", line(1), line(2))).unwrap();
        let log = read_log(&path).unwrap();
        assert_eq!(
            (log.records.len(), log.torn),
            (1, true),
            "only its line feed makes a line whole"
        );
        std::fs::write(&path, format!("{}\n{}\n", line(1), line(2).replace('x', "y"))).unwrap();
        assert!(
            read_log(&path).is_err(),
            "a last line that was written to its end is not torn"
        );
    }
}
