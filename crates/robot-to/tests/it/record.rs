//! What was said to a provider is kept in a file, and played back in another repository without a key.

use crate::lab::{KEY, Lab, OBJECTIVE, PATIENCE, Ran, text_of};
use crate::replies::{bash, good};
use std::os::unix::fs::PermissionsExt as _;
use testkit::{ModelServer, Reply, Request};

fn recorded() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("night.jsonl");
    let file = file.to_str().unwrap().to_owned();
    let lab = Lab::new([good("one"), good("two")]);
    let ran = lab.run(&["--max-iterations", "2", "--record", &file]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.subjects().len(), 2);
    (dir, file)
}

#[test]
fn a_run_is_recorded_without_its_key_and_played_back_without_one() {
    let (_dir, file) = recorded();
    let text = text_of(file.as_ref());
    assert!(!text.contains(KEY), "the key is in the recording");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "only for its owner");
    let mut lab = Lab::new([]);
    lab.env.env_remove("OPENAI_API_KEY");
    let again = lab.env.run([
        OBJECTIVE,
        "--verify",
        "sh test.sh",
        "--max-iterations",
        "2",
        "--provider",
        "replay",
        "--model",
        &file,
    ]);
    again.assert_code(0);
    assert!(
        again.stdout.contains("2 (2 committed, 0 discarded)"),
        "{}",
        again.stdout
    );
    assert!(again.stdout.contains("openai/test-model"), "{}", again.stdout);
    assert_eq!(lab.server.requests().len(), 0, "nothing is sent");
}

#[test]
fn a_request_that_is_not_the_recorded_one_ends_the_run_and_says_where_it_differs() {
    let (_dir, file) = recorded();
    let lab = Lab::new([]);
    let other = lab.env.run([
        "something else",
        "--verify",
        "sh test.sh",
        "--provider",
        "replay",
        "--model",
        &file,
    ]);
    other.assert_code(5);
    for said in [
        "request 1 is not the one that was recorded",
        "messages[0].content differs",
    ] {
        assert!(other.stdout.contains(said), "{}", other.stdout);
    }
}

#[test]
fn a_difference_in_the_middle_of_an_iteration_ends_the_run_at_once_and_counts_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("night.jsonl");
    let file = file.to_str().unwrap();
    let lab = Lab::new([Reply::calls([bash("cat note")]), good("one"), good("two")]);
    lab.repo.write("note", "then");
    lab.repo.commit_all("a note");
    lab.run(&["--max-iterations", "2", "--record", file])
        .assert_end(0, "max iterations reached (2)");

    let lab = Lab::new([]);
    lab.repo.write("note", "now");
    lab.repo.commit_all("a note");
    let args = ["--verify", "sh test.sh", "--provider", "replay", "--model", file];
    let mut command = lab.env.command([OBJECTIVE]);
    command.args(args);
    let ran = lab.launch(command).end(PATIENCE);
    ran.finished.assert_code(5);
    for said in ["request 2 is not the one that was recorded", "then", "now"] {
        assert!(ran.reason().contains(said), "{}", ran.reason());
    }
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    let state = &ran.file.state;
    assert_eq!(
        (state.failures_in_a_row, state.discarded),
        (0, 0),
        "nothing counts against the robot"
    );
}

#[test]
fn a_night_that_two_models_worked_on_is_played_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("night.jsonl");
    let file = file.to_str().unwrap();
    let failing = |request: &Request| {
        let first = !request.body.to_string().contains("Add part one");
        match request.body["model"].as_str() {
            Some("test-model") if first => Reply::status(429).header("retry-after", "600"),
            Some("test-model") => Reply::status(529),
            _ if first => good("one"),
            _ => good("two"),
        }
    };
    let lab = Lab::serving(ModelServer::answering(failing));
    let args = [
        "--max-iterations",
        "2",
        "--fallback-model",
        "spare",
        "--record",
        file,
    ];
    let ran = lab.run(&args);
    ran.assert_end(0, "max iterations reached (2)");

    let lab = Lab::new([]);
    let args = [
        "--verify",
        "sh test.sh",
        "--max-iterations",
        "2",
        "--provider",
        "replay",
    ];
    let mut command = lab.env.command([OBJECTIVE]);
    command.args(args).args(["--model", file]);
    let again = lab.launch(command).end(PATIENCE);
    again.assert_end(0, "max iterations reached (2)");
    assert_eq!(again.subjects(), ran.subjects());
    assert!(again.shown().contains("openai/test-model"), "{}", again.shown());
    let answered = |ran: &Ran<'_>| ran.file.state.answers.clone();
    assert_eq!(answered(&again), answered(&ran));
    assert_eq!(again.requests().len(), 0, "nothing is sent");
}

#[test]
fn a_recording_replaces_no_file_and_needs_a_wire() {
    let lab = Lab::new([]);
    lab.repo.write("taken.jsonl", "mine");
    let refused = lab.refuse(&["--record", "taken.jsonl"]);
    assert!(refused.stderr.contains("is there already"), "{}", refused.stderr);
    assert_eq!(text_of(&lab.repo.path().join("taken.jsonl")), "mine");
    let nowhere = lab.refuse(&["--record", "no/such/place.jsonl"]);
    assert!(
        nowhere.stderr.contains("there is no directory"),
        "{}",
        nowhere.stderr
    );
    let none = lab
        .env
        .run([OBJECTIVE, "--provider", "replay", "--model", "taken.jsonl"]);
    none.assert_code(2);
    assert!(none.stderr.contains("it is no recording"), "{}", none.stderr);
    let played = lab.env.run([
        OBJECTIVE,
        "--provider",
        "script",
        "--model",
        "x",
        "--record",
        "new.jsonl",
    ]);
    played.assert_code(2);
    assert!(played.stderr.contains("nothing to record"), "{}", played.stderr);
    let half = lab.refuse(&["--fallback-model", "script/x", "--record", "new.jsonl"]);
    assert!(half.stderr.contains("nothing to record"), "{}", half.stderr);
}
