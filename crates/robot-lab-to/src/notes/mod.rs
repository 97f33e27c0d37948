//! `notes.md`: what one iteration leaves for the next. People may write in it too; their lines stay.

mod digest;
mod entry;

pub use digest::digest;
pub use entry::{entry, header};

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

/// Adds to the end of the notes, in one write.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(text.as_bytes())
}
