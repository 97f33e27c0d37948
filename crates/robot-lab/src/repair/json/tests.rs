//! Slips that are repaired, everything else that is not, and what holds for whatever a model writes.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn repaired(text: &str) -> Value {
    let read = read(text).unwrap_or_else(|flaw| panic!("{text}: {flaw}"));
    assert!(read.repaired, "{text}");
    Value::Object(read.object)
}

#[test]
fn case_135_136_slips_that_can_mean_one_thing_are_repaired() {
    for (written, meant) in [
        ("{\"a\": 1,}", json!({"a": 1})),
        ("{\"a\": [1, 2, ], }", json!({"a": [1, 2]})),
        ("{'a': 'b'}", json!({"a": "b"})),
        ("{'a': 'say \"b\"'}", json!({"a": "say \"b\""})),
        ("{'a': 'it\\'s'}", json!({"a": "it's"})),
        ("{a: \"b\", c_d-2: 3}", json!({"a": "b", "c_d-2": 3})),
        (
            "{\"a\": True, \"b\": False, \"c\": None}",
            json!({"a": true, "b": false, "c": null}),
        ),
        ("{\"a\": \"x\ny\tz\u{1}\"}", json!({"a": "x\ny\tz\u{1}"})),
        ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
        ("Here it is: {\"a\": 1} I hope it's right.", json!({"a": 1})),
        ("\"{\\\"a\\\": 1}\"", json!({"a": 1})),
        ("\"{\\\"a\\\": 1,}\"", json!({"a": 1})),
        (
            "{\"a\": \"\\u00e9\\ud83d\\ude00\\n\\/\",}",
            json!({"a": "é😀\n/"}),
        ),
        (
            "{\"a\": {'b': [{c: -1.5e3}]}}",
            json!({"a": {"b": [{"c": -1500.0}]}}),
        ),
        ("{,}", Value::Null),
    ] {
        if meant.is_null() {
            assert!(read(written).is_err(), "{written}");
        } else {
            assert_eq!(repaired(written), meant, "{written}");
        }
    }
}

#[test]
fn case_135_136_what_could_mean_two_things_is_answered_with_its_place() {
    for (written, part) in [
        (
            "{\"path\":\"a\\b\",\"content\":\"x\ny\",}",
            "line 1 column 11, after `{\"path\":\"a`",
        ),
        ("{\"a\": \"C:\\d\"}", "no such escape"),
        ("{\"a\": \"it\\'s\"}", "no such escape"),
        ("{\"a\": \"\\x41\"}", "no such escape"),
        ("{\"a\": \"\\u12\",}", "four digits"),
        ("{\"a\": \"\\ud83d\",}", "four digits"),
        ("{\"a\": \"\\ude00\",}", "four digits"),
        (
            "{\n\"a\": \"say \"b\" now\"}",
            "expected `,` or `}` (line 2 column 12",
        ),
        ("{'a': 'it's'}", "expected `,` or `}`"),
        ("{\"a\": 1 \"b\": 2}", "expected `,` or `}`"),
        ("{\"a\" 1}", "expected `:`"),
        ("{\"a\": b}", "write a text in quotes"),
        ("{\"a\": 12ab}", "no number"),
        ("{\"a\": 01}", "no number"),
        ("{\"a\": .5}", "expected a value"),
        ("{\"a\": NaN}", "expected a value"),
        ("{\"a\": 1, \"a\": 2,}", "there twice (line 1 column 10"),
        ("{\"a\": 1}}", "nothing after the object"),
        ("{\"a\": 1,} {\"b\": 2}", "nothing after the object"),
        ("{\"a\": 1", "expected `,` or `}`"),
        ("{\"a\": \"b", "no closing quote"),
        ("path: a", "expected `{`"),
        ("", "expected `{`"),
        ("{,}", "expected a key"),
        ("{\"a\": 1,,}", "expected a key"),
        ("{\"a\": [1,,]}", "expected a value"),
        ("{{\"a\": 1}}", "expected a key"),
        ("[{\"a\": 1},]", "expected `{`"),
        ("[{\"a\": 1}]", "must be a JSON object, not a list"),
        ("[]", "must be a JSON object, not a list"),
        ("null", "must be a JSON object, not null"),
        ("7", "must be a JSON object, not a number"),
        ("true", "must be a JSON object, not a boolean"),
        ("\"\\\"{}\\\"\"", "must be a JSON object, not a string"),
    ] {
        let flaw = read(written).unwrap_err().to_string();
        assert!(flaw.contains(part), "{written}: {flaw}");
    }
}

