//! What differs between a request that was recorded and one that is sent now, in words for people.

use robot_lab::counted;
use serde_json::Value;

/// Characters that are shown on each side of where two texts part.
const AROUND: usize = 60;

/// Where the bodies differ first, and what each says there; `None` when they are the same.
pub(super) fn difference(recorded: &str, now: &str) -> Option<String> {
    if recorded == now {
        return None;
    }
    let parsed = (
        serde_json::from_str::<Value>(recorded),
        serde_json::from_str::<Value>(now),
    );
    let found = match parsed {
        (Ok(recorded), Ok(now)) => within(&recorded, &now, String::new()),
        _ => Some(texts("", recorded, now)),
    };
    // Bodies that say the same can still be written differently.
    Some(found.unwrap_or_else(|| texts("", recorded, now)))
}

fn within(recorded: &Value, now: &Value, path: String) -> Option<String> {
    match (recorded, now) {
        (Value::Object(a), Value::Object(b)) => {
            let differs = a.iter().find_map(|(key, old)| match b.get(key) {
                Some(new) => within(old, new, join(&path, key)),
                None => Some(format!("{} is not sent any more", join(&path, key))),
            });
            let added = || b.keys().find(|key| !a.contains_key(*key));
            differs.or_else(|| added().map(|key| format!("{} is new", join(&path, key))))
        }
        (Value::Array(a), Value::Array(b)) => {
            let mut pairs = a.iter().zip(b).enumerate();
            let differs = pairs.find_map(|(i, (old, new))| within(old, new, format!("{path}[{i}]")));
            differs.or_else(|| {
                (a.len() != b.len())
                    .then(|| format!("{path} has {}, it had {}", counted(b.len(), "entry"), a.len()))
            })
        }
        (Value::String(a), Value::String(b)) => (a != b).then(|| texts(&path, a, b)),
        (a, b) => (a != b).then(|| texts(&path, &a.to_string(), &b.to_string())),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn texts(path: &str, recorded: &str, now: &str) -> String {
    let same = recorded
        .chars()
        .zip(now.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let shown = |text: &str| -> String {
        let from = same.saturating_sub(AROUND);
        let before = if from > 0 { "…" } else { "" };
        let part: String = text.chars().skip(from).take(2 * AROUND).collect();
        let after = if text.chars().count() > from + 2 * AROUND {
            "…"
        } else {
            ""
        };
        format!("{before}{part}{after}")
    };
    let place = if path.is_empty() { "the body" } else { path };
    format!(
        "{place} differs from character {}: recorded {:?}, now {:?}",
        same + 1,
        shown(recorded),
        shown(now)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        for (recorded, now, expected) in [
            (r#"{"a":1}"#, r#"{"a":1}"#, None),
            (
                r#"{"a":1}"#,
                r#"{"a": 1}"#,
                Some("the body differs from character 6"),
            ),
            (
                r#"{"a":1}"#,
                r#"{"a":2}"#,
                Some("a differs from character 1: recorded \"1\", now \"2\""),
            ),
            (r#"{"a":1,"b":2}"#, r#"{"a":1}"#, Some("b is not sent any more")),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, Some("b is new")),
            (
                r#"{"messages":[{"content":"one two"}]}"#,
                r#"{"messages":[{"content":"one three"}]}"#,
                Some("messages[0].content differs from character 6: recorded \"one two\", now \"one three\""),
            ),
            (
                r#"{"m":[1]}"#,
                r#"{"m":[1,2]}"#,
                Some("m has 2 entries, it had 1"),
            ),
            ("x", "y", Some("the body differs from character 1")),
        ] {
            let found = difference(recorded, now);
            match expected {
                None => assert_eq!(found, None),
                Some(expected) => assert!(
                    found.clone().is_some_and(|said| said.starts_with(expected)),
                    "{found:?}"
                ),
            }
        }
    }

    #[test]
    fn long_texts_are_shown_around_the_difference() {
        let long = "x".repeat(1000);
        let said = difference(&format!("{long}a{long}"), &format!("{long}b{long}")).unwrap();
        assert!(
            said.len() < 500 && said.contains("from character 1001") && said.contains('…'),
            "{said}"
        );
    }
}
