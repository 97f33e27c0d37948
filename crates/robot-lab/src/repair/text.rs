//! Calls that were written as text, by models that do it or servers that do not read them.
//!
//! A text counts as a call only when it is the end of the answer and whole, with a few words before it at most: a strict
//! grammar is read from the first mark of a call to the end. So an example in the middle of an answer, a file that is
//! quoted, and anything that is cut off are no calls.

use super::reader::Reader;
use super::{Flaw, MAX_REPAIRED};
use serde_json::{Map, Value};

/// Bytes that may stand before a call.
const MAX_PROSE: usize = 2_000;
/// Most calls of one answer.
const MAX_CALLS: usize = 32;
/// Where a line begins a call.
const MARKS: [&str; 7] = [
    "```",
    "<tool_call>",
    "<function=",
    "<function_calls>",
    "<invoke ",
    "[TOOL_CALLS]",
    "<|python_tag|>",
];
/// What each kind of call ends with.
const ENDS: [&str; 5] = [
    "```",
    "</tool_call>",
    "</function>",
    "</function_calls>",
    "</invoke>",
];
/// Keys of a call as an object.
const NAMES: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "args", "input", "tool_input"];
const OTHERS: [&str; 3] = ["id", "type", "index"];

/// What an answer without calls holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// No call.
    Nothing,
    /// Calls, by name and arguments, and the words before them.
    Calls {
        prose: String,
        calls: Vec<(String, Map<String, Value>)>,
    },
    /// Something that ends as a call does, but cannot be read as one.
    Unreadable(Flaw),
}

/// Looks for calls of tools that are known.
pub(super) fn find(answer: &str, knows: &dyn Fn(&str) -> bool) -> Found {
    if answer.len() > MAX_REPAIRED {
        return Found::Nothing;
    }
    let Some((begin, at)) = place(answer) else {
        return Found::Nothing;
    };
    let prose = answer.get(begin..at).unwrap_or_default();
    if prose.len() > MAX_PROSE || MARKS.iter().any(|mark| prose.contains(mark)) {
        return Found::Nothing;
    }
    match calls(answer, at) {
        Ok(calls) if !calls.is_empty() && calls.iter().all(|(name, _)| knows(name)) => Found::Calls {
            prose: answer.get(..at).unwrap_or_default().trim_end().to_owned(),
            calls,
        },
        Ok(_) | Err(Stop::Other) => Found::Nothing,
        Err(Stop::Flaw(flaw)) if is_meant(answer.get(at..).unwrap_or_default()) => Found::Unreadable(flaw),
        Err(Stop::Flaw(_)) => Found::Nothing,
    }
}

/// Whether a text that cannot be read was surely meant as a call: it ends as one does, and has what one has.
fn is_meant(text: &str) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| text.contains(&format!("\"{key}\"")));
    let ends = ENDS.iter().any(|end| text.trim_end().ends_with(end));
    ends && (text.starts_with('<') || (has(&NAMES) && has(&ARGUMENTS)))
}

/// Where the answer begins, after what a model thought aloud, and where the first mark of a call is.
fn place(answer: &str) -> Option<(usize, usize)> {
    let start = answer.len() - answer.trim_start().len();
    let begin = match answer.get(start..)?.strip_prefix("<think>") {
        Some(thought) => {
            let end = thought.find("</think>")? + "</think>".len();
            start + "<think>".len() + end
        }
        None => start,
    };
    let rest = answer.get(begin..)?;
    let first = rest.trim_start();
    if first.starts_with(['{', '[']) {
        return Some((begin, begin + rest.len() - first.len()));
    }
    let mut at = begin;
    for line in rest.split_inclusive('\n') {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if indent < 4 && (MARKS.iter().any(|mark| text.starts_with(mark)) || is_python(text)) {
            return Some((begin, at + indent));
        }
        at += line.len();
    }
    None
}

