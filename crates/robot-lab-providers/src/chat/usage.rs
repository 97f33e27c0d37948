//! Reads the token counts of a chat completion, and leaves out those that cannot be right.

use robot_lab::Usage;
use serde_json::Value;

/// More tokens than any request can have: a count above is an error of the server.
const ABSURD: u64 = 1_000_000_000;

/// The counts in a `usage` object. `None` where they are missing, negative, absurd or all zero, so that they are
/// estimated.
pub(super) fn read(usage: &Value) -> Option<Usage> {
    let count = |pointer: &str| {
        usage
            .pointer(pointer)
            .and_then(Value::as_u64)
            .filter(|n| *n <= ABSURD)
    };
    let input = count("/prompt_tokens")?;
    let output = count("/completion_tokens")?;
    if input == 0 && output == 0 {
        return None;
    }
    let part = |pointers: &[&str], whole: u64| {
        pointers
            .iter()
            .find_map(|pointer| count(pointer))
            .unwrap_or_default()
            .min(whole)
    };
    Some(Usage {
        input,
        cached_input: part(
            &["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"],
            input,
        ),
        cache_write: part(&["/prompt_tokens_details/cache_write_tokens"], input),
        output,
        reasoning: part(&["/completion_tokens_details/reasoning_tokens"], output),
        estimated: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_that_cannot_be_right_are_left_out() {
        for wrong in [
            json!(null),
            json!({}),
            json!({ "prompt_tokens": 5 }),
            json!({ "prompt_tokens": -5, "completion_tokens": 3 }),
            json!({ "prompt_tokens": 0, "completion_tokens": 0 }),
            json!({ "prompt_tokens": 5, "completion_tokens": 4_000_000_000_000_u64 }),
            json!({ "prompt_tokens": "5", "completion_tokens": 3 }),
        ] {
            assert_eq!(read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parts_are_counted_and_never_exceed_the_whole() {
        let usage = json!({
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": { "cached_tokens": 80, "cache_write_tokens": 7 },
            "completion_tokens_details": { "reasoning_tokens": 50 },
        });
        let expected = Usage {
            input: 100,
            cached_input: 80,
            cache_write: 7,
            output: 20,
            reasoning: 20,
            estimated: false,
        };
        assert_eq!(read(&usage), Some(expected));
        let hits = json!({ "prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4 });
        assert_eq!(read(&hits).unwrap().cached_input, 4);
    }
}
