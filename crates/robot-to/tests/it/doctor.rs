//! `robot-to doctor`: what it finds, what mends it, and that it changes nothing.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};
use testkit::{Call, Finished, Reply, Signal, TestEnvironment, TestRepo};

use crate::attempts::{assert_in, run_id};
use crate::checks::{no_process_is_left, the_key_is_nowhere};
use crate::lab::{KEY, Lab, PATIENCE};
use crate::replies::good;

/// Looks, and checks that nothing was changed by it.
fn doctor(lab: &Lab, extra: &[&str]) -> Finished {
    let before = lab.repo.fingerprint();
    let finished = lab.env.run([&["doctor"], extra].concat());
    before.assert_same(&lab.repo.fingerprint());
    assert_eq!(finished.stderr, "");
    the_key_is_nowhere(lab, &finished);
    finished
}

/// The finding of this name.
fn finding(finished: &Finished, what: &str) -> Value {
    let lines = finished.stdout.lines();
    let mut all = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.find(|finding| finding["what"] == what).unwrap()
}

#[test]
fn where_all_is_well_it_says_so() {
    let lab = Lab::new([]);
    let finished = doctor(&lab, &[]);
    finished.assert_code(0);
    let normal = lab.env.normalize(&finished.stdout);
    let filters = vec![
        (r"git  .*", "git [GIT]"),
        (r"at [0-9a-f]{10}", "at [OID]"),
        (r"space  .*", "space [SPACE]"),
        (r"bash  .*", "bash [BASH]"),
    ];
    insta::with_settings!({ filters => filters }, { insta::assert_snapshot!(normal) });
    assert_eq!(std::fs::read_dir(lab.env.state()).unwrap().count(), 0);
    no_process_is_left(&lab.env);
}

#[test]
fn each_fault_is_named_with_what_mends_it() {
    let env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let finished = env.run(["doctor", "--json"]);
    finished.assert_code(2);
    let repository = finding(&finished, "repository");
    assert_eq!(repository["level"], "fail");
    assert!(
        repository["found"]
            .as_str()
            .unwrap()
            .ends_with("is not in a git repository")
    );
    assert!(
        repository["fix"]
            .as_str()
            .unwrap()
            .starts_with("make one with `git init ")
    );
    assert_eq!(finding(&finished, "keys")["level"], "warn");

    let repo = TestRepo::new();
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    env.cwd(repo.path());
    let finished = env.run(["doctor", "--json"]);
    finished.assert_code(2);
    assert!(
        finding(&finished, "repository")["found"]
            .as_str()
            .unwrap()
            .ends_with("has no commit")
    );

    repo.write("file", "");
    repo.commit_all("start");
    repo.git(&["config", "--unset", "user.email"]);
    repo.git(&["config", "user.useConfigOnly", "true"]);
    env.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let author = finding(&env.run(["doctor", "--json"]), "author");
    assert_eq!(author["level"], "fail");
    assert!(
        author["fix"]
            .as_str()
            .unwrap()
            .starts_with("set one with `git config "),
        "{author}"
    );

    let file = env.root().join("file");
    std::fs::write(&file, "").unwrap();
    let finished = env.run(["doctor", "--json", "--work-dir", file.to_str().unwrap()]);
    finished.assert_code(2);
    let state = finding(&finished, "state");
    assert_eq!(
        (&state["level"], &state["fix"]),
        (&"fail".into(), &"name another place: --work-dir DIR".into())
    );
    env.env("PATH", "/nowhere");
    let finished = env.run(["doctor", "--json"]);
    finished.assert_code(2);
    assert_eq!(finding(&finished, "git")["level"], "fail");
    assert_eq!(finding(&finished, "bash")["level"], "warn");
}

