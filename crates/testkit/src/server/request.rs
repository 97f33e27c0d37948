//! A request as the model server captured it.

use std::time::Instant;

use serde_json::Value;

use super::dialect::Dialect;

/// One request that the server got.
#[derive(Clone, Debug)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The target of the request line, with the query if there was one.
    pub path: String,
    /// The headers in their order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null where there was none or where it was not JSON.
    pub body: Value,
    /// When the last byte of the request had arrived.
    pub at: Instant,
}

impl Request {
    /// The first value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The messages of the transcript.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.body
            .get("messages")
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// The text of the last message with this role, with the text parts of a list joined.
    #[must_use]
    pub fn last_text(&self, role: &str) -> Option<String> {
        let message = self
            .messages()
            .iter()
            .rev()
            .find(|message| message.get("role").is_some_and(|is| is == role))?;
        match message.get("content")? {
            Value::String(text) => Some(text.clone()),
            Value::Array(parts) => Some(
                parts
                    .iter()
                    .filter_map(|part| part.get("text").and_then(Value::as_str))
                    .collect(),
            ),
            _ => None,
        }
    }

    /// The names of the tools that the model is offered.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self
            .body
            .get("tools")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        tools
            .iter()
            .filter_map(|tool| tool.pointer("/function/name").and_then(Value::as_str))
            .collect()
    }

    /// Whether the client asked for a stream of events.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        match Dialect::of(self) {
            Some(dialect) => dialect.is_streaming(self),
            None => self.body.get("stream") == Some(&Value::Bool(true)),
        }
    }

    /// The name of the header that the key belongs in.
    #[must_use]
    pub fn key_header(&self) -> &'static str {
        Dialect::of(self).unwrap_or(Dialect::OpenAi).key_header().0
    }

    /// Stands for a request that could not be read.
    pub(super) fn nothing() -> Self {
        Self {
            method: String::new(),
            path: String::new(),
            headers: Vec::new(),
            body: Value::Null,
            at: Instant::now(),
        }
    }

    pub(super) fn wants_usage(&self) -> bool {
        self.body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true))
    }

    pub(super) fn model(&self) -> &str {
        self.body.get("model").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn asks_to_close(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}
