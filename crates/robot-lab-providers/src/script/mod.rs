//! The scripted model: it plays the replies in a YAML file, one per request, whatever is asked.
//!
//! A script stands in for a model wherever a run must be the same each time: in tests, in demonstrations, and to try
//! out a robot without a key.
//!
//! # The format
//!
//! A script is one mapping with the key `turns`: a list with one entry per reply, in order. Unknown keys are errors,
//! so that a slip of the pen is noticed. All keys of a turn may be left out; a turn with none of them (`{}`) is an
//! empty reply.
//!
//! | key | value |
//! |---|---|
//! | `text` | What the model says. It is streamed in a few pieces. |
//! | `calls` | A list of tool calls, which follow the text. |
//! | `usage` | What the request costs. Without it, the cost is estimated from the lengths, and marked so. |
//! | `delay_ms` | How long the reply takes, in milliseconds, at most one hour. The time is spread over the text. |
//! | `cut` | `true`: the reply breaks off, with an error, after its text and before its calls are whole. |
//! | `error` | The request fails, and there is no reply. Only `delay_ms` and `expect` may stand beside it. |
//! | `expect` | A text that the last message of the user or of a tool must contain. |
//!
//! A call has these keys:
//!
//! | key | value |
//! |---|---|
//! | `tool` | The tool's name. Required. |
//! | `args` | The arguments, as a mapping; none when left out. A text stands for arguments that are no JSON object. |
//!
//! `usage` has `input`, `output`, `cached_input`, `cache_write` and `reasoning`, each a number of tokens, and 0 when
//! left out; the last three are parts of the first two.
//!
//! An error has these keys:
//!
//! | key | value |
//! |---|---|
//! | `kind` | `auth`, `billing`, `model_not_found`, `rate_limited`, `overloaded`, `timeout`, `context_length`, `content_filter`, `bad_request`, `malformed_reply`, `network`, `cancelled` or `over_budget`. Required. |
//! | `message` | What is reported. A sentence about the script when left out. |
//! | `retry_after` | The seconds that the provider asks to wait. It counts for `rate_limited`; the other kinds have no such wait. |
//!
//! A turn whose `expect` is not met is not played: the request fails with `bad_request`, which names the turn, so
//! that a script cannot drift away from what it was written for unnoticed. A request after the last turn fails with
//! `bad_request` too. A script has at most 10 000 turns and 16 MiB. Requests that come at the same time take turns
//! in the order in which they come.
//!
//! # Example
//!
//! ```
//! use futures::StreamExt as _;
//! use robot_lab::{Message, Model as _, ModelErrorKind, ModelEvent, ModelRequest};
//! use robot_lab_providers::ScriptModel;
//!
//! let model = ScriptModel::from_yaml(r#"
//! ## one entry per reply of the model, in order
//! turns:
//!   - expect: "make the tests pass"
//!     text: "Reading the tests first."
//!     calls:
//!       - tool: read
//!         args: { path: test.sh }
//!     usage: { input: 120, output: 30 }
//!     delay_ms: 15
//!   - error: { kind: rate_limited, message: "try later", retry_after: 0.5 }
//!   - text: "half a"
//!     cut: true
//! "#)?;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # runtime.block_on(async {
//! let messages = vec![Message::User { text: "make the tests pass, please".into() }];
//! let request = ModelRequest { messages, ..ModelRequest::default() };
//! let events: Vec<_> = model.stream(request.clone()).await.unwrap().collect().await;
//! assert!(events.iter().any(|event| matches!(event, Ok(ModelEvent::Call(call)) if call.name == "read")));
//!
//! let error = model.stream(request).await.err().unwrap();
//! assert_eq!(error.kind, ModelErrorKind::RateLimited { retry_after: Some(std::time::Duration::from_millis(500)) });
//! # });
//! # Ok::<(), robot_lab_providers::ScriptError>(())
//! ```

mod file;
mod play;

pub use file::ScriptError;

use async_trait::async_trait;
use file::Turn;
use robot_lab::{Message, Model, ModelError, ModelErrorKind, ModelId, ModelRequest, ModelStream, counted};
use std::sync::{Mutex, PoisonError};

/// A model that plays a script. The [module](self) describes the format.
#[derive(Debug)]
pub struct ScriptModel {
    id: ModelId,
    turns: Vec<Turn>,
    /// How many turns were played.
    played: Mutex<usize>,
}

impl ScriptModel {
    /// A model that plays this script from its beginning.
    pub fn from_yaml(script: &str) -> Result<Self, ScriptError> {
        let turns = file::read(script)?;
        let id = ModelId {
            provider: "script".into(),
            name: "script".into(),
        };
        Ok(Self {
            id,
            turns,
            played: Mutex::new(0),
        })
    }

    /// The turn for this request and its number, which starts at 1.
    fn next(&self, request: &ModelRequest) -> Result<(usize, &Turn), ModelError> {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(turn) = self.turns.get(*played) else {
            let message = format!(
                "the script is used up after {}; add turns to it",
                counted(self.turns.len(), "turn")
            );
            return Err(ModelError::new(ModelErrorKind::OffScript, message));
        };
        let number = *played + 1;
        if let Some(expected) = &turn.expect {
            let last = last_message(request);
            if !last.contains(expected.as_str()) {
                let message = format!(
                    "turn {number} of the script expects {} in the last message, which is {}; \
                     correct the script, or what leads to it",
                    shorten(expected),
                    shorten(&last)
                );
                return Err(ModelError::new(ModelErrorKind::OffScript, message));
            }
        }
        *played = number;
        Ok((number, turn))
    }
}

#[async_trait]
impl Model for ScriptModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let (number, turn) = self.next(&request)?;
        play::play(number, turn).await
    }
}

/// The text of the last message that is not the model's own.
fn last_message(request: &ModelRequest) -> String {
    let last = request.messages.iter().rev().find_map(|message| match message {
        Message::User { text } => Some(text.clone()),
        Message::Tool(result) => Some(result.text()),
        Message::Assistant(_) => None,
    });
    last.unwrap_or_default()
}

/// A text for a message: quoted, and its beginning only.
fn shorten(text: &str) -> String {
    const MAX: usize = 80;
    let beginning: String = text.chars().take(MAX).collect();
    let more = if text.chars().nth(MAX).is_some() {
        "…"
    } else {
        ""
    };
    format!("{beginning:?}{more}")
}
