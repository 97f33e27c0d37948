//! One layer of settings: what a file, the variables or the flags say, checked value by value.

use super::error::{ConfigError, Place};
use super::setting::{Kind, PREFIX, Setting, nearest};
use super::{trust, yaml};
use crate::args::is_written;
use clap::ArgMatches;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Where a layer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The user's file.
    User(PathBuf),
    /// The file of the repository.
    Repository(PathBuf),
    /// The environment.
    Variables,
    /// The command line.
    Flags,
}

/// What a layer says of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The values; one, but for a list. Of a switch `true` or `false`.
    pub(crate) words: Vec<OsString>,
    /// The line, in a file.
    pub(crate) line: Option<u64>,
}

/// What one source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) source: Source,
    /// By key.
    pub(crate) given: BTreeMap<String, Given>,
}

impl Layer {
    /// Whether it says anything of this key.
    pub(crate) fn holds(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// What a file says.
    pub(super) fn of_file(settings: &[Setting], source: Source, text: &str) -> Result<Self, ConfigError> {
        let (path, of_repository) = match &source {
            Source::User(path) => (path.clone(), false),
            Source::Repository(path) => (path.clone(), true),
            Source::Variables | Source::Flags => (PathBuf::new(), false),
        };
        let entries = yaml::mapping(text).map_err(|fault| ConfigError::Syntax {
            place: Place::File(path.clone(), fault.line),
            message: fault.message,
        })?;
        let mut given = BTreeMap::new();
        for entry in entries {
            let place = Place::File(path.clone(), entry.line);
            let setting = known(settings, &entry.key, &place, |key| key.to_owned())?;
            let mut words = words(setting, entry.value, &place)?;
            check(setting, &words, &place)?;
            if of_repository {
                words = trust::checked(setting, words, &path, &place)?;
            }
            let line = entry.line;
            given.insert(entry.key, Given { words, line });
        }
        Ok(Self { source, given })
    }

    /// What the variables say.
    pub(super) fn of_variables(
        settings: &[Setting],
        variables: &[(OsString, OsString)],
    ) -> Result<Self, ConfigError> {
        let mut given = BTreeMap::new();
        for (name, value) in variables {
            let name = name.to_string_lossy();
            let Some(rest) = name.strip_prefix(PREFIX) else {
                continue;
            };
            let place = Place::Variable(name.clone().into_owned());
            let key = if rest.chars().any(char::is_lowercase) {
                // Names are upper case: this one is of no setting, but near to one.
                format!("{PREFIX}{rest}")
            } else {
                rest.to_lowercase()
            };
            let setting = known(settings, &key, &place, |key| {
                format!("{PREFIX}{}", key.to_uppercase())
            })?;
            let words = words_of_variable(setting, value, &place)?;
            check(setting, &words, &place)?;
            given.insert(setting.key().to_owned(), Given { words, line: None });
        }
        let source = Source::Variables;
        Ok(Self { source, given })
    }

    /// What was written on the command line.
    pub(crate) fn of_flags(settings: &[Setting], matches: &ArgMatches) -> Self {
        let written = |id: &str| is_written(matches, id);
        let mut given = BTreeMap::new();
        for setting in settings {
            let words: Vec<OsString> = match setting.kind() {
                // Of the two, clap keeps the one that came last.
                Kind::Switch { on } if written(setting.id()) => vec![on.to_string().into()],
                Kind::Switch { on } if setting.opposite_id().is_some_and(|id| written(&id)) => {
                    vec![(!on).to_string().into()]
                }
                Kind::List | Kind::One if written(setting.id()) => {
                    let raw = matches.get_raw(setting.id()).into_iter().flatten();
                    raw.map(OsStr::to_owned).collect()
                }
                _ => continue,
            };
            given.insert(setting.key().to_owned(), Given { words, line: None });
        }
        let source = Source::Flags;
        Self { source, given }
    }
}

/// The setting of a key; `spelt` says how a key is written in this place.
fn known<'a>(
    settings: &'a [Setting],
    key: &str,
    place: &Place,
    spelt: impl Fn(&str) -> String,
) -> Result<&'a Setting, ConfigError> {
    if let Some(setting) = settings.iter().find(|setting| setting.key() == key) {
        return Ok(setting);
    }
    let (place, key) = (place.clone(), key.to_owned());
    if is_secret(&key) {
        return Err(ConfigError::Secret { place, key });
    }
    let bare = key.strip_prefix(PREFIX).unwrap_or(&key);
    let nearest = nearest(settings, bare).map(spelt);
    Err(ConfigError::Unknown { place, key, nearest })
}

/// Whether an unknown key is named like a secret.
fn is_secret(key: &str) -> bool {
    let letters: String = key
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    let parts = [
        "apikey",
        "accesskey",
        "secret",
        "password",
        "credential",
        "accesstoken",
        "authtoken",
    ];
    parts.iter().any(|part| letters.contains(part)) || ["key", "token"].contains(&letters.as_str())
}

/// The values of an entry, if it has the shape that the setting takes.
fn words(setting: &Setting, value: yaml::Value, place: &Place) -> Result<Vec<OsString>, ConfigError> {
    let (place, key) = (place.clone(), setting.key().to_owned());
    let texts = match (setting.kind(), value) {
        (Kind::List, yaml::Value::Many(texts)) => texts,
        // A key without a value is said to have none, whatever it takes.
        (Kind::List, yaml::Value::One(None)) => vec![None],
        (Kind::List, _) => return Err(ConfigError::NoList { place, key }),
        (_, yaml::Value::One(text)) => vec![text],
        (_, _) => return Err(ConfigError::Several { place, key }),
    };
    let word = |text: Option<String>| text.filter(|text| !text.is_empty()).map(OsString::from);
    let words: Option<Vec<OsString>> = texts.into_iter().map(word).collect();
    words.ok_or(ConfigError::Empty { place, key })
}

/// The values of a variable: its text, or of a list what is in its brackets.
fn words_of_variable(setting: &Setting, value: &OsStr, place: &Place) -> Result<Vec<OsString>, ConfigError> {
    if value.is_empty() {
        return Err(ConfigError::Empty {
            place: place.clone(),
            key: setting.key().to_owned(),
        });
    }
    let Some(text) = value.to_str() else {
        // Paths need not be text.
        return if setting.is_path() {
            Ok(vec![value.to_owned()])
        } else {
            Err(ConfigError::NotText(place.clone()))
        };
    };
    if setting.kind() != Kind::List || !text.starts_with('[') {
        return Ok(vec![text.into()]);
    }
    let entries = yaml::mapping(&format!("list: {text}")).map_err(|fault| ConfigError::Syntax {
        place: place.clone(),
        message: fault.message,
    })?;
    let value = entries
        .into_iter()
        .next()
        .map_or(yaml::Value::Nested, |entry| entry.value);
    words(setting, value, place)
}

/// Has the flag check each value.
fn check(setting: &Setting, words: &[OsString], place: &Place) -> Result<(), ConfigError> {
    for word in words {
        setting.check(word).map_err(|reason| ConfigError::Invalid {
            place: place.clone(),
            key: setting.key().to_owned(),
            value: word.to_string_lossy().into_owned(),
            reason,
        })?;
    }
    Ok(())
}
