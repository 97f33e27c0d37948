//! What a server has been found not to take, and what is sent in its place.
//!
//! A refusal is recognised by what it says: that something of the request is not supported, and the name of a part that
//! the request has. Each fact is learnt at most once, so trying again after each comes to an end.

mod parameters;
mod refusal;
mod schemas;
mod written;

use super::{Options, Protocol};
use crate::effort::Effort;
use parameters::{places, remove};
use refusal::Said;
use schemas::plain_tools;
use serde_json::Value;

/// What is known of one model at one server, beyond what its provider's protocol says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Learnt(Vec<Change>);

/// One thing that is done otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// A parameter is left out.
    Without(&'static str),
    /// The limit of a reply goes by its newer name.
    NewerLimit,
    /// A reply is allowed no more tokens than this.
    AtMost(u32),
    /// The model thinks this much, which is the nearest that it can.
    Effort(Effort),
    /// Thinking is asked for as models of another generation take it.
    OtherThinking,
    /// Earlier reasoning goes back where it did not, and does not where it did.
    OtherEcho,
    /// Schemas of tools hold only what every server knows.
    PlainSchemas,
    /// Chat completions give way to responses.
    Responses,
    /// Replies come in one piece.
    Whole,
    /// A reply that says nothing is one, as it is no different in one piece.
    Silence,
}

impl Learnt {
    /// With one thing more; `None` when it is known already, so that it was of no help.
    pub(crate) fn and(&self, change: Change) -> Option<Self> {
        let known = |old: &Change| std::mem::discriminant(old) == std::mem::discriminant(&change);
        let same = match change {
            Change::Without(_) => self.0.contains(&change),
            _ => self.0.iter().any(known),
        };
        (!same).then(|| Self(self.0.iter().copied().chain([change]).collect()))
    }

    /// What was written down of it, as far as it is understood.
    pub(crate) fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let changes = words.into_iter().filter_map(Change::read);
        changes.fold(Self::default(), |learnt, change| {
            learnt.and(change).unwrap_or(learnt)
        })
    }

    /// What is here and not in `before`.
    pub(crate) fn since(&self, before: &Self) -> Vec<Change> {
        let new = self.0.iter().filter(|change| !before.has(**change));
        new.copied().collect()
    }

    /// Whether this is known.
    pub(crate) fn has(&self, change: Change) -> bool {
        self.0.contains(&change)
    }

    /// The protocol to speak.
    pub(crate) fn protocol(&self, usual: Protocol) -> Protocol {
        match usual {
            Protocol::Chat if self.has(Change::Responses) => Protocol::Responses,
            usual => usual,
        }
    }

    /// What to ask for.
    pub(crate) fn options(&self, asked: Options) -> Options {
        let mut options = asked;
        for change in &self.0 {
            match change {
                Change::AtMost(limit) => options.ceiling = Some(*limit),
                Change::Effort(effort) => options.effort = Some(*effort),
                Change::OtherThinking => options.other_thinking = !asked.other_thinking,
                Change::Whole => options.stream = false,
                _ => {}
            }
        }
        // In responses all of it goes back.
        let usual = asked.echo || self.has(Change::Responses);
        options.echo = usual != self.has(Change::OtherEcho);
        options
    }

    /// Leaves out of a body, or renames in it, what the server does not take.
    pub(crate) fn apply(&self, body: &mut Value) {
        for change in &self.0 {
            match change {
                Change::Without(name) => places(name).for_each(|place| drop(remove(body, place))),
                Change::NewerLimit => {
                    if let (Some(limit), Some(body)) = (remove(body, "/max_tokens"), body.as_object_mut()) {
                        body.insert("max_completion_tokens".into(), limit);
                    }
                }
                Change::PlainSchemas => plain_tools(body),
                _ => {}
            }
        }
    }

    /// What to do otherwise after a request in this protocol, with this body, was refused with these words; `None` when
    /// nothing would help.
    pub(crate) fn after(&self, protocol: Protocol, body: &Value, refusal: &str) -> Option<Self> {
        let said = Said::read(refusal);
        let found = [
            said.wants_responses(protocol),
            said.of_echo(),
            said.of_streams(protocol, body),
            said.of_limit(protocol, body),
            said.of_schemas(body),
            said.of_effort(body),
        ];
        let learnt = found.into_iter().flatten().find_map(|change| self.and(change));
        learnt.or_else(|| {
            let name = said.parameter(body)?;
            // There are two ways to ask for it.
            let thinking = matches!(name, "thinking" | "effort")
                && matches!(protocol, Protocol::Messages | Protocol::Gemini);
            let other = thinking.then(|| self.and(Change::OtherThinking)).flatten();
            other.or_else(|| self.and(Change::Without(name)))
        })
    }
}

/// For people: what is done otherwise.
impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Without(name) => write!(f, "{name} is left out"),
            Self::NewerLimit => f.write_str("max_tokens is called max_completion_tokens"),
            Self::AtMost(limit) => write!(f, "a reply has at most {limit} tokens"),
            Self::Effort(effort) => write!(f, "the model thinks with effort {}", effort.name()),
            Self::OtherThinking => f.write_str("thinking is asked for in the other way"),
            Self::OtherEcho => f.write_str("earlier reasoning is sent back the other way"),
            Self::PlainSchemas => f.write_str("the tools are described in plainer schemas"),
            Self::Responses => f.write_str("it is spoken to in responses"),
            Self::Whole => f.write_str("replies come in one piece"),
            Self::Silence => f.write_str("an empty reply is taken for one"),
        }
    }
}
