//! What the user sends with each request besides the key, and the variables that hold what is secret of it.
//!
//! Settings are written into the log. So a header's value that is a secret is never one: `$NAME` stands for it, which
//! is read from a variable that no command sees.

use crate::error::CliError;
use crate::key::{self, Keys};
use robot_lab_providers::names_a_secret;
use robot_lab_to::settings::Plan;
use serde_json::Value;

/// Headers that say how a request is sent, and no more.
const OURS: [&str; 6] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];
/// So many letters and digits in a row are taken for a secret, when both are among them.
const LONG: usize = 20;

/// A header as it is set: a name, and a value with names of variables in it.
struct Header<'a> {
    name: &'a str,
    value: &'a str,
}

/// The headers of a plan with their values.
pub(super) fn resolved(plan: &Plan, keys: &Keys) -> Result<Vec<(String, String)>, CliError> {
    let mut resolved = Vec::new();
    for header in headers(plan)? {
        let mut value = String::new();
        for piece in pieces(header.value) {
            match piece {
                Piece::Text(text) => value.push_str(text),
                Piece::Variable(name) => value.push_str(keys.at(name).ok_or_else(|| {
                    CliError::configuration(format!(
                        "the variable {name} is not set, and --header {} needs it; nothing was changed",
                        header.name
                    ))
                    .hint(format!("export {name}=…"))
                })?),
            }
        }
        resolved.push((header.name.to_owned(), value));
    }
    Ok(resolved)
}

/// Takes the variables that a plan names for the provider out of the environment, where commands would see them. It
/// starts the program anew, or returns.
pub(super) fn claim(plan: &Plan, keys: &Keys) -> Result<(), CliError> {
    let names = variables(plan)?;
    if let Some(name) = names.iter().find(|name| is_needed(name)) {
        return Err(CliError::configuration(format!(
            "{name} is a variable that every command needs, and what goes to the provider is hidden from them; nothing \
             was changed"
        ))
        .hint("put the value into a variable of its own"));
    }
    if let Some(name) = names.iter().find(|name| plan.env.contains(name)) {
        return Err(CliError::configuration(format!(
            "--env {name} would show to every command what goes to the provider; nothing was changed"
        ))
        .hint("give the command a variable of its own, under another name"));
    }
    key::take_more(keys, &names)
        .map_err(|error| CliError::configuration(format!("{error}; nothing was changed")))
}

/// Whether commands, git or this program cannot do without a variable.
fn is_needed(name: &str) -> bool {
    const NEEDED: [&str; 9] = [
        "HOME", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "PWD", "TERM",
    ];
    const FAMILIES: [&str; 4] = ["XDG_", "GIT_", "ROBOT_", "LC_"];
    NEEDED.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

/// The names of the variables that a plan names for the provider.
fn variables(plan: &Plan) -> Result<Vec<String>, CliError> {
    let mut names: Vec<String> = Vec::new();
    if let Some(name) = plan.model.get("api_key_env").and_then(Value::as_str) {
        if !is_variable(name) {
            // It may be a key in place of a name, so nothing of it is repeated.
            return Err(CliError::configuration(
                "what --api-key-env was given is no name of a variable; nothing was changed",
            )
            .hint("give the name: --api-key-env MY_KEY"));
        }
        names.push(name.to_owned());
    }
    for header in headers(plan)? {
        names.extend(pieces(header.value).filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.to_owned()),
            Piece::Text(_) => None,
        }));
    }
    Ok(names)
}

/// The headers of a plan, none of which holds a secret.
fn headers(plan: &Plan) -> Result<Vec<Header<'_>>, CliError> {
    let list = plan.model.get("headers").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(header)
        .collect()
}

