//! Where settings are read from: the effects of the cascade.

use super::ConfigError;
use super::setting::PREFIX;
use robot_lab_to::workspace::{Git, HostEnv, Ledger};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Most bytes of a file of settings.
const MAX_BYTES: u64 = 256 * 1024;
/// The file of a repository, at its top.
const IN_REPOSITORY: &str = "robot-to.yml";
/// The user's file, in the directory of their configuration.
const OF_USER: &str = "robot_lab/to.yml";

/// Where settings are read from.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// The user's file, whether it exists or not; `None` when nothing says where it would be.
    pub(crate) user: Option<PathBuf>,
    /// The repository's file, whether it exists or not; or why there is no repository.
    pub(crate) repository: Result<PathBuf, String>,
    /// The variables that begin with the prefix.
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl Default for Sources {
    /// None at all.
    fn default() -> Self {
        Self {
            user: None,
            repository: Err("it was not looked for".into()),
            variables: Vec::new(),
        }
    }
}

/// Finds out where settings are read from.
pub(crate) async fn gather(cwd: &Path) -> Sources {
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| name.as_bytes().starts_with(PREFIX.as_bytes()))
        .collect();
    variables.sort();
    Sources {
        user: user_file(|name| std::env::var_os(name)),
        repository: top(cwd).await.map(|top| top.join(IN_REPOSITORY)),
        variables,
    }
}

/// The top of the checkout; whatever is wrong with it is said by the command that needs it.
async fn top(cwd: &Path) -> Result<PathBuf, String> {
    let git = Git::find(&HostEnv::new(std::env::vars_os()))
        .await
        .map_err(|error| error.to_string())?;
    Ledger::find_top(&git, cwd).await.map_err(|error| {
        let said = error.to_string();
        said.split(';').next().unwrap_or_default().to_owned()
    })
}

/// The user's file: below `$XDG_CONFIG_HOME`, or its usual place. A relative path counts as none.
fn user_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    config.map(|config| config.join(OF_USER))
}

/// The text of a file; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let failed = |reason: String| ConfigError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    // Looked at before it is opened, as a pipe would never end.
    match std::fs::metadata(path) {
        Ok(about) if about.is_file() => {}
        Ok(_) => return Err(failed("it is not a regular file".into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if path.is_symlink() {
                return Err(failed("it is a link that leads nowhere".into()));
            }
            let misnamed = path.with_extension("yaml");
            if misnamed.exists() {
                let name = path.file_name().unwrap_or(OsStr::new(IN_REPOSITORY));
                return Err(ConfigError::Unreadable {
                    path: misnamed,
                    reason: format!("settings are read from {}; rename it", name.display()),
                });
            }
            return Ok(None);
        }
        Err(error) => return Err(failed(format!("it cannot be read: {error}"))),
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| failed(format!("it cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failed(format!("it has more than {MAX_BYTES} bytes")));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let before = error
                .as_bytes()
                .get(..error.utf8_error().valid_up_to())
                .unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            Err(failed(format!("line {line} is not UTF-8")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_file_is_below_the_directory_of_their_configuration() {
        let find = |xdg: Option<&str>, home: Option<&str>| {
            user_file(|name| if name == "HOME" { home } else { xdg }.map(OsString::from))
        };
        for (xdg, home, expected) in [
            (Some("/xdg"), Some("/home/u"), Some("/xdg/robot_lab/to.yml")),
            (
                Some("relative"),
                Some("/home/u"),
                Some("/home/u/.config/robot_lab/to.yml"),
            ),
            (
                Some(""),
                Some("/home/u"),
                Some("/home/u/.config/robot_lab/to.yml"),
            ),
            (None, Some("/home/u"), Some("/home/u/.config/robot_lab/to.yml")),
            (None, Some("u"), None),
            (None, None, None),
        ] {
            assert_eq!(find(xdg, home), expected.map(PathBuf::from), "{xdg:?} {home:?}");
        }
    }
}
