//! What can be wrong with a file or a variable of settings.

use crate::error::CliError;
use robot_lab_to::commit_message::clip;
use std::fmt;
use std::path::PathBuf;

/// Most characters of a value that an error repeats.
const MAX_VALUE: usize = 80;

/// Where a setting is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a file, in this line where it is known.
    File(PathBuf, Option<u64>),
    /// In this variable.
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, Some(line)) => write!(f, "{}, line {line}", path.display()),
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "the variable {name}"),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// No setting has this name.
    #[error("{place}: there is no setting {key:?}")]
    Unknown {
        place: Place,
        key: String,
        /// The name that was probably meant, as it is written there.
        nearest: Option<String>,
    },
    /// A secret, which settings do not hold.
    #[error("{place}: {key:?} looks like a secret, and a secret is no setting")]
    Secret { place: Place, key: String },
    /// A setting without a value.
    #[error("{place}: {key} has no value")]
    Empty { place: Place, key: String },
    /// No list of texts where one should be.
    #[error("{place}: {key} is a list of texts, and this is something else")]
    NoList { place: Place, key: String },
    /// Several values where one should be.
    #[error("{place}: {key} is one value, and this is a list or a mapping")]
    Several { place: Place, key: String },
    /// A value that the flag does not take.
    #[error("{place}: {key} cannot be {:?}: {reason}", clip(value, MAX_VALUE))]
    Invalid {
        place: Place,
        key: String,
        value: String,
        reason: String,
    },
    /// A value that is no text.
    #[error("{0}: the value is not UTF-8")]
    NotText(Place),
    /// A setting that the repository's file may not have.
    #[error("{place}: {key} cannot be set by a repository: {why}")]
    OnlyTheUser {
        place: Place,
        key: String,
        variable: String,
        why: &'static str,
    },
    /// Not YAML, or not a mapping.
    #[error("{place}: {message}")]
    Syntax { place: Place, message: String },
    /// A file that cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
}

impl ConfigError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown {
                nearest: Some(nearest), ..
            } => format!("did you mean {nearest}?"),
            Self::Unknown { nearest: None, .. } => "every setting is a flag as well: robot-to --help".into(),
            Self::Secret { .. } => {
                "a provider's key comes from the variable of its provider, such as OPENAI_API_KEY; a key that was \
                 written to a file that others see is best replaced"
                    .into()
            }
            Self::Empty { .. } => "give it a value, or take the line out".into(),
            Self::NoList { key, .. } => format!("a list is written as `{key}: [one, \"two words\"]`"),
            Self::OnlyTheUser { key, variable, .. } => {
                format!("set {key} in robot_lab/to.yml of your own configuration, by {variable}, or by its flag")
            }
            _ => return None,
        })
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let said = Self::configuration(format!("{error}; nothing was changed"));
        match error.hint() {
            Some(hint) => said.hint(hint),
            None => said,
        }
    }
}
