//! What goes over the wire to a provider and back, on standard error, for `--debug`.

use super::printable;
use robot_lab::counted;
use robot_lab_providers::{Exchange, ExchangeObserver};
use robot_lab_to::event::Redactor;
use robot_lab_to::shell::head_and_tail;
use std::io::{IsTerminal as _, Write as _};

/// The most of a body that is shown, in bytes.
const MAX_BODY: usize = 8 * 1024;

/// Prints exchanges with a provider.
pub(crate) struct Debug {
    redactor: Redactor,
    terminal: bool,
}

impl Debug {
    /// A surface that shows none of these secrets.
    pub(crate) fn new(secrets: Vec<String>) -> Self {
        Self {
            redactor: Redactor::new(secrets),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// The exchange as it is shown.
    fn text(&self, exchange: Exchange) -> String {
        let (head, body) = match exchange {
            Exchange::Request {
                number,
                address,
                body,
                ..
            } => (
                format!("debug {number} > POST {address}, {}", counted(body.len(), "byte")),
                body,
            ),
            Exchange::Answer {
                number, status: None, ..
            } => return format!("debug {number} < no answer\n"),
            Exchange::Answer {
                number,
                status: Some(status),
                body,
                bytes,
                ..
            } => (
                format!("debug {number} < {status}, {}", counted(bytes, "byte")),
                body,
            ),
        };
        // Secrets first: a cut through one would leave a half of it.
        let body = head_and_tail(&self.redactor.text(body), MAX_BODY);
        format!("{head}\n{}\n", printable(body.trim_end()))
    }
}

impl ExchangeObserver for Debug {
    fn exchange(&self, exchange: Exchange) {
        // Takes the place of the line that shows progress.
        let before = if self.terminal { "\r\x1b[2K" } else { "" };
        let text = self.text(exchange);
        drop(write!(std::io::stderr().lock(), "{before}{text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_capped_and_hold_neither_secrets_nor_what_steers_a_terminal() {
        let debug = Debug::new(vec!["hush-hush-hush".into()]);
        let body = format!("hush-hush-hush \x1b[2J{}", "x".repeat(100_000));
        for exchange in [
            Exchange::Request {
                model: "p/m".into(),
                number: 1,
                address: "http://h/".into(),
                body: body.clone(),
            },
            Exchange::Answer {
                model: "p/m".into(),
                number: 1,
                address: String::new(),
                status: Some(200),
                headers: Vec::new(),
                body,
                bytes: 100_000,
            },
        ] {
            let shown = debug.text(exchange);
            assert!(shown.len() < MAX_BODY + 200, "{}", shown.len());
            assert!(
                shown.starts_with("debug 1 ") && shown.contains("\n[redacted] ^[[2Jxx"),
                "{shown}"
            );
            assert!(shown.contains("bytes left out"), "{shown}");
        }
    }

    #[test]
    fn a_request_without_an_answer_says_so() {
        let exchange = Exchange::Answer {
            model: "p/m".into(),
            number: 2,
            address: String::new(),
            status: None,
            headers: Vec::new(),
            body: String::new(),
            bytes: 0,
        };
        assert_eq!(Debug::new(vec![]).text(exchange), "debug 2 < no answer\n");
    }
}
