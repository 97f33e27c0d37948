//! What people and programs see of a run.

mod attempts;
mod cost;
mod debug;
mod findings;
mod jsonl;
mod page;
mod plain;
mod ready;
mod report;
mod status;
mod summary;
mod wrap;

pub(crate) use attempts::Row;
pub(crate) use cost::money;
pub(crate) use debug::Debug;
pub(crate) use findings::{Finding, Level};
pub(crate) use jsonl::Jsonl;
pub(crate) use page::{Made, Page};
pub(crate) use plain::Plain;
pub(crate) use ready::Ready;
pub(crate) use report::markdown;
pub(crate) use status::{Places, Status};
pub(crate) use summary::summary;

use robot_lab::counted;
use robot_lab_to::commit_message::{one_line, steers};
use robot_lab_to::iteration::RunState;
use robot_lab_to::workspace::DiffStat;
use std::io::IsTerminal as _;

/// A time so near is shown to the second.
const NEAR: jiff::SignedDuration = jiff::SignedDuration::from_mins(2);

/// How much a change changes.
pub(crate) fn extent(stat: &DiffStat) -> String {
    format!(
        "+{} −{} in {}",
        stat.added,
        stat.removed,
        counted(stat.files, "file")
    )
}

/// A text of several lines in which everything that would steer a terminal is spelled out.
pub(crate) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => clean.push(c),
            // As terminals echo them: escape is ^[.
            '\0'..='\x1f' => clean.extend(['^', char::from(c as u8 ^ 0x40)]),
            c if steers(c) => clean.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => clean.push(c),
        }
    }
    clean
}

/// A text as one word of a shell command.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A time as a clock on the wall here shows it: with its date unless that is today's, and with seconds when it is near.
pub(crate) fn local(at: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let zone = jiff::tz::TimeZone::system();
    let is_near = at.duration_since(now).abs() < NEAR;
    let (at, now) = (at.to_zoned_datetime(zone.clone()), now.to_zoned_datetime(zone));
    let format = match at.date() == now.date() {
        _ if is_near => "%H:%M:%S",
        true => "%H:%M",
        false => "%Y-%m-%d %H:%M",
    };
    at.strftime(format).to_string()
}

/// How often each model answered, when it was more than one.
pub(crate) fn answers(state: &RunState) -> Option<String> {
    let each = state
        .answers
        .iter()
        .map(|(model, count)| format!("{} {count}", one_line(model)));
    (state.answers.len() > 1).then(|| each.collect::<Vec<_>>().join(", "))
}

/// How long providers were waited for.
pub(crate) fn waited(state: &RunState) -> String {
    format!("{} for providers", plain::lasted(state.waited_ms))
}

/// How to write to a terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// Colours for standard error, when it is a terminal and nobody asked for none.
    pub(crate) fn for_stderr(no_colour: bool) -> Self {
        Self {
            colour: std::io::stderr().is_terminal() && !no_colour,
        }
    }

    /// Colours for standard output, when it is a terminal and nobody asked for none.
    pub(crate) fn for_stdout(no_colour: bool) -> Self {
        Self {
            colour: std::io::stdout().is_terminal() && !no_colour,
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Something good.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Something bad.
    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Something less important.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// A place in a file.
    pub(crate) fn place(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// Something important.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_spelled_out() {
        assert_eq!(
            printable("a\x1b[2J\r\n\tb\u{7f}\u{9b}31m\u{202e}\u{61c}é"),
            "a^[[2J^M\n\tb<U+007F><U+009B>31m<U+202E><U+061C>é"
        );
    }

    #[test]
    fn a_word_of_a_shell_stays_one_word() {
        for (text, expected) in [
            ("/tmp/x-1", "/tmp/x-1"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), expected);
        }
    }
}
