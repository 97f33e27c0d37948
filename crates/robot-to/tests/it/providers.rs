//! The same loop over every protocol that providers speak, and what is shown of it.

use serde_json::{Value, json};
use testkit::{Call, Reply};

use crate::lab::{KEY, Lab, OBJECTIVE, PATIENCE, Ran};
use crate::replies::{bash, good};

/// A turn with reasoning, a text and two calls, of which one fails; and then a whole iteration.
fn replies() -> [Reply; 2] {
    let read = Call::new("read", json!({ "path": "no/such/file" }));
    let first = Reply::text("I look first.")
        .with_reasoning("They want a part.")
        .with_calls([read, bash("sh test.sh")])
        .usage(1_000, 60)
        .cached(400);
    [first, good("one").usage(1_200, 40)]
}

/// Runs one iteration, which the server checks turn by turn.
fn run_one(lab: &Lab) -> Ran<'_> {
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.file.state.usage.total(), 2_300, "{}", ran.shown());
    let model = format!("{}/test-model", lab.provider.unwrap());
    assert!(ran.shown().contains(&model), "{}", ran.shown());
    let requests = ran.requests();
    assert_eq!(requests.len(), 2);
    let told = requests[1].body.to_string();
    assert!(
        told.contains("no/such/file") && told.contains("sh test.sh"),
        "{told}"
    );
    ran
}

fn header<'a>(ran: &'a [testkit::Request], name: &str) -> Vec<Option<&'a str>> {
    ran.iter().map(|request| request.header(name)).collect()
}

#[test]
fn anthropic_is_spoken_to_in_messages() {
    let lab = Lab::speaking_to("anthropic", Some("ANTHROPIC_API_KEY"), replies());
    let ran = run_one(&lab);
    assert_eq!(ran.file.state.usage.cached_input, 400);
    let requests = ran.requests();
    assert_eq!(header(&requests, "x-api-key"), [Some(KEY); 2]);
    assert_eq!(header(&requests, "authorization"), [None; 2]);
    assert_eq!(requests[1].path, "/v1/messages");
    let turns = requests[1].messages();
    assert_eq!(turns[1]["content"][0]["type"], "thinking", "it goes back, signed");
    assert_eq!(turns[2]["content"][0]["is_error"], true);
    assert_eq!(turns[2]["content"][1].get("is_error"), None);
    assert!(turns[2]["content"][1].get("cache_control").is_some());
    assert!(requests[1].body["system"][0].get("cache_control").is_some());
}

#[test]
fn gemini_is_spoken_to_in_its_own_protocol() {
    let lab = Lab::speaking_to("gemini", Some("GEMINI_API_KEY"), replies());
    let ran = run_one(&lab);
    assert_eq!(ran.file.state.usage.cached_input, 400);
    let requests = ran.requests();
    assert_eq!(header(&requests, "x-goog-api-key"), [Some(KEY); 2]);
    assert_eq!(header(&requests, "authorization"), [None; 2]);
    assert_eq!(
        requests[1].path,
        "/v1beta/models/test-model:streamGenerateContent?alt=sse"
    );
    let parts = &requests[1].body["contents"][1]["parts"];
    assert!(parts[1].get("thoughtSignature").is_some(), "{parts}");
    let results = &requests[1].body["contents"][2]["parts"];
    assert!(
        results[0].pointer("/functionResponse/response/error").is_some(),
        "{results}"
    );
    assert!(
        results[1].pointer("/functionResponse/response/output").is_some(),
        "{results}"
    );
}

#[test]
fn ollama_is_spoken_to_in_its_own_protocol_and_without_a_key() {
    let lab = Lab::speaking_to("ollama", None, replies());
    let ran = run_one(&lab);
    let requests = ran.requests();
    assert_eq!(header(&requests, "authorization"), [None; 2]);
    assert_eq!(requests[1].path, "/api/chat");
    assert_eq!(requests[1].body["options"], json!({ "num_ctx": 32_768 }));
    let names: Vec<&Value> = requests[1]
        .messages()
        .iter()
        .map(|one| &one["tool_name"])
        .collect();
    assert!(names.ends_with(&[&json!("read"), &json!("bash")]), "{names:?}");
}

