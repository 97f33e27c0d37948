//! What a server has been found not to take, and what is sent in its place.
//!
//! A refusal is recognised by what it says: that something of the request is not supported, and the name of a part that
//! the request has. Each fact is learnt at most once, so trying again after each comes to an end.

use super::{Options, Protocol};
use crate::effort::Effort;
use serde_json::{Map, Value};

/// The longest refusal that is read, in bytes.
const MAX_READ: usize = 16 * 1024;

/// What is known of one model at one server, beyond what its provider's protocol says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Learnt(Vec<Change>);

/// One thing that is done otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// A parameter is left out.
    Without(&'static str),
    /// The limit of a reply goes by its newer name.
    NewerLimit,
    /// A reply is allowed no more tokens than this.
    AtMost(u32),
    /// The model thinks this much, which is the nearest that it can.
    Effort(Effort),
    /// Thinking is asked for as models of another generation take it.
    OtherThinking,
    /// Earlier reasoning goes back where it did not, and does not where it did.
    OtherEcho,
    /// Schemas of tools hold only what every server knows.
    PlainSchemas,
    /// Chat completions give way to responses.
    Responses,
    /// Replies come in one piece.
    Whole,
    /// A reply that says nothing is one, as it is no different in one piece.
    Silence,
}

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

impl Learnt {
    /// With one thing more; `None` when it is known already, so that it was of no help.
    pub(crate) fn and(&self, change: Change) -> Option<Self> {
        let known = |old: &Change| std::mem::discriminant(old) == std::mem::discriminant(&change);
        let same = match change {
            Change::Without(_) => self.0.contains(&change),
            _ => self.0.iter().any(known),
        };
        (!same).then(|| Self(self.0.iter().copied().chain([change]).collect()))
    }

    /// What is here and not in `before`.
    pub(crate) fn since(&self, before: &Self) -> Vec<Change> {
        let new = self.0.iter().filter(|change| !before.has(**change));
        new.copied().collect()
    }

    /// Whether this is known.
    pub(crate) fn has(&self, change: Change) -> bool {
        self.0.contains(&change)
    }

    /// The protocol to speak.
    pub(crate) fn protocol(&self, usual: Protocol) -> Protocol {
        match usual {
            Protocol::Chat if self.has(Change::Responses) => Protocol::Responses,
            usual => usual,
        }
    }

    /// What to ask for.
    pub(crate) fn options(&self, asked: Options) -> Options {
        let mut options = asked;
        for change in &self.0 {
            match change {
                Change::AtMost(limit) => options.ceiling = Some(*limit),
                Change::Effort(effort) => options.effort = Some(*effort),
                Change::OtherThinking => options.other_thinking = !asked.other_thinking,
                Change::Whole => options.stream = false,
                _ => {}
            }
        }
        // In responses all of it goes back.
        let usual = asked.echo || self.has(Change::Responses);
        options.echo = usual != self.has(Change::OtherEcho);
        options
    }

    /// Leaves out of a body, or renames in it, what the server does not take.
    pub(crate) fn apply(&self, body: &mut Value) {
        for change in &self.0 {
            match change {
                Change::Without(name) => places(name).for_each(|place| drop(remove(body, place))),
                Change::NewerLimit => {
                    if let (Some(limit), Some(body)) = (remove(body, "/max_tokens"), body.as_object_mut()) {
                        body.insert("max_completion_tokens".into(), limit);
                    }
                }
                Change::PlainSchemas => plain_tools(body),
                _ => {}
            }
        }
    }

    /// What to do otherwise after a request in this protocol, with this body, was refused with these words; `None` when
    /// nothing would help.
    pub(crate) fn after(&self, protocol: Protocol, body: &Value, refusal: &str) -> Option<Self> {
        let said = Said::read(refusal);
        let found = [
            said.wants_responses(protocol),
            said.of_echo(),
            said.of_streams(body),
            said.of_limit(protocol, body),
            said.of_schemas(body),
            said.of_effort(body),
        ];
        let learnt = found.into_iter().flatten().find_map(|change| self.and(change));
        learnt.or_else(|| {
            let name = said.parameter(body)?;
            // There are two ways to ask for it.
            let thinking = matches!(name, "thinking" | "effort")
                && matches!(protocol, Protocol::Messages | Protocol::Gemini);
            let other = thinking.then(|| self.and(Change::OtherThinking)).flatten();
            other.or_else(|| self.and(Change::Without(name)))
        })
    }
}

