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
            "--max-wait",
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

#[test]
fn responses_are_spoken_to_in_items_and_nothing_is_kept_at_the_provider() {
    let lab = Lab::speaking_to("openai-responses", Some("OPENAI_API_KEY"), replies());
    let ran = run_one(&lab);
    assert_eq!(ran.file.state.usage.cached_input, 400);
    let requests = ran.requests();
    assert_eq!(
        header(&requests, "authorization"),
        [Some(format!("Bearer {KEY}").as_str()); 2]
    );
    assert_eq!(requests[1].path, "/v1/responses");
    let body = &requests[1].body;
    assert_eq!(body["store"], false);
    let kinds: Vec<&str> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().or(item["role"].as_str()).unwrap())
        .collect();
    let expected = [
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ];
    assert_eq!(kinds, expected, "reasoning goes back, sealed");
}

#[test]
fn a_base_url_that_ends_in_responses_is_spoken_to_so() {
    let lab = Lab::new([good("one")]);
    let url = format!("{}responses", lab.server.base_url());
    let mut options = lab.arguments(&["--max-iterations", "1"]);
    let at = options.iter().position(|word| word == "--base-url").unwrap();
    options[at + 1] = url.into();
    let ran = lab.launch(lab.env.command(options)).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.requests()[0].path, "/v1/responses");
}

#[test]
fn what_is_asked_of_a_model_is_sent_in_the_words_of_each_protocol() {
    let asked = [
        "--max-iterations",
        "1",
        "--temperature",
        "0.25",
        "--max-output-tokens",
        "9000",
        "--reasoning",
        "low",
    ];
    for (provider, variable, expected) in [
        (
            "openai",
            Some("OPENAI_API_KEY"),
            [
                ("/temperature", json!(0.25)),
                ("/max_tokens", json!(9_000)),
                ("/reasoning_effort", json!("low")),
            ],
        ),
        (
            "openai-responses",
            Some("OPENAI_API_KEY"),
            [
                ("/temperature", json!(0.25)),
                ("/max_output_tokens", json!(9_000)),
                ("/reasoning/effort", json!("low")),
            ],
        ),
        (
            "anthropic",
            Some("ANTHROPIC_API_KEY"),
            [
                ("/max_tokens", json!(9_000)),
                ("/thinking/type", json!("enabled")),
                ("/thinking/budget_tokens", json!(4_096)),
            ],
        ),
        (
            "gemini",
            Some("GEMINI_API_KEY"),
            [
                ("/generationConfig/temperature", json!(0.25)),
                ("/generationConfig/maxOutputTokens", json!(9_000)),
                ("/generationConfig/thinkingConfig/thinkingLevel", json!("low")),
            ],
        ),
        (
            "ollama",
            None,
            [
                ("/options/temperature", json!(0.25)),
                ("/options/num_predict", json!(9_000)),
                ("/think", json!(true)),
            ],
        ),
    ] {
        let lab = Lab::speaking_to(provider, variable, [good("one"), good("two")]);
        let ran = lab.run(&asked);
        ran.assert_end(0, "max iterations reached (1)");
        let id = ran.file.run_id.to_string();
        let again = lab
            .launch(lab.env.command(["resume", &id, "--max-iterations", "2"]))
            .end(PATIENCE);
        again.assert_end(0, "max iterations reached (2)");
        for request in lab.server.requests() {
            for (place, value) in &expected {
                let sent = request.body.pointer(place);
                assert_eq!(
                    sent,
                    Some(value),
                    "{provider} {place}: a run that goes on asks for the same"
                );
            }
        }
    }
}

#[test]
fn a_key_and_a_header_of_ones_own_variables_reach_the_provider_and_nothing_else() {
    let look = "env; for p in /proc/[0-9]*; do e=$(tr '\\0' '\\n' <$p/environ); \
                case $e in *\"$XDG_STATE_HOME\"*) echo \"$e\";; esac; done 2>/dev/null | grep -c '^MY_' ";
    let replies = [Reply::calls([bash(look)]), good("one"), good("two")];
    let mut lab = Lab::speaking_to("openai", Some("MY_KEY"), replies);
    let gate = "gate-0123456789-secret";
    lab.env.env_remove("OPENAI_API_KEY").env("MY_GATE", gate);
    let mut options = lab.options(&["--max-iterations", "1", "--api-key-env", "MY_KEY"]);
    options.extend(
        [
            "--header",
            "x-gate-key: v1 ${MY_GATE}",
            "--header",
            "x-title: nightly",
        ]
        .map(Into::into),
    );
    options.push("-".into());
    let mut command = lab.env.command(options);
    // What is read once is read by the program that stays.
    let objective = lab.env.root().join("objective");
    std::fs::write(&objective, OBJECTIVE).unwrap();
    command.stdin(std::fs::File::open(&objective).unwrap());
    let ran = lab.launch(command).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert_eq!(told.trim_end().lines().last(), Some("0"), "{told}");
    assert!(!told.contains(KEY) && !told.contains(gate), "{told}");
    let id = ran.file.run_id.to_string();
    let again = lab
        .launch(lab.env.command(["resume", &id, "--max-iterations", "2"]))
        .end(PATIENCE);
    again.assert_end(0, "max iterations reached (2)");
    let requests = lab.server.requests();
    assert_eq!(requests.len(), 3);
    let bearer = format!("Bearer {KEY}");
    assert_eq!(header(&requests, "authorization"), [Some(bearer.as_str()); 3]);
    let gated = format!("v1 {gate}");
    assert_eq!(header(&requests, "x-gate-key"), [Some(gated.as_str()); 3]);
    assert_eq!(header(&requests, "x-title"), [Some("nightly"); 3]);
    let log = std::fs::read_to_string(again.dir.log()).unwrap();
    assert!(
        log.contains("${MY_GATE}") && !log.contains(gate),
        "the log has the name alone"
    );
}

