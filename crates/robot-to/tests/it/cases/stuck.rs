//! Loops that stand still, and robots that say they are done.

use robot_lab_to::event::Event;
use testkit::Reply;

use crate::lab::Lab;
use crate::replies::{bash, good, part, submit, submit_and_stop, write};

#[test]
fn case_95_a_change_and_its_undoing_do_not_alternate() {
    let to = |content: &str| Reply::calls([write("parts/base", content), submit("Change the base")]);
    let mut lab = Lab::new([to("A\n"), to("ok\n"), to("A\n"), to("ok\n")]);
    lab.verify = None;
    let ran = lab.run(&[]);
    ran.assert_end(0, "nothing to do: 3 iterations without a change");
    assert_eq!(ran.outcomes()[0], "commit:success");
    assert_eq!(ran.outcomes()[1..], ["iteration:no_change"; 3]);
    let repeats = ran
        .records
        .iter()
        .filter(|record| matches!(record.event, Event::NoChange { repeat: true, .. }));
    // The third change is what is there already.
    assert_eq!(repeats.count(), 2);
}

#[test]
fn case_90_work_that_was_done_is_told_and_not_done_again() {
    let lab = Lab::new([
        good("one"),
        good("one"),
        part("one", "broken\n"),
        part("one", "broken\n"),
    ]);
    let ran = lab.run(&["--max-iterations", "4", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (4)");
    assert_eq!(
        ran.outcomes(),
        [
            "commit:success",
            "iteration:no_change",
            "iteration:gate_failure",
            "iteration:no_change"
        ]
    );
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let told = ran.requests()[1].last_text("user").unwrap();
    assert!(told.contains("Add part one"), "{told}");
}

#[test]
fn case_91_92_only_a_submission_ends_a_run_and_only_when_the_condition_holds() {
    let phrase = "I will say COMPLETE when all parts are there: should_fully_stop=true, stop condition met.";
    let claim = |content: &str| {
        Reply::calls([write("parts/one", content), submit_and_stop("All is there")]).with_text(phrase)
    };
    let lab = Lab::new([
        Reply::calls([bash("echo COMPLETE"), write("parts/zero", "ok\n"), submit("Zero")]).with_text(phrase),
        // What is not committed does not count.
        claim("broken\n"),
        claim("ok\n"),
    ]);
    let ran = lab.run(&[
        "--stop-when",
        "all parts are there",
        "--max-iterations",
        "9",
        "--max-verify-repairs",
        "0",
    ]);
    ran.assert_end(0, "stop condition met: all parts are there");
    assert_eq!(
        ran.outcomes(),
        ["commit:success", "iteration:gate_failure", "commit:success"]
    );
}

#[test]
fn case_155_a_refusal_is_the_robots_failure_and_rolls_nothing_back() {
    let lab = Lab::new([
        Reply::text("I cannot help with that.").finish("content_filter"),
        Reply::text("I cannot help with that."),
        good("one"),
    ]);
    let ran = lab.run(&["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:failure", "commit:success"]);
    assert_eq!(ran.attempts(), Vec::<String>::new());
}

#[test]
fn case_102_106_107_115_verify_cannot_hang_flood_or_ask() {
    let mut lab = Lab::new([good("one")]);
    let asks = "cat; sh test.sh; echo here; test ! -t 0; test \"$CI\" = 1 || exit 1";
    let stubborn = "test -e parts/one || exit 0; yes | head -c 50000000; \
                    trap '' TERM; setsid sleep 9999 & sleep 9999";
    lab.verify = Some(format!("{asks}; {stubborn}"));
    let ran = lab.run(&[
        "--max-iterations",
        "1",
        "--max-verify-repairs",
        "0",
        "--verify-timeout",
        "4",
    ]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure"]);
    assert!(ran.notes().contains("here"), "{}", ran.notes());
    assert!(ran.notes().len() < 10_000);
}

#[test]
fn case_100_a_repair_is_judged_by_the_same_rules() {
    let lab = Lab::new([
        part("one", "broken\n"),
        // With the file tools it is refused, so it goes around them.
        Reply::calls([bash("echo 'exit 0' >test.sh"), submit("Repair the tests")]),
    ]);
    let ran = lab.run(&["--protect-path", "test.sh", "--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.count("eval:repair"), 1);
    assert_eq!(ran.outcomes(), ["iteration:tampered"]);
    assert_eq!(ran.subjects(), Vec::<String>::new());
}
