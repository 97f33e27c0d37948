//! Iterations that are committed, repaired or discarded.

use robot_lab_to::event::Event;
use serde_json::json;
use testkit::{Call, Reply, TestRepo};

use crate::lab::Lab;
use crate::replies::{give_up, good, part, submit, write};

#[test]
fn three_green_iterations_make_three_commits_of_the_user() {
    let lab = Lab::new(["one", "two", "three"].map(good));
    let ran = lab.run(&["--max-iterations", "3"]);
    ran.assert_end(0, "max iterations reached (3)");
    let commits = ran.commits();
    assert_eq!(
        ran.subjects(),
        [
            "robot-to 1: Add part one",
            "robot-to 2: Add part two",
            "robot-to 3: Add part three"
        ]
    );
    for (commit, iteration) in commits.iter().zip(1..) {
        assert_eq!(commit.author, "Test User <test@example.invalid>");
        assert_eq!(commit.committer, commit.author);
        let trailers: Vec<_> = commit.body.trim().lines().rev().take(3).collect();
        let expected = [
            "Robot-To-Score: verify=true".to_owned(),
            format!("Robot-To-Iteration: {iteration}"),
            format!("Robot-To-Run: {}", ran.file.run_id),
        ];
        assert_eq!(trailers, expected);
        assert!(commit.body.contains("- change of: Add part"), "{}", commit.body);
    }
    assert!(
        ran.file.branch.starts_with("robot-to/make-every-part-hold-"),
        "{}",
        ran.file.branch
    );
    assert_eq!(ran.attempts(), Vec::<String>::new());
    assert!(
        ran.shown().contains("Iterations: 3 (3 committed, 0 discarded)"),
        "{}",
        ran.shown()
    );
}

