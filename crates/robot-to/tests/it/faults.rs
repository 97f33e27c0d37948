//! A provider that breaks off, refuses, is out of order, or speaks nonsense.

use std::time::Duration;

use robot_lab_to::event::Event;
use testkit::{ModelServer, Reply};

use crate::lab::{KEY, Lab, OBJECTIVE, PATIENCE, Ran};
use crate::replies::good;

/// Whether each request that was booked is an estimate.
fn estimates(ran: &Ran<'_>) -> Vec<bool> {
    let booked = ran.records.iter().filter_map(|record| match &record.event {
        Event::ModelFinished { estimated, .. } => Some(*estimated),
        _ => None,
    });
    booked.collect()
}

fn is_sent_again_after(broken: Reply) {
    let lab = Lab::new([broken, good("one")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.count("model:error"), 1);
    let requests = ran.requests();
    assert_eq!(requests[0].body, requests[1].body, "the same request again");
    assert_eq!(estimates(&ran), [true, false], "what broke off is paid for too");
    assert!(ran.file.state.usage.total() > 15, "{:?}", ran.file.state.usage);
}

#[test]
fn a_stream_that_breaks_off_is_asked_for_again_and_booked() {
    is_sent_again_after(Reply::text("This is going to be a long story. ".repeat(20)).cut_after(4));
}

#[test]
fn a_stream_that_ends_without_an_end_is_asked_for_again() {
    is_sent_again_after(good("broken").truncate_after(5));
}

#[test]
fn a_stream_of_nonsense_is_asked_for_again() {
    is_sent_again_after(Reply::text("A word").raw_event("{\"choices\": [{\"delta\": "));
}

#[test]
fn a_stream_that_stands_still_for_a_while_is_waited_for() {
    let lab = Lab::new([good("one").stall_after(3, Duration::from_secs(3)).chunk_bytes(7)]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.count("model:error"), 0);
    assert_eq!(estimates(&ran), [false]);
}

#[test]
fn case_127_f53_a_wrong_key_ends_the_run_at_once() {
    let mut lab = Lab::new([]);
    lab.env.env("OPENAI_API_KEY", "sk-a-wrong-key-0123456789");
    let ran = lab.run(&[]);
    ran.finished.assert_code(5);
    assert_eq!(ran.requests().len(), 1, "there is no use in trying again");
    assert!(
        ran.reason().starts_with("the provider refuses: "),
        "{}",
        ran.reason()
    );
    assert!(
        ran.reason().contains("Incorrect API key") || ran.reason().contains("key"),
        "{}",
        ran.reason()
    );
    assert!(!ran.shown().contains("sk-a-wrong-key"), "{}", ran.shown());
    assert_eq!(ran.file.state.failures_in_a_row, 0);
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
}

#[test]
fn an_unknown_model_ends_the_run_at_once() {
    let lab = Lab::new([Reply::status(404)]);
    let ran = lab.run(&[]);
    ran.finished.assert_code(5);
    assert_eq!(ran.requests().len(), 1);
    assert!(
        ran.reason().starts_with("the provider refuses: "),
        "{}",
        ran.reason()
    );
}

#[test]
fn a_provider_out_of_order_is_the_environments_fault() {
    let lab = Lab::new(std::iter::repeat_n(Reply::status(500), 3));
    let ran = lab.run(&["--max-wait", "0"]);
    ran.finished.assert_code(5);
    assert_eq!(ran.requests().len(), 3, "two quick retries");
    assert!(ran.reason().starts_with("environment: "), "{}", ran.reason());
    assert_eq!(ran.file.state.failures_in_a_row, 0);
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    assert_eq!(ran.file.state.usage.total(), 0, "what was refused costs nothing");
}

#[test]
fn a_provider_that_is_not_there_is_the_environments_fault() {
    let lab = Lab::new([]);
    let gone = ModelServer::start([]).base_url();
    let mut command = lab
        .env
        .command([OBJECTIVE, "--verify", "sh test.sh", "--max-retries", "0"]);
    command.args(["--max-wait", "0"]);
    command.args(["--model", "test-model", "--base-url", &gone]);
    let ran = lab.launch(command).end(PATIENCE);
    ran.finished.assert_code(5);
    assert!(ran.reason().starts_with("environment: "), "{}", ran.reason());
    assert_eq!(ran.file.state.failures_in_a_row, 0);
}

#[test]
fn a_reply_without_counts_is_booked_by_an_estimate() {
    let lab = Lab::new([good("one").no_usage()]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(estimates(&ran), [true]);
    assert!(ran.shown().contains('~'), "{}", ran.shown());
}

#[test]
fn a_provider_that_repeats_the_key_does_not_get_it_into_the_log() {
    let body =
        serde_json::json!({ "error": { "message": format!("the key {KEY} is blocked"), "code": "blocked" } });
    let lab = Lab::new([Reply::status(403).body(body)]);
    let ran = lab.run(&[]);
    ran.finished.assert_code(5);
    // The rest is checked after every run.
    assert!(
        ran.reason().starts_with("the provider refuses: "),
        "{}",
        ran.reason()
    );
}