/// Reads `NAME:VALUE`. No message repeats a value.
fn header(text: &str) -> Result<Header<'_>, CliError> {
    let (name, value) = text
        .split_once(':')
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| {
            CliError::configuration("a header is no name with a value; nothing was changed")
                .hint("write it like --header 'x-title: nightly' or --header 'x-key: $MY_KEY'")
        })?;
    if OURS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(CliError::configuration(format!(
            "the header {name} is a part of how a request is sent, and cannot be set; nothing was changed"
        )));
    }
    let texts = || {
        pieces(value).filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Variable(_) => None,
        })
    };
    if texts().any(|text| text.contains('$')) {
        return Err(CliError::configuration(format!(
            "the value of the header {name} has a $ that begins no variable; nothing was changed"
        ))
        .hint("write a variable as $NAME or ${NAME}; a value with a dollar sign in it can be that of a variable"));
    }
    let scheme = value.to_ascii_lowercase();
    let is_credential = ["bearer ", "basic "]
        .iter()
        .any(|scheme_of| scheme.starts_with(scheme_of));
    let from_variable = pieces(value).any(|piece| matches!(piece, Piece::Variable(_)));
    if ((names_a_secret(name) || is_credential) && !from_variable) || texts().any(looks_secret) {
        return Err(CliError::configuration(format!(
            "the value of the header {name} may be a secret, and settings are written into the log; nothing was changed"
        ))
        .hint(format!("give it in a variable, which no command sees: --header '{name}: $NAME'")));
    }
    Ok(Header { name, value })
}

/// Whether a text holds what only machines remember.
fn looks_secret(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '/' | '=');
    text.split(|c| !part(c)).any(|word| {
        let has = |kind: fn(&char) -> bool| word.chars().any(|c| kind(&c));
        word.len() >= LONG && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
    })
}

/// A part of a header's value.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// Reads `$NAME` and `${NAME}`; any other `$` is left in a text.
fn pieces(value: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((name, after)) = variable(rest) {
            rest = after;
            return Some(Piece::Variable(name));
        }
        let next = rest
            .char_indices()
            .skip(1)
            .find(|(at, c)| *c == '$' && rest.get(*at..).is_some_and(|rest| variable(rest).is_some()));
        let (text, after) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
        rest = after;
        Some(Piece::Text(text))
    })
}

/// The variable that a text begins with, and what follows.
fn variable(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('$')?;
    let (name, after) = match text.strip_prefix('{') {
        Some(braced) => braced.split_once('}')?,
        None => {
            let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            text.split_at(end.unwrap_or(text.len()))
        }
    };
    is_variable(name).then_some((name, after))
}

/// Whether a text can name a variable.
fn is_variable(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(letters) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_texts_and_variables() {
        use Piece::{Text, Variable};
        for (value, expected) in [
            ("plain", vec![Text("plain")]),
            ("$A", vec![Variable("A")]),
            (
                "Bearer ${A_1}x$B",
                vec![Text("Bearer "), Variable("A_1"), Text("x"), Variable("B")],
            ),
            ("5$ ${ $ é$é", vec![Text("5$ ${ $ é$é")]),
            ("$1", vec![Text("$1")]),
            ("", vec![]),
        ] {
            assert_eq!(pieces(value).collect::<Vec<_>>(), expected, "{value}");
        }
    }

    #[test]
    fn a_secret_is_only_taken_from_a_variable() {
        for good in [
            "x-title: nightly run of 2026-11-30",
            "x-key: $KEY",
            "authorization: Bearer ${TOKEN}",
            "x-org:acme:eu",
        ] {
            assert!(header(good).is_ok(), "{good}");
        }
        for bad in [
            "x-key: hush",
            "Authorization: Bearer hush",
            "cookie: a=b",
            "x-title: sk-0123456789abcdefghij",
            "x-title: $A sk-0123456789abcdefghij",
            "x-title: 5$",
            "x-title: $",
            "x-title: ${hush",
            "x-title: ${hu sh}",
            "x-title: $A and $1",
            "x-key: ${hush",
            "x-title",
            ": a",
            "x-title:",
        ] {
            let error = header(bad).err().unwrap();
            assert!(
                !error.message().contains("hush") && !error.message().contains("sk-"),
                "{bad}"
            );
        }
    }
}
