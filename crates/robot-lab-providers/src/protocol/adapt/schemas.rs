//! Describes tools in schemas that every server knows.

use serde_json::{Map, Value};

/// Describes the tools of a body in plain schemas, where older servers look for them.
pub(super) fn plain_tools(body: &mut Value) {
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
