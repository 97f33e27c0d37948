//! Puts the tool calls of a chat completion together from their pieces.

use crate::protocol::{Fault, calls};
use robot_lab::ToolCall;
use serde_json::Value;

/// The longest arguments that are looked at to see whether they are whole, in bytes.
const MAX_LOOKED_AT: usize = 64 * 1024;

/// The calls of one reply, as far as they have come.
#[derive(Debug, Default)]
pub(super) struct Pieces(Vec<Open>);

/// A call that may still grow.
#[derive(Debug)]
struct Open {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Pieces {
    /// Takes one piece, and says how many bytes of a call it holds.
    pub(super) fn push(&mut self, piece: &Value) -> Result<usize, Fault> {
        let text = |pointer: &str| piece.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (index, id, name) = (
            piece.get("index").and_then(Value::as_u64),
            text("/id"),
            text("/function/name"),
        );
        let arguments = match piece.pointer("/function/arguments") {
            Some(Value::String(more)) => more.clone(),
            None | Some(Value::Null) => String::new(),
            // Some servers send a whole object in place of its text.
            Some(whole) => whole.to_string(),
        };
        let bytes = name.len() + arguments.len();
        if let Some(call) = self.find(index, id, name, &arguments) {
            if call.id.is_empty() {
                call.id = id.into();
            }
            if call.name.is_empty() {
                call.name = name.into();
            }
            call.arguments.push_str(&arguments);
        } else if bytes > 0 || !id.is_empty() {
            calls::check_number(self.0.len())?;
            self.0.push(Open {
                index,
                id: id.into(),
                name: name.into(),
                arguments,
            });
        }
        Ok(bytes)
    }

    /// The call that a piece belongs to. Pieces are told apart by their index; servers without one, or with the
    /// same one for every call, announce a further call by a new id and a name. Without ids, a further call is one with
    /// another name, or with arguments where those before are whole.
    fn find(&mut self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<&mut Open> {
        let found = match index {
            Some(_) => self.0.iter_mut().rfind(|call| call.index == index),
            None if !id.is_empty() && !name.is_empty() => self.0.iter_mut().rfind(|call| call.id == id),
            None => self.0.last_mut(),
        };
        found.filter(|call| {
            if name.is_empty() {
                return true;
            }
            if !id.is_empty() && !call.id.is_empty() {
                return call.id == id;
            }
            let follows = arguments.is_empty() || !is_whole(&call.arguments);
            call.name.is_empty() || (call.name == name && follows)
        })
    }

    /// The whole calls, once the reply is known to be complete.
    pub(super) fn finish(self) -> Result<Vec<ToolCall>, Fault> {
        let whole = |call: Open| calls::whole(call.id, call.name, calls::parse(call.arguments));
        self.0.into_iter().map(whole).collect()
    }
}

/// Whether nothing can follow this text. One that is very long is not looked at again and again.
fn is_whole(arguments: &str) -> bool {
    arguments.len() < MAX_LOOKED_AT
        && arguments.trim_end().ends_with('}')
        && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn collect(pieces: &[Value]) -> Vec<(String, String, Value)> {
        let mut collected = Pieces::default();
        for piece in pieces {
            collected.push(piece).unwrap();
        }
        let whole = collected.finish().unwrap();
        whole
            .into_iter()
            .map(|call| (call.id, call.name, call.arguments))
            .collect()
    }

    fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
        (id.into(), name.into(), arguments)
    }

    #[test]
    fn an_index_that_starts_late_makes_no_further_call() {
        let piece = json!({ "index": 7, "id": "a", "function": { "name": "t", "arguments": "{}" } });
        assert_eq!(collect(&[piece]), [call("a", "t", json!({}))]);
    }

    #[test]
    fn calls_without_an_index_or_all_with_the_same_are_told_apart_by_id() {
        for index in [json!(null), json!(0)] {
            let pieces = [
                json!({ "index": index, "id": "a", "function": { "name": "t", "arguments": "{\"x\"" } }),
                json!({ "index": index, "function": { "arguments": ":1}" } }),
                json!({ "index": index, "id": "b", "function": { "name": "t", "arguments": { "x": 2 } } }),
            ];
            let expected = [
                call("a", "t", json!({ "x": 1 })),
                call("b", "t", json!({ "x": 2 })),
            ];
            assert_eq!(collect(&pieces), expected, "index {index}");
        }
    }

    #[test]
    fn an_id_and_a_name_that_are_repeated_make_no_further_call() {
        let pieces = [
            json!({ "index": 0, "id": "a", "function": { "name": "t", "arguments": "{" } }),
            json!({ "index": 0, "id": "a", "function": { "name": "t", "arguments": "}" } }),
            json!({ "index": 0, "id": "b", "function": { "name": null, "arguments": " " } }),
        ];
        assert_eq!(collect(&pieces), [call("a", "t", json!({}))]);
    }

    #[test]
    fn a_flood_of_calls_or_a_call_without_a_name_is_refused() {
        let mut many = Pieces::default();
        let flood = |n: usize| json!({ "index": n, "id": n.to_string(), "function": { "name": "t" } });
        for n in 0..calls::MAX_CALLS {
            many.push(&flood(n)).unwrap();
        }
        assert!(many.push(&flood(calls::MAX_CALLS)).is_err());

        let mut nameless = Pieces::default();
        nameless
            .push(&json!({ "index": 0, "id": "a", "function": { "arguments": "{}" } }))
            .unwrap();
        assert!(nameless.finish().is_err());
    }
}
