//! What people and programs see of a run.

mod jsonl;
mod plain;
mod summary;

pub(crate) use jsonl::Jsonl;
pub(crate) use plain::Plain;
pub(crate) use summary::summary;

use std::io::IsTerminal as _;

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

    /// Something important.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
}
