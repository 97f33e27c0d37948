//! A conversation as it is sent: whole, or with its older parts made shorter.
//!
//! A view is three marks in the conversation and nothing else, so it is a pure function of both: as long as the marks
//! stay, what was sent before is sent again byte for byte, and what is new follows it.

use crate::message::{AssistantPart, Message, ToolCall, ToolPart, ToolResult};
use serde_json::Value;
use std::collections::HashMap;

/// What is left of a long result, in bytes: at its beginning and at its end.
const SHORT: (usize, usize) = (300, 200);
/// The same where it is among the latest.
const LONG: (usize, usize) = (2_000, 1_000);
/// Steps that a summary tells, latest, and the longest line of one, in characters.
const MAX_STEPS: usize = 60;
const MAX_LINE: usize = 160;

/// Which parts are made shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// What lies before this is told in a summary, but for the first message.
    dropped: usize,
    /// Results before this are cut short.
    trimmed: usize,
    /// Results before this are cut to a length from which work can go on.
    squeezed: usize,
}

/// What a message has in bytes, by how it is sent.
struct Sizes {
    whole: usize,
    long: usize,
    short: usize,
}

impl View {
    /// The conversation as it is sent.
    pub(crate) fn render(&self, messages: &[Message]) -> Vec<Message> {
        let start = first(messages);
        let dropped = self.dropped.min(messages.len());
        let mut view = Vec::new();
        let mut rest = 0;
        if dropped > start {
            let mut text = match messages.first() {
                Some(Message::User { text }) => text.clone(),
                _ => String::new(),
            };
            text.push_str(&summary(messages.get(start..dropped).unwrap_or_default()));
            rest = dropped;
            // Some models take no two messages of the user in a row.
            while let Some(Message::User { text: more }) = messages.get(rest) {
                text.push_str("\n\n");
                text.push_str(more);
                rest += 1;
            }
            view.push(Message::User { text });
        }
        let kept = messages.iter().enumerate().skip(rest);
        view.extend(kept.map(|(at, message)| match (message, self.length(at)) {
            (Message::Tool(result), Some(length)) => Message::Tool(cut(result, length)),
            (message, _) => message.clone(),
        }));
        view
    }

    /// Makes the view shorter until it has no more than so many bytes, as far as that is possible: older results first,
    /// then whole turns, and the latest turn last.
    pub(crate) fn compact(&mut self, messages: &[Message], target: usize) {
        let sizes: Vec<Sizes> = messages.iter().map(Sizes::of).collect();
        let fits = |view: &Self| view.size(messages, &sizes) <= target;
        if fits(self) {
            return;
        }
        let is_reply = |message: &Message| matches!(message, Message::Assistant(_));
        let latest = messages.iter().rposition(is_reply).unwrap_or(messages.len());
        let turns = messages.iter().enumerate().skip(first(messages) + 1);
        let begins = turns.filter(|(_, message)| !matches!(message, Message::Tool(_)));
        let begins: Vec<usize> = begins.map(|(at, _)| at).filter(|at| *at <= latest).collect();
        for mark in [Self::trim as fn(&mut Self, usize), Self::drop_before] {
            let marked = |at: &usize| {
                let mut view = *self;
                mark(&mut view, *at);
                view
            };
            // What is marked further is shorter, so the first mark with which it fits can be halved for.
            let first = begins.partition_point(|at| !fits(&marked(at)));
            let Some(at) = begins.get(first).or(begins.last()) else {
                break;
            };
            *self = marked(at);
            if fits(self) {
                return;
            }
        }
        self.squeezed = messages.len();
        if fits(self) {
            return;
        }
        self.trimmed = messages.len();
        if fits(self) || latest == messages.len() {
            return;
        }
        // A call can be long too. What was said since stays.
        let results = messages.iter().skip(latest + 1);
        let results = results.take_while(|message| matches!(message, Message::Tool(_)));
        self.dropped = messages.len().min(latest + 1 + results.count()).max(self.dropped);
    }

    fn trim(&mut self, at: usize) {
        self.trimmed = self.trimmed.max(at);
    }

    fn drop_before(&mut self, at: usize) {
        self.dropped = self.dropped.max(at);
    }

    /// To what length a result is cut.
    fn length(&self, at: usize) -> Option<(usize, usize)> {
        if at < self.trimmed {
            Some(SHORT)
        } else {
            (at < self.squeezed).then_some(LONG)
        }
    }

    fn size(&self, messages: &[Message], sizes: &[Sizes]) -> usize {
        let start = first(messages);
        let told = match self.dropped.min(messages.len()) {
            dropped if dropped > start => summary(messages.get(start..dropped).unwrap_or_default()).len(),
            _ => 0,
        };
        let sent = sizes
            .iter()
            .enumerate()
            .filter(|(at, _)| *at < start || *at >= self.dropped);
        let sent = sent.map(|(at, size)| match self.length(at) {
            Some(SHORT) => size.short,
            Some(_) => size.long,
            None => size.whole,
        });
        // The line between messages of the user that become one is not counted.
        told + sent.sum::<usize>()
    }
}

