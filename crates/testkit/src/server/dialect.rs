//! The protocols that the server speaks, told apart by the endpoint of a request.

use super::reply::{Message, Reply};
use super::request::Request;
use super::{anthropic, gemini, ollama, openai, responses, transcript};

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

impl Dialect {
    /// The dialect of an endpoint that gives replies.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let path = request.path.split('?').next().unwrap_or_default();
        match (request.method.as_str(), path) {
            ("POST", "/v1/chat/completions") => Some(Self::OpenAi),
            ("POST", "/v1/responses") => Some(Self::Responses),
            ("POST", "/v1/messages") => Some(Self::Anthropic),
            ("POST", "/api/chat") => Some(Self::Ollama),
            ("POST", path) if path.starts_with("/v1beta/models/") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// The header with the key, and what stands before the key in it.
    pub(super) fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::OpenAi | Self::Responses | Self::Ollama => ("authorization", "Bearer "),
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }

    /// Whether the client asked for a stream.
    pub(super) fn is_streaming(self, request: &Request) -> bool {
        let asked = request.body.get("stream").and_then(serde_json::Value::as_bool);
        match self {
            Self::OpenAi | Self::Responses | Self::Anthropic => asked == Some(true),
            Self::Ollama => asked != Some(false),
            Self::Gemini => request.path.contains(":streamGenerateContent"),
        }
    }

