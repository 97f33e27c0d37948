//! Limits of tokens, time and tool calls, in the middle of whatever goes on.

use std::time::Duration;

use robot_lab_to::event::Event;
use testkit::Reply;

use crate::lab::{Lab, Ran};
use crate::replies::{bash, good, submit, write};

const LONG: Duration = Duration::from_secs(600);

/// A reply of about 50 000 tokens in six pieces, which stands still for long before the last ones.
fn flood() -> Reply {
    Reply::text("wordy ".repeat(33_000)).stall_after(5, LONG)
}

/// The tokens of each request, and whether they are estimates.
fn booked(ran: &Ran<'_>) -> Vec<(u64, bool)> {
    let booked = ran.records.iter().filter_map(|record| match &record.event {
        Event::ModelFinished {
            input_tokens,
            output_tokens,
            estimated,
            ..
        } => Some((input_tokens + output_tokens, *estimated)),
        _ => None,
    });
    booked.collect()
}

fn is_cut_by_the_limit(flags: &[&str]) {
    let lab = Lab::new([flood()]);
    let ran = lab.run(&[&["--max-tokens", "20000"], flags].concat());
    ran.assert_end(0, "max tokens reached (20000)");
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    let booked = booked(&ran);
    assert!(
        matches!(booked[..], [(20_001..40_000, true)]),
        "booked by what came: {booked:?}"
    );
    assert!(
        ran.requests()[0].is_streaming(),
        "without a stream there is nothing to meter"
    );
    assert!(ran.shown().contains(" (partly estimated)"), "{}", ran.shown());
    assert!(ran.shown().contains(" ~2"), "{}", ran.shown());
}

#[test]
fn a_reply_is_cut_off_where_it_passes_the_limit_of_tokens() {
    is_cut_by_the_limit(&[]);
}

#[test]
fn a_reply_that_is_not_shown_is_cut_off_too() {
    is_cut_by_the_limit(&["--no-stream"]);
}

#[test]
fn what_earlier_replies_cost_counts_for_the_limit() {
    let lab = Lab::new([
        Reply::calls([write("parts/one", "ok\n")]).usage(19_000, 500),
        flood(),
    ]);
    let ran = lab.run(&["--max-tokens", "22000"]);
    ran.assert_end(0, "max tokens reached (22000)");
    let booked = booked(&ran);
    assert!(matches!(booked[..], [(19_500, false), (_, true)]), "{booked:?}");
    assert!(ran.file.state.usage.total() < 40_000, "{booked:?}");
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "ok", "what was made is kept");
    assert_eq!(ran.subjects(), Vec::<String>::new());
}

#[test]
fn no_request_is_sent_when_the_tokens_are_spent() {
    let lab = Lab::new([Reply::calls([bash("true")]).usage(30_000, 10)]);
    let ran = lab.run(&["--max-tokens", "20000"]);
    ran.assert_end(0, "max tokens reached (20000)");
    assert_eq!(ran.requests().len(), 1);
    assert_eq!(booked(&ran), [(30_010, false)]);
    assert!(!ran.shown().contains('~'), "{}", ran.shown());
}

#[test]
fn the_limit_of_time_ends_the_run_in_the_middle_of_a_reply() {
    let lab = Lab::new([Reply::hang()]);
    let ran = lab.run(&["--max-time", "4s"]);
    ran.assert_end(0, "max time reached (4 s)");
    assert!(
        ran.outcomes()
            .iter()
            .all(|outcome| outcome == "iteration:interrupted"),
        "{:?}",
        ran.outcomes()
    );
}

#[test]
fn a_robot_out_of_time_is_ordered_to_submit_and_its_work_is_graded() {
    let lab = Lab::new([
        Reply::calls([write("parts/one", "ok\n"), bash("sleep 1000")]),
        Reply::calls([bash("echo too late"), submit("Add part one")]),
    ]);
    let ran = lab.run(&["--max-iterations", "1", "--iteration-timeout", "5s"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let order = ran.requests()[1].last_text("user").unwrap();
    assert!(
        order.contains("You are out of room: iteration timeout (5 s)"),
        "{order}"
    );
    let refused = ran.records.iter().any(|record| {
        matches!(&record.event, Event::ToolFinished { tool, ok: false, output, .. }
            if tool == "bash" && output.contains("submit_iteration_result"))
    });
    assert!(refused, "everything but the report is refused: {}", ran.shown());
}

#[test]
fn case_112_a_robot_out_of_time_that_does_not_submit_is_an_error() {
    let lab = Lab::new([
        Reply::calls([write("parts/one", "ok\n"), bash("sleep 1000")]),
        Reply::text("One moment."),
    ]);
    let ran = lab.run(&["--max-iterations", "1", "--iteration-timeout", "5s"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["agent:run:error"]);
    assert!(ran.notes().contains("### Iteration 1 [ERROR]"), "{}", ran.notes());
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "ok");
    assert_eq!(ran.file.state.failures_in_a_row, 1);
}

#[test]
fn a_robot_out_of_tool_calls_is_ordered_to_submit_and_its_work_is_graded() {
    let calls = [
        write("parts/one", "ok\n"),
        bash("true"),
        bash("true"),
        bash("echo the fourth call"),
    ];
    let lab = Lab::new([Reply::calls(calls), Reply::calls([submit("Add part one")])]);
    let ran = lab.run(&["--max-iterations", "1", "--max-tool-rounds", "3"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.count("agent:order"), 1);
    let order = ran.requests()[1].last_text("user").unwrap();
    assert!(
        order.contains("You are out of room: tool call limit reached"),
        "{order}"
    );
    let body = ran.requests()[1].body.to_string();
    assert!(body.contains("the limit of 3 tool calls is reached"), "{body}");
}

#[test]
fn a_robot_out_of_tool_calls_that_does_not_submit_is_an_error() {
    let lab = Lab::new([
        Reply::calls(["1", "2", "3", "4"].map(bash)),
        Reply::text("No."),
        good("two"),
    ]);
    let ran = lab.run(&["--max-iterations", "2", "--max-tool-rounds", "3"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["agent:run:error", "commit:success"]);
    assert!(ran.notes().contains("### Iteration 1 [ERROR]"), "{}", ran.notes());
}
