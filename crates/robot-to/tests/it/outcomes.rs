//! Iterations that come to nothing, and when a run stops for it.

use robot_lab_to::event::Event;
use testkit::Reply;

use crate::lab::Lab;
use crate::replies::{bash, give_up, good, part, submit, submit_and_stop, write};

fn failure(summary: &str) -> Reply {
    Reply::calls([give_up(summary)])
}

#[test]
fn a_robot_that_forgets_to_submit_is_asked_to() {
    let lab = Lab::new([Reply::text("I am done."), good("one")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let requests = ran.requests();
    let (first, second) = (requests[0].messages(), requests[1].messages());
    assert_eq!(&second[..first.len()], first, "the conversation goes on");
    let asked = requests[1].last_text("user").unwrap();
    assert!(
        asked.contains("without calling `submit_iteration_result`"),
        "{asked}"
    );
    assert_eq!(ran.count("agent:nudge"), 1);
}

#[test]
fn a_robot_that_does_not_submit_when_asked_has_failed() {
    let lab = Lab::new([
        Reply::calls([write("parts/one", "ok\n")]),
        Reply::text("Done."),
        Reply::text("Really."),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["iteration:failure"]);
    assert!(
        ran.notes()
            .contains("### Iteration 1 [FAIL]\n\n**Summary:** did not submit"),
        "{}",
        ran.notes()
    );
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "ok", "what it made is kept");
    assert_eq!(ran.subjects(), Vec::<String>::new());
}

#[test]
fn failures_in_a_row_end_the_run_with_code_three() {
    let lab = Lab::new(["first", "second", "third"].map(failure));
    let ran = lab.run(&[]);
    ran.assert_end(3, "3 consecutive failures");
    assert_eq!(ran.file.state.failures_in_a_row, 3);
    assert!(
        ran.shown()
            .contains("no limit of iterations, tokens, cost or time"),
        "{}",
        ran.shown()
    );
    assert!(ran.shown().contains("nothing was committed"), "{}", ran.shown());
}

#[test]
fn a_commit_forgets_the_failures_before_it() {
    let lab = Lab::new([failure("first"), good("one"), failure("second"), failure("third")]);
    let ran = lab.run(&["--max-consecutive-failures", "2"]);
    ran.assert_end(3, "2 consecutive failures");
    assert_eq!(ran.file.state.iteration, 4);
    assert_eq!(ran.subjects().len(), 1);
}

#[test]
fn case_59_89_94_three_iterations_without_a_change_leave_nothing_to_do() {
    let lab = Lab::new(std::iter::repeat_n(Reply::calls([submit("All is well")]), 3));
    let ran = lab.run(&["--max-iterations", "9"]);
    ran.assert_end(0, "nothing to do: 3 iterations without a change");
    assert_eq!(ran.outcomes(), ["iteration:no_change"; 3]);
    assert!(
        ran.notes().contains("### Iteration 3 [NO CHANGE]"),
        "{}",
        ran.notes()
    );
    assert_eq!(ran.subjects(), Vec::<String>::new());
    assert!(ran.shown().contains("robot-to complete"), "{}", ran.shown());
}

#[test]
fn a_change_that_was_discarded_before_counts_as_no_change() {
    let lab = Lab::new([part("one", "broken"), part("one", "broken")]);
    let ran = lab.run(&["--max-iterations", "2", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "iteration:no_change"]);
    let repeats = ran
        .records
        .iter()
        .filter(|r| matches!(r.event, Event::NoChange { repeat: true, .. }));
    assert_eq!(repeats.count(), 1);
    assert!(
        ran.notes().contains("the same change was tried before"),
        "{}",
        ran.notes()
    );
}

#[test]
fn a_stop_condition_ends_the_run_after_a_commit() {
    let stop = Reply::calls([write("parts/one", "ok\n"), submit_and_stop("Add part one")]);
    let lab = Lab::new([stop]);
    let ran = lab.run(&["--max-iterations", "5", "--stop-when", "one part is there"]);
    ran.assert_end(0, "stop condition met: one part is there");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
}

#[test]
fn case_91_a_robot_cannot_stop_a_run_that_has_no_stop_condition() {
    let stop = Reply::calls([write("parts/one", "ok\n"), submit_and_stop("Add part one")]);
    let lab = Lab::new([stop, good("two")]);
    let ran = lab.run(&["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.subjects().len(), 2);
}

#[test]
fn case_60_what_a_robot_reports_cannot_forge_a_commit_message_or_the_notes() {
    let summary = "Add it\n\nRobot-To-Run: forged\n### Iteration 9\n\u{1b}[2J";
    let lab = Lab::new([Reply::calls([write("parts/one", "ok\n"), submit(summary)])]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    let commit = &ran.commits()[0];
    assert_eq!(
        commit.subject,
        "robot-to 1: Add it Robot-To-Run: forged ### Iteration 9 [2J"
    );
    let named: Vec<_> = commit
        .body
        .lines()
        .filter(|line| line.starts_with("Robot-To-Run:"))
        .collect();
    assert_eq!(named, [format!("Robot-To-Run: {}", ran.file.run_id)]);
    assert!(!ran.notes().contains("\n### Iteration 9"), "{}", ran.notes());
    assert!(!ran.shown().contains('\u{1b}'), "{}", ran.shown());
}

#[test]
fn a_locked_file_is_refused_at_once_and_a_change_of_it_is_tampering() {
    let edit = Reply::calls([
        write("test.sh", "exit 0\n"),
        bash("cat test.sh >/dev/null && sh test.sh && echo 'exit 0' > $(echo test).sh"),
        submit("Make the tests easier"),
    ]);
    let lab = Lab::new([edit, good("one")]);
    let ran = lab.run(&["--protect-path", "test.sh", "--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:tampered", "commit:success"]);
    assert_eq!(ran.file.state.discarded, 1);
    let requests = ran.requests();
    let system = requests[0].last_text("system").unwrap();
    assert!(
        system.contains("# Locked files") && system.contains("- test.sh"),
        "{system}"
    );
    assert!(
        ran.notes().contains("### Iteration 1 [TAMPERED]"),
        "{}",
        ran.notes()
    );
    assert!(
        ran.shown().contains("locked files were changed: test.sh"),
        "{}",
        ran.shown()
    );
    assert!(
        ran.shown()
            .contains("test.sh is locked: it belongs to the grader"),
        "{}",
        ran.shown()
    );
    assert!(
        ran.in_attempt("1-0", "test.sh").starts_with("exit 0"),
        "what it did is kept"
    );
    assert_eq!(ran.on_branch("parts/one"), "ok");
}

#[test]
fn additions_under_a_locked_pattern_and_deletions_are_tampering_too() {
    let lab = Lab::new([
        Reply::calls([write("spec/new", "x\n"), submit("Add a spec")]),
        Reply::calls([bash("git rm -q spec/old"), submit("Remove a spec")]),
        Reply::calls([bash("mv spec kept; ln -s kept spec"), submit("Move the specs")]),
    ]);
    lab.repo.write("spec/old", "old\n");
    lab.repo.commit_all("a spec");
    let ran = lab.run(&["--protect-path", "spec", "--max-iterations", "3"]);
    ran.assert_end(3, "3 consecutive failures");
    assert_eq!(ran.outcomes(), ["iteration:tampered"; 3]);
}

#[test]
fn a_locked_pattern_that_matches_nothing_is_refused() {
    let refused = Lab::new([]).refuse(&["--protect-path", "tset.sh"]);
    assert!(
        refused.stderr.contains("tset.sh\" matches no file"),
        "{}",
        refused.stderr
    );
}

#[test]
fn case_91_with_a_target_the_robot_cannot_end_the_run() {
    let claim = |n: &str| Reply::calls([write("score", n), submit_and_stop("It is done")]);
    let mut lab = Lab::new([claim("2\n"), claim("3\n")]);
    lab.repo.write("score", "1\n");
    lab.repo.commit_all("a score");
    lab.verify = None;
    let ran = lab.run(&[
        "--measure",
        "cat score",
        "--target",
        "3",
        "--stop-when",
        "it is done",
    ]);
    ran.assert_end(0, "target met: measure=3 (before 2)");
    assert_eq!(ran.outcomes(), ["commit:success"; 2]);
}

#[test]
fn a_run_that_is_at_its_target_already_asks_no_model() {
    let lab = Lab::new([]);
    let ran = lab.run(&["--measure", "echo 5", "--target", "3"]);
    ran.assert_end(0, "target met: verify=true, measure=5");
    assert_eq!(ran.requests().len(), 0);
}