/// Whether a line begins as `[name(` does.
fn is_python(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('[') else {
        return false;
    };
    let end = rest.find(|c: char| !in_name(c)).unwrap_or(rest.len());
    end > 0 && rest.get(end..).is_some_and(|rest| rest.starts_with('('))
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Why there are no calls to be had.
enum Stop {
    /// It began as a call, and went wrong.
    Flaw(Flaw),
    /// It is something else.
    Other,
}

impl From<Flaw> for Stop {
    fn from(flaw: Flaw) -> Self {
        Self::Flaw(flaw)
    }
}

type Call = (String, Map<String, Value>);

/// All calls from a byte to the end. Where values stand without quotes, as between tags, a file that holds such calls
/// could pass for several; so only one call may be written so.
fn calls(answer: &str, at: usize) -> Result<Vec<Call>, Stop> {
    let mut reader = Reader::new(answer.trim_end(), at);
    let mut calls = Vec::new();
    let mut unquoted = false;
    while !reader.rest().is_empty() {
        unquoted |= block(&mut reader, &mut calls)?;
        if calls.len() > MAX_CALLS || (unquoted && calls.len() > 1) {
            return Err(Stop::Other);
        }
        reader.space();
    }
    Ok(calls)
}

/// One block of calls. Answers whether its values stand without quotes.
fn block(reader: &mut Reader<'_>, calls: &mut Vec<Call>) -> Result<bool, Stop> {
    if reader.take("```") {
        let language = reader.word(|c| c != '\n');
        match language.trim() {
            "" | "json" | "tool_call" | "tool" => objects(reader, calls)?,
            "tool_code" => python(reader, calls)?,
            _ => return Err(Stop::Other),
        }
        return end(reader, "```").map(|()| false);
    }
    if reader.take("<tool_call>") {
        reader.space();
        let unquoted = if reader.rest().starts_with("<function=") {
            function(reader, calls)?
        } else {
            objects(reader, calls)?;
            false
        };
        return end(reader, "</tool_call>").map(|()| unquoted);
    }
    if reader.take("<function_calls>") {
        reader.space();
        while reader.rest().starts_with("<invoke ") {
            invoke(reader, calls)?;
            reader.space();
        }
        return end(reader, "</function_calls>").map(|()| true);
    }
    if reader.rest().starts_with("<function=") {
        return function(reader, calls);
    }
    if reader.rest().starts_with("<invoke ") {
        return invoke(reader, calls).map(|()| true);
    }
    if is_python(reader.rest()) {
        python(reader, calls)?;
        return Ok(false);
    }
    let marked = reader.take("[TOOL_CALLS]") || reader.take("<|python_tag|>");
    if !marked && !calls.is_empty() {
        return Err(Stop::Other);
    }
    objects(reader, calls).map(|()| false)
}

fn end(reader: &mut Reader<'_>, mark: &str) -> Result<(), Stop> {
    reader.space();
    let ended = reader.take(mark) && (mark != "```" || !reader.rest().starts_with('`'));
    if ended {
        Ok(())
    } else {
        Err(reader.flaw(&format!("expected `{mark}`")).into())
    }
}

/// One call as an object, or a list of them.
fn objects(reader: &mut Reader<'_>, calls: &mut Vec<Call>) -> Result<(), Stop> {
    let value = reader.value()?;
    match value {
        Value::Array(list) => {
            for value in list {
                calls.push(object(&value).ok_or(Stop::Other)?);
            }
        }
        value => match value.get("tool_calls") {
            Some(Value::Array(list)) => {
                for value in list {
                    calls.push(object(value).ok_or(Stop::Other)?);
                }
            }
            _ => calls.push(object(&value).ok_or(Stop::Other)?),
        },
    }
    Ok(())
}

/// A call as an object: a name, arguments, and nothing else that matters.
fn object(value: &Value) -> Option<Call> {
    let object = value.as_object()?;
    let inner = object.get("function").filter(|inner| inner.is_object());
    if let Some(inner) = inner {
        let bare = object
            .keys()
            .all(|key| key == "function" || OTHERS.contains(&key.as_str()));
        // One level: what is inside has a name of its own.
        return (bare && inner.get("function").is_none())
            .then(|| self::object(inner))
            .flatten();
    }
    let (mut name, mut arguments) = (None, None);
    for (key, value) in object {
        let key = key.as_str();
        let twice = if NAMES.contains(&key) {
            name.replace(value.as_str()?.to_owned()).is_some()
        } else if ARGUMENTS.contains(&key) {
            arguments.replace(super::arguments(value).ok()?).is_some()
        } else {
            !OTHERS.contains(&key)
        };
        if twice {
            return None;
        }
    }
    Some((name?, arguments?))
}

/// `name(key=value, …)` once, or several in brackets.
fn python(reader: &mut Reader<'_>, calls: &mut Vec<Call>) -> Result<(), Stop> {
    reader.space();
    let listed = reader.take("[");
    loop {
        reader.space();
        let name = reader.word(in_name).to_owned();
        if name.is_empty() || !reader.take("(") {
            return Err(Stop::Other);
        }
        let mut arguments = Map::new();
        loop {
            reader.space();
            if reader.take(")") {
                break;
            }
            let key = reader.word(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
            reader.space();
            if key.is_empty() || !reader.take("=") || arguments.contains_key(&key) {
                return Err(reader.flaw("expected `name=value`").into());
            }
            let value = reader.value()?;
            arguments.insert(key, value);
            reader.space();
            if !reader.take(",") && !reader.rest().starts_with(')') {
                return Err(reader.flaw("expected `,` or `)`").into());
            }
        }
        calls.push((name, arguments));
        reader.space();
        if !listed || reader.take("]") {
            return Ok(());
        }
        if !reader.take(",") {
            return Err(reader.flaw("expected `,` or `]`").into());
        }
    }
}

/// `<function=name>`, then an object or parameters, then `</function>`.
fn function(reader: &mut Reader<'_>, calls: &mut Vec<Call>) -> Result<bool, Stop> {
    if !reader.take("<function=") {
        return Err(Stop::Other);
    }
    let name = reader.word(|c| c != '>' && c != '\n').trim().to_owned();
    if !reader.take(">") {
        return Err(Stop::Other);
    }
    reader.space();
    let quoted = reader.rest().starts_with('{');
    let arguments = if quoted {
        reader.whole_object()?
    } else {
        parameters(reader, "<parameter=", ">")?
    };
    end(reader, "</function>")?;
    calls.push((name, arguments));
    Ok(!quoted)
}

/// `<invoke name="…">`, then parameters, then `</invoke>`.
fn invoke(reader: &mut Reader<'_>, calls: &mut Vec<Call>) -> Result<(), Stop> {
    if !reader.take("<invoke name=\"") {
        return Err(Stop::Other);
    }
    let name = reader.word(|c| c != '"' && c != '\n').to_owned();
    if !reader.take("\">") {
        return Err(Stop::Other);
    }
    let arguments = parameters(reader, "<parameter name=\"", "\">")?;
    end(reader, "</invoke>")?;
    calls.push((name, arguments));
    Ok(())
}

/// Parameters as they stand between tags, each a text without the line feeds next to its tags.
fn parameters(reader: &mut Reader<'_>, open: &str, close: &str) -> Result<Map<String, Value>, Stop> {
    let mut parameters = Map::new();
    loop {
        reader.space();
        if !reader.take(open) {
            return Ok(parameters);
        }
        let name = reader.word(|c| !matches!(c, '>' | '"' | '\n')).to_owned();
        let opened = reader.take(close);
        let length = reader.rest().find("</parameter>");
        let (Some(length), true) = (length, opened && !parameters.contains_key(&name)) else {
            return Err(reader.flaw("expected one whole parameter").into());
        };
        let value = reader.rest().get(..length).unwrap_or_default();
        // A value that holds tags of calls may be a file about calls, and where it ends is anybody's guess.
        let tags = [
            "<parameter",
            "<function",
            "</function",
            "<invoke",
            "</invoke",
            "tool_call>",
        ];
        if tags.iter().any(|tag| value.contains(tag)) {
            return Err(reader
                .flaw("a value without quotes that holds tags of calls")
                .into());
        }
        let bare = value.strip_prefix('\n').unwrap_or(value);
        let bare = bare.strip_suffix('\n').unwrap_or(bare);
        parameters.insert(name, bare.into());
        reader.take(value);
        reader.take("</parameter>");
    }
}

#[cfg(test)]
mod tests;
