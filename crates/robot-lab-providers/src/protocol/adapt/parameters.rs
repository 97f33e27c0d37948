//! The parameters that a request can do without: their names, and where they stand.

use serde_json::Value;

/// A parameter that a request can do without: its name, and where it stands.
type Parameter = (&'static str, &'static [&'static str]);

const PARAMETERS: &[Parameter] = &[
    (
        "temperature",
        &[
            "/temperature",
            "/generationConfig/temperature",
            "/options/temperature",
        ],
    ),
    ("stream_options", &["/stream_options"]),
    ("include_usage", &["/stream_options"]),
    ("max_completion_tokens", &["/max_completion_tokens"]),
    (
        "max_output_tokens",
        &["/max_output_tokens", "/generationConfig/maxOutputTokens"],
    ),
    ("reasoning_effort", &["/reasoning_effort"]),
    ("summary", &["/reasoning/summary"]),
    ("reasoning", &["/reasoning", "/reasoning_effort"]),
    ("effort", &["/output_config", "/reasoning", "/reasoning_effort"]),
    (
        "thinking",
        &[
            "/thinking",
            "/output_config",
            "/generationConfig/thinkingConfig",
            "/think",
        ],
    ),
    ("include", &["/include"]),
];

/// Words for the same parameters.
const ALIASES: &[(&str, &str)] = &[
    ("encryptedcontent", "include"),
    ("encrypted content", "include"),
    ("outputconfig", "thinking"),
    ("thinkingconfig", "thinking"),
    ("thinkinglevel", "thinking"),
    ("thinkingbudget", "thinking"),
    ("budgettokens", "thinking"),
    ("think", "thinking"),
];

/// The parameter that a word stands for.
pub(super) fn known(word: &str) -> Option<&'static str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
    if let Some((_, name)) = alias {
        return Some(name);
    }
    let parameter = PARAMETERS.iter().find(|(name, _)| name.replace('_', "") == word);
    parameter.map(|(name, _)| *name)
}

/// The parameter of this name.
pub(super) fn named(name: &str) -> Option<&'static str> {
    let parameter = PARAMETERS.iter().find(|(known, _)| *known == name);
    parameter.map(|(name, _)| *name)
}

/// The parameters that a text speaks of in more words than one.
pub(super) fn spaced(text: &str) -> impl Iterator<Item = &'static str> {
    let spaced = ALIASES.iter().filter(|(alias, _)| alias.contains(' '));
    spaced
        .filter(move |(alias, _)| text.contains(alias))
        .map(|(_, name)| *name)
}

/// Where a parameter stands in a body.
pub(super) fn places(name: &str) -> impl Iterator<Item = &'static str> {
    let parameter = PARAMETERS.iter().find(|(known, _)| *known == name);
    parameter
        .into_iter()
        .flat_map(|(_, places)| places.iter().copied())
}

/// Takes out what stands at a pointer.
pub(super) fn remove(body: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, key) = pointer.rsplit_once('/')?;
    body.pointer_mut(parent)?.as_object_mut()?.remove(key)
}
