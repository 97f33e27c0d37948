//! Looks at a commit in the run repository: the beginning of one file, and the names and sizes of all.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use super::git_call::LONG_TIMEOUT;
use super::{GitError, Oid, RunRepo};

/// Bytes of a list of files that are read.
const MAX_LIST: usize = 64 << 20;
/// Most filters that are named.
const MAX_FILTERS: usize = 20;
/// Room for the line before the content.
const HEAD: usize = 200;

/// The beginning of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// At most as many bytes as were asked for.
    pub bytes: Vec<u8>,
    /// Bytes of the whole file.
    pub size: u64,
}

/// The files of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Their paths from the top, in the order of git.
    pub paths: Vec<PathBuf>,
    /// Their sizes together, in bytes.
    pub bytes: u64,
    /// Whether there are more than could be read.
    pub truncated: bool,
}

impl RunRepo {
    /// The first `cap` bytes of a file of a commit. Links that stay in the tree are followed; `None` when there is no
    /// such file. `path` is one line.
    pub async fn file_head(
        &self,
        commit: &Oid,
        path: &str,
        cap: usize,
    ) -> Result<Option<FileHead>, GitError> {
        let call = self.call().args(["cat-file", "--batch", "--follow-symlinks"]);
        let read = call
            .stdin(format!("{commit}:{path}\n"))
            .first(cap + HEAD)
            .run()
            .await?;
        Ok(head(&read, cap))
    }

    /// All files of a commit.
    pub async fn list(&self, commit: &Oid) -> Result<Listed, GitError> {
        let call = self
            .call()
            .args(["ls-tree", "-r", "-l", "-z", commit.as_str()])
            .first(MAX_LIST)
            .timeout(LONG_TIMEOUT);
        let output = call.output().await?;
        if output.code != Some(0) && !output.truncated {
            return Err(GitError::Failed {
                command: "git ls-tree".to_owned(),
                code: output.code,
                stderr: output.stderr,
            });
        }
        Ok(Listed {
            truncated: output.truncated,
            ..listed(&output.stdout, output.truncated)
        })
    }
}

/// Reads `id blob size LF content`.
fn head(read: &[u8], cap: usize) -> Option<FileHead> {
    let end = read.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = read.split_at_checked(end)?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    words.next()?.parse::<Oid>().ok()?;
    if words.next()? != "blob" {
        return None;
    }
    let size: u64 = words.next()?.parse().ok()?;
    let most = usize::try_from(size).unwrap_or(usize::MAX).min(cap);
    let content = rest.get(1..)?;
    Some(FileHead {
        bytes: content.get(..most).unwrap_or(content).to_vec(),
        size,
    })
}

/// Reads `mode type id size TAB path NUL …`; a list that was cut ends with half an entry.
fn listed(read: &[u8], truncated: bool) -> Listed {
    let mut listed = Listed::default();
    let mut entries: Vec<&[u8]> = read.split(|byte| *byte == 0).collect();
    if truncated {
        entries.pop();
    }
    for entry in entries {
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let (facts, path) = entry.split_at(tab);
        let size = facts.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let size = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok());
        // A submodule has no size.
        listed.bytes = listed.bytes.saturating_add(size.unwrap_or(0_u64));
        let path = path.get(1..).unwrap_or_default().to_vec();
        listed.paths.push(OsString::from_vec(path).into());
    }
    listed
}

impl RunRepo {
    /// Names of the filters, but for LFS, that attributes of a commit give to files. Git runs such filters by the
    /// user's configuration; a run does not, so that their files are seen as they are stored.
    pub(crate) async fn foreign_filters(&self, commit: &Oid) -> Result<Vec<String>, GitError> {
        let args = [
            "grep",
            "-I",
            "-h",
            "-e",
            "filter=",
            commit.as_str(),
            "--",
            ":(glob)**/.gitattributes",
        ];
        let found = self.call().args(args).output().await?;
        match found.code {
            Some(0) => Ok(filters(&String::from_utf8_lossy(&found.stdout))),
            Some(1) => Ok(Vec::new()),
            code => Err(GitError::Failed {
                command: "git grep".to_owned(),
                code,
                stderr: found.stderr,
            }),
        }
    }
}

/// The names in lines of attributes such as `*.bin filter=lfs -text`.
fn filters(lines: &str) -> Vec<String> {
    let rules = lines.lines().filter(|line| !line.trim_start().starts_with('#'));
    let names = rules
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.strip_prefix("filter="));
    let names: std::collections::BTreeSet<&str> = names.filter(|name| *name != "lfs").collect();
    names.into_iter().take(MAX_FILTERS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_from_attributes_but_for_lfs() {
        let lines = "*.bin filter=lfs diff=lfs -text\n# *.x filter=no\nsecret.* filter=crypt diff=crypt\n*.up filter=up\n\
                     *.y -filter\n*.z filter=up\n";
        assert_eq!(filters(lines), ["crypt", "up"]);
    }

    #[test]
    fn the_head_of_a_file_is_cut_and_its_size_is_not() {
        let id = "a".repeat(40);
        let read = |text: &str, cap| head(text.as_bytes(), cap);
        let whole = read(&format!("{id} blob 5\nhello\n"), 100).unwrap();
        assert_eq!((whole.bytes.as_slice(), whole.size), (&b"hello"[..], 5));
        let cut = read(&format!("{id} blob 5\nhello\n"), 2).unwrap();
        assert_eq!((cut.bytes.as_slice(), cut.size), (&b"he"[..], 5));
        for none in [
            "",
            "x:AGENTS.md missing\n",
            &format!("{id} tree 3\nabc\n"),
            "dangling 4\nx:AG\n",
        ] {
            assert_eq!(read(none, 100), None, "{none}");
        }
    }

    #[test]
    fn lists_are_read_as_bytes_and_half_an_entry_is_dropped() {
        let id = "a".repeat(40);
        let text = format!(
            "100644 blob {id}      12\ta\nb\0160000 commit {id}       -\tsub\0100644 blob {id} 3\tcu"
        );
        let found = listed(text.as_bytes(), true);
        assert_eq!(found.paths, [PathBuf::from("a\nb"), PathBuf::from("sub")]);
        assert_eq!(found.bytes, 12);
        assert_eq!(listed(b"", false), Listed::default());
    }
}
