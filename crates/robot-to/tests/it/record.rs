//! What was said to a provider is kept in a file, and played back in another repository without a key.

use crate::lab::{KEY, Lab, OBJECTIVE, text_of};
use crate::replies::good;
use std::os::unix::fs::PermissionsExt as _;

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
}
