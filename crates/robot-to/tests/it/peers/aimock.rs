//! aimock serves one conversation in every protocol, and keeps a journal of what it was asked.

use std::process::Command;

use super::server::{Server, installed};
use super::user::{User, WRITTEN};
use super::{Peer, peer};
use serde_json::{Value, json};

const PEERS: [Peer; 5] = [
    peer("openai", "gpt-5.5", "/v1"),
    peer("openai-responses", "gpt-5.5", "/v1"),
    peer("anthropic", "claude-sonnet-4-5", ""),
    peer("gemini", "gemini-2.5-pro", ""),
    peer("ollama", "qwen3", ""),
];

/// Four turns: read, write, two commands at once, and the end.
fn turns(peer: Peer) -> Value {
    let call =
        |id: &str, name: &str, arguments: Value| json!({ "id": id, "name": name, "arguments": arguments });
    let usage = json!({ "prompt_tokens": 120, "completion_tokens": 18, "total_tokens": 138 });
    let turn = |index: u32, calls: Value| {
        json!({
            "match": { "userMessage": "This is iteration", "turnIndex": index },
            "response": { "toolCalls": calls, "usage": usage },
        })
    };
    // It counts what a model said: of responses each call, and a text besides.
    let last = if peer.provider == "openai-responses" { 4 } else { 3 };
    let turns = vec![
        turn(0, json!([call("call_r1", "read", json!({ "path": "greet.sh" }))])),
        turn(
            1,
            json!([call(
                "call_r2",
                "write",
                json!({ "path": "greet.sh", "content": WRITTEN })
            )]),
        ),
        turn(
            2,
            json!([
                call("call_r3a", "bash", json!({ "command": "sh greet.sh" })),
                call("call_r3b", "bash", json!({ "command": "git diff --stat" })),
            ]),
        ),
        turn(
            last,
            json!([call(
                "call_r4",
                "submit_iteration_result",
                json!({ "success": true, "summary": "Say hello" })
            )]),
        ),
    ];
    json!({ "fixtures": turns })
}

fn aimock(peer: Peer, fixtures: &tempfile::TempDir) -> Server {
    std::fs::write(fixtures.path().join("turns.json"), turns(peer).to_string()).unwrap();
    let program = installed().join("node_modules/@copilotkit/aimock/dist/cli.js");
    Server::start(|port| {
        let mut command = Command::new("node");
        command
            .arg(program)
            .args(["--strict", "--log-level", "warn", "-p"])
            .arg(port.to_string());
        command
            .arg("-f")
            .arg(fixtures.path())
            .env("AIMOCK_STRICT_TURN_INDEX", "1");
        command
    })
}

fn journal(server: &Server) -> Vec<Value> {
    serde_json::from_str(&server.ask("GET", "/__aimock/journal?limit=100", "")).unwrap()
}

/// The journal has every protocol's conversation in one form.
fn check_conversation(asked: &[Value], peer: Peer) {
    assert_eq!(asked.len(), 4, "{peer:?}: {asked:#?}");
    let mut answered = Vec::new();
    for (turn, request) in asked.iter().enumerate() {
        assert_eq!(request["response"]["status"], 200, "{peer:?}");
        let body = &request["body"];
        let tools = body["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 5, "{peer:?}: {tools:?}");
        let messages = body["messages"].as_array().unwrap();
        let expected = if peer.provider == "openai-responses" {
            [2, 4, 6, 10]
        } else {
            [2, 4, 6, 9]
        };
        assert_eq!(messages.len(), expected[turn], "{peer:?}: {messages:#?}");
        assert_eq!(messages[0]["role"], "system");
        assert_eq!(messages[1]["role"], "user");
        if turn == 3 {
            let results = messages.iter().filter(|message| message["role"] == "tool");
            answered = results.map(|result| result["content"].to_string()).collect();
        }
    }
    assert_eq!(answered.len(), 4, "{peer:?}: {answered:?}");
    for (result, said) in answered
        .iter()
        .zip(["helo", "greet.sh", "hello", "1 file changed"])
    {
        assert!(result.contains(said), "{peer:?}: {result} does not say {said}");
    }
}

#[test]
fn one_conversation_in_every_protocol() {
    for peer in PEERS {
        let fixtures = tempfile::tempdir().unwrap();
        let server = aimock(peer, &fixtures);
        let user = User::new();
        let finished = user.run(peer, &server.url(), &[]);
        finished.assert_code(0);
        assert_eq!(
            user.branch(),
            (1, WRITTEN.to_owned()),
            "{peer:?}: {}",
            finished.stderr
        );
        check_conversation(&journal(&server), peer);
        // Ollama's numbers are none of the fixture's.
        if peer.provider != "ollama" {
            assert!(
                finished.stdout.contains("480 in, 72 out\n"),
                "{peer:?}: {}",
                finished.stdout
            );
        }
    }
}

#[test]
fn a_server_that_refuses_to_stream_is_asked_for_replies_in_one_piece() {
    for peer in PEERS {
        let fixtures = tempfile::tempdir().unwrap();
        let server = aimock(peer, &fixtures);
        let refusal = json!({ "status": 400, "body": {
            "message": "Streaming is not supported by this deployment.", "type": "invalid_request_error",
        } });
        server.ask("POST", "/__aimock/error", &refusal.to_string());
        let user = User::new();
        let finished = user.run(peer, &server.url(), &[]);
        finished.assert_code(0);
        assert_eq!(
            user.branch(),
            (1, WRITTEN.to_owned()),
            "{peer:?}: {}",
            finished.stderr
        );
        let asked = journal(&server);
        let statuses: Vec<Value> = asked
            .iter()
            .map(|request| request["response"]["status"].clone())
            .collect();
        assert_eq!(statuses, [400, 200, 200, 200, 200].map(Value::from), "{peer:?}");
        for request in asked.iter().skip(1) {
            // Gemini says it with the address, and aimock in a form of its own.
            let streams = request["body"]["stream"] == true
                || request["path"]
                    .as_str()
                    .is_some_and(|path| path.contains("streamGenerateContent"));
            assert!(!streams, "{peer:?}: {request:#?}");
        }
        check_conversation(&asked[1..], peer);
    }
}

#[test]
fn a_server_in_trouble_is_asked_again() {
    for peer in PEERS {
        let fixtures = tempfile::tempdir().unwrap();
        let server = aimock(peer, &fixtures);
        let trouble = json!({ "status": 529, "body": { "message": "busy", "type": "overloaded_error" } });
        server.ask("POST", "/__aimock/error", &trouble.to_string());
        let user = User::new();
        let finished = user.run(peer, &server.url(), &[]);
        finished.assert_code(0);
        assert_eq!(
            user.branch(),
            (1, WRITTEN.to_owned()),
            "{peer:?}: {}",
            finished.stderr
        );
        let statuses: Vec<Value> = journal(&server)
            .iter()
            .map(|request| request["response"]["status"].clone())
            .collect();
        assert_eq!(statuses, [529, 200, 200, 200, 200].map(Value::from), "{peer:?}");
    }
}
