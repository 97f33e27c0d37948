//! What the model is told: the same stable part in every iteration, the project's facts, and where the notes are.

use std::path::PathBuf;

use serde_json::Value;
use testkit::{ModelServer, Reply, Request, TestRepo};

use crate::lab::{Lab, PATIENCE, Ran};
use crate::replies::{bash, good, submit, write};

fn system(request: &Request) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] == "system")
        .map(|message| text(&message["content"]))
        .collect()
}

fn text(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => content.to_string(),
    }
}

/// All that the model was told in its messages of these requests.
fn told(requests: &[Request]) -> String {
    requests
        .iter()
        .map(|request| request.body["messages"].to_string())
        .collect()
}

#[test]
fn the_stable_part_is_the_same_in_every_iteration_and_after_a_resume() {
    let repo = TestRepo::new();
    repo.write("AGENTS.md", "Run make lint.\n");
    let lab = Lab::with(
        repo,
        ModelServer::start([good("one"), good("two"), good("three")]),
    );
    std::fs::write(lab.repo.beside("how.txt"), "Write British English.\n").unwrap();
    // The checkout says something else than the commit that the run starts from.
    lab.repo.write("AGENTS.md", "NEVER SAY THIS\n");
    lab.run(&["--instructions", "../how.txt", "--max-iterations", "2"]);
    std::fs::remove_file(lab.repo.beside("how.txt")).unwrap();
    let arguments = ["resume", "--max-iterations", "3"];
    let ran: Ran<'_> = lab.launch(lab.env.command(arguments)).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (3)");
    let requests = ran.requests();
    assert_eq!(requests.len(), 3);
    let first = system(&requests[0]);
    for part in [
        "Run make lint.",
        "Write British English.",
        "AGENTS.md\nparts/base\ntest.sh",
        &format!("--- end {}", ran.file.run_id),
    ] {
        assert!(first.contains(part), "{part:?} is not in:\n{first}");
    }
    assert!(requests.iter().all(|request| system(request) == first));
    assert!(!told(&requests).contains("NEVER SAY THIS"));
}

#[test]
fn agents_md_is_cut_and_followed_where_it_is_a_link_inside() {
    let repo = TestRepo::new();
    std::fs::create_dir(repo.path().join("docs")).unwrap();
    repo.write("docs/how.md", format!("begin {} never told\n", "x".repeat(9_000)));
    std::os::unix::fs::symlink("docs/how.md", repo.path().join("AGENTS.md")).unwrap();
    let lab = Lab::with(repo, ModelServer::start([good("one")]));
    let ran = lab.run(&["--max-iterations", "1"]);
    let first = system(&ran.requests()[0]);
    assert!(
        first.contains("begin xxx") && first.contains("the file has 9018 bytes"),
        "{first}"
    );
    assert!(!first.contains("never told"));
}

#[test]
fn instructions_that_cannot_be_told_are_refused() {
    let lab = Lab::new([]);
    let place = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = lab.env.root().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    for (path, part) in [
        (lab.env.root().join("none"), "cannot be read"),
        (lab.env.root().to_owned(), "not a regular file"),
        (place("latin", b"caf\xe9"), "are not UTF-8"),
        (place("empty", b" \n"), "are empty"),
        (place("long", &vec![b'x'; 40_000]), "are longer than 32768 bytes"),
    ] {
        let finished = lab.refuse(&["--instructions", path.to_str().unwrap()]);
        for part in [part, "nothing was changed", "--instructions names"] {
            assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
        }
    }
}

#[test]
fn robots_read_the_whole_notes_and_cannot_spoil_them() {
    let lab = Lab::new([
        good("one"),
        Reply::calls([
            bash("f=$(ls ../../notes.md) && stat -c %a $f && cat $f && rm -f $f && mkdir $f"),
            write("parts/two", "ok\n"),
            submit("Add part two"),
        ]),
        Reply::calls([
            bash("cat ../../notes.md"),
            write("parts/three", "ok\n"),
            submit("Add part three"),
        ]),
    ]);
    let ran = lab.run(&["--max-iterations", "3"]);
    ran.assert_end(0, "max iterations reached (3)");
    let outputs: Vec<String> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            robot_lab_to::event::Event::ToolFinished { tool, output, .. } if tool == "bash" => {
                Some(output.clone())
            }
            _ => None,
        })
        .collect();
    assert!(
        outputs[0].contains("444") && outputs[0].contains("### Iteration 1"),
        "{outputs:?}"
    );
    assert!(outputs[1].contains("### Iteration 2"), "{outputs:?}");
    let requests = ran.requests();
    let file = ran.run_git().with_file_name("notes.md");
    let last = told(&requests[2..]);
    assert!(last.contains(file.to_str().unwrap()), "{last}");
    assert!(!file.exists(), "the copy is removed at the end");
}
