//! A reply that repeats itself, or the prompt, seen while it is written.

use crate::message::Message;
use crate::model::{ModelEvent, ModelRequest};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The longest unit that is looked for, in words.
const MAX_PERIOD: usize = 40;
/// How often a unit comes again, and how many words that must be, for it to be a loop.
const TIMES: usize = 6;
const MIN_WORDS: usize = 80;
/// Bytes after which a word without an end counts as one.
const MAX_WORD: usize = 32;
/// Bytes of a reply that are looked for in the prompt: of one that goes on, and of one that is over.
const ECHO: usize = 400;
const SHORT_ECHO: usize = 60;

/// Watches one reply.
pub(crate) struct Watch {
    text: Words,
    reasoning: Words,
    echo: Echo,
    /// The end of the text, in which a call may begin that is written as text: what it writes may repeat itself.
    tail: String,
    calls: bool,
}

impl Watch {
    /// A watch over the reply to this request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            text: Words::default(),
            reasoning: Words::default(),
            echo: Echo::new(request),
            tail: String::new(),
            calls: false,
        }
    }

    /// Takes the next event. Answers what is wrong with the reply, once it is.
    pub(crate) fn take(&mut self, event: &ModelEvent) -> Option<&'static str> {
        let (words, said) = match event {
            ModelEvent::Text(said) => (&mut self.text, said),
            ModelEvent::Reasoning(said) => (&mut self.reasoning, said),
            ModelEvent::Call(_) => {
                self.echo.over = true;
                return None;
            }
            ModelEvent::Finished(_) => return self.echo.is_short_one().then_some(ECHOES),
            _ => return None,
        };
        if matches!(event, ModelEvent::Text(_)) && !self.calls {
            self.tail.push_str(said);
            self.calls = CALLS.iter().any(|mark| self.tail.contains(mark));
            let end = self.tail.chars().rev().take(LONGEST_MARK).collect::<Vec<_>>();
            self.tail = end.into_iter().rev().collect();
        }
        if self.calls {
            return None;
        }
        if words.take(said) {
            return Some("the reply repeats itself without end, and was cut");
        }
        let echoes = matches!(event, ModelEvent::Text(_)) && self.echo.take(said);
        echoes.then_some(ECHOES)
    }
}

/// What calls that are written as text have in them.
const CALLS: [&str; 4] = ["<tool_call", "<function", "\"arguments\"", "\"parameters\""];
const LONGEST_MARK: usize = 12;
const ECHOES: &str = "the reply is a piece of the prompt";

/// The last words of a text, and for each period how many words are the same as those one period before.
struct Words {
    word: String,
    last: VecDeque<u64>,
    same: [usize; MAX_PERIOD],
}

impl Default for Words {
    fn default() -> Self {
        Self {
            word: String::new(),
            last: VecDeque::with_capacity(MAX_PERIOD),
            same: [0; MAX_PERIOD],
        }
    }
}

impl Words {
    /// Takes more of the text. Answers whether it is in a loop.
    fn take(&mut self, text: &str) -> bool {
        let mut looping = false;
        for c in text.chars() {
            if !c.is_whitespace() {
                self.word.push(c);
            }
            let over = c.is_whitespace() || self.word.len() >= MAX_WORD;
            if over && !self.word.is_empty() {
                looping |= self.word_ended();
            }
        }
        looping
    }

    fn word_ended(&mut self) -> bool {
        let mut hasher = DefaultHasher::new();
        self.word.hash(&mut hasher);
        self.word.clear();
        let word = hasher.finish();
        let mut looping = false;
        for (before, same) in self.last.iter().zip(&mut self.same) {
            *same = if *before == word { *same + 1 } else { 0 };
        }
        for (index, same) in self.same.iter().enumerate() {
            looping |= *same >= MIN_WORDS.max((index + 1) * (TIMES - 1));
        }
        self.last.truncate(MAX_PERIOD - 1);
        self.last.push_front(word);
        looping
    }
}

/// The beginning of a reply, to be looked for in the prompt.
struct Echo {
    prompt: String,
    said: String,
    over: bool,
}