#[test]
fn a_server_is_asked_without_a_key() {
    let lab = Lab::new([]);
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut head = [0; 4096];
        let length = stream.read(&mut head).unwrap();
        stream
            .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    let finished = doctor(&lab, &["--json", "--base-url", &url]);
    finished.assert_code(0);
    assert_eq!(finding(&finished, "server")["found"], "it answers (HTTP 401)");
    assert_eq!(finding(&finished, "keys")["found"], "OPENAI_API_KEY");
    let asked = asked.join().unwrap();
    assert!(
        asked.starts_with("GET /v1/models ") && !asked.contains(KEY),
        "{asked}"
    );
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for url in [
        format!("http://127.0.0.1:{port}/v1"),
        "http://127.0.0.1:1/v1".into(),
        "no url".into(),
    ] {
        let finished = doctor(&lab, &["--json", "--base-url", &url]);
        finished.assert_code(2);
        assert_eq!(finding(&finished, "server")["level"], "fail", "{url}");
    }
}

#[test]
fn what_dead_runs_left_is_named_with_the_command_that_cleans() {
    let lab = Lab::new([good("one"), Reply::hang()]);
    let run = lab.start(&[]);
    lab.server.wait_for_requests(2, PATIENCE);
    assert_in(&doctor(&lab, &[]).stdout, &["one, with nothing left over"]);
    run.process.signal(Signal::KILL);
    run.process.wait(PATIENCE);
    let id = run_id(&lab);
    let finished = doctor(&lab, &[]);
    finished.assert_code(0);
    assert_in(
        &finished.stdout,
        &[
            &format!("warn  runs         {id} was cut off\n"),
            &format!("robot-to resume {id}, or to give it up: robot-to clean {id}\n"),
        ],
    );
    lab.env.run(["clean", &id]).assert_code(0);
    assert_in(&doctor(&lab, &[]).stdout, &["ok    runs         none yet\n"]);
}

/// Asks the model of a lab, and gives what was found of it, as `what: level`.
fn asked(replies: Vec<Reply>) -> (Vec<String>, Finished) {
    let lab = Lab::new(replies);
    let url = lab.server.base_url();
    let finished = doctor(
        &lab,
        &["--ask", "--json", "--model", "test-model", "--base-url", &url],
    );
    let lines = finished.stdout.lines();
    let all = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_model = ["model", "tools", "stream", "usage", "window"];
    let found = all
        .map(|finding| {
            format!(
                "{}: {}",
                finding["what"].as_str().unwrap(),
                finding["level"].as_str().unwrap()
            )
        })
        .filter(|line| of_model.iter().any(|what| line.starts_with(&format!("{what}:"))))
        .collect();
    (found, finished)
}

#[test]
fn the_model_is_asked_for_a_call_and_what_a_run_would_have_of_it_is_said() {
    let echo = || Call::new("echo", json!({ "word": "ready" }));
    let text = r#"{"name": "echo", "arguments": {"word": "ready"}}"#;
    for (reply, expected) in [
        (
            Reply::calls([echo()]).with_text("I call the tool now."),
            &["model: ok", "tools: ok", "stream: ok", "window: warn"][..],
        ),
        (
            Reply::calls([echo()]).no_usage(),
            &["model: ok", "tools: ok", "usage: warn", "window: warn"],
        ),
        (
            Reply::calls([Call::new("Echo", json!({ "word": "ready" }))]),
            &["model: ok", "tools: warn", "window: warn"],
        ),
        (
            Reply::calls([Call::new("echo", json!({ "word": "steady" }))]),
            &["model: ok", "tools: warn", "window: warn"],
        ),
        (
            Reply::text(text),
            &["model: ok", "tools: warn", "stream: ok", "window: warn"],
        ),
        (
            Reply::text("I would rather not."),
            &["model: ok", "tools: warn", "stream: ok", "window: warn"],
        ),
    ] {
        let (found, finished) = asked(vec![reply]);
        finished.assert_code(0);
        assert_eq!(found, expected, "{}", finished.stdout);
    }
}

#[test]
fn a_model_that_cannot_be_asked_fails_the_doctor() {
    let (found, finished) = asked(vec![Reply::status(401)]);
    finished.assert_code(2);
    assert_eq!(found, ["model: fail"], "{}", finished.stdout);
    let mut lab = Lab::new([]);
    lab.env.env_remove("OPENAI_API_KEY");
    let none = lab.env.run(["doctor", "--ask"]);
    none.assert_code(2);
    assert_in(&none.stdout, &["the variable OPENAI_API_KEY is not set"]);
}
