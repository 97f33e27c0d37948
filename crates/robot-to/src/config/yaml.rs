//! Reads a mapping of settings from YAML: keys, values as they are written, and lines.
//!
//! It reads twice: first what each value is, then its text. So `4.10` stays `4.10`, and `true` may be a command.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy, Spanned};
use std::fmt;

/// A key and its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: Option<u64>,
    pub(super) value: Value,
}

/// A value as it is written; `None` for one that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    One(Option<String>),
    Many(Vec<Option<String>>),
    /// A mapping, or a list of more than texts.
    Nested,
}

/// What is wrong with the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: Option<u64>,
    pub(super) message: String,
}

/// The entries of a mapping, in order. A text without any content has none.
pub(super) fn mapping(text: &str) -> Result<Vec<Entry>, Fault> {
    let shapes = read(text, &[])?;
    let shapes: Vec<Value> = shapes.into_iter().map(|entry| entry.value).collect();
    read(text, &shapes)
}

/// Reads the values by their shapes; without a shape, the shape itself.
fn read(text: &str, shapes: &[Value]) -> Result<Vec<Entry>, Fault> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 10_000, max_events: 30_000, max_documents: 1 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        yaml.deserialize_option(Entries { shapes })
    })
    .map_err(|error| fault(error.without_snippet()))
}

fn fault(error: &serde_saphyr::Error) -> Fault {
    use serde_saphyr::Error;
    let line = error.location().map(|at| at.line()).filter(|line| *line > 0);
    let said = error.to_string();
    // The parser says the place at the end; it is said at the beginning here.
    let place = error
        .location()
        .map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    let message = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("{key:?} is there twice"),
        Error::NullIntoString { .. } => "a key is missing".into(),
        Error::MergeKeyNotAllowed { .. } => "`<<` is not read; write each setting out".into(),
        Error::Budget { .. } => "it is too large, or more than one document".into(),
        // Without the text itself, which may be a key in the wrong place.
        _ if said.starts_with("invalid type: ") => {
            "settings are keys with values, such as `max_iterations: 20`".into()
        }
        _ => place
            .and_then(|place| said.strip_suffix(&place).map(str::to_owned))
            .unwrap_or(said),
    };
    Fault { line, message }
}

struct Entries<'a> {
    shapes: &'a [Value],
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Vec<Entry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping of settings")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, yaml: D) -> Result<Self::Value, D::Error> {
        yaml.deserialize_any(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let value = match self.shapes.get(entries.len()) {
                None => map.next_value::<Shape>()?.0,
                Some(Value::One(_)) => Value::One(map.next_value()?),
                Some(Value::Many(_)) => Value::Many(map.next_value()?),
                Some(Value::Nested) => {
                    map.next_value::<IgnoredAny>()?;
                    Value::Nested
                }
            };
            entries.push(Entry {
                line: Some(key.referenced.line()).filter(|line| *line > 0),
                key: key.value,
                value,
            });
        }
        Ok(entries)
    }
}

/// What a value is, without its text.
struct Shape(Value);

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(yaml: D) -> Result<Self, D::Error> {
        yaml.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

/// Methods for the kinds of scalars, which are all one here.
macro_rules! scalars {
    ($($method:ident: $type:ty),*) => {
        $(fn $method<E>(self, _: $type) -> Result<Self::Value, E> {
            Ok(Shape(Value::One(None)))
        })*
    };
}

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    scalars! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Shape(Value::One(None)))
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Shape(Value::One(None)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut shape = Value::Many(Vec::new());
        while let Some(Shape(item)) = list.next_element()? {
            if !matches!(item, Value::One(_)) {
                shape = Value::Nested;
            }
        }
        Ok(Shape(shape))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Shape(Value::Nested))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Value {
        Value::One(Some(text.to_owned()))
    }

    #[test]
    fn values_keep_the_text_that_was_written() {
        let text = "# a comment\nversion: 4.10\ncommand: true\nnumber: 007\nquoted: \"a: b\"\nlist: [1, 'two']\n\
                    nothing:\ntilde: ~\nempty: ''\nnested: {a: 1}\ndeep: [[1]]\nblock: |\n  a\n  b\nnan: .nan\n";
        let entries = mapping(text).unwrap();
        let values: Vec<(&str, Option<u64>, Value)> = entries
            .iter()
            .map(|entry| (entry.key.as_str(), entry.line, entry.value.clone()))
            .collect();
        let list = Value::Many(vec![Some("1".to_owned()), Some("two".to_owned())]);
        assert_eq!(
            values,
            [
                ("version", Some(2), one("4.10")),
                ("command", Some(3), one("true")),
                ("number", Some(4), one("007")),
                ("quoted", Some(5), one("a: b")),
                ("list", Some(6), list),
                ("nothing", Some(7), Value::One(None)),
                ("tilde", Some(8), Value::One(None)),
                ("empty", Some(9), one("")),
                ("nested", Some(10), Value::Nested),
                ("deep", Some(11), Value::Nested),
                ("block", Some(12), one("a\nb\n")),
                ("nan", Some(15), one(".nan")),
            ]
        );
    }

    #[test]
    fn a_text_without_content_has_no_entries() {
        for text in ["", "\n", "# only a comment\n", "---\n", "null\n"] {
            assert_eq!(mapping(text), Ok(Vec::new()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ -~\n]{0,200}|(a|b|: |- |\\[|\\{|\n|&x|\\*x|!!int|<<|'|\"|~|1.5){0,40}") {
            drop(mapping(&text));
        }
    }
}