#[test]
fn a_change_that_fails_is_repaired_by_the_same_robot_and_then_committed() {
    let lab = Lab::new([part("one", "nearly"), part("one", "ok\n")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.on_branch("parts/one"), "ok");
    let requests = ran.requests();
    let (first, second) = (requests[0].messages(), requests[1].messages());
    assert_eq!(&second[..first.len()], first, "the conversation goes on");
    let repair = requests[1].last_text("user").unwrap();
    assert!(repair.contains("parts/one: expected ok, got nearly"), "{repair}");
    assert!(repair.contains("verify=false (exit 1)"), "{repair}");
    assert_eq!(ran.count("eval:repair"), 1);
}

#[test]
fn a_change_that_stays_broken_is_kept_away_from_the_user_and_told_to_the_next_robot() {
    let lab = Lab::new([part("one", "broken A"), part("one", "broken B"), good("two")]);
    let ran = lab.run(&["--max-iterations", "2", "--max-verify-repairs", "1"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
    assert_eq!(ran.subjects(), ["robot-to 2: Add part two"]);

    assert_eq!(ran.attempts(), ["refs/attempts/1-0"]);
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "broken B");
    let kept = lab
        .repo
        .git_in(&ran.run_git(), &["rev-parse", "refs/attempts/1-0:parts/one"]);
    let tree = lab
        .repo
        .git_in(&ran.run_git(), &["rev-parse", "refs/attempts/1-0^{tree}"]);
    let objects = lab.repo.objects();
    assert!(
        !objects.contains(&kept) && !objects.contains(&tree),
        "a discarded object reached the user"
    );

    let notes = ran.notes();
    assert!(notes.contains("### Iteration 1 [VERIFY FAILED]\n"), "{notes}");
    assert!(notes.contains("parts/one: expected ok, got broken B"), "{notes}");
    assert!(notes.contains("### Iteration 2\n"), "{notes}");
    let told = ran.requests()[2].last_text("user").unwrap();
    for part in [
        "### Iteration 1 [VERIFY FAILED]",
        "got broken B",
        "learning of: Add part one",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(
        !ran.on_branch("parts/two").is_empty() && ran.shown().contains("robot-to attempts "),
        "{}",
        ran.shown()
    );
}

#[test]
fn a_robot_that_gives_a_repair_up_is_discarded_by_the_gate() {
    let lab = Lab::new([part("one", "broken"), Reply::calls([give_up("No idea")])]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure"]);
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "broken");
}

#[test]
fn without_a_verify_command_the_robots_word_counts() {
    let mut lab = Lab::new([part("one", "whatever")]);
    lab.verify = None;
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
}

#[test]
fn a_verify_command_that_hangs_is_ended_and_fails_the_gate() {
    let lab = Lab::new([Reply::calls([write("slow", ""), submit("Take it slow")])]);
    let ran = lab.run(&[
        "--max-iterations",
        "1",
        "--max-verify-repairs",
        "0",
        "--verify-timeout",
        "6",
    ]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure"]);
    assert!(
        ran.notes().contains("this takes a while"),
        "the output so far is kept: {}",
        ran.notes()
    );
}

#[test]
fn case_77_a_gate_that_fails_at_the_base_is_told_to_the_robot_until_something_is_committed() {
    let lab = Lab::new([part("base", "ok\n"), good("two")]);
    lab.repo.write("parts/base", "rotten\n");
    lab.repo.commit_all("a suite that fails");
    let ran = lab.run(&["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.subjects().len(), 2);
    let told: Vec<_> = ran
        .requests()
        .iter()
        .map(|request| request.last_text("user").unwrap())
        .collect();
    assert!(
        told[0].contains("parts/base: expected ok, got rotten"),
        "{}",
        told[0]
    );
    assert!(!told[1].contains("rotten"), "{}", told[1]);
    assert!(ran.shown().contains("the robot is told"), "{}", ran.shown());
    let baseline = ran.records.iter().find_map(|record| match &record.event {
        Event::Eval { gate, .. } => Some((record.iteration, *gate)),
        _ => None,
    });
    assert_eq!(baseline, Some((0, false)));
}

#[test]
fn a_change_that_may_not_be_committed_is_refused_with_its_reason() {
    let nested = "git init --quiet inner && cd inner && echo ok >a && git add a && \
                  git -c user.name=x -c user.email=x@y commit --quiet -m x";
    let lab = Lab::new([
        Reply::calls([crate::replies::bash(nested), submit("Nest a repository")]),
        Reply::calls([
            crate::replies::bash("rm -rf inner"),
            write("parts/one", "ok\n"),
            submit("Add a part"),
        ]),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add a part"]);
    let repair = ran.requests()[1].last_text("user").unwrap();
    assert!(repair.contains("inner"), "{repair}");
    assert!(ran.shown().contains("cannot be committed"), "{}", ran.shown());
}

#[test]
fn case_79_what_a_robot_leaves_in_ignored_files_is_not_graded() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "parts/hidden\n");
    let lab = Lab::with(
        repo,
        testkit::ModelServer::start([Reply::calls([
            write("parts/hidden", "this would fail"),
            write("parts/one", "ok\n"),
            submit("Add a part"),
        ])]),
    );
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add a part"]);
}

#[test]
fn commits_can_be_conventional() {
    let said = |kind: &str| {
        let arguments = json!({ "success": true, "summary": "hold", "type": kind, "scope": "parts" });
        Reply::calls([
            write("parts/one", "ok\n"),
            Call::new("submit_iteration_result", arguments),
        ])
    };
    let lab = Lab::new([said("feat")]);
    let ran = lab.run(&["--commit-format", "conventional", "--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["feat(parts): hold"]);
    let tools = ran.requests()[0].body["tools"].to_string();
    assert!(tools.contains("The type of the commit"), "{tools}");
    let lab = Lab::new([said("feat")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: hold"]);
    assert!(
        !ran.requests()[0].body["tools"]
            .to_string()
            .contains("The type of the commit")
    );
}
