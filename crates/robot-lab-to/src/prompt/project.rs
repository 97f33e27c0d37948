//! What the prompt says of the project: the user's instructions, the repository's `AGENTS.md`, and its files. It is
//! made once, from the commit that a run starts from, so that it is the same in every iteration.

use super::listing::listing;
use crate::workspace::{GitError, Listed, Oid, RunRepo};

/// The repository's word on how to work on it.
const AGENTS: &str = "AGENTS.md";
/// Bytes of it that a prompt holds.
const MAX_AGENTS: usize = 8 * 1024;
/// Longest instructions of a user, in bytes.
pub const MAX_INSTRUCTIONS: usize = 32 * 1024;

/// The project, as prompts tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Marks the ends of what the repository says. Whoever wrote that could not know it.
    pub mark: String,
    /// What the user wants every robot to know.
    pub instructions: Option<String>,
    /// The beginning of `AGENTS.md`, with a note where it was cut.
    pub agents: Option<String>,
    /// The list of files.
    pub files: Option<String>,
}

impl Project {
    /// Reads what the commit `base` says. `files` is the list of its files.
    pub(crate) async fn read(
        zones: &RunRepo,
        base: &Oid,
        files: &Listed,
        instructions: Option<&str>,
        mark: &str,
    ) -> Result<Self, GitError> {
        let agents = zones.file_head(base, AGENTS, MAX_AGENTS).await?;
        Ok(Self {
            mark: mark.to_owned(),
            instructions: instructions.map(str::to_owned),
            agents: agents.and_then(|head| excerpt(&head.bytes, head.size)),
            files: Some(listing(&files.paths, files.truncated)).filter(|text| !text.is_empty()),
        })
    }
}

/// The beginning of a text, up to the end of a character.
fn excerpt(bytes: &[u8], size: u64) -> Option<String> {
    let cut = size > bytes.len() as u64;
    let mut text = String::from_utf8_lossy(bytes).replace('\0', "");
    if cut {
        // Half a character at the end is no fault of the file.
        text.truncate(text.trim_end_matches('\u{fffd}').len());
    }
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(if cut {
        format!("{text}\n[cut here: the file has {size} bytes; read the rest yourself]")
    } else {
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_says_where_it_was_cut() {
        assert_eq!(excerpt(b"use tabs\n", 9).as_deref(), Some("use tabs"));
        assert_eq!(excerpt(b" \n", 2), None);
        let cut = excerpt("é".as_bytes().get(..1).unwrap(), 2);
        assert_eq!(cut, None);
        let cut = excerpt(&"aé".as_bytes()[..2], 30_000).unwrap();
        assert_eq!(
            cut,
            "a\n[cut here: the file has 30000 bytes; read the rest yourself]"
        );
    }
}
