//! The model server answers, misbehaves and checks as it is told.

use std::io::{ErrorKind, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Call, ModelServer, Reply};

use crate::client::{ask, chat, connect, read, send};

fn two_calls() -> [Call; 2] {
    [
        Call::new("write", json!({ "path": "a", "content": "größer" })),
        Call::new("write", json!({ "path": "b" })).id("b"),
    ]
}

/// Puts the arguments of a streamed call together.
fn arguments(events: &[Value], index: usize) -> String {
    let deltas = events
        .iter()
        .filter_map(|event| event.pointer("/choices/0/delta/tool_calls/0"));
    deltas
        .filter(|call| call["index"] == json!(index))
        .filter_map(|call| call.pointer("/function/arguments")?.as_str())
        .collect()
}

#[test]
fn a_streamed_answer_has_all_its_parts() {
    let server = ModelServer::start([
        Reply::calls(two_calls())
            .with_text("working on it")
            .usage(120, 18),
        Reply::calls(two_calls()).interleaved().chunk_bytes(7),
    ]);
    let answer = ask(&server, &chat(true));
    assert!(answer.text.starts_with("HTTP/1.1 200 OK\r\n"), "{}", answer.text);
    assert!(answer.text.ends_with("0\r\n\r\n"));
    assert!(answer.unchunked().ends_with("data: [DONE]\n\n"));
    let events = answer.events();
    assert_eq!(
        events[0]["choices"][0]["delta"],
        json!({ "role": "assistant", "content": "" })
    );
    let text: Vec<&str> = events
        .iter()
        .filter_map(|event| event.pointer("/choices/0/delta/content")?.as_str())
        .collect();
    assert!(text.len() > 2);
    assert_eq!(text.concat(), "working on it");
    assert_eq!(arguments(&events, 0), r#"{"path":"a","content":"größer"}"#);
    assert_eq!(arguments(&events, 1), r#"{"path":"b"}"#);
    assert_eq!(
        events[events.len() - 2]["choices"][0]["finish_reason"],
        "tool_calls"
    );
    let last = &events[events.len() - 1];
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 138);

    let answer = ask(&server, &chat(true));
    let chunks = answer.chunks();
    assert!(chunks.iter().take(chunks.len() - 1).all(|chunk| chunk.len() == 7));
    let events = answer.events();
    assert_eq!(arguments(&events, 0), r#"{"path":"a","content":"größer"}"#);
    let order: Vec<u64> = events
        .iter()
        .filter_map(|event| event.pointer("/choices/0/delta/tool_calls/0/index")?.as_u64())
        .collect();
    assert_eq!(order.iter().take(4).collect::<Vec<_>>(), [&0, &1, &0, &1]);
    assert_eq!(server.requests().len(), 2);
    assert_eq!((server.remaining(), server.unexpected()), (0, 0));
}

#[test]
fn a_whole_answer_is_one_body_and_the_connection_stays() {
    let server = ModelServer::start([Reply::calls(two_calls()), Reply::text("done")]);
    let mut stream = connect(&server);
    send(&mut stream, &chat(false), "");
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    send(&mut stream, &chat(false), "connection: close\r\n");
    let answers = read(&mut stream).text;
    let bodies: Vec<Value> = answers
        .split("\r\n\r\n")
        .skip(1)
        .map(|body| serde_json::from_str(body.split("HTTP/").next().unwrap()).unwrap())
        .collect();
    assert_eq!(bodies[0]["choices"][0]["message"]["tool_calls"][1]["id"], "b");
    assert_eq!(bodies[0]["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(bodies[1]["choices"][0]["message"]["content"], "done");
    assert_eq!(bodies[1]["usage"]["total_tokens"], 15);
    assert_eq!(server.requests()[0].last_text("user").as_deref(), Some("hello"));
}

#[test]
fn a_cut_is_an_error_and_a_truncation_is_an_end() {
    let server = ModelServer::start([
        Reply::text("some more text").cut_after(2),
        Reply::text("some more text").truncate_after(99),
        Reply::text("some more text").cut_after(0),
        Reply::text("some more text").truncate_after(0),
        Reply::text("more")
            .raw_event("{\"choices\":[")
            .finish("length")
            .no_usage(),
    ]);
    let answer = ask(&server, &chat(true));
    assert_eq!(answer.error, Some(ErrorKind::ConnectionReset));
    assert_eq!(answer.events().len(), 2);

    let answer = ask(&server, &chat(true));
    assert_eq!(answer.error, None);
    assert!(answer.text.ends_with("\r\n0\r\n\r\n"));
    assert!(!answer.text.contains("[DONE]") && answer.text.contains("\"usage\""));

    let answer = ask(&server, &chat(false));
    assert_eq!(answer.error, Some(ErrorKind::ConnectionReset));
    let answer = ask(&server, &chat(false));
    assert_eq!(answer.error, None);
    assert!(!answer.text.ends_with('}'));

    let answer = ask(&server, &chat(true));
    assert!(answer.text.contains("data: {\"choices\":[\n\n"));
    assert!(!answer.text.contains("\"usage\"") && answer.text.contains("\"length\""));
}

#[test]
fn delays_pings_and_stalls_take_their_time() {
    let pause = Duration::from_millis(120);
    let server = ModelServer::start([
        Reply::text("x")
            .delay(pause)
            .pings(2, pause)
            .stall_after(1, pause),
        Reply::text("x").stall_after(0, Duration::from_secs(3600)),
        Reply::hang(),
    ]);
    let start = Instant::now();
    let answer = ask(&server, &chat(true));
    assert!(start.elapsed() >= pause * 4);
    assert!(answer.unchunked().starts_with(": ping\n\n: ping\n\ndata: "));

    let mut stalled = connect(&server);
    send(&mut stalled, &chat(true), "");
    let mut hanging = connect(&server);
    server.wait_for_requests(2, Duration::from_secs(10));
    send(&mut hanging, &chat(true), "");
    server.wait_for_requests(3, Duration::from_secs(10));
    let start = Instant::now();
    drop(server);
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(read(&mut hanging).text, "");
    assert!(!read(&mut stalled).text.contains("data: "));
}

#[test]
fn errors_carry_their_headers_and_the_script_ends() {
    let server = ModelServer::start([
        Reply::status(429)
            .header("retry-after", "1")
            .body(json!({ "error": { "message": "slow down" } })),
        Reply::status(503),
    ]);
    let answer = ask(&server, &chat(true)).text;
    assert!(
        answer.starts_with("HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with(r#"{"error":{"message":"slow down"}}"#));
    assert!(ask(&server, &chat(true)).text.starts_with("HTTP/1.1 503 "));
    assert_eq!(server.unexpected(), 0);
    let answer = ask(&server, &chat(true)).text;
    assert!(answer.starts_with("HTTP/1.1 500 ") && answer.contains("script_used_up"));
    assert_eq!(server.unexpected(), 1);
}

#[test]
fn a_closure_sees_the_request() {
    let server = ModelServer::answering(|request| match request.last_text("user").as_deref() {
        Some("hello") => Reply::text(format!("tools: {}", request.tool_names().join(","))),
        other => panic!("{other:?}"),
    });
    assert!(ask(&server, &chat(false)).text.contains("tools: write"));
    let mut other = chat(false);
    other["messages"][0]["content"] = json!("other");
    assert!(ask(&server, &other).text.contains("closure_panicked"));
    assert_eq!(
        server.take_violations(),
        ["request 2: the closure that answers requests panicked"]
    );
}

#[test]
fn bad_requests_are_reported() {
    let bad = json!({ "model": "m", "messages": [{ "role": "tool", "tool_call_id": "x", "content": "" }] });
    let server = ModelServer::start([Reply::text("x")]);
    ask(&server, &bad);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(server))).is_err());

    let server = ModelServer::start([Reply::text("x")]);
    ask(&server, &bad);
    assert_eq!(
        server.take_violations(),
        ["request 1: messages[0]: there is no call \"x\""]
    );
    server.assert_valid();
    let mut stream = connect(&server);
    stream.write_all(b"nonsense\r\n\r\n").unwrap();
    assert!(read(&mut stream).text.starts_with("HTTP/1.1 400 "));
    let mut stream = connect(&server);
    stream
        .write_all(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n")
        .unwrap();
    assert!(read(&mut stream).text.starts_with("HTTP/1.1 413 "));
    assert_eq!(server.take_violations().len(), 2);
}

#[test]
fn keys_and_endpoints_are_checked() {
    let server = ModelServer::start([Reply::text("x")]).require_key("secret");
    for (header, status) in [
        ("authorization: Bearer other\r\n", "401"),
        ("authorization: Bearer secret\r\n", "200"),
    ] {
        let mut stream = connect(&server);
        send(
            &mut stream,
            &chat(false),
            &format!("connection: close\r\n{header}"),
        );
        assert!(read(&mut stream).text.starts_with(&format!("HTTP/1.1 {status} ")));
    }
    server.assert_valid();
    assert!(ask(&server, &chat(false)).text.contains("invalid_api_key"));
    assert_eq!(server.take_violations(), ["request 3: no authorization header"]);

    for (path, status) in [("/v1/models", "200"), ("/v1/else", "404")] {
        let mut stream = connect(&server);
        let head =
            format!("GET {path} HTTP/1.1\r\nconnection: close\r\nauthorization: Bearer secret\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        assert!(read(&mut stream).text.starts_with(&format!("HTTP/1.1 {status} ")));
    }
    assert_eq!(server.other_requests().len(), 2);
    assert_eq!(server.take_violations(), ["GET /v1/else: no such endpoint"]);
}

#[test]
fn a_chunked_request_is_read() {
    let server = ModelServer::start([Reply::text("x")]);
    let body = chat(false).to_string();
    let (first, second) = body.split_at(20);
    let mut stream = connect(&server);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len(),
    );
    stream.write_all(request.as_bytes()).unwrap();
    assert!(read(&mut stream).text.starts_with("HTTP/1.1 200 "));
    assert_eq!(server.requests()[0].body, chat(false));
}