#[test]
fn case_136_depth_and_size_are_bounded() {
    let deep = |n: usize| format!("{{\"a\": {}{},}}", "[".repeat(n), "]".repeat(n));
    assert!(read(&deep(60)).is_ok());
    for n in [64, 127, 200, 20_000] {
        let flaw = read(&deep(n)).unwrap_err().to_string();
        assert!(flaw.contains("deeper than 64"), "{flaw}");
    }
    assert!(read(&"[".repeat(200_000)).is_err());
    assert!(read(&"{\"a\":".repeat(200_000)).is_err());
    let long = format!("{{\"a\": \"{}\",}}", "x".repeat(MAX_REPAIRED));
    assert!(read(&long).unwrap_err().to_string().contains("longer than"));
    let valid = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_REPAIRED));
    assert!(
        !read(&valid).unwrap().repaired,
        "valid JSON of any length is taken"
    );
}

/// Any JSON value, with texts that are awkward to write.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(Value::from),
        "[ -~é😀\n\t]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-z_]{1,6}", value(), 0..5)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Writes a value as a model in a hurry would. Each slip is one that means one thing.
fn sloppily(value: &Value, single: bool, bare: bool, python: bool, raw: bool, comma: bool) -> String {
    let again = |value: &Value| sloppily(value, single, bare, python, raw, comma);
    let more = if comma { "," } else { "" };
    match value {
        Value::Null if python => "None".into(),
        Value::Bool(b) if python => if *b { "True" } else { "False" }.into(),
        Value::String(text) => {
            let quote = if single { '\'' } else { '"' };
            let mut written = String::from(quote);
            for c in text.chars() {
                match c {
                    '\n' if !raw => written.push_str("\\n"),
                    '\t' if !raw => written.push_str("\\t"),
                    '\\' => written.push_str("\\\\"),
                    c if c == quote => written.extend(['\\', c]),
                    c => written.push(c),
                }
            }
            written.push(quote);
            written
        }
        Value::Array(list) => {
            let parts: Vec<String> = list.iter().map(again).collect();
            let more = if list.is_empty() { "" } else { more };
            format!("[{}{more}]", parts.join(", "))
        }
        Value::Object(map) => {
            let key = |key: &str| if bare { key.to_owned() } else { again(&key.into()) };
            let parts: Vec<String> = map
                .iter()
                .map(|(k, v)| format!("{}: {}", key(k), again(v)))
                .collect();
            let more = if map.is_empty() { "" } else { more };
            format!("{{{}{more}}}", parts.join(", "))
        }
        other => other.to_string(),
    }
}

/// All texts and numbers of a value.
fn leaves(value: &Value, texts: &mut Vec<String>, numbers: &mut Vec<f64>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => numbers.extend(number.as_f64()),
        Value::Array(list) => list.iter().for_each(|value| leaves(value, texts, numbers)),
        Value::Object(map) => {
            for (key, value) in map {
                texts.push(key.clone());
                leaves(value, texts, numbers);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The oracle of what an input says: the input with its escapes undone, wherever they stand.
fn unescaped(input: &str) -> String {
    let mut out = String::new();
    let mut chars = input.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some(c @ ('"' | '\\' | '/' | '\''))) => out.push(c),
            ('\\', Some('u')) => {
                let digits: String = chars.clone().take(4).collect();
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                    Some(c) if digits.len() == 4 => {
                        out.push(c);
                        chars.nth(3);
                    }
                    _ => out.push_str("\\u"),
                }
            }
            ('\\', Some(c)) => out.extend(['\\', c]),
            (c, _) => out.push(c),
        }
    }
    out
}

