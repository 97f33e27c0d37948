//! llmock breaks what it serves on purpose, and judges from its journal how the client took it.

use std::process::Command;

use super::server::{Server, installed};
use super::user::{User, WRITTEN};
use super::{Peer, peer};
use serde_json::{Value, json};

const PEERS: [Peer; 4] = [
    peer("openai", "gpt-4o", "/v1"),
    peer("openai-responses", "gpt-4o", "/v1"),
    peer("anthropic", "claude-sonnet-4-5", "/anthropic"),
    peer("gemini", "gemini-2.5-pro", "/gemini"),
];

fn llmock() -> Server {
    let program = installed().join("python/bin/llmock");
    Server::start(|port| {
        let mut command = Command::new(program);
        command.args(["serve", "--port", &port.to_string()]);
        // Slow enough that it notices, before all is sent, that nobody reads any more: it judges by that.
        command.args(["--stream-chunk-delay-ms", "30"]);
        command.stderr(std::process::Stdio::null());
        command
    })
}

/// The fault, and after it a conversation that ends well.
fn scenario(fault: &Value) -> String {
    let reply = |calls: Value| json!({ "type": "reply", "tool_calls": calls });
    json!({ "behaviors": [
        fault,
        reply(json!([{ "name": "read", "arguments": { "path": "greet.sh" } }])),
        reply(json!([{ "name": "write", "arguments": { "path": "greet.sh", "content": WRITTEN } }])),
        reply(json!([
            { "name": "bash", "arguments": { "command": "sh greet.sh" } },
            { "name": "bash", "arguments": { "command": "git diff --stat" } },
        ])),
        reply(json!([{ "name": "submit_iteration_result", "arguments": { "success": true, "summary": "Say hello" } }])),
    ] })
    .to_string()
}

/// Runs one iteration into a fault, which the server must not mind.
fn run_into(server: &Server, peer: Peer, fault: &Value, more: &[&str]) -> (i32, usize, String) {
    server.ask("POST", "/_llmock/reset", "");
    server.ask("POST", "/_llmock/scenario", &scenario(fault));
    let user = User::new();
    let finished = user.run(peer, &server.url(), more);
    let verdict = server.ask("GET", "/_llmock/verdict?format=text", "");
    let clean = !verdict.contains("FAIL") && !verdict.contains("WARN");
    assert!(clean, "{peer:?} {fault}: {verdict}\n{}", finished.stderr);
    let (commits, greeting) = user.branch();
    assert_eq!(greeting == WRITTEN, commits == 1, "{peer:?} {fault}: {greeting}");
    (finished.code.unwrap(), commits, finished.stdout)
}

/// What passes costs no iteration.
fn comes_through(faults: &[Value]) {
    comes_through_with(faults, &[]);
}

fn comes_through_with(faults: &[Value], more: &[&str]) {
    let server = llmock();
    for peer in PEERS {
        for fault in faults {
            let (code, commits, said) = run_into(&server, peer, fault, more);
            assert_eq!((code, commits), (0, 1), "{peer:?} {fault}: {said}");
        }
    }
}

#[test]
fn f51_f52_limits_and_trouble_pass() {
    comes_through(&[
        json!({ "type": "fail", "status": 429, "retry_after": 1 }),
        json!({ "type": "fail", "status": 500 }),
        json!({ "type": "fail", "status": 503 }),
        json!({ "type": "fail", "status": 529 }),
        json!({ "type": "slow_first_token", "seconds": 2 }),
    ]);
}

#[test]
fn f55_replies_that_break_off_are_never_used() {
    comes_through(&[
        json!({ "type": "stream_fault", "kind": "disconnect" }),
        json!({ "type": "stream_fault", "kind": "disconnect", "after_chunks": 3 }),
        json!({ "type": "stream_fault", "kind": "truncate" }),
        json!({ "type": "stream_fault", "kind": "malformed" }),
    ]);
}

#[test]
fn f56_a_stream_that_stands_still_is_given_up_after_the_time_that_is_set() {
    let stall = json!({ "type": "stream_fault", "kind": "stall", "stall_seconds": 60, "after_chunks": 1 });
    comes_through_with(&[stall], &["--model-timeout", "4"]);
}

#[test]
fn f58_wrong_calls_are_answered() {
    comes_through(&[
        json!({ "type": "tool_fault", "kind": "malformed_arguments" }),
        json!({ "type": "tool_fault", "kind": "unknown_tool" }),
    ]);
}

#[test]
fn f53_what_is_refused_for_good_is_asked_once() {
    let server = llmock();
    for peer in PEERS {
        for status in [400, 401, 403, 404] {
            let fault = json!({ "type": "fail", "status": status });
            let (code, commits, said) = run_into(&server, peer, &fault, &[]);
            assert_eq!((code, commits), (5, 0), "{peer:?} {fault}: {said}");
        }
    }
}

#[test]
fn the_models_of_each_provider_are_listed() {
    let server = llmock();
    for (peer, model) in PEERS
        .into_iter()
        .zip(["gpt-4o", "gpt-4o", "claude-sonnet-4-6", "gemini-2.5-pro"])
    {
        let listed = User::new().models(peer, &server.url());
        assert!(
            listed.lines().any(|line| line.starts_with(model)),
            "{peer:?}: {listed}"
        );
    }
}
