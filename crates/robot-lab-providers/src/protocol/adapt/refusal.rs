//! Reads what a refusal says: which part of a request is not taken.

use super::Change;
use super::parameters::{known, places, spaced};
use super::schemas::plain_tools;
use crate::effort::Effort;
use crate::protocol::Protocol;
use serde_json::Value;

/// The longest refusal that is read, in bytes.
const MAX_READ: usize = 16 * 1024;

/// Ways to say that something is not taken.
const REFUSALS: &[&str] = &[
    "unsupported",
    "not support",
    "n't support",
    "unknown",
    "unrecognized",
    "unrecognised",
    "unexpected",
    "not permitted",
    "not allowed",
    "not available",
    "not compatible",
    "incompatible",
    "deprecated",
    "cannot find",
    "cannot use",
    "cannot be used",
    "only the default",
    "only be set",
    "extra_forbidden",
    "must be verified",
];

/// What a refusal says.
pub(super) struct Said {
    /// In lower case.
    text: String,
    /// The parameter that it names apart, as it is written.
    parameter: String,
}

impl Said {
    pub(super) fn read(refusal: &str) -> Self {
        let end = refusal.floor_char_boundary(MAX_READ);
        let refusal = refusal.get(..end).unwrap_or_default();
        let mut text = String::new();
        let mut parameter = String::new();
        match serde_json::from_str::<Value>(refusal) {
            Ok(value) => {
                collect(&value, &mut text);
                let named = value.pointer("/error/param").or_else(|| value.get("param"));
                named
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .clone_into(&mut parameter);
            }
            Err(_) => refusal.clone_into(&mut text),
        }
        Self {
            text: text.to_lowercase(),
            parameter,
        }
    }

    fn has(&self, part: &str) -> bool {
        self.text.contains(part)
    }

    fn any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.has(part))
    }

    fn refuses(&self) -> bool {
        self.any(REFUSALS)
    }

    pub(super) fn wants_responses(&self, protocol: Protocol) -> Option<Change> {
        (protocol == Protocol::Chat && self.has("v1/responses")).then_some(Change::Responses)
    }

    /// Reasoning that is missed, not wanted, or cannot be verified any more.
    pub(super) fn of_echo(&self) -> Option<Change> {
        let signed = self.any(&["thought signature", "thought_signature", "thoughtsignature"])
            || (self.has("signature") && self.has("thinking"))
            || self.has("invalid_encrypted_content")
            || (self.has("encrypted content") && self.any(&["verif", "decrypt"]));
        (self.any(&["reasoning_content", "thinking block"]) || signed).then_some(Change::OtherEcho)
    }

    pub(super) fn of_streams(&self, protocol: Protocol, body: &Value) -> Option<Change> {
        // Gemini is told by the address.
        let streams = protocol == Protocol::Gemini || body.get("stream") == Some(&Value::Bool(true));
        let of_stream = self.parameter == "stream" || words(&self.text).any(|(_, word)| word == "stream");
        let of_streaming = of_stream || self.has("streaming");
        (streams && of_streaming && self.refuses()).then_some(Change::Whole)
    }

    /// The name of the limit, or its size.
    pub(super) fn of_limit(&self, protocol: Protocol, body: &Value) -> Option<Change> {
        let has = |name: &str| words(&self.text).any(|(_, word)| word == name);
        let older = protocol == Protocol::Chat && body.get("max_tokens").is_some();
        if older && (has("maxcompletiontokens") || (has("maxtokens") && self.refuses())) {
            return Some(Change::NewerLimit);
        }
        let places = [
            "/max_tokens",
            "/max_completion_tokens",
            "/max_output_tokens",
            "/generationConfig/maxOutputTokens",
        ];
        let sent = places.iter().find_map(|place| body.pointer(place)?.as_u64())?;
        let of_limit = ["maxtokens", "maxcompletiontokens", "maxoutputtokens"];
        let numbers = self.text.split(|c: char| !c.is_ascii_digit());
        let allowed = numbers
            .filter_map(|number| number.parse::<u32>().ok())
            .filter(|number| (256..sent).contains(&u64::from(*number)))
            .max();
        allowed
            .filter(|_| of_limit.into_iter().any(has))
            .map(Change::AtMost)
    }

    pub(super) fn of_schemas(&self, body: &Value) -> Option<Change> {
        let of_schema = [
            "schema",
            "additionalproperties",
            "function_declarations",
            "functiondeclarations",
            "grammar",
        ];
        let mut plain = body.clone();
        plain_tools(&mut plain);
        let changes = self.any(&of_schema) && plain != *body;
        changes.then_some(Change::PlainSchemas)
    }

    /// The nearest effort to the one that was asked for, where the model takes others.
    pub(super) fn of_effort(&self, body: &Value) -> Option<Change> {
        let places = ["/reasoning_effort", "/reasoning/effort", "/output_config/effort"];
        let asked = places.iter().find_map(|place| body.pointer(place)?.as_str())?;
        let asked: Effort = asked.parse().ok()?;
        let lists = self.any(&["supported values", "one of", "expected"]);
        let distance = |effort: &Effort| (*effort as i8 - asked as i8).abs();
        let taken = words(&self.text).filter_map(|(_, word)| word.parse::<Effort>().ok());
        let nearest = taken.filter(|effort| *effort != asked).min_by_key(distance);
        nearest
            .filter(|_| lists && self.has("effort"))
            .map(Change::Effort)
    }

    /// The parameter of this body that is refused: the one that is named apart, else the first that is spoken of.
    pub(super) fn parameter(&self, body: &Value) -> Option<&'static str> {
        if !self.refuses() {
            return None;
        }
        let in_body = |name: &str| places(name).any(|place| body.pointer(place).is_some());
        let named = named(&self.parameter).filter(|name| in_body(name));
        named.or_else(|| named_in(&self.text, &in_body))
    }
}

/// The innermost parameter in a path such as `reasoning.summary`.
fn named(path: &str) -> Option<&'static str> {
    let words: Vec<String> = words(path).map(|(_, word)| word).collect();
    words.iter().rev().find_map(|word| known(word))
}

/// The first parameter that a text speaks of and `counts`; of two that follow each other as in a path, the second.
fn named_in(text: &str, counts: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let mut first: Option<(usize, &'static str)> = None;
    for (at, word) in words(text) {
        let Some(name) = known(&word).filter(|name| counts(name)) else {
            continue;
        };
        match first {
            None => first = Some((at + word_len(text, at), name)),
            Some((end, _)) if at == end + 1 && text.as_bytes().get(end) == Some(&b'.') => return Some(name),
            Some(_) => break,
        }
    }
    first
        .map(|(_, name)| name)
        .or_else(|| spaced(text).find(|name| counts(name)))
}

/// The words of a text and where they begin, in lower case and without underscores: `maxTokens` is `max_tokens`.
fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    text.split(move |c| !part(c)).filter_map(move |word| {
        let start = at;
        // What splits is one byte or more; the next start is found from the text itself.
        at += word.len()
            + text
                .get(at + word.len()..)?
                .chars()
                .next()
                .map_or(0, char::len_utf8);
        let plain = word.to_ascii_lowercase().replace('_', "");
        (!plain.is_empty()).then_some((start, plain))
    })
}

fn word_len(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    rest.find(|c| !part(c)).unwrap_or(rest.len())
}

/// All texts of a value but for what it repeats of the request.
fn collect(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, into)),
        Value::Object(map) => {
            let rest = map
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "input" | "ctx"));
            rest.for_each(|(_, value)| collect(value, into));
        }
        _ => {}
    }
}