impl Echo {
    fn new(request: &ModelRequest) -> Self {
        let messages = request.messages.iter().filter_map(|message| match message {
            Message::User { text } => Some(text.as_str()),
            Message::Assistant(_) | Message::Tool(_) => None,
        });
        let texts: Vec<String> = std::iter::once(request.system.as_str())
            .chain(messages)
            .map(plain)
            .collect();
        Self {
            // No reply has this between two words.
            prompt: texts.join("\0"),
            said: String::new(),
            over: false,
        }
    }

    fn take(&mut self, text: &str) -> bool {
        if self.over {
            return false;
        }
        self.said.push_str(text);
        if self.said.len() < ECHO {
            return false;
        }
        self.over = true;
        self.prompt.contains(&plain(&self.said))
    }

    /// Whether a reply that is over is nothing but a piece of the prompt.
    fn is_short_one(&self) -> bool {
        let said = plain(&self.said);
        !self.over && said.len() >= SHORT_ECHO && self.prompt.contains(&said)
    }
}

/// The words with one blank between two.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FinishReason;
    use proptest::prelude::*;

    fn request() -> ModelRequest {
        ModelRequest {
            system: format!(
                "You are a programmer. {}",
                "Follow the rules, one by one.\n".repeat(30)
            ),
            messages: vec![Message::User {
                text: "Make the tests of the parser pass, and change nothing else in the tree.".into(),
            }],
            ..ModelRequest::default()
        }
    }

    fn watched(text: &str, pieces: usize) -> Option<&'static str> {
        let mut watch = Watch::new(&request());
        let chars: Vec<char> = text.chars().collect();
        let mut wrong = None;
        for piece in chars.chunks(pieces) {
            wrong = wrong.or(watch.take(&ModelEvent::Text(piece.iter().collect())));
        }
        wrong.or(watch.take(&ModelEvent::Finished(FinishReason::Stop)))
    }

    #[test]
    fn a_text_that_goes_round_and_round_is_noticed() {
        for text in [
            "I will fix it. ".repeat(60),
            format!("Let me see. {}", "no ".repeat(200)),
            "a".repeat(5_000),
            format!("{}\n", (0..30).map(|n| format!("w{n} ")).collect::<String>()).repeat(7),
        ] {
            assert!(
                watched(&text, 7).is_some_and(|why| why.contains("repeats")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_that_only_has_much_in_common_is_left_alone() {
        for text in [
            (0..500)
                .map(|n| format!("line {n} says {}\n", n * 7))
                .collect::<String>(),
            "I will fix it. ".repeat(10),
            format!("{}\n", "=".repeat(120)).repeat(8),
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n".into(),
        ] {
            assert_eq!(watched(&text, 5), None, "{text}");
        }
    }

    #[test]
    fn a_piece_of_the_prompt_is_noticed_and_a_quote_is_not() {
        let task = "Make the tests of the parser\npass, and change nothing else in the tree.";
        assert_eq!(watched(task, 3), Some(ECHOES));
        assert_eq!(
            watched(&"Follow the rules, one by one. ".repeat(14), 10),
            Some(ECHOES)
        );
        for text in [
            "Make the tests of the parser pass",
            &format!("You said: {task} I did."),
            "",
        ] {
            assert_eq!(watched(text, 3), None, "{text}");
        }
        let mut watch = Watch::new(&request());
        watch.take(&ModelEvent::Text(task.into()));
        watch.take(&ModelEvent::Call(crate::ToolCall {
            id: String::new(),
            name: "x".into(),
            arguments: serde_json::json!({}),
        }));
        assert_eq!(
            watch.take(&ModelEvent::Finished(FinishReason::ToolCalls)),
            None,
            "it works"
        );
    }

    proptest! {
        /// The oracle looks at the whole list of words.
        #[test]
        fn a_loop_is_what_the_definition_says(words in prop::collection::vec("[ab]", 0..60), times in 1usize..40) {
            let text = format!("{} ", words.join(" ")).repeat(times);
            let all: Vec<&str> = text.split_whitespace().collect();
            let looping = (1..=MAX_PERIOD).any(|p| {
                let mut same = 0;
                (p..all.len()).any(|i| {
                    same = if all[i] == all[i - p] { same + 1 } else { 0 };
                    same >= MIN_WORDS.max(p * (TIMES - 1))
                })
            });
            let mut watched = Words::default();
            prop_assert_eq!(watched.take(&text), looping);
        }
    }
}
