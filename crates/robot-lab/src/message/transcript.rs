//! The conversation of one robot, which can only hold valid orders of messages.

use super::{AssistantMessage, AssistantPart, Message, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// A conversation in which every tool call is answered exactly once, in order, before anything else follows.
///
/// Providers reject a conversation that breaks this rule, so there is no way to build one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Message>", into = "Vec<Message>")]
pub struct Transcript {
    messages: Vec<Message>,
    /// Calls of the last reply that have no result yet; the next to be answered is first.
    pending: Vec<ToolCall>,
}

/// A message that may not follow.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TranscriptError {
    /// A message other than a result, while calls wait for theirs.
    #[error("tool call {0} has no result yet; answer it first")]
    Unanswered(String),
    /// A result for a call that is not the next one.
    #[error("result for tool call {got}, but {expected} is next")]
    WrongCall {
        /// The id that the result carries.
        got: String,
        /// The id that should be answered.
        expected: String,
    },
    /// A result that nothing waits for.
    #[error("result for tool call {0}, which is not pending")]
    NotPending(String),
}

impl Transcript {
    /// An empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The calls of the last reply that wait for a result, in order.
    pub fn pending(&self) -> &[ToolCall] {
        &self.pending
    }

    /// Adds what the user says.
    pub fn push_user(&mut self, text: impl Into<String>) -> Result<(), TranscriptError> {
        self.check_answered()?;
        self.messages.push(Message::User { text: text.into() });
        Ok(())
    }

    /// Adds a model's reply. Call ids that are empty or were used before are replaced by new ones, so that each
    /// result has one address; the reply as it was added is in [`messages`](Self::messages).
    pub fn push_assistant(&mut self, mut reply: AssistantMessage) -> Result<(), TranscriptError> {
        self.check_answered()?;
        let mut used: HashSet<String> = self
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::Tool(result) => Some(result.call_id.clone()),
                _ => None,
            })
            .collect();
        for part in &mut reply.parts {
            if let AssistantPart::Call(call) = part {
                if call.id.is_empty() || used.contains(&call.id) {
                    let mut n = used.len() + 1;
                    while used.contains(&format!("call_{n}")) {
                        n += 1;
                    }
                    call.id = format!("call_{n}");
                }
                used.insert(call.id.clone());
            }
        }
        self.pending = reply.calls().cloned().collect();
        self.messages.push(Message::Assistant(reply));
        Ok(())
    }

    /// Answers the next pending call.
    pub fn push_result(&mut self, result: ToolResult) -> Result<(), TranscriptError> {
        match self.pending.first() {
            None => Err(TranscriptError::NotPending(result.call_id)),
            Some(call) if call.id != result.call_id => Err(TranscriptError::WrongCall {
                got: result.call_id,
                expected: call.id.clone(),
            }),
            Some(_) => {
                self.pending.remove(0);
                self.messages.push(Message::Tool(result));
                Ok(())
            }
        }
    }

    /// The text of the last reply, empty when there is none.
    pub fn last_text(&self) -> String {
        let last = self.messages.iter().rev().find_map(|message| match message {
            Message::Assistant(reply) => Some(reply.text()),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// Forgets every message.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.pending.clear();
    }

    fn check_answered(&self) -> Result<(), TranscriptError> {
        match self.pending.first() {
            Some(call) => Err(TranscriptError::Unanswered(call.id.clone())),
            None => Ok(()),
        }
    }
}

impl TryFrom<Vec<Message>> for Transcript {
    type Error = TranscriptError;

    fn try_from(messages: Vec<Message>) -> Result<Self, TranscriptError> {
        let mut transcript = Self::new();
        for message in messages {
            match message {
                Message::User { text } => transcript.push_user(text)?,
                Message::Assistant(reply) => transcript.push_assistant(reply)?,
                Message::Tool(result) => transcript.push_result(result)?,
            }
        }
        Ok(transcript)
    }
}

impl From<Transcript> for Vec<Message> {
    fn from(transcript: Transcript) -> Self {
        transcript.messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(ids: &[&str]) -> AssistantMessage {
        let parts = ids
            .iter()
            .map(|id| {
                AssistantPart::Call(ToolCall {
                    id: (*id).into(),
                    name: "read".into(),
                    arguments: serde_json::json!({}),
                })
            })
            .collect();
        AssistantMessage { parts }
    }

    fn result(id: &str) -> ToolResult {
        ToolResult {
            call_id: id.into(),
            parts: vec![],
            ok: true,
        }
    }

    #[test]
    fn nothing_follows_an_unanswered_call() {
        let mut t = Transcript::new();
        t.push_user("go").unwrap();
        t.push_assistant(reply(&["a", "b"])).unwrap();
        assert_eq!(t.push_user("more"), Err(TranscriptError::Unanswered("a".into())));
        let wrong = TranscriptError::WrongCall {
            got: "b".into(),
            expected: "a".into(),
        };
        assert_eq!(t.push_result(result("b")), Err(wrong));
        t.push_result(result("a")).unwrap();
        t.push_result(result("b")).unwrap();
        assert_eq!(
            t.push_result(result("b")),
            Err(TranscriptError::NotPending("b".into()))
        );
        t.push_user("more").unwrap();
    }

    #[test]
    fn repeated_and_empty_ids_get_new_ones() {
        let mut t = Transcript::new();
        t.push_assistant(reply(&["a", "a", ""])).unwrap();
        let ids: Vec<_> = t.pending().iter().map(|c| c.id.clone()).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3, "{ids:?}");
    }

    /// The oracle: an order of messages is valid when, read from the front, a list of open ids is emptied by
    /// results in order before any other message comes.
    fn valid(messages: &[Message]) -> bool {
        let mut open: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        for message in messages {
            match message {
                Message::Tool(r) => {
                    if open.first() != Some(&r.call_id) {
                        return false;
                    }
                    open.remove(0);
                }
                _ if !open.is_empty() => return false,
                Message::Assistant(a) => {
                    open = a.calls().map(|c| c.id.clone()).collect();
                    if !open.iter().all(|id| !id.is_empty() && seen.insert(id.clone())) {
                        return false;
                    }
                }
                Message::User { .. } => {}
            }
        }
        true
    }

    proptest! {
        #[test]
        fn any_order_of_pushes_leaves_a_valid_transcript(
            steps in prop::collection::vec((0u8..3, prop::collection::vec("[ab]?", 0..3)), 0..40)
        ) {
            let mut t = Transcript::new();
            for (kind, ids) in steps {
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let pending = t.pending().first().map(|c| c.id.clone());
                let accepted = match kind {
                    0 => t.push_user("x").is_ok(),
                    1 => t.push_assistant(reply(&ids)).is_ok(),
                    _ => {
                        let id = ids.first().map_or_else(|| pending.clone().unwrap_or_default(), |id| (*id).into());
                        let right = pending.as_deref() == Some(id.as_str());
                        let took = t.push_result(result(&id)).is_ok();
                        prop_assert_eq!(took, right);
                        took
                    }
                };
                prop_assert!(kind == 2 || accepted == pending.is_none());
                prop_assert!(valid(t.messages()));
            }
            let copy: Transcript = serde_json::from_str(&serde_json::to_string(&t).unwrap()).unwrap();
            prop_assert_eq!(copy, t);
        }
    }
}