#[test]
fn a_header_with_a_secret_and_a_key_that_is_not_there_are_refused() {
    let lab = Lab::new([]);
    for (extra, said) in [
        (&["--header", "x-key: hush-hush"][..], "--header 'x-key: $NAME'"),
        (
            &["--header", "x-title: hush-0123456789-abcdef"],
            "may be a secret",
        ),
        (&["--header", "hush"], "a header is no name with a value"),
        (&["--header", "x-key: $NOT_SET"], "export NOT_SET=…"),
        (&["--api-key-env", "NOT_SET"], "the variable NOT_SET is not set"),
        (&["--api-key-env", "hush-hush"], "is no name of a variable"),
        (
            &["--api-key-env", "MINE", "--env", "MINE"],
            "--env MINE would show to every command what goes to the provider",
        ),
        (&["--temperature", "3"], "give a number from 0 to 2"),
        (
            &["--reasoning", "much"],
            "give none, minimal, low, medium, high or xhigh",
        ),
    ] {
        let finished = lab.refuse(extra);
        assert!(finished.stderr.contains(said), "{extra:?}: {}", finished.stderr);
        assert!(!finished.stderr.contains("hush"), "{}", finished.stderr);
    }
}

#[test]
fn the_file_of_a_repository_names_neither_keys_nor_headers() {
    for line in ["api_key_env: HOME", "header: ['x-a: $HOME']"] {
        let lab = Lab::new([]);
        lab.repo.write("robot-to.yml", line);
        lab.repo.commit_all("settings");
        let finished = lab.refuse(&[]);
        assert!(finished.stderr.contains("robot-to.yml"), "{}", finished.stderr);
        assert!(finished.stderr.contains("variable"), "{}", finished.stderr);
    }
}

#[test]
fn case_142_a_refused_parameter_costs_no_iteration_and_is_said() {
    let refused = Reply::status(400).body(json!({ "error": {
        "message": "Unsupported parameter: 'temperature' is not supported with this model.", "param": "temperature",
    } }));
    let lab = Lab::new([refused, good("one")]);
    let ran = lab.run(&[
        "--max-iterations",
        "1",
        "--max-retries",
        "0",
        "--temperature",
        "0.5",
    ]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!((ran.count("model:adapted"), ran.count("model:error")), (1, 0));
    assert!(
        ran.finished
            .stderr
            .contains("the provider wants it otherwise: temperature is left out"),
        "{}",
        ran.finished.stderr
    );
    assert_eq!(ran.requests()[1].body.get("temperature"), None);
}

#[test]
fn case_155_another_model_than_the_one_that_was_asked_is_recorded() {
    let call = good("one");
    let other = r#"{"model":"other-model","choices":[]}"#;
    let mut lab = Lab::new([]);
    lab.server = testkit::ModelServer::answering(move |request| {
        if request.messages().len() < 3 {
            Reply::events([
                other.to_owned(),
                r#"{"choices":[{"delta":{"content":"Hm."},"finish_reason":"stop"}]}"#.to_owned(),
            ])
        } else {
            call.clone()
        }
    });
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.count("model:served"), 1);
    let said = "other-model answers in place of openai/test-model";
    assert!(ran.finished.stderr.contains(said), "{}", ran.finished.stderr);
}

#[test]
fn case_155_a_refusal_is_told_from_an_empty_reply() {
    let refusal = || {
        let refused =
            json!({ "choices": [{ "delta": { "refusal": "I cannot help." }, "finish_reason": "stop" }] });
        Reply::events([refused.to_string()])
    };
    let lab = Lab::new([refusal(), refusal()]);
    let ran = lab.run(&["--max-iterations", "1"]);
    let log = std::fs::read_to_string(ran.dir.log()).unwrap();
    assert!(
        log.contains("\"finish\":\"refused\"") && log.contains("the model refused"),
        "{log}"
    );
    assert_eq!(ran.subjects(), Vec::<String>::new());
}
