//! One record as one line of the log, and back.
//!
//! A line is a flat JSON object: `event`, `ts`, `seq`, `iteration`, the event's own keys, and last `crc`, the CRC-32
//! (IEEE) in hexadecimal of the bytes before `,"crc"`.

use super::{Event, Record};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// Longest line that is written or read, in bytes. Texts in events are clipped long before.
const MAX_LINE: usize = 4 * 1024 * 1024;
const CRC_KEY: &str = ",\"crc\":\"";

/// A line that is not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The bytes are not what was written.
    #[error("the checksum does not match: the line was changed or is torn")]
    Checksum,
    /// It is no object with the keys that every line has.
    #[error("not a log line: {0}")]
    Malformed(String),
    /// An event that this version does not know. Readers pass over it.
    #[error("unknown event `{0}`")]
    Unknown(String),
}

/// The line of a record, without a line feed.
pub fn to_line(record: &Record) -> Result<String, LineError> {
    let malformed = |error: serde_json::Error| LineError::Malformed(error.to_string());
    let Value::Object(mut own) = serde_json::to_value(&record.event).map_err(malformed)? else {
        return Err(LineError::Malformed("an event is an object".into()));
    };
    let mut line = Map::new();
    line.insert("event".into(), own.shift_remove("event").unwrap_or_default());
    line.insert("ts".into(), format!("{:.3}", record.ts).into());
    line.insert("seq".into(), record.seq.into());
    line.insert("iteration".into(), record.iteration.into());
    line.extend(own);
    let mut text = Value::Object(line).to_string();
    text.pop();
    let crc = crc32fast::hash(text.as_bytes());
    text.push_str(&format!("{CRC_KEY}{crc:08x}\"}}"));
    if text.len() > MAX_LINE {
        return Err(LineError::Malformed(format!("longer than {MAX_LINE} bytes")));
    }
    Ok(text)
}

/// The record of a line.
pub fn parse_line(line: &[u8]) -> Result<Record, LineError> {
    if line.len() > MAX_LINE {
        return Err(LineError::Malformed(format!("longer than {MAX_LINE} bytes")));
    }
    let text = std::str::from_utf8(line).map_err(|_| LineError::Checksum)?;
    let (body, crc) = text.rsplit_once(CRC_KEY).ok_or(LineError::Checksum)?;
    if crc != format!("{:08x}\"}}", crc32fast::hash(body.as_bytes())) {
        return Err(LineError::Checksum);
    }
    let mut map: Map<String, Value> = serde_json::from_str(&format!("{body}}}"))
        .map_err(|error| LineError::Malformed(error.to_string()))?;
    let ts: Timestamp = take(&mut map, "ts")?;
    let seq = take(&mut map, "seq")?;
    let iteration = take(&mut map, "iteration")?;
    let name = map
        .get("event")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match serde_json::from_value::<Event>(Value::Object(map)) {
        Ok(event) => Ok(Record {
            seq,
            ts,
            iteration,
            event,
        }),
        Err(error)
            if error
                .to_string()
                .starts_with(&format!("unknown variant `{name}`")) =>
        {
            Err(LineError::Unknown(name))
        }
        Err(error) => Err(LineError::Malformed(format!("{name}: {error}"))),
    }
}

fn take<T: serde::de::DeserializeOwned>(map: &mut Map<String, Value>, key: &str) -> Result<T, LineError> {
    let value = map.shift_remove(key).unwrap_or_default();
    serde_json::from_value(value).map_err(|error| LineError::Malformed(format!("`{key}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(message: &str) -> Record {
        let ts = "2026-11-30T02:03:04.005Z".parse().unwrap();
        Record {
            seq: 7,
            ts,
            iteration: 2,
            event: Event::Notice {
                message: message.into(),
            },
        }
    }

    #[test]
    fn a_line_is_flat_and_starts_with_event_and_ts() {
        let line = to_line(&record("hi")).unwrap();
        assert_eq!(
            line,
            r#"{"event":"notice","ts":"2026-11-30T02:03:04.005Z","seq":7,"iteration":2,"message":"hi","crc":"1143fddf"}"#
        );
    }

    #[test]
    fn an_unknown_event_is_told_apart_from_a_broken_line() {
        let body = r#"{"event":"moon:phase","ts":"2026-11-30T02:03:04.005Z","seq":7,"iteration":2"#;
        let line = format!("{body},\"crc\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()));
        assert_eq!(
            parse_line(line.as_bytes()),
            Err(LineError::Unknown("moon:phase".into()))
        );
        assert_eq!(parse_line(b"{}"), Err(LineError::Checksum));
    }

    proptest! {
        #[test]
        fn every_record_survives_and_every_flipped_byte_is_noticed(message in ".*", at in any::<prop::sample::Index>(), to in any::<u8>()) {
            let record = record(&message);
            let line = to_line(&record).unwrap();
            prop_assert_eq!(parse_line(line.as_bytes()), Ok(record));
            let mut bytes = line.clone().into_bytes();
            let i = at.index(bytes.len());
            prop_assume!(bytes[i] != to);
            bytes[i] = to;
            prop_assert!(parse_line(&bytes).is_err());
            let cut = at.index(line.len());
            prop_assert!(parse_line(&line.as_bytes()[..cut]).is_err());
        }
    }
}
