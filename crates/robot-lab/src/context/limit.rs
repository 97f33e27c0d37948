//! Reads the numbers that providers name when they refuse a conversation for its length.

/// What a refusal says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Tokens that the model takes.
    pub(super) window: Option<u64>,
    /// Tokens that were sent.
    pub(super) sent: Option<u64>,
}

/// Smaller numbers are no lengths of conversations; nor are larger ones.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 1_000..=100_000_000;

/// Words that stand before, or right behind, the number of tokens that the model takes.
const WINDOW: [&str; 11] = [
    "context size",
    "context length",
    "context_length",
    "context window",
    "maximum context",
    "n_ctx",
    "number of tokens allowed",
    "the context has",
    "limit",
    "maximum prompt length",
    "maximum",
];

/// Words that stand before the number of tokens that were sent.
const SENT: [&str; 7] = [
    "request (",
    "requested",
    "resulted in",
    "n_prompt_tokens",
    "token count",
    "prompt is too long:",
    "request contains",
];

/// What a message says, as far as it does.
pub(super) fn said(message: &str) -> Said {
    let text = message.to_ascii_lowercase();
    let numbers = numbers(&text);
    let after = |words: &str| {
        let at = text.find(words)? + words.len();
        let near = numbers
            .iter()
            .find(|(start, _)| *start >= at && start - at <= 32)?;
        Some(near.1)
    };
    // As in "8000 > 4096".
    let compared = text.split_once(" > ").map(|(before, _)| before.len());
    let right = compared.and_then(|at| numbers.iter().find(|(start, _)| *start > at));
    let sent = SENT.iter().find_map(|words| after(words));
    let window = match right {
        Some((_, window)) => Some(*window),
        None => WINDOW.iter().find_map(|words| after(words)),
    };
    match (window, sent) {
        // What was sent is more than what is taken; else one of them is something else.
        (Some(window), Some(sent)) if sent <= window => Said::default(),
        (window, sent) => Said { window, sent },
    }
}

/// The plausible numbers of a text, and where each begins. Commas between digits do not count.
fn numbers(text: &str) -> Vec<(usize, u64)> {
    let mut numbers = Vec::new();
    let mut run: Option<(usize, String)> = None;
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        let next_is_digit = bytes.peek().is_some_and(|(_, next)| next.is_ascii_digit());
        match &mut run {
            Some((_, digits)) if byte.is_ascii_digit() => digits.push(char::from(byte)),
            Some(_) if byte == b',' && next_is_digit => {}
            None if byte.is_ascii_digit() => run = Some((at, char::from(byte).to_string())),
            _ => numbers.extend(run.take()),
        }
    }
    numbers.extend(run);
    let read =
        |(at, digits): (usize, String)| Some((at, digits.parse().ok().filter(|n| PLAUSIBLE.contains(n))?));
    numbers.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_words_of_providers() {
        for (message, window, sent) in [
            (
                "openai refused (400): request (9030 tokens) exceeds the available context size (8192 tokens), try it",
                Some(8_192),
                Some(9_030),
            ),
            (
                r#"{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":9030,"n_ctx":8192}"#,
                Some(8_192),
                Some(9_030),
            ),
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
                Some(128_000),
                Some(130_001),
            ),
            (
                "prompt is too long: 205,123 tokens > 200,000 maximum",
                Some(200_000),
                Some(205_123),
            ),
            (
                "The input token count (1048999) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
                Some(1_048_999),
            ),
            (
                "about 40000 tokens were sent and 4096 of them read, as the context has 4096",
                Some(4_096),
                None,
            ),
            ("the context window is full", None, None),
            ("the maximum is 3 tries (400)", None, None),
            ("", None, None),
        ] {
            let said = said(message);
            assert_eq!((said.window, said.sent), (window, sent), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in ".*", n in any::<u64>()) {
            let said = said(&format!("{text}maximum context length is {n} {text}"));
            prop_assert!(said.window.is_none_or(|n| PLAUSIBLE.contains(&n)));
        }
    }
}