/// For people: what is done otherwise.
impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Without(name) => write!(f, "{name} is left out"),
            Self::NewerLimit => f.write_str("max_tokens is called max_completion_tokens"),
            Self::AtMost(limit) => write!(f, "a reply has at most {limit} tokens"),
            Self::Effort(effort) => write!(f, "the model thinks with effort {}", effort.name()),
            Self::OtherThinking => f.write_str("thinking is asked for in the other way"),
            Self::OtherEcho => f.write_str("earlier reasoning is sent back the other way"),
            Self::PlainSchemas => f.write_str("the tools are described in plainer schemas"),
            Self::Responses => f.write_str("it is spoken to in responses"),
            Self::Whole => f.write_str("replies come in one piece"),
            Self::Silence => f.write_str("an empty reply is taken for one"),
        }
    }
}

/// What a refusal says.
struct Said {
    /// In lower case.
    text: String,
    /// The parameter that it names apart, as it is written.
    parameter: String,
}

impl Said {
    fn read(refusal: &str) -> Self {
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

    fn wants_responses(&self, protocol: Protocol) -> Option<Change> {
        (protocol == Protocol::Chat && self.has("v1/responses")).then_some(Change::Responses)
    }

    /// Reasoning that is missed, not wanted, or cannot be verified any more.
    fn of_echo(&self) -> Option<Change> {
        let signed = self.any(&["thought signature", "thought_signature", "thoughtsignature"])
            || (self.has("signature") && self.has("thinking"))
            || self.has("invalid_encrypted_content")
            || (self.has("encrypted content") && self.any(&["verif", "decrypt"]));
        (self.any(&["reasoning_content", "thinking block"]) || signed).then_some(Change::OtherEcho)
    }

    fn of_streams(&self, body: &Value) -> Option<Change> {
        let streams = body.get("stream") == Some(&Value::Bool(true));
        let of_stream = self.parameter == "stream" || words(&self.text).any(|(_, word)| word == "stream");
        let of_streaming = of_stream || self.has("streaming");
        (streams && of_streaming && self.refuses()).then_some(Change::Whole)
    }

    /// The name of the limit, or its size.
    fn of_limit(&self, protocol: Protocol, body: &Value) -> Option<Change> {
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

    fn of_schemas(&self, body: &Value) -> Option<Change> {
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
    fn of_effort(&self, body: &Value) -> Option<Change> {
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
    fn parameter(&self, body: &Value) -> Option<&'static str> {
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
    let spaced = ALIASES.iter().filter(|(alias, _)| alias.contains(' '));
    let spaced = spaced.filter(|(alias, name)| text.contains(alias) && counts(name));
    first
        .map(|(_, name)| name)
        .or_else(|| spaced.map(|(_, name)| *name).next())
}

/// The parameter that a word stands for.
fn known(word: &str) -> Option<&'static str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
    if let Some((_, name)) = alias {
        return Some(name);
    }
    let parameter = PARAMETERS.iter().find(|(name, _)| name.replace('_', "") == word);
    parameter.map(|(name, _)| *name)
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

fn places(name: &str) -> impl Iterator<Item = &'static str> {
    let parameter = PARAMETERS.iter().find(|(known, _)| *known == name);
    parameter
        .into_iter()
        .flat_map(|(_, places)| places.iter().copied())
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

/// Takes out what stands at a pointer.
fn remove(body: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, key) = pointer.rsplit_once('/')?;
    body.pointer_mut(parent)?.as_object_mut()?.remove(key)
}

/// Describes the tools of a body in plain schemas, where older servers look for them.
fn plain_tools(body: &mut Value) {
    let Some(tools) = body.get_mut("tools").and_then(Value::as_array_mut) else {
        return;
    };
    for tool in tools {
        let declared = tool.get_mut("functionDeclarations").and_then(Value::as_array_mut);
        for function in declared.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let Some(schema) = function.remove("parametersJsonSchema") {
                function.insert("parameters".into(), schema);
            }
            if let Some(schema) = function.get_mut("parameters") {
                plain(schema);
            }
        }
        if let Some(tool) = tool.as_object_mut() {
            tool.remove("strict");
        }
        for place in ["/function/parameters", "/parameters", "/input_schema"] {
            if let Some(schema) = tool.pointer_mut(place) {
                plain(schema);
            }
        }
    }
}

/// Takes out of a schema what not every server knows.
fn plain(schema: &mut Value) {
    const KNOWN: [&str; 6] = ["type", "description", "properties", "required", "items", "enum"];
    let Some(keys) = schema.as_object_mut() else {
        return;
    };
    let whole = std::mem::take(keys);
    let mut kept: Map<String, Value> = whole
        .into_iter()
        .filter(|(key, _)| KNOWN.contains(&key.as_str()))
        .collect();
    // One of several types is the first that is not null.
    if let Some(Value::Array(types)) = kept.get("type") {
        let first = types.iter().find(|kind| *kind != "null").cloned();
        kept.insert("type".into(), first.unwrap_or_else(|| "string".into()));
    }
    if let Some(Value::Object(properties)) = kept.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
    if let Some(items) = kept.get_mut("items") {
        plain(items);
    }
    *keys = kept;
}
