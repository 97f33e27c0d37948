//! Values that a schema does not allow but that can mean only one that it does, and a schema in one line.

use serde_json::{Map, Value};

/// Parameters that a line about a tool names.
const MAX_NAMED: usize = 12;

/// Turns the arguments into what the schema says, where that is no guess: a number or a boolean in quotes, a list or an
/// object that was encoded as a text, a whole number with `.0`, and null for what may be left out. A text is never made
/// of anything else. Answers whether something was changed.
pub(super) fn fit(arguments: &mut Map<String, Value>, schema: &Value) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return false;
    };
    let mut changed = false;
    for (name, property) in properties {
        let Some(value) = arguments.get_mut(name) else {
            continue;
        };
        let Some(types) = types_of(property) else { continue };
        if types.iter().any(|kind| is(value, kind)) {
            continue;
        }
        if value.is_null() {
            if !required(schema).any(|needed| needed == name) {
                // Without a move of the others: their order is the model's.
                arguments.shift_remove(name);
                changed = true;
            }
        } else if let Some(meant) = types.iter().find_map(|kind| meant(value, kind)) {
            *value = meant;
            changed = true;
        }
    }
    changed
}

/// What a tool takes, in one line: `path (string), limit (integer, optional)`.
pub(crate) fn signature(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return "no arguments".into();
    };
    let named: Vec<String> = properties
        .iter()
        .take(MAX_NAMED)
        .map(|(name, property)| {
            let kinds: Vec<&str> = types_of(property)
                .unwrap_or_default()
                .into_iter()
                .filter(|kind| *kind != "null")
                .collect();
            let kind = if kinds.is_empty() {
                "any".into()
            } else {
                kinds.join(" or ")
            };
            let optional = if required(schema).any(|needed| needed == name) {
                ""
            } else {
                ", optional"
            };
            format!("{name} ({kind}{optional})")
        })
        .collect();
    match (named.is_empty(), properties.len() > MAX_NAMED) {
        (true, _) => "no arguments".into(),
        (false, true) => format!("{}, …", named.join(", ")),
        (false, false) => named.join(", "),
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// The types that a property may have; `None` when its schema is not that simple.
fn types_of(property: &Value) -> Option<Vec<&str>> {
    match property.get("type")? {
        Value::String(kind) => Some(vec![kind.as_str()]),
        Value::Array(kinds) => kinds.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// The value of this type that is surely meant.
fn meant(value: &Value, kind: &str) -> Option<Value> {
    match (value, kind) {
        (Value::Number(number), "integer") => whole(number.as_f64()?),
        (Value::String(text), "boolean") => match text.trim() {
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            _ => None,
        },
        (Value::String(text), "integer" | "number" | "array" | "object") => {
            let value: Value = serde_json::from_str(text.trim()).ok()?;
            is(&value, kind).then_some(value)
        }
        _ => None,
    }
}

/// A number without a fraction, as an integer; only those that a float holds exactly.
fn whole(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() != 0.0 || number.abs() > EXACT {
        return None;
    }
    format!("{number:.0}").parse::<i64>().ok().map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" },
                "limit": { "type": ["integer", "null"] },
                "ratio": { "type": "number" },
                "all": { "type": "boolean" },
                "names": { "type": "array" },
                "any": {},
            },
            "required": ["path", "all"],
        })
    }

    fn fitted(arguments: Value) -> (Value, bool) {
        let Value::Object(mut object) = arguments else {
            panic!()
        };
        let changed = fit(&mut object, &schema());
        (Value::Object(object), changed)
    }

    #[test]
    fn case_58_values_that_can_mean_one_thing_mean_it() {
        for (written, meant) in [
            (json!({"limit": "5"}), json!({"limit": 5})),
            (json!({"limit": " -5 "}), json!({"limit": -5})),
            (json!({"limit": 5.0}), json!({"limit": 5})),
            (json!({"ratio": "0.5"}), json!({"ratio": 0.5})),
            (json!({"all": "true"}), json!({"all": true})),
            (json!({"all": "False"}), json!({"all": false})),
            (json!({"names": "[\"a\"]"}), json!({"names": ["a"]})),
            (json!({"ratio": null, "path": "a"}), json!({"path": "a"})),
        ] {
            assert_eq!(fitted(written), (meant, true));
        }
    }

    #[test]
    fn case_58_all_other_values_stay_and_are_answered() {
        for written in [
            json!({"path": "5", "limit": 5, "all": true, "names": [], "any": "5", "more": "5"}),
            json!({"limit": null}),
            json!({"path": 5}),
            json!({"path": null}),
            json!({"path": {"a": 1}}),
            json!({"all": null}),
            json!({"all": "yes"}),
            json!({"all": 1}),
            json!({"limit": "five"}),
            json!({"limit": "5 lines"}),
            json!({"limit": 5.5}),
            json!({"limit": 1e300}),
            json!({"limit": ""}),
            json!({"limit": "0x5"}),
            json!({"names": "a"}),
            json!({"names": "a, b"}),
        ] {
            assert_eq!(fitted(written.clone()), (written, false));
        }
    }

    #[test]
    fn a_signature_names_types_and_what_may_be_left_out() {
        assert_eq!(
            signature(&schema()),
            "path (string), limit (integer, optional), ratio (number, optional), all (boolean), names (array, optional), \
             any (any, optional)"
        );
        assert_eq!(signature(&json!({})), "no arguments");
        assert_eq!(signature(&json!({"properties": {}})), "no arguments");
    }
}