impl Sizes {
    fn of(message: &Message) -> Self {
        let whole = message.size();
        let at = |length| match message {
            Message::Tool(result) => Message::Tool(cut(result, length)).size(),
            _ => whole,
        };
        Self {
            whole,
            long: at(LONG),
            short: at(SHORT),
        }
    }
}

/// Where what may be dropped begins: behind the first message, which says what is to be done.
fn first(messages: &[Message]) -> usize {
    usize::from(matches!(messages.first(), Some(Message::User { .. })))
}

fn cut(result: &ToolResult, (head, tail): (usize, usize)) -> ToolResult {
    let text = result.text();
    // A note about less than it has itself saves nothing.
    if text.len() <= head + tail + 200 {
        return result.clone();
    }
    let head = text.get(..text.floor_char_boundary(head)).unwrap_or_default();
    let tail = text
        .get(text.ceil_char_boundary(text.len() - tail)..)
        .unwrap_or_default();
    let left = text.len() - head.len() - tail.len();
    let text = format!(
        "{head}\n[… {left} bytes are left out here to make room; call the tool again if you need them …]\n{tail}"
    );
    ToolResult {
        parts: vec![ToolPart::text(text)],
        ..result.clone()
    }
}

/// What was done in these messages, a line for each step.
fn summary(messages: &[Message]) -> String {
    let mut steps = Vec::new();
    let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
    for message in messages {
        match message {
            Message::User { text } => steps.push(line("you were told: ", text)),
            Message::Assistant(reply) => {
                for part in &reply.parts {
                    match part {
                        AssistantPart::Call(call) => {
                            calls.insert(&call.id, call);
                        }
                        AssistantPart::Text { text } if !text.trim().is_empty() => {
                            steps.push(line("you said: ", text));
                        }
                        _ => {}
                    }
                }
            }
            Message::Tool(result) => {
                let (name, arguments) = match calls.get(result.call_id.as_str()) {
                    Some(call) => (call.name.as_str(), told(&call.arguments)),
                    None => ("a tool", String::new()),
                };
                let how = if result.ok { "done" } else { "failed" };
                steps.push(format!("{}: {how}", line(&format!("{name} "), &arguments)));
            }
        }
    }
    let earlier = steps.len().saturating_sub(MAX_STEPS);
    let mut text =
        "\n\n[The beginning of the work on this is left out here to make room. What you did so far:\n"
            .to_owned();
    if earlier > 0 {
        text.push_str(&format!("- {earlier} earlier steps\n"));
    }
    for step in steps.iter().skip(earlier) {
        text.push_str(&format!("- {step}\n"));
    }
    text.push_str("Files are as you left them; read again what you need to know of them.]");
    text
}

/// The arguments of a call in a few words. They can be very long, so they are not written out whole for it.
fn told(arguments: &Value) -> String {
    let beginning = |text: &str| text.chars().take(MAX_LINE).collect::<String>();
    let brief = |value: &Value| match value {
        Value::String(text) => beginning(text),
        Value::Array(_) => "[…]".into(),
        Value::Object(_) => "{…}".into(),
        value => value.to_string(),
    };
    match arguments {
        Value::Object(map) => {
            let parts = map
                .iter()
                .take(10)
                .map(|(key, value)| format!("{key}={}", brief(value)));
            parts.collect::<Vec<_>>().join(" ")
        }
        value => brief(value),
    }
}