fn numbers_in(input: &str) -> Vec<f64> {
    let belongs = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    input
        .split(|c| !belongs(c))
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn never_invents(input: &str) -> Result<(), TestCaseError> {
    // What was JSON as it was written is serde's to read.
    let Some(read) = read(input).ok().filter(|read| read.repaired) else {
        return Ok(());
    };
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    leaves(&Value::Object(read.object), &mut texts, &mut numbers);
    // Or encoded twice.
    let said = unescaped(input);
    let inner = unescaped(&said);
    for text in texts {
        prop_assert!(
            said.contains(&text) || inner.contains(&text),
            "{text:?} is not in {input:?}"
        );
    }
    let known = numbers_in(input);
    for number in numbers {
        prop_assert!(known.contains(&number), "{number} is not in {input:?}");
    }
    Ok(())
}

/// A small generator of its own, so that very many inputs cost little.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides.max(1)).unwrap()).unwrap()
    }
}

/// A long run of inputs that were valid once, each with a few pieces put in, taken out or doubled.
#[test]
fn forty_thousand_mutations_are_read_or_answered_and_nothing_is_invented() {
    const SEEDS: [&str; 5] = [
        "{\"path\": \"src/a.rs\", \"content\": \"fn a() { \\\"x\\\" }\\n\", \"n\": [1, -2.5, true, null]}",
        "{'path': 'a', 'all': True, 'k': None,}",
        "```json\n{path: \"a\", n: {m: [[]]}}\n```",
        "Sure: {\"a\": {\"b\": \"c\"}}",
        "{\"a\":\"\",\"b\":{},\"c\":[[],{}]}",
    ];
    const PIECES: [&str; 24] = [
        "{", "}", "[", "]", ",", ":", "\"", "'", "\\", "\\\\", "\n", " ", "```", "True", "None", "0", "-",
        "1e3", "é", "\u{0}", "\\n", "a", "😀", "\"a\":",
    ];
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for round in 0..40_000 {
        let mut chars: Vec<char> = SEEDS[round % SEEDS.len()].chars().collect();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(chars.len() + 1);
            match dice.roll(4) {
                0 if at < chars.len() => drop(chars.remove(at)),
                1 => chars.truncate(at),
                _ => {
                    let piece = PIECES[dice.roll(PIECES.len())];
                    chars.splice(at..at, piece.chars());
                }
            }
        }
        let input: String = chars.into_iter().collect();
        never_invents(&input).unwrap_or_else(|error| panic!("{error}"));
    }
}

proptest! {
    #[test]
    fn valid_json_passes_through_unchanged(object in object()) {
        for text in [object.to_string(), serde_json::to_string_pretty(&object).unwrap()] {
            let read = read(&text).unwrap();
            prop_assert!(!read.repaired);
            prop_assert_eq!(Value::Object(read.object), object.clone());
        }
    }

    #[test]
    fn what_was_written_sloppily_is_what_was_meant(
        object in object(), (single, bare, python, raw, comma) in any::<(bool, bool, bool, bool, bool)>(), around in 0usize..4
    ) {
        let text = sloppily(&object, single, bare, python, raw, comma);
        let text = match around {
            1 => format!("```json\n{text}\n```"),
            2 => format!("Here are the arguments:\n{text}\nThat's it."),
            3 => serde_json::to_string(&text).unwrap(),
            _ => text,
        };
        let read = read(&text);
        prop_assert!(read.is_ok(), "{text}: {read:?}");
        prop_assert_eq!(Value::Object(read.unwrap().object), object);
    }

    #[test]
    fn no_beginning_of_an_object_is_taken_for_the_whole(
        object in object(), (single, bare, python, raw, comma) in any::<(bool, bool, bool, bool, bool)>(), cut in any::<prop::sample::Index>()
    ) {
        let text = sloppily(&object, single, bare, python, raw, comma);
        let end = text.floor_char_boundary(cut.index(text.len()));
        prop_assert!(read(text.get(..end).unwrap()).is_err(), "{}", text.get(..end).unwrap());
    }

    #[test]
    fn whatever_is_written_nothing_panics_and_nothing_is_invented(text in "[{}\\[\\]:,\"'\\\\ntu0-9a-f. \n`Té]{0,60}") {
        never_invents(&text)?;
    }

    #[test]
    fn any_text_at_all_is_read_or_answered(text in any::<String>()) {
        never_invents(&text)?;
    }
}
