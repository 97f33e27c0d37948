//! Faults that were found by trying to break the program, each named by what must hold now.

use std::time::Duration;

use testkit::{Reply, Running};

use crate::checks;
use crate::lab::{KEY, Lab, PATIENCE};
use crate::replies::{bash, good, submit, write};

#[test]
fn a_flood_without_a_number_is_no_score() {
    let mut lab = Lab::new([
        Reply::calls([
            write("bench.sh", "head -c 5000000 /dev/zero | tr '\\0' x\n"),
            submit("Score high"),
        ]),
        Reply::calls([write("bench.sh", "echo 6\n"), submit("Score six")]),
    ]);
    lab.repo.write("bench.sh", "echo 5\n");
    lab.repo.commit_all("a bench");
    lab.verify = None;
    let ran = lab.run(&[
        "--measure",
        "sh bench.sh",
        "--max-verify-repairs",
        "0",
        "--max-iterations",
        "2",
    ]);
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
    assert_eq!(ran.file.state.best, Some(6.0));
    assert!(
        ran.notes().contains("printed 5000000 bytes, too many"),
        "{}",
        ran.notes()
    );
}

#[test]
fn case_165_a_fifo_where_git_reads_rules_is_refused_at_once() {
    for fifo in [".gitignore", "parts/.gitattributes"] {
        let lab = Lab::new([
            Reply::calls([bash(&format!("mkfifo {fifo}")), submit("Lay a trap")]),
            good("one"),
        ]);
        let ran = lab.run(&["--max-verify-repairs", "0", "--max-iterations", "2"]);
        ran.assert_end(0, "max iterations reached (2)");
        assert_eq!(
            ran.outcomes(),
            ["iteration:gate_failure", "commit:success"],
            "{fifo}"
        );
        assert!(
            ran.shown().contains("is a FIFO, socket or device"),
            "{}",
            ran.shown()
        );
    }
}

#[test]
fn a_reply_of_one_endless_line_does_not_outlive_the_limit_of_time() {
    let endless = "x".repeat(30 * 1024 * 1024);
    let lab = Lab::new([Reply::events([endless]), Reply::hang(), Reply::hang()]);
    let run = lab.start(&["--max-time", "4"]);
    let finished = run.process.wait(Duration::from_secs(60));
    finished.assert_code(0);
    assert!(
        finished.stdout.contains("Reason:     max time reached (4 s)"),
        "{}",
        finished.stdout
    );
    checks::no_process_is_left(&lab.env);
}

#[test]
fn the_limit_of_time_holds_for_grading_the_base_too() {
    let mut lab = Lab::new([]);
    lab.verify = Some("sleep 1000".into());
    let finished = Running::start(lab.env.command(lab.arguments(&["--max-time", "2"]))).wait(PATIENCE);
    finished.assert_code(0);
    assert!(
        finished.stderr.contains("max time reached (2 s)"),
        "{}",
        finished.stderr
    );
    assert!(!lab.top.join(".robot_lab_to").exists());
    checks::no_process_is_left(&lab.env);
}

#[test]
fn case_32_a_branch_that_somebody_has_checked_out_is_not_moved_under_them() {
    let lab = Lab::new([good("one"), good("two")]);
    let branch = lab.run(&["--max-iterations", "1"]).file.branch.clone();
    let elsewhere = lab.env.root().join("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    lab.repo.git(&["worktree", "add", "--quiet", elsewhere, &branch]);
    let tip = lab.repo.git(&["rev-parse", &branch]);
    let finished = lab.env.run(["resume", "--max-iterations", "2"]);
    finished.assert_code(2);
    assert!(
        finished.stderr.contains("is checked out in"),
        "{}",
        finished.stderr
    );
    assert_eq!(lab.server.requests().len(), 1, "nothing is paid for");
    assert_eq!(lab.repo.git(&["rev-parse", &branch]), tip);
    assert_eq!(lab.repo.git(&["-C", elsewhere, "status", "--porcelain"]), "");
}

#[test]
fn a_key_in_the_objective_is_written_down_nowhere() {
    let lab = Lab::new([good("one")]);
    let mut arguments = lab.options(&["--max-iterations", "1"]);
    arguments.push(format!("use {KEY} to make every part hold").into());
    // The checks after a run look for the key in every file and ref.
    let ran = lab.launch(lab.env.command(arguments)).end(PATIENCE);
    assert!(
        ran.file.objective.contains("[redacted]"),
        "{}",
        ran.file.objective
    );
    assert!(ran.file.branch.contains("redacted"), "{}", ran.file.branch);
}