/// The beginning of a text in one line.
fn line(before: &str, text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if words.len() > 4 * MAX_LINE {
            break;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.extend(word.chars().take(MAX_LINE + 1));
    }
    let short: String = words.chars().take(MAX_LINE).collect();
    let more = if words.chars().count() > MAX_LINE {
        "…"
    } else {
        ""
    };
    format!("{before}{short}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AssistantMessage, Transcript};
    use proptest::prelude::*;
    use serde_json::json;

    fn size(messages: &[Message]) -> usize {
        messages.iter().map(Message::size).sum()
    }

    /// A turn of calls whose results have these lengths.
    fn turn(number: usize, results: &[usize]) -> Vec<Message> {
        let id = |n: usize| format!("c{number}-{n}");
        let call = |n| {
            AssistantPart::Call(ToolCall {
                id: id(n),
                name: "read".into(),
                arguments: json!({ "path": format!("src/{number}/{n}.rs") }),
            })
        };
        let mut parts = vec![AssistantPart::Text {
            text: format!("Turn {number}."),
        }];
        parts.extend((0..results.len()).map(call));
        let results = results.iter().enumerate().map(|(n, length)| {
            Message::Tool(ToolResult {
                call_id: id(n),
                parts: vec![ToolPart::text("é".repeat(length / 2))],
                ok: n % 2 == 0,
            })
        });
        let reply = Message::Assistant(AssistantMessage { parts });
        std::iter::once(reply).chain(results).collect()
    }

    fn said(text: &str) -> Message {
        Message::User { text: text.into() }
    }

    fn conversation(turns: &[Vec<usize>], nudges: &[usize]) -> Vec<Message> {
        let mut all = vec![said("make every part hold")];
        for (number, results) in turns.iter().enumerate() {
            all.extend(turn(number, results));
            if nudges.contains(&number) {
                all.push(said("go on"));
            }
        }
        all
    }

    #[test]
    fn older_results_go_first_then_whole_turns_and_the_latest_turn_last() {
        let all = conversation(&vec![vec![10_000]; 6], &[]);
        let compacted = |target| {
            let mut view = View::default();
            view.compact(&all, target);
            (view, view.render(&all))
        };
        let (view, sent) = compacted(45_000);
        assert_eq!((view.dropped, sent.len()), (0, all.len()));
        assert_eq!(sent.last(), all.last(), "the latest result is whole");
        assert!(
            matches!(&sent[2], Message::Tool(result) if result.text().contains("bytes are left out here"))
        );
        let (view, sent) = compacted(11_500);
        assert!(view.dropped > 1 && sent.last() == all.last(), "{view:?}");
        let Message::User { text } = &sent[0] else {
            panic!("{sent:?}")
        };
        assert!(
            text.starts_with("make every part hold\n\n[The beginning")
                && text.contains("- read path=src/0/0.rs: done\n"),
            "{text}"
        );
        let (_, sent) = compacted(5_000);
        assert!(size(&sent) <= 5_000 && sent.len() == 3, "{}", size(&sent));
    }

    #[test]
    fn a_long_call_goes_when_nothing_else_is_left_and_what_was_said_since_stays() {
        let mut all = conversation(&[vec![100]], &[]);
        let Message::Assistant(reply) = &mut all[1] else {
            panic!("{all:?}")
        };
        let Some(AssistantPart::Call(call)) = reply.parts.last_mut() else {
            panic!("{reply:?}")
        };
        call.arguments = json!({ "content": "x".repeat(2_000_000) });
        let order = "submit now, and nothing else ".repeat(20);
        all.push(said(&order));
        let mut view = View::default();
        view.compact(&all, 10_000);
        let sent = view.render(&all);
        assert!(size(&sent) < 10_000 && sent.len() == 1, "{}", size(&sent));
        assert!(matches!(&sent[0], Message::User { text } if text.ends_with(&order)));
    }

    #[test]
    fn a_summary_is_bounded_however_long_the_work_was() {
        let all = conversation(&vec![vec![10, 10]; 2_000], &[]);
        let mut view = View::default();
        view.compact(&all, 0);
        let sent = view.render(&all);
        assert!(size(&sent) < 20_000, "{}", size(&sent));
        assert!(matches!(&sent[0], Message::User { text } if text.contains(" earlier steps\n")));
    }

    #[test]
    fn two_messages_of_the_user_are_never_next_to_each_other_because_of_a_view() {
        let all = conversation(&[vec![9_000], vec![], vec![100]], &[0, 1]);
        let mut view = View::default();
        for target in (0..9_500).rev().step_by(100) {
            view.compact(&all, target);
            let sent = view.render(&all);
            let is_user = |message: &Message| matches!(message, Message::User { .. });
            assert!(
                !sent.windows(2).any(|pair| pair.iter().all(is_user)),
                "{target}: {sent:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Whatever the conversation: what is sent is one that providers accept, no longer than was asked for unless
        /// nothing can be left out any more, the same when it is asked for again, and the beginning of what is sent
        /// once more was said.
        #[test]
        fn a_compacted_conversation_is_valid_short_and_stable(
            turns in prop::collection::vec(prop::collection::vec(0usize..5_000, 0..4), 0..12),
            nudges in prop::collection::vec(0usize..20, 0..4),
            more in prop::collection::vec(prop::collection::vec(0usize..9_000, 0..4), 0..4),
            targets in prop::collection::vec(0usize..30_000, 1..3),
        ) {
            let all = conversation(&turns, &nudges);
            let mut view = View::default();
            for target in targets {
                let before = size(&view.render(&all));
                view.compact(&all, target);
                let sent = view.render(&all);
                let transcript = Transcript::try_from(sent.clone());
                prop_assert!(transcript.is_ok_and(|t| t.pending().is_empty() && t.messages() == sent), "not valid");
                let slack = 2 * (nudges.len() + 1);
                let least = sent.len() == 1;
                prop_assert!(size(&sent) <= target + slack || least, "{} of {target}: {view:?}", size(&sent));
                prop_assert!(size(&sent) <= before || before > target);
                let first = matches!(&sent[0], Message::User { text } if text.starts_with("make every part hold"));
                prop_assert!(first);
                let mut again = view;
                again.compact(&all, target);
                prop_assert_eq!(again.render(&all), sent.clone());
                let mut longer = all.clone();
                for (n, results) in more.iter().enumerate() {
                    longer.extend(turn(100 + n, results));
                }
                let next = view.render(&longer);
                prop_assert_eq!(&next[..sent.len()], &sent[..]);
            }
        }
    }
}
