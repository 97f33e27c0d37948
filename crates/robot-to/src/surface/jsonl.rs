//! Every event as a line of JSON on standard output: the same lines as in the log.

use robot_lab_to::event::{Record, to_line};
use robot_lab_to::log::Observer;
use std::io::Write as _;

/// Prints records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jsonl;

impl Observer for Jsonl {
    fn record(&self, record: &Record) {
        if let Ok(line) = to_line(record) {
            // Nobody may be reading any more; that must not stop a run.
            drop(writeln!(std::io::stdout().lock(), "{line}"));
        }
    }
}
