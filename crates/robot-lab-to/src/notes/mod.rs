//! `notes.md`: what one iteration leaves for the next. People may write in it too; their lines stay.

mod digest;
mod entry;

pub use digest::digest;
pub use entry::{entry, header};

use crate::workspace::WorkDir;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of the notes, from their end, that are looked at for a prompt.
const MAX_READ: u64 = 1024 * 1024;
/// Bytes of the notes, from their end, that robots can read.
const MAX_COPY: u64 = 8 * 1024 * 1024;

/// The end of the notes.
pub fn read(path: &Path) -> io::Result<String> {
    let (bytes, _) = end_of(path, MAX_READ)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Puts a copy of the notes where robots can read it, in place of an earlier one, and answers where. It is the whole
/// of them up to 8 MiB, then their end; nobody may write to it, and what is done to it all the same is lost.
pub fn copy_for_robots(path: &Path, work: &WorkDir) -> io::Result<PathBuf> {
    let (bytes, cut) = end_of(path, MAX_COPY)?;
    let target = work.notes();
    let mut new = tempfile::NamedTempFile::new_in(work.path())?;
    if cut {
        new.write_all(b"[the beginning of the notes is left out]\n")?;
    }
    new.write_all(&bytes)?;
    new.as_file().set_permissions(Permissions::from_mode(0o444))?;
    work.remove(&target)?;
    new.persist(&target).map_err(|error| error.error)?;
    Ok(target)
}

/// At most `max` bytes from the end of a file, and whether there are more.
fn end_of(path: &Path, max: u64) -> io::Result<(Vec<u8>, bool)> {
    // Without waiting, should somebody have put a FIFO there.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let skipped = metadata.len().saturating_sub(max);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok((bytes, skipped > 0))
}

/// Adds to the end of the notes, in one write.
pub fn append(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn robots_get_a_copy_that_is_whole_bounded_and_put_right_again() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::create(&dir.path().join("work")).unwrap();
        let notes = dir.path().join("notes.md");
        append(&notes, "one\n").unwrap();
        let copy = copy_for_robots(&notes, &work).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), b"one\n");
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o444);
        // Whatever a robot puts there.
        for spoil in 0..3 {
            fs::remove_file(&copy).unwrap();
            match spoil {
                0 => fs::create_dir_all(copy.join("deep/er")).unwrap(),
                1 => std::os::unix::fs::symlink(&notes, &copy).unwrap(),
                _ => {}
            }
            append(&notes, "two\n").unwrap();
            assert_eq!(copy_for_robots(&notes, &work).unwrap(), copy);
            assert_eq!(fs::read(&copy).unwrap(), fs::read(&notes).unwrap());
        }
        append(&notes, &"x".repeat(9 << 20)).unwrap();
        copy_for_robots(&notes, &work).unwrap();
        let size = fs::metadata(&copy).unwrap().len();
        assert!(size > 8 << 20 && size < (8 << 20) + 100, "{size}");
    }
}
