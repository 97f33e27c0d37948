//! Reads the file of `--instructions`, which becomes a part of the plan.

use crate::error::CliError;
use robot_lab_to::prompt::MAX_INSTRUCTIONS;
use std::io::Read as _;
use std::path::Path;

/// The text of the file, which has to be UTF-8, not empty, and short enough for a prompt.
pub(super) fn read(path: &Path, cwd: &Path) -> Result<String, CliError> {
    let failed = |why: &str| {
        CliError::configuration(format!(
            "the instructions {} {why}; nothing was changed",
            path.display()
        ))
        .hint("--instructions names a text file that is added to what every robot is told")
    };
    let bytes = bytes(&cwd.join(path)).map_err(|error| failed(&format!("cannot be read: {error}")))?;
    if bytes.len() > MAX_INSTRUCTIONS {
        return Err(failed(&format!("are longer than {MAX_INSTRUCTIONS} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| failed("are not UTF-8 text"))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(failed("are empty"));
    }
    Ok(text.to_owned())
}

fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let most = MAX_INSTRUCTIONS as u64 + 1;
    std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