#[test]
fn the_context_of_ollama_can_be_chosen() {
    let lab = Lab::speaking_to("ollama", None, [good("one")]);
    let ran = lab.run(&["--max-iterations", "1", "--num-ctx", "8192"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.requests()[0].body["options"]["num_ctx"], 8192);
}

#[test]
fn a_server_of_ollama_that_is_not_there_is_to_be_started() {
    let lab = Lab::speaking_to("ollama", None, []);
    // Nothing listens on a port that was just given back.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let base_url = format!("http://{closed}");
    let ran = lab
        .launch(lab.env.command([
            OBJECTIVE,
            "--provider",
            "ollama",
            "--model",
            "m",
            "--max-retries",
            "0",
            "--base-url",
            &base_url,
        ]))
        .end(PATIENCE);
    assert!(
        ran.reason().contains("start it with `ollama serve`"),
        "{}",
        ran.reason()
    );
}

#[test]
fn a_model_that_ollama_has_not_got_is_to_be_pulled() {
    let missing = Reply::status(404).body(json!({ "error": "model 'test-model' not found" }));
    let lab = Lab::speaking_to("ollama", None, [missing]);
    let ran = lab.run(&[]);
    ran.finished.assert_code(5);
    assert!(
        ran.reason().contains("`ollama pull test-model`"),
        "{}",
        ran.reason()
    );
}

#[test]
fn without_a_key_nothing_begins() {
    let mut lab = Lab::new([]);
    lab.env.env_remove("OPENAI_API_KEY");
    for (provider, variable) in [("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY")] {
        let command = lab
            .env
            .command([OBJECTIVE, "--provider", provider, "--model", "m"]);
        let finished = lab.refuse_command(command);
        for part in [variable, "nothing was changed", "--provider ollama"] {
            assert!(finished.stderr.contains(part), "{}", finished.stderr);
        }
    }
}

#[test]
fn debug_shows_each_exchange_shortened_and_without_the_key() {
    let echo = format!("I know your key, {KEY}.");
    let lab = Lab::new([
        good("one"),
        Reply::status(400).body(json!({ "error": { "message": echo } })),
    ]);
    let ran = lab.run(&["--debug", "--max-iterations", "2"]);
    ran.finished.assert_code(5);
    let shown = &ran.finished.stderr;
    let sent = format!("> POST {}chat/completions, ", lab.server.base_url());
    for part in [
        &format!("debug 1 {sent}"),
        "{\"model\":\"test-model\",\"messages\":",
        "debug 1 < 200, ",
        "data: {\"id\":",
        &format!("debug 2 {sent}"),
        "debug 2 < 400, ",
        "I know your key, [redacted].",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!ran.finished.stdout.contains("debug 1"), "results stay apart");
}

#[test]
fn without_debug_nothing_of_it_is_shown() {
    let lab = Lab::new([good("one")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert!(!ran.shown().contains("debug 1"), "{}", ran.shown());
}

#[test]
fn a_provider_without_the_default_model_wants_one_named() {
    let mut lab = Lab::new([]);
    lab.env.env("ANTHROPIC_API_KEY", KEY);
    let finished = lab.refuse_command(lab.env.command([OBJECTIVE, "--provider", "anthropic"]));
    for part in ["no model is named", "anthropic", "--model NAME"] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
}

#[test]
fn an_address_with_a_secret_is_refused_without_repeating_it() {
    let lab = Lab::new([]);
    for url in ["http://me:hush@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?key=hush"] {
        let finished = lab.refuse_command(lab.env.command([OBJECTIVE, "--base-url", url]));
        assert!(
            finished.stderr.contains("the base URL of 127.0.0.1") && !finished.stderr.contains("hush"),
            "{}",
            finished.stderr
        );
    }
}
