//! A client that sees every byte of an answer.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::ModelServer;

/// The end of an answer: all bytes up to it, and the error if it was one.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) error: Option<io::ErrorKind>,
}

impl Answer {
    /// The bodies of all chunks, one after the other.
    pub(crate) fn unchunked(&self) -> String {
        self.chunks().concat()
    }

    /// The bodies of the chunks, as long as they are whole.
    pub(crate) fn chunks(&self) -> Vec<String> {
        let mut chunks = Vec::new();
        let (_, mut rest) = self.text.split_once("\r\n\r\n").expect("a head");
        while let Some((size, left)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
            let Some((chunk, left)) = left.split_at_checked(size).filter(|_| size > 0) else {
                break;
            };
            chunks.push(chunk.to_owned());
            rest = left.strip_prefix("\r\n").expect("the end of a chunk");
        }
        chunks
    }

    /// The events that hold JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        let body = self.unchunked();
        let data = body
            .split("\n\n")
            .filter_map(|event| event.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }
}

pub(crate) fn connect(server: &ModelServer) -> TcpStream {
    let url = server.base_url();
    let address = url
        .strip_prefix("http://")
        .and_then(|rest| rest.strip_suffix("/v1/"))
        .expect("a base URL");
    let stream = TcpStream::connect(address).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a read timeout");
    stream
}

pub(crate) fn send(stream: &mut TcpStream, body: &Value, headers: &str) {
    let body = body.to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len(),
    );
    stream.write_all(head.as_bytes()).expect("a head that is sent");
    stream.write_all(body.as_bytes()).expect("a body that is sent");
}

pub(crate) fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let error = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break None,
            Ok(count) => bytes.extend_from_slice(buffer.get(..count).expect("what was read")),
            Err(error) => break Some(error.kind()),
        }
    };
    Answer {
        text: String::from_utf8(bytes).expect("an answer of UTF-8"),
        error,
    }
}

/// Sends one request on a connection of its own and reads the answer to its end.
pub(crate) fn ask(server: &ModelServer, body: &Value) -> Answer {
    let mut stream = connect(server);
    send(&mut stream, body, "connection: close\r\n");
    read(&mut stream)
}

/// A valid request.
pub(crate) fn chat(stream: bool) -> Value {
    let mut body = json!({
        "model": "some-model",
        "messages": [{ "role": "user", "content": "hello" }],
        "tools": [{
            "type": "function",
            "function": { "name": "write", "parameters": { "type": "object", "properties": {} } },
        }],
    });
    if let Some(body) = body.as_object_mut().filter(|_| stream) {
        body.insert("stream".to_owned(), json!(true));
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    body
}
