//! What people and programs see of a run.

mod jsonl;
mod plain;
mod summary;

pub(crate) use jsonl::Jsonl;
pub(crate) use plain::Plain;
pub(crate) use summary::summary;

use std::io::IsTerminal as _;

/// A text as one word of a shell command.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
