//! What the model server answers, and how it misbehaves while it does.

use std::time::Duration;

use serde_json::Value;

/// One answer of the scripted model.
///
/// An event is one `data:` line of a stream: the delta with the role comes first, then the deltas of the
/// text and of the tool calls, the raw events, the finish reason, the usage and `[DONE]`.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) content: Content,
    pub(super) headers: Vec<(String, String)>,
    pub(super) manner: Manner,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Message(Message),
    Events(Vec<Vec<u8>>),
    Status { code: u16, body: Option<Vec<u8>> },
    Hang,
}

/// A message of the assistant.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) text: Option<String>,
    pub(super) reasoning: Option<String>,
    pub(super) calls: Vec<Call>,
    pub(super) interleaved: bool,
    pub(super) raw: Vec<Vec<u8>>,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<String>,
}

/// The token counts of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) cached: Option<u64>,
}

/// How the answer travels.
#[derive(Clone, Debug, Default)]
pub(super) struct Manner {
    pub(super) delay: Option<Duration>,
    pub(super) pings: Option<(usize, Duration)>,
    pub(super) stall: Option<(usize, Duration)>,
    pub(super) end: End,
    pub(super) chunk: Option<usize>,
}

/// How the answer ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum End {
    #[default]
    Complete,
    Cut(usize),
    Truncate(usize),
}

impl Reply {
    fn new(content: Content) -> Self {
        Self {
            content,
            headers: Vec::new(),
            manner: Manner::default(),
        }
    }

    fn empty_message() -> Self {
        Self::new(Content::Message(Message {
            text: None,
            reasoning: None,
            calls: Vec::new(),
            interleaved: false,
            raw: Vec::new(),
            usage: Some(Usage {
                prompt: 10,
                completion: 5,
                cached: None,
            }),
            finish: None,
        }))
    }

    /// A message with this text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty_message().with_text(text)
    }

    /// A message with these tool calls.
    #[must_use]
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self::empty_message().with_calls(calls)
    }

    /// A stream of exactly these events and no others, not even `[DONE]`.
    ///
    /// To a request without a stream, they are the body, one per line.
    #[must_use]
    pub fn events<E: Into<Vec<u8>>>(events: impl IntoIterator<Item = E>) -> Self {
        Self::new(Content::Events(events.into_iter().map(Into::into).collect()))
    }

    /// An answer with this HTTP status; the body is an error envelope unless the reply is given one.
    #[must_use]
    pub fn status(code: u16) -> Self {
        Self::new(Content::Status { code, body: None })
    }

    /// No answer at all: the connection stays open and silent until the server stops.
    #[must_use]
    pub fn hang() -> Self {
        Self::new(Content::Hang)
    }

    /// Gives the message a text, before its tool calls.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.message("text").text = Some(text.into());
        self
    }

    /// Gives the message a `reasoning_content`, before its text.
    #[must_use]
    pub fn with_reasoning(mut self, text: impl Into<String>) -> Self {
        self.message("reasoning").reasoning = Some(text.into());
        self
    }

    /// Adds tool calls to the message.
    #[must_use]
    pub fn with_calls(mut self, calls: impl IntoIterator<Item = Call>) -> Self {
        self.message("calls").calls.extend(calls);
        self
    }

    /// Streams the tool calls of the message piece by piece in turn, in place of one after the other.
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.message("calls").interleaved = true;
        self
    }

    /// Sets the token counts of the message, which are 10 and 5 otherwise.
    #[must_use]
    pub fn usage(mut self, prompt: u64, completion: u64) -> Self {
        self.message("usage").usage = Some(Usage {
            prompt,
            completion,
            cached: None,
        });
        self
    }

    /// Says that this many tokens of the prompt came from a cache.
    #[must_use]
    pub fn cached(mut self, tokens: u64) -> Self {
        self.message("usage")
            .usage
            .as_mut()
            .expect("a reply with usage")
            .cached = Some(tokens);
        self
    }

    /// Leaves out the token counts, even where the client asks for them.
    #[must_use]
    pub fn no_usage(mut self) -> Self {
        self.message("usage").usage = None;
        self
    }

    /// Sets the finish reason, which is `tool_calls` or `stop` otherwise.
    #[must_use]
    pub fn finish(mut self, reason: impl Into<String>) -> Self {
        self.message("finish reason").finish = Some(reason.into());
        self
    }

    /// Adds an event with this data to a stream, after the deltas and before the finish reason.
    #[must_use]
    pub fn raw_event(mut self, data: impl Into<Vec<u8>>) -> Self {
        match &mut self.content {
            Content::Events(events) => events.push(data.into()),
            _ => self.message("events").raw.push(data.into()),
        }
        self
    }

    /// Adds a header to the answer, in place of the server's own header with this name.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body of an answer that is a status.
    #[must_use]
    pub fn body(self, body: Value) -> Self {
        self.raw_body(body.to_string())
    }

    /// Sets the body of an answer that is a status, which need not be JSON.
    #[must_use]
    pub fn raw_body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        match &mut self.content {
            Content::Status { body, .. } => *body = Some(bytes.into()),
            other => panic!("only a status has a body of its own, not {other:?}"),
        }
        self
    }

    /// Waits before the first byte of the answer.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.manner.delay = Some(delay);
        self
    }

    /// Sends this many comments before the first event of a stream, and waits `every` after each.
    #[must_use]
    pub fn pings(mut self, count: usize, every: Duration) -> Self {
        self.manner.pings = Some((count, every));
        self
    }

    /// Pauses after so many events of a stream, or in the middle of any other body, and then goes on.
    #[must_use]
    pub fn stall_after(mut self, events: usize, pause: Duration) -> Self {
        self.manner.stall = Some((events, pause));
        self
    }

    /// Resets the connection after so many events of a stream, or in the middle of any other body.
    #[must_use]
    pub fn cut_after(mut self, events: usize) -> Self {
        self.manner.end = End::Cut(events);
        self
    }

    /// Ends a stream after so many events as if it were whole, but without `[DONE]`.
    ///
    /// Any other body stops in its middle, and the connection is closed in good order.
    #[must_use]
    pub fn truncate_after(mut self, events: usize) -> Self {
        self.manner.end = End::Truncate(events);
        self
    }

    /// Sends the body in pieces of this many bytes, whatever the borders of events and characters.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "pieces need at least one byte");
        self.manner.chunk = Some(bytes);
        self
    }

    fn message(&mut self, what: &str) -> &mut Message {
        match &mut self.content {
            Content::Message(message) => message,
            other => panic!("only a message has {what}, not {other:?}"),
        }
    }
}

/// A tool call of the scripted model.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Call {
    /// A call of the tool `name`; its id is made up when the reply is sent.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self::raw(name, arguments.to_string())
    }

    /// A call whose arguments need not be JSON.
    #[must_use]
    pub fn raw(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: None,
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    /// Sets the id of the call.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}
