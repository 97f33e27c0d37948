//! `notes.md`: what one iteration leaves for the next. People may write in it too; their lines stay.

mod digest;
mod entry;

pub use digest::digest;
pub use entry::{entry, header};

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes of the notes, from their end, that are looked at for a prompt.
const MAX_READ: u64 = 1024 * 1024;

/// The end of the notes.
pub fn read(path: &Path) -> io::Result<String> {
    // Without waiting, should somebody have put a FIFO there.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(MAX_READ)))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds to the end of the notes, in one write.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(text.as_bytes())
}
