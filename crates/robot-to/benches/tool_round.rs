//! What a round of one tool call costs besides the model: `cargo bench -p robot-to [-- CODEX]`.
//!
//! A server on this machine answers at once, each time with a call, and takes the time from the end of its answer to
//! the end of the next request. Beside robot-to stand a client that does nothing but send the same bytes again, and,
//! when the path of a `codex` is given, `codex exec` with its own protocol and a call of a shell.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails loudly"
)]

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Rounds of a conversation.
const ROUNDS: usize = 300;
/// Rounds at its beginning that count for nothing.
const WARM_UP: usize = 10;

fn main() {
    let codex = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let read = ("read", json!({ "path": "a.txt" }));
    let bash = ("bash", json!({ "command": "true" }));
    let (first, bare) = against(&read, robot_to);
    report("robot-to, read", &first);
    let seen = bare_client(&bare, &read);
    report("a bare client, the same bytes", &seen);
    let (shell, _) = against(&bash, robot_to);
    report("robot-to, bash true", &shell);
    if let Some(codex) = codex {
        let (theirs, _) = against(&bash, |dir, port| run_codex(&codex, dir, port));
        report("codex exec, a shell with true", &theirs);
    }
}

/// What was seen of one conversation.
struct Seen {
    /// From the end of an answer to the end of the next request.
    turns: Vec<Duration>,
    /// The most memory that the client had, in KiB; 0 for a thread of ours.
    peak: u64,
}

fn report(who: &str, seen: &Seen) {
    let mut turns = seen.turns[WARM_UP..].to_vec();
    turns.sort();
    println!(
        "{who}: median of {} rounds {:.2?}, 9 of 10 within {:.2?}; peak memory {:.1} MiB",
        turns.len(),
        turns[turns.len() / 2],
        turns[turns.len() * 9 / 10],
        seen.peak as f64 / 1024.0,
    );
}

/// Serves one conversation to a program in a small repository. Answers what was seen, and the requests.
fn against(call: &(&str, Value), start: impl Fn(&Path, u16) -> Child) -> (Seen, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    fs::create_dir(&repo).unwrap();
    fs::write(repo.join("a.txt"), "a file\n").unwrap();
    for args in [
        vec!["init", "-q"],
        vec!["config", "user.name", "A"],
        vec!["config", "user.email", "a@example.invalid"],
        vec!["add", "."],
        vec!["commit", "-qm", "base"],
    ] {
        assert!(
            Command::new("git")
                .args(args)
                .current_dir(&repo)
                .status()
                .unwrap()
                .success()
        );
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = start(&repo, listener.local_addr().unwrap().port());
    let served = serve(&listener, call, &child);
    drop(child.kill());
    child.wait().unwrap();
    served
}

/// Answers until the last round, on as many connections as it takes, one after another.
fn serve(listener: &TcpListener, call: &(&str, Value), child: &Child) -> (Seen, Vec<String>) {
    let (mut turns, mut requests) = (Vec::new(), Vec::new());
    let mut answered: Option<Instant> = None;
    loop {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some((path, body)) = request(&mut reader) {
            if let Some(answered) = answered.take() {
                turns.push(answered.elapsed());
            }
            let asks = path.ends_with("/chat/completions") || path.ends_with("/responses");
            if !asks {
                write!(&stream, "HTTP/1.1 404 no\r\ncontent-length: 0\r\n\r\n").unwrap();
                continue;
            }
            if turns.len() == ROUNDS {
                let peak = peak_memory(child.id());
                return (Seen { turns, peak }, requests);
            }
            let number = requests.len();
            let answer = if path.ends_with("/responses") {
                response(number, &body)
            } else {
                completion(number, call)
            };
            requests.push(body);
            respond(&stream, &answer);
            answered = Some(Instant::now());
        }
    }
}

/// Reads one request: its path and its body. `None` when the connection ends.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, String::from_utf8_lossy(&body).into_owned()))
}

fn respond(mut stream: &TcpStream, events: &str) {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{events}",
        events.len()
    )
    .unwrap();
}

/// A call, as chat completions stream it.
fn completion(number: usize, (name, arguments): &(&str, Value)) -> String {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!(
            "data: {}\n\n",
            json!({ "id": "c", "object": "chat.completion.chunk", "choices": [choice] })
        )
    };
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let call =
        json!([{ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function }]);
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 });
    format!(
        "{}{}data: {}\n\ndata: [DONE]\n\n",
        chunk(json!({ "role": "assistant", "tool_calls": call }), None),
        chunk(json!({}), Some("tool_calls")),
        json!({ "id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage }),
    )
}

/// A call of a shell, as Responses stream it, by the name under which the client offers one.
fn response(number: usize, body: &str) -> String {
    let (name, arguments) = if body.contains("\"exec_command\"") {
        ("exec_command", json!({ "cmd": "true" }))
    } else {
        ("shell", json!({ "command": ["true"] }))
    };
    let item = json!({
        "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
        "name": name, "arguments": arguments.to_string(), "status": "completed",
    });
    let usage = json!({
        "input_tokens": 100, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 10,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 110,
    });
    let id = format!("resp_{number}");
    [
        json!({ "type": "response.created", "response": { "id": id } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": id, "output": [item], "usage": usage } }),
    ]
    .iter()
    .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
    .collect()
}

/// Sends the requests of a conversation again, and reads the answers, on one connection.
fn bare_client(requests: &[String], call: &(&str, Value)) -> Seen {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let requests = requests.to_vec();
    let sent = requests.len();
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        for body in requests {
            let head =
                "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
            write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
            if request(&mut reader).is_none() {
                return;
            }
        }
    });
    let (stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut turns, mut answered) = (Vec::new(), None::<Instant>);
    for number in 0..sent {
        request(&mut reader).unwrap();
        if let Some(answered) = answered.take() {
            turns.push(answered.elapsed());
        }
        respond(&stream, &completion(number, call));
        answered = Some(Instant::now());
    }
    client.join().unwrap();
    Seen { turns, peak: 0 }
}

fn robot_to(repo: &Path, port: u16) -> Child {
    let url = format!("http://127.0.0.1:{port}/v1");
    let rounds = (ROUNDS + 10).to_string();
    Command::new(env!("CARGO_BIN_EXE_robot-to"))
        .args([
            "go round",
            "--model",
            "m",
            "--base-url",
            &url,
            "--max-iterations",
            "1",
        ])
        .args(["--max-tool-rounds", &rounds])
        .args(["--work-dir".as_ref(), repo.with_file_name("state").as_os_str()])
        .current_dir(repo)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn run_codex(codex: &str, repo: &Path, port: u16) -> Child {
    let home = repo.with_file_name("home");
    fs::create_dir(&home).unwrap();
    let settings = format!(
        "model = \"gpt-4o\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n\
         [model_providers.mock]\nname = \"mock\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nenv_key = \"MOCK_KEY\"\n\
         wire_api = \"responses\"\n"
    );
    fs::write(home.join("config.toml"), settings).unwrap();
    Command::new(codex)
        .args(["exec", "go round"])
        .env("CODEX_HOME", &home)
        .env("HOME", &home)
        .env("MOCK_KEY", "none")
        .current_dir(repo)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The most memory that the largest of a process and its descendants had so far, in KiB.
fn peak_memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let own = peak
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0);
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok());
    children.map(peak_memory).fold(own, u64::max)
}
