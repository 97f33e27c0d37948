//! The text of git's own files that a run writes itself: `config` and `objects/info/alternates`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::discover::Setting;

/// A configuration file in the making.
#[derive(Debug)]
pub(super) struct Config {
    text: Vec<u8>,
}

impl Config {
    /// The object format, and the settings of the user that are passed on.
    pub(super) fn new(format: &str, settings: &[Setting]) -> Self {
        let mut config = Self { text: Vec::new() };
        if format == "sha1" {
            config.set("core", None, "repositoryformatversion", b"0");
        } else {
            config.set("core", None, "repositoryformatversion", b"1");
            config.set("extensions", None, "objectformat", format.as_bytes());
        }
        for Setting { key, value } in settings {
            if let Some(name) = key.strip_prefix("core.") {
                config.set("core", None, name, value);
            } else if let Some(name) = key.strip_prefix("filter.lfs.") {
                config.set("filter", Some("lfs"), name, value);
                // Objects that are not on this machine stay pointers; nothing is fetched.
                config.set("lfs", None, "fetchexclude", b"*");
            }
        }
        config
    }

    /// For a repository without files.
    pub(super) fn bare(mut self) -> Self {
        self.set("core", None, "bare", b"true");
        self
    }

    /// For the throw-away repository that a robot works in.
    pub(super) fn robot(mut self) -> Self {
        self.set("core", None, "bare", b"false");
        self.set("user", None, "name", b"robot");
        self.set("user", None, "email", b"robot@localhost");
        self.set("commit", None, "gpgsign", b"false");
        self.set("gc", None, "auto", b"0");
        self
    }

    pub(super) fn text(self) -> Vec<u8> {
        self.text
    }

    fn set(&mut self, section: &str, subsection: Option<&str>, name: &str, value: &[u8]) {
        let header = subsection.map_or_else(
            || format!("[{section}]\n\t"),
            |sub| format!("[{section} \"{sub}\"]\n\t"),
        );
        self.text.extend_from_slice(header.as_bytes());
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b" = \"");
        for byte in value {
            match byte {
                b'"' | b'\\' => self.text.extend_from_slice(&[b'\\', *byte]),
                b'\n' => self.text.extend_from_slice(b"\\n"),
                other => self.text.push(*other),
            }
        }
        self.text.extend_from_slice(b"\"\n");
    }
}

/// One line of an alternates file; quoted as in C when the path needs it.
pub(super) fn alternates_line(objects: &Path) -> Vec<u8> {
    let path = objects.as_os_str().as_bytes();
    let mut line = Vec::with_capacity(path.len() + 3);
    if path
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\\' | 0..=b' ' | 0x7f..))
    {
        line.push(b'"');
        for byte in path {
            match byte {
                b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
                b' '..=b'~' => line.push(*byte),
                other => line.extend_from_slice(format!("\\{other:03o}").as_bytes()),
            }
        }
        line.push(b'"');
    } else {
        line.extend_from_slice(path);
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let settings = [Setting {
            key: "filter.lfs.clean".into(),
            value: b"a \"b\" \\ # ; \n -- %f".to_vec(),
        }];
        let text = String::from_utf8(Config::new("sha256", &settings).text()).unwrap();
        assert!(text.contains("objectformat = \"sha256\""));
        assert!(
            text.contains("[filter \"lfs\"]\n\tclean = \"a \\\"b\\\" \\\\ # ; \\n -- %f\"\n"),
            "{text}"
        );
    }

    #[test]
    fn alternates_are_quoted_only_when_needed() {
        assert_eq!(alternates_line(Path::new("/a/b.git")), b"/a/b.git\n");
        assert_eq!(
            alternates_line(Path::new("/a b/\n\u{e9}\"")),
            b"\"/a b/\\012\\303\\251\\\"\"\n"
        );
    }
}
