//! Runs that are measured: what a value is worth, which way is better, and what counts.

use robot_lab_to::event::Event;
use testkit::{ModelServer, Reply, TestRepo};

use crate::lab::{Lab, Ran};
use crate::replies::{submit, write};

/// A run without a test suite, whose score is in a file.
fn scored(first: &str, replies: impl IntoIterator<Item = Reply>) -> Lab {
    let mut lab = Lab::new(replies);
    lab.repo.write("score", format!("{first}\n"));
    lab.repo.commit_all("a score");
    lab.verify = None;
    lab
}

fn score(value: &str) -> Reply {
    Reply::calls([
        write("score", &format!("{value}\n")),
        submit(&format!("Score {value}")),
    ])
}

fn values(ran: &Ran<'_>) -> Vec<Option<f64>> {
    let value = |record: &robot_lab_to::event::Record| match &record.event {
        Event::Eval { value, .. } => Some(*value),
        _ => None,
    };
    ran.records.iter().filter_map(value).collect()
}

#[test]
fn case_06_ignored_leftovers_do_not_reach_the_next_measure() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "cache/\n");
    let mut lab = Lab::with(
        repo,
        ModelServer::start([
            Reply::calls([
                write("cache/result", "100\n"),
                write("parts/one", "broken\n"),
                submit("Cache it"),
            ]),
            crate::replies::good("two"),
        ]),
    );
    lab.verify = None;
    let ran = lab.run(&[
        "--measure",
        "cat cache/result 2>/dev/null || echo 0",
        "--max-iterations",
        "2",
    ]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(values(&ran), [Some(0.0); 3]);
    assert_eq!(ran.outcomes(), ["iteration:no_improvement"; 2]);
}

#[test]
fn case_72_lower_is_better_when_it_is_said_and_values_may_be_negative() {
    let lab = scored("-1", ["-0.5", "-2"].map(score));
    let ran = lab.run(&["--measure", "cat score", "--minimize", "--max-iterations", "2"]);
    assert_eq!(ran.outcomes(), ["iteration:no_improvement", "commit:success"]);
    assert_eq!(ran.file.state.best, Some(-2.0));
    let lab = scored("-1", ["-2", "-0.5"].map(score));
    let ran = lab.run(&["--measure", "cat score", "--max-iterations", "2"]);
    assert_eq!(ran.outcomes(), ["iteration:no_improvement", "commit:success"]);
    assert_eq!(ran.file.state.best, Some(-0.5));
}

#[test]
fn case_71_a_measure_that_crashes_or_says_no_number_never_wins() {
    let bench = |text: &str| Reply::calls([write("bench.sh", text), submit("Tune it")]);
    let mut lab = Lab::new([
        bench("echo 99; exit 1\n"),
        bench("echo nan\n"),
        bench("echo inf\n"),
        bench("true\n"),
        bench("echo 6\n"),
    ]);
    lab.repo.write("bench.sh", "echo 5\n");
    lab.repo.commit_all("a bench");
    lab.verify = None;
    let ran = lab.run(&[
        "--measure",
        "sh bench.sh",
        "--max-verify-repairs",
        "0",
        "--max-consecutive-failures",
        "9",
        "--max-iterations",
        "5",
    ]);
    assert_eq!(ran.outcomes()[..4], ["iteration:gate_failure"; 4]);
    assert_eq!(ran.outcomes()[4], "commit:success");
    assert_eq!(ran.file.state.best, Some(6.0));
}

#[test]
fn case_101_tiny_gains_do_not_hide_a_plateau() {
    let lab = scored("1", ["1.000001", "1.000002"].map(score));
    let ran = lab.run(&[
        "--measure",
        "cat score",
        "--min-delta",
        "1%",
        "--stop-on-plateau",
        "2",
    ]);
    ran.assert_end(3, "plateau: 2 iterations without improvement");
    assert_eq!(ran.outcomes(), ["iteration:no_improvement"; 2]);
}

#[test]
fn case_85_a_gain_that_is_paid_for_with_bloat_is_kept_out_by_verify() {
    let bloat = Reply::calls([
        write("score", "2\n"),
        write("code", &"line\n".repeat(2_000)),
        submit("Gain"),
    ]);
    let mut lab = scored("1", [bloat, score("2")]);
    lab.verify = Some("test $(cat * 2>/dev/null | wc -l) -lt 1000".into());
    let ran = lab.run(&[
        "--measure",
        "cat score",
        "--max-verify-repairs",
        "0",
        "--max-iterations",
        "2",
    ]);
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
}

#[test]
fn case_87_a_benchmark_that_the_user_edits_in_between_is_the_one_of_the_run() {
    let lab = scored("1", ["2", "3"].map(score));
    lab.repo.write("bench.sh", "cat score\n");
    lab.repo.commit_all("a bench");
    let first = lab.run(&["--measure", "sh bench.sh", "--max-iterations", "1"]);
    assert_eq!(first.outcomes(), ["commit:success"]);
    lab.repo.write("bench.sh", "echo 1000\n");
    let again = lab.env.command(["resume", "--max-iterations", "2"]);
    let ran = lab.launch(again).end(crate::lab::PATIENCE);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(values(&ran).last(), Some(&Some(3.0)));
    assert_eq!(ran.file.state.best, Some(3.0));
}

#[test]
fn case_70_several_numbers_without_a_label_end_the_run_before_a_token_is_spent() {
    let lab = Lab::new([]);
    let refused = lab.refuse(&["--measure", "echo Python 3.12.1; echo score: 91.5"]);
    assert!(refused.stderr.contains("METRIC"), "{}", refused.stderr);
}
