//! What the repository's own file may not say. It comes with the repository, so it is trusted as far as the commands
//! in it are, and no further: it must not reach the user's keys, variables, identity, or files elsewhere.

use super::combine::combine;
use super::layer::{Layer, Source};
use super::setting::PREFIX;
use super::{ConfigError, Setting, error::Place};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Keys that only the user may set, and why.
const ONLY_THE_USER: [(&str, &str); 9] = [
    (
        "api_key_env",
        "any variable of yours could be sent to the provider as a key",
    ),
    (
        "base_url",
        "your key would go to a server that the repository chooses",
    ),
    ("env", "the repository's commands would see variables of yours"),
    (
        "header",
        "variables of yours could be sent to the provider, and requests led elsewhere",
    ),
    ("hooks", "your hooks guard you, also from the repository"),
    (
        "record",
        "what is said to your provider would be kept where the repository chooses",
    ),
    ("sign", "only you can have a commit signed in your name"),
    ("price", "a wrong one would let your limit of cost pass"),
    (
        "work_dir",
        "it would be written to a place outside the repository",
    ),
];

/// Whether a key is only for the user, and why.
pub(crate) fn only_the_user(key: &str) -> Option<&'static str> {
    let found = ONLY_THE_USER.iter().find(|(known, _)| *known == key);
    found.map(|(_, why)| *why)
}

/// A key and a header that the user gave go to the provider that the user chose.
pub(super) fn check_leads(layers: &[Layer]) -> Result<(), ConfigError> {
    let combined = combine(layers);
    if !["api_key_env", "header"]
        .iter()
        .any(|key| combined.contains_key(*key))
    {
        return Ok(());
    }
    let led = ["provider", "fallback_model"].iter().find_map(|key| {
        let chosen = combined.get(*key)?;
        match &chosen.source {
            Source::Repository(path) => Some((*key, Place::File(path.clone(), chosen.given.line))),
            _ => None,
        }
    });
    match led {
        None => Ok(()),
        Some((key, place)) => Err(ConfigError::OnlyTheUser {
            place,
            key: key.to_owned(),
            variable: format!("{PREFIX}{}", key.to_uppercase()),
            why: "your api_key_env or header would go to a provider that the repository chooses",
        }),
    }
}

/// What a setting of the repository's file means, or why it may not be there. A path is one below the file.
pub(super) fn checked(
    setting: &Setting,
    words: Vec<OsString>,
    file: &Path,
    place: &Place,
) -> Result<Vec<OsString>, ConfigError> {
    if let Some(why) = only_the_user(setting.key()) {
        return Err(ConfigError::OnlyTheUser {
            place: place.clone(),
            key: setting.key().to_owned(),
            variable: setting.variable(),
            why,
        });
    }
    if !setting.is_path() {
        return Ok(words);
    }
    let top = file.parent().unwrap_or(file);
    words
        .into_iter()
        .map(|word| match below(top, Path::new(&word)) {
            Some(path) => Ok(path.into_os_string()),
            None => Err(ConfigError::Invalid {
                place: place.clone(),
                key: setting.key().to_owned(),
                value: word.to_string_lossy().into(),
                reason: "a path in the repository's file is relative to it and stays below, also where it leads over \
                         links"
                    .into(),
            }),
        })
        .collect()
}

/// A path below `top`; `None` for one that leads elsewhere, by its text or by links.
fn below(top: &Path, path: &Path) -> Option<PathBuf> {
    let stays = path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let path = top.join(path);
    (stays && real(&path)?.starts_with(real(top)?)).then_some(path)
}

/// Where a path leads that need not exist to its end; `None` for one that leads over a link to nothing, which others
/// may put there.
fn real(path: &Path) -> Option<PathBuf> {
    let known = path.ancestors().find(|known| known.symlink_metadata().is_ok())?;
    let rest = path.strip_prefix(known).ok()?;
    Some(known.canonicalize().ok()?.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_elsewhere_over_a_link_is_not_taken() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("key"), "secret").unwrap();
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("link-to-top");
        std::fs::create_dir_all(place.path().join("top/docs")).unwrap();
        symlink("top", &top).unwrap();
        for (link, target) in [
            ("notes", outside.path().join("key")),
            ("out", outside.path().to_owned()),
            ("nothing", outside.path().join("not/yet")),
            ("up", "..".into()),
            ("chain", "out".into()),
            ("inner", "docs".into()),
            ("again", place.path().join("link-to-top/docs")),
        ] {
            symlink(target, top.join(link)).unwrap();
        }
        for path in [
            "notes",
            "out",
            "out/new/dir",
            "nothing",
            "nothing/x",
            "up",
            "up/x",
            "chain/x",
        ] {
            assert_eq!(below(&top, Path::new(path)), None, "{path}");
        }
        for path in ["docs", "new/dir", "inner", "inner/new", "again/new", "."] {
            assert_eq!(below(&top, Path::new(path)), Some(top.join(path)), "{path}");
        }
    }

    #[test]
    fn only_a_path_that_stays_below_the_file_is_taken() {
        for (path, expected) in [
            ("a/b", Some("/top/a/b")),
            ("./a", Some("/top/a")),
            ("/etc", None),
            ("..", None),
            ("a/../../b", None),
        ] {
            let expected = expected.map(PathBuf::from);
            assert_eq!(below(Path::new("/top"), Path::new(path)), expected, "{path}");
        }
    }
}
