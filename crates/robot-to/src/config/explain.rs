//! Shows each setting, its value, and where it came from.

use super::{Chosen, Kind, Layer, Setting, Source, Sources, combine};
use robot_lab::counted;
use robot_lab_to::commit_message::{clip, one_line};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Most characters of a value that are shown to people.
const MAX_VALUE: usize = 60;

/// A setting, its value, and what said so.
struct Row<'a> {
    setting: &'a Setting,
    words: Option<Vec<String>>,
    chosen: Option<Chosen>,
}

fn rows<'a>(settings: &'a [Setting], layers: &[Layer]) -> Vec<Row<'a>> {
    let mut combined: BTreeMap<String, Chosen> = combine(layers);
    settings
        .iter()
        .map(|setting| {
            let chosen = combined.remove(setting.key());
            let lossy = |chosen: &Chosen| {
                let words = chosen.given.words.iter();
                words.map(|word| word.to_string_lossy().into_owned()).collect()
            };
            Row {
                setting,
                words: chosen.as_ref().map(lossy).or_else(|| setting.default()),
                chosen,
            }
        })
        .collect()
}

/// For people: the sources, then a line for each setting.
pub(crate) fn as_text(settings: &[Setting], sources: &Sources, layers: &[Layer]) -> String {
    let mut text = String::from("Sources, each outweighed by those after it:\n  defaults\n");
    let said = |is_it: &dyn Fn(&Source) -> bool| {
        layers
            .iter()
            .find(|layer| is_it(&layer.source))
            .map(|layer| layer.given.len())
    };
    let mut line = |name: String, state: String| text.push_str(&format!("  {name}  {state}\n"));
    let file = |count: Option<usize>| count.map_or("(there is no such file)".into(), number);
    match &sources.user {
        Some(path) => line(
            shown(path),
            file(said(&|source| matches!(source, Source::User(_)))),
        ),
        None => line(
            "your file".into(),
            "(neither XDG_CONFIG_HOME nor HOME is set)".into(),
        ),
    }
    match &sources.repository {
        Ok(path) => line(
            shown(path),
            file(said(&|source| matches!(source, Source::Repository(_)))),
        ),
        Err(why) => line("no repository".into(), format!("({})", one_line(why))),
    }
    line(
        "variables".into(),
        number(said(&|source| *source == Source::Variables).unwrap_or(0)),
    );
    line(
        "flags".into(),
        number(said(&|source| *source == Source::Flags).unwrap_or(0)),
    );
    text.push('\n');
    let rows = rows(settings, layers);
    let cells: Vec<(&str, String, String)> = rows
        .iter()
        .map(|row| (row.setting.key(), value(row), from(row)))
        .collect();
    let widest =
        |width: &dyn Fn(&(&str, String, String)) -> usize| cells.iter().map(width).max().unwrap_or(0);
    let keys = widest(&|(key, ..)| key.chars().count());
    let values = widest(&|(_, value, _)| value.chars().count());
    for (key, value, from) in &cells {
        text.push_str(&format!("{key:keys$}  {value:values$}  {from}\n"));
    }
    text
}

/// For programs: an object for each setting.
pub(crate) fn as_json(settings: &[Setting], layers: &[Layer]) -> String {
    rows(settings, layers)
        .iter()
        .map(|row| format!("{}\n", object(row)))
        .collect()
}

fn object(row: &Row<'_>) -> Value {
    let (from, place) = match &row.chosen {
        None => ("default", Value::Null),
        Some(Chosen { source, given }) => match source {
            Source::User(path) => ("user", json!(path.display().to_string())),
            Source::Repository(path) => ("repository", json!(path.display().to_string())),
            Source::Variables => ("variable", json!(row.setting.variable())),
            Source::Flags => ("flag", json!(row.setting.flag_of(&given.words))),
        },
    };
    let typed = |word: &String| match row.setting.kind() {
        Kind::Switch { .. } => json!(word == "true"),
        _ if row.setting.is_number() => serde_json::from_str(word).unwrap_or_else(|_| json!(word)),
        _ => json!(word),
    };
    let value = match (&row.words, row.setting.kind()) {
        (None, _) => Value::Null,
        (Some(words), Kind::List) => words.iter().map(typed).collect(),
        (Some(words), _) => words.first().map_or(Value::Null, typed),
    };
    json!({
        "key": row.setting.key(),
        "value": value,
        "from": from,
        "place": place,
        "line": row.chosen.as_ref().and_then(|chosen| chosen.given.line),
    })
}

fn value(row: &Row<'_>) -> String {
    let text = match (&row.words, row.setting.kind()) {
        (None, _) => "-".into(),
        (Some(words), Kind::List) => format!("[{}]", words.join(", ")),
        (Some(words), _) => words.join(" "),
    };
    clip(&one_line(&text), MAX_VALUE)
}

fn from(row: &Row<'_>) -> String {
    let Some(chosen) = &row.chosen else {
        return "default".into();
    };
    match &chosen.source {
        Source::User(path) | Source::Repository(path) => match chosen.given.line {
            Some(line) => format!("{}, line {line}", shown(path)),
            None => shown(path),
        },
        Source::Variables => row.setting.variable(),
        Source::Flags => row.setting.flag_of(&chosen.given.words),
    }
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

fn number(settings: usize) -> String {
    format!("({})", counted(settings, "setting"))
}
