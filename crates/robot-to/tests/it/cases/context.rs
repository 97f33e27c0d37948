//! Conversations that grow too long for the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use robot_lab_to::event::Event;
use serde_json::json;
use testkit::{ModelServer, Reply, Request};

use crate::lab::{Lab, PATIENCE, Ran};
use crate::replies::{bash, submit, write};

/// Tokens that the server takes.
const WINDOW: usize = 16_384;

/// What the server counts.
fn tokens(request: &Request) -> usize {
    request.body.to_string().len() / 4
}

fn too_long(request: &Request) -> Reply {
    let message = format!(
        "request ({} tokens) exceeds the available context size ({WINDOW} tokens), try increasing it",
        tokens(request).max(WINDOW + 1)
    );
    let error = json!({ "code": 400, "type": "exceed_context_size_error", "message": message });
    Reply::status(400).body(json!({ "error": error }))
}

/// A call with a long answer, another one each time.
fn long(request: &Request) -> Reply {
    let tokens = u64::try_from(tokens(request)).unwrap();
    let command = format!("seq {tokens} {}; echo ok > parts/one", tokens + 4_000);
    Reply::calls([bash(&command)]).usage(tokens, 20)
}

/// Tokens of the requests before and after each compaction.
fn compactions(ran: &Ran<'_>) -> Vec<(u64, u64)> {
    let compactions = ran.records.iter().filter_map(|record| match &record.event {
        Event::Compacted {
            before_tokens,
            after_tokens,
            ..
        } => Some((*before_tokens, *after_tokens)),
        _ => None,
    });
    compactions.collect()
}

#[test]
fn f63_a_conversation_that_is_refused_for_its_length_goes_on_in_short_and_is_never_refused_again() {
    let (asked, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let lab = Lab::serving(ModelServer::answering({
        let refused = Arc::clone(&refused);
        move |request| match asked.fetch_add(1, Ordering::SeqCst) {
            _ if tokens(request) > WINDOW => {
                refused.fetch_add(1, Ordering::SeqCst);
                too_long(request)
            }
            0..14 => long(request),
            _ => Reply::calls([submit("Add part one")]).usage(9_000, 20),
        }
    }));
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(
        refused.load(Ordering::SeqCst),
        1,
        "it learns from the first refusal"
    );
    let compactions = compactions(&ran);
    assert!(compactions.len() >= 2, "{compactions:?}");
    let shorter = |(before, after): &(u64, u64)| *after * 10 < *before * 8;
    assert!(compactions.iter().all(shorter), "in large steps: {compactions:?}");
    for pair in ran.requests().windows(2) {
        let [before, after] = pair else { continue };
        let (before, after) = (before.messages(), after.messages());
        let grows = after.len() > before.len() && after[..before.len()] == *before;
        let told = after[1]["content"].to_string().contains("make room") || after.len() == before.len();
        assert!(grows || told, "only a compaction changes what was sent before");
    }
}

#[test]
fn what_a_server_does_not_take_is_not_learnt_again_by_a_run_that_goes_on() {
    let asked = AtomicUsize::new(0);
    // For the temperature, and for the length.
    let refused = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let lab = Lab::serving(ModelServer::answering({
        let refused = Arc::clone(&refused);
        move |request| {
            if request.body.get("temperature").is_some() {
                refused[0].fetch_add(1, Ordering::SeqCst);
                let message = "Unsupported value: 'temperature' does not support 0.5 with this model.";
                let error =
                    json!({ "message": message, "param": "temperature", "code": "unsupported_value" });
                return Reply::status(400).body(json!({ "error": error }));
            }
            match asked.fetch_add(1, Ordering::SeqCst) {
                _ if tokens(request) > WINDOW => {
                    refused[1].fetch_add(1, Ordering::SeqCst);
                    too_long(request)
                }
                0..6 | 8..15 => long(request),
                _ => Reply::calls([submit("Add a part")]).usage(9_000, 20),
            }
        }
    }));
    let refused = || [0, 1].map(|of: usize| refused[of].load(Ordering::SeqCst));
    let ran = lab.run(&["--max-iterations", "1", "--temperature", "0.5"]);
    ran.finished.assert_code(0);
    assert_eq!(refused(), [1, 1]);
    assert_eq!((ran.count("model:adapted"), ran.count("model:window")), (1, 1));

    let ran = lab
        .launch(lab.env.command(["resume", "--max-iterations", "2"]))
        .end(PATIENCE);
    ran.finished.assert_code(0);
    assert_eq!(ran.file.state.iteration, 2, "{}", ran.shown());
    assert_eq!(refused(), [1, 1], "nothing was tried again");
    assert!(compactions(&ran).len() >= 2, "{:?}", compactions(&ran));

    let again = ["resume", "--max-iterations", "3", "--temperature", "0.7"];
    let ran = lab.launch(lab.env.command(again)).end(PATIENCE);
    ran.finished.assert_code(0);
    assert_eq!(refused()[0], 2, "another setting may be taken, so it is tried");
}

#[test]
fn case_145_a_robot_that_fills_its_context_again_and_again_is_ordered_to_submit_and_fails() {
    let lab = Lab::serving(ModelServer::answering(long));
    let ran = lab.run(&["--max-iterations", "1", "--context-window", "12000"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["agent:run:error"]);
    assert_eq!(ran.count("agent:order"), 1);
    let compactions = compactions(&ran);
    assert!((5..=12).contains(&compactions.len()), "{compactions:?}");
    assert!(ran.requests().len() < 80, "{}", ran.requests().len());
    assert!(
        ran.requests().iter().all(|request| tokens(request) <= 12_000),
        "nothing is sent that is known to be too long"
    );
}

#[test]
fn case_145_a_first_message_that_does_not_fit_ends_the_iteration_without_a_loop() {
    let lab = Lab::serving(ModelServer::answering(too_long));
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["agent:run:error"]);
    assert!(ran.requests().len() <= 3, "{}", ran.requests().len());
    assert_eq!(ran.file.state.usage.total(), 0, "what was refused costs nothing");
}

#[test]
fn case_154_a_call_of_two_megabytes_fills_neither_the_log_nor_the_context() {
    let big = format!("{}\n", "ok ".repeat(700_000));
    let (content, asked) = (big.clone(), AtomicUsize::new(0));
    let lab = Lab::serving(ModelServer::answering(move |request| {
        let tokens = u64::try_from(tokens(request)).unwrap();
        let reply = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::calls([write("big.txt", &content)]),
            _ => Reply::calls([submit("Add a big file")]),
        };
        reply.usage(tokens, 600_000)
    }));
    let ran = lab.run(&["--max-iterations", "1", "--context-window", "200000"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.on_branch("big.txt").trim_end(), big.trim_end());
    let log = std::fs::metadata(ran.dir.log()).unwrap().len();
    assert!(log < 200_000, "{log} bytes");
    let (_, after) = compactions(&ran)[0];
    assert!(after < 200_000, "{after}");
}