    /// The type of a stream.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses | Self::Anthropic | Self::Gemini => {
                "text/event-stream; charset=utf-8"
            }
            Self::Ollama => "application/x-ndjson",
        }
    }

    /// Bytes that only keep a stream alive.
    pub(super) fn ping(self) -> &'static [u8] {
        match self {
            Self::OpenAi | Self::Responses | Self::Gemini => b": ping\n\n",
            Self::Anthropic => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
            Self::Ollama => b"\n",
        }
    }

    /// The events of a message, each with its frame.
    pub(super) fn events(self, message: &Message, request: &Request, serial: u64) -> Vec<Vec<u8>> {
        match self {
            Self::OpenAi => openai::events(message, request, serial),
            Self::Responses => responses::events(message, request, serial),
            Self::Anthropic => anthropic::events(message, request, serial),
            Self::Gemini => gemini::events(message, serial),
            Self::Ollama => ollama::events(message, request, serial),
        }
    }

    /// Puts data into the frame of an event.
    pub(super) fn event(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::OpenAi | Self::Gemini => openai::event(data),
            Self::Responses | Self::Anthropic => anthropic::event(data),
            Self::Ollama => [data, b"\n"].concat(),
        }
    }

    /// The whole answer in one body, which only the dialects of OpenAI know how to give.
    pub(super) fn body(self, message: &Message, request: &Request, serial: u64) -> Option<Vec<u8>> {
        match self {
            Self::OpenAi => Some(openai::body(message, request, serial)),
            Self::Responses => Some(responses::body(message, request, serial)),
            Self::Anthropic | Self::Gemini | Self::Ollama => None,
        }
    }

    /// The error envelope under a status.
    pub(super) fn error(self, status: u16, kind: &str, code: &str, message: &str) -> Reply {
        match self {
            Self::OpenAi | Self::Responses => openai::error(status, kind, code, message),
            Self::Anthropic => anthropic::error(status, kind, message),
            Self::Gemini => gemini::error(status, code, message),
            Self::Ollama => ollama::error(status, message),
        }
    }

    /// All that is wrong with a request.
    pub(super) fn violations(self, request: &Request) -> Vec<String> {
        match self {
            Self::OpenAi => transcript::violations(request),
            Self::Responses => responses::violations(request),
            Self::Anthropic => anthropic::violations(request),
            Self::Gemini => gemini::violations(request),
            Self::Ollama => ollama::violations(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Instant;

    fn violations(path: &str, body: Value) -> Vec<String> {
        let request = Request {
            method: "POST".into(),
            path: path.into(),
            headers: vec![("anthropic-version".into(), "2023-06-01".into())],
            body,
            at: Instant::now(),
        };
        Dialect::of(&request).unwrap().violations(&request)
    }

    /// The whole conversation is valid, and each of its changes is not.
    #[track_caller]
    fn check(path: &str, good: &Value, changes: &[(&str, Value)]) {
        assert_eq!(violations(path, good.clone()), Vec::<String>::new());
        for (pointer, value) in changes {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value.clone();
            assert!(!violations(path, bad).is_empty(), "{path} {pointer} {value}");
        }
    }

    #[test]
    fn broken_messages_of_anthropic_are_reported() {
        let result = json!({ "type": "tool_result", "tool_use_id": "a" });
        let text = json!({ "type": "text", "text": "u" });
        let good = json!({ "model": "m", "max_tokens": 1, "messages": [
            { "role": "user", "content": [text] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "signed-2" },
                { "type": "tool_use", "id": "a", "name": "t", "input": {} },
            ] },
            { "role": "user", "content": [result, text] },
        ] });
        let changes = [
            ("/max_tokens", json!(null)),
            ("/messages/0/role", json!("assistant")),
            ("/messages/0/content/0/text", json!(" ")),
            ("/messages/1/content/0/signature", json!("other")),
            ("/messages/1/content/1/input", json!("{}")),
            ("/messages/2/content", json!([text, result])),
            ("/messages/2/content", json!([text])),
            ("/messages/2/content", json!([result, result])),
            ("/messages/2/role", json!("assistant")),
        ];
        check("/v1/messages", &good, &changes);
    }

    #[test]
    fn broken_items_of_responses_are_reported() {
        let good = json!({ "model": "m", "store": false, "input": [
            { "role": "user", "content": "u" },
            { "type": "reasoning", "id": "rs", "encrypted_content": "sealed-2",
              "summary": [{ "type": "summary_text", "text": "hm" }] },
            { "type": "function_call", "call_id": "a", "name": "t", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "" },
        ], "tools": [{ "type": "function", "name": "t", "parameters": { "type": "object" } }] });
        let changes = [
            ("/store", json!(true)),
            ("/input", json!("u")),
            ("/input/0/role", json!("robot")),
            ("/input/1/encrypted_content", json!("other")),
            ("/input/2/arguments", json!({})),
            ("/input/3/call_id", json!("b")),
            ("/input/3/output", json!(null)),
            ("/input/3", json!({ "role": "user", "content": "u" })),
            ("/tools/0/parameters/type", json!("string")),
        ];
        check("/v1/responses", &good, &changes);
    }

    #[test]
    fn broken_contents_of_gemini_are_reported() {
        let result = json!({ "functionResponse": { "id": "a", "name": "t", "response": {} } });
        let good = json!({ "contents": [
            { "role": "user", "parts": [{ "text": "u" }] },
            { "role": "model", "parts": [
                { "functionCall": { "id": "a", "name": "t", "args": {} }, "thoughtSignature": "c2lnbmVk1" },
            ] },
            { "role": "user", "parts": [result] },
        ] });
        let changes = [
            ("/contents/0/role", json!("model")),
            ("/contents/0/parts", json!([])),
            ("/contents/1/parts/0/thoughtSignature", json!("other")),
            ("/contents/1/parts/0/functionCall/args", json!("{}")),
            ("/contents/2/parts/0/functionResponse/name", json!("other")),
            ("/contents/2/parts/0/functionResponse/response", json!("text")),
            ("/contents/2/parts", json!([{ "text": "u" }])),
        ];
        check("/v1beta/models/m:streamGenerateContent?alt=sse", &good, &changes);
    }

    #[test]
    fn broken_messages_of_ollama_are_reported() {
        let good = json!({ "model": "m", "options": { "num_ctx": 1 }, "messages": [
            { "role": "system", "content": "s" },
            { "role": "user", "content": "u" },
            { "role": "assistant", "content": "", "tool_calls": [{ "function": { "name": "t", "arguments": {} } }] },
            { "role": "tool", "tool_name": "t", "content": "" },
        ] });
        let changes = [
            ("/options", json!({})),
            ("/messages/1/content", json!(null)),
            ("/messages/2/tool_calls/0/function/arguments", json!("{}")),
            ("/messages/2/role", json!("robot")),
            ("/messages/3/tool_name", json!("other")),
            ("/messages/3/role", json!("user")),
        ];
        check("/api/chat", &good, &changes);
    }
}
