//! A run that is looked at, and an attempt that is taken over by hand: `status`, `attempts`, `show`, `apply`.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::Value;
use testkit::{Finished, Reply, Running, Signal, TestRepo};

use crate::lab::{KEY, Lab, PATIENCE};
use crate::replies::{bash, good, part, submit, write};

/// Runs a command of ours, without a key, and checks that nothing of the user's was changed by it.
pub(crate) fn look(lab: &Lab, arguments: &[&str]) -> Finished {
    let before = lab.repo.fingerprint();
    let mut command = lab.env.command(arguments);
    command.env_remove("OPENAI_API_KEY");
    let finished = Running::start(command).wait(PATIENCE);
    before.assert_same(&lab.repo.fingerprint());
    assert!(!finished.stdout.contains(KEY) && !finished.stderr.contains(KEY));
    finished
}

/// What it prints, when it does what was asked.
#[track_caller]
pub(crate) fn seen(lab: &Lab, arguments: &[&str]) -> String {
    let finished = look(lab, arguments);
    finished.assert_code(0);
    assert_eq!(finished.stderr, "", "{arguments:?}");
    finished.stdout
}

/// What it says, when it refuses. No ref and no object is added.
#[track_caller]
pub(crate) fn refused(lab: &Lab, arguments: &[&str]) -> String {
    let state = || (lab.repo.git(&["for-each-ref"]), lab.repo.objects());
    let before = state();
    let finished = look(lab, arguments);
    finished.assert_code(2);
    assert_eq!(finished.stdout, "", "{arguments:?}");
    assert_eq!(state(), before, "{arguments:?}");
    finished.stderr
}

#[track_caller]
pub(crate) fn assert_in(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

/// The id of the latest run.
pub(crate) fn run_id(lab: &Lab) -> String {
    let json: Value = serde_json::from_str(&seen(lab, &["status", "--json"])).unwrap();
    json["run_id"].as_str().unwrap().to_owned()
}

/// One attempt that the gate refused, and one commit.
fn with_one_attempt() -> Lab {
    let lab = Lab::new([part("one", "broken\n"), good("two")]);
    lab.run(&["--max-iterations", "2", "--max-verify-repairs", "0"])
        .assert_end(0, "max iterations reached (2)");
    lab
}

#[test]
fn a_run_that_is_over_is_looked_at_without_a_key_and_without_a_trace() {
    let lab = with_one_attempt();
    let objects = lab.repo.objects();
    let id = run_id(&lab);
    let status = seen(&lab, &["status"]);
    assert_in(
        &status,
        &[
            &format!("robot-to {id} — ended: max iterations reached (2)\n"),
            "Iterations: 2 (1 committed, 1 discarded)\n",
            "Notes:      .robot_lab_to/runs/",
            "✔ committed ",
            &format!("Next:       robot-to resume {id}\n"),
            "            git log ",
            &format!("            robot-to attempts {id}\n"),
        ],
    );
    assert_eq!(
        seen(&lab, &["status", &id]).lines().count(),
        status.lines().count()
    );

    let attempts = seen(&lab, &["attempts"]);
    assert!(
        attempts.starts_with("   1  the gate failed      +1 −0 in 1 file       Add part one\n\nNext:  "),
        "{attempts}"
    );
    let json: Value = serde_json::from_str(&seen(&lab, &["attempts", &id, "--json"])).unwrap();
    assert_eq!((&json["iteration"], &json["files"]), (&1.into(), &1.into()));

    let page = seen(&lab, &["show", "1"]);
    assert_in(
        &page,
        &[
            &format!("iteration 1 of {id}: the gate failed\n"),
            "Changes:\n  - change of: Add part one\n",
            "Learnings:\n  - learning of: Add part one\n",
            "Gate:       verify=false (exit 1)\n    parts/one: expected ok, got broken\n",
            "+++ b/parts/one\n@@ -0,0 +1 @@\n+broken\n",
        ],
    );
    let patch = lab.env.root().join("page");
    std::fs::write(&patch, &page).unwrap();
    lab.repo.git(&["apply", "--check", patch.to_str().unwrap()]);
    let page = seen(&lab, &["show", &id, "2"]);
    assert_in(
        &page,
        &[
            ": committed\n",
            "Commit:     ",
            "+++ b/parts/two\n",
            "Gate:       verify=true\n",
        ],
    );
    assert_eq!(lab.repo.objects(), objects);
}

#[test]
fn an_applied_attempt_is_a_branch_with_its_tree_and_only_its_objects() {
    let lab = with_one_attempt();
    let id = run_id(&lab);
    let before: BTreeSet<_> = lab.repo.objects().into_iter().collect();
    let said = seen(&lab, &["apply", &id, "1"]);
    let branch = format!("robot-to/apply-{id}-1");
    assert_in(
        &said,
        &[
            &format!("Branch:     {branch}\n"),
            "robot-to 1 (not accepted): Add part one\n",
            "Changes:    +1 −0 in 1 file, on top of ",
            &format!("git cherry-pick {branch} "),
        ],
    );
    let after: BTreeSet<_> = lab.repo.objects().into_iter().collect();
    let listed = lab.repo.git(&["rev-list", "--objects", &branch, "^main"]);
    let its: BTreeSet<_> = listed
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(after.difference(&before).cloned().collect::<BTreeSet<_>>(), its);
    let run_git = lab.env.state().join("robot-to/runs").join(&id).join("run.git");
    assert_eq!(
        lab.repo.git(&["rev-parse", &format!("{branch}^{{tree}}")]),
        lab.repo
            .git_in(&run_git, &["rev-parse", "refs/attempts/1-0^{tree}"]),
    );
    let message = lab
        .repo
        .git(&["log", "-1", "--format=%an <%ae>%n%cn%n%B", &branch]);
    assert_eq!(
        message.trim_end(),
        format!(
            "Test User <test@example.invalid>\nTest User\nrobot-to 1 (not accepted): Add part one\n\n\
             Made in iteration 1 of the robot-to run {id}, and not committed there: the gate failed.\n\n\
             - change of: Add part one\n\nRobot-To-Attempt: {id}/1"
        )
    );
    lab.repo.git(&["fsck", "--strict"]);

    let again = refused(&lab, &["apply", "1"]);
    assert_in(
        &again,
        &[&format!("the branch {branch} is there already"), "git merge"],
    );
    let commit = lab.repo.git(&["rev-parse", &branch]);
    lab.repo.git(&["branch", "-D", &branch]);
    seen(&lab, &["apply", "1"]);
    assert_eq!(
        lab.repo.git(&["rev-parse", &branch]),
        commit,
        "the same attempt is the same commit"
    );

    let next = said.lines().find_map(|line| line.strip_prefix("Next:")).unwrap();
    let merged = lab.env.command_of("/bin/sh", ["-c", next]).output().unwrap();
    assert!(merged.status.success());
    assert_eq!(
        std::fs::read_to_string(lab.repo.path().join("parts/one")).unwrap(),
        "broken\n"
    );
}

#[test]
fn a_branch_that_is_in_the_way_makes_another_name() {
    let lab = Lab::new([part("one", "broken\n")]);
    lab.repo.git(&["branch", "robot-to"]);
    lab.run(&["--max-iterations", "1", "--max-verify-repairs", "0"]);
    let branch = format!("robot-to-apply-{}-1", run_id(&lab));
    assert_in(
        &seen(&lab, &["apply", "1"]),
        &[&format!("Branch:     {branch}\n")],
    );
    lab.repo.git(&["rev-parse", "--verify", &branch]);
}

#[test]
fn what_cannot_be_applied_is_refused_with_the_reason() {
    let lab = Lab::new([
        good("one"),
        Reply::calls([bash("true"), submit("Nothing")]),
        part("two", "broken\n"),
    ]);
    let none = refused(&lab, &["status"]);
    assert_in(&none, &["there are no runs in "]);
    lab.run(&["--max-iterations", "3", "--max-verify-repairs", "0"]);
    let id = run_id(&lab);
    for command in ["show", "apply"] {
        assert_in(
            &refused(&lab, &[command, "4"]),
            &["has no iteration 4; 3 began so far"],
        );
        assert_in(&refused(&lab, &[command, "0"]), &["has no iteration 0"]);
        assert_in(&refused(&lab, &[command, &id]), &["<ITER>"]);
        let unknown = refused(&lab, &[command, "20200101-000000-abcdef", "1"]);
        assert_in(
            &unknown,
            &["there is no run 20200101-000000-abcdef", "`robot-to runs`"],
        );
    }
    assert_in(
        &refused(&lab, &["attempts", "x\u{1b}[2J"]),
        &["no run x [2J in", "`robot-to runs`"],
    );
    let committed = refused(&lab, &["apply", "1"]);
    assert_in(
        &committed,
        &[
            "iteration 1 is committed: it is on robot-to/make-every-part-hold-",
            "cherry-pick",
        ],
    );
    let nothing = refused(&lab, &["apply", "2"]);
    assert_in(
        &nothing,
        &["iteration 2 has no attempt that is kept: nothing was changed"],
    );
    assert_in(
        &seen(&lab, &["show", "2"]),
        &["Patch:      nothing is kept of it\n"],
    );

    // What it was made from goes, and with it the run branch.
    let branch = lab
        .repo
        .git(&["for-each-ref", "--format=%(refname)", "refs/heads/robot-to"]);
    lab.repo.git(&["update-ref", "-d", &branch]);
    lab.repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    lab.repo.git(&["prune", "--expire=now"]);
    assert_in(
        &refused(&lab, &["apply", "3"]),
        &["is not in the repository any more; nothing was changed"],
    );
    assert_in(&seen(&lab, &["show", "3"]), &["+broken\n"]);

    std::fs::remove_dir_all(lab.env.state().join("robot-to")).unwrap();
    assert_in(
        &refused(&lab, &["apply", "3"]),
        &["the run repository of", "is gone", "--work-dir"],
    );
    assert_in(&seen(&lab, &["attempts"]), &["the run repository of", "is gone"]);
    assert_in(&seen(&lab, &["attempts", "--json"]), &["\"error\":"]);
    assert_in(
        &seen(&lab, &["show", "3"]),
        &["the gate failed\n", "Patch:      the run repository of"],
    );
    assert!(!seen(&lab, &["status"]).contains("Kept in:"));
    assert!(
        !lab.env.state().join("robot-to").exists(),
        "looking makes no directory"
    );
}

#[test]
fn a_run_that_kept_nothing_says_so_and_its_commits_are_shown_from_the_repository() {
    let lab = Lab::new([good("one")]);
    lab.run(&["--max-iterations", "1"]);
    let id = run_id(&lab);
    assert_eq!(
        seen(&lab, &["attempts"]),
        format!("no attempts are kept of {id}\n")
    );
    assert_eq!(seen(&lab, &["attempts", "--json"]), "");
    std::fs::remove_dir_all(lab.env.state().join("robot-to")).unwrap();
    assert_in(&seen(&lab, &["show", "1"]), &["+++ b/parts/one\n", "+ok\n"]);
}

#[test]
fn a_run_under_way_is_looked_at_and_goes_on() {
    let lab = Lab::new([
        part("one", "broken\n"),
        Reply::calls([write("parts/two", "ok\n")]),
        Reply::hang(),
    ]);
    let mut run = lab.start(&["--max-verify-repairs", "0"]);
    lab.server.wait_for_requests(3, PATIENCE);
    let id = run_id(&lab);
    let status: Value = serde_json::from_str(&seen(&lab, &["status", "--json"])).unwrap();
    assert_eq!(
        (&status["standing"], &status["detail"]),
        (&"running".into(), &"thinking".into())
    );
    assert_eq!(
        (&status["iterations"], &status["discarded"]),
        (&2.into(), &1.into())
    );
    assert_in(
        &seen(&lab, &["status"]),
        &[
            &format!("robot-to {id} — running: thinking\n"),
            "#2   write parts/two",
        ],
    );
    assert_in(&seen(&lab, &["attempts"]), &["   1  the gate failed "]);
    assert_in(&seen(&lab, &["show", "1"]), &["+broken\n"]);
    assert_in(
        &seen(&lab, &["show", "2"]),
        &[": under way\n", "Patch:      nothing is kept of it\n"],
    );
    assert_in(
        &refused(&lab, &["apply", "2"]),
        &["iteration 2 is under way; nothing was changed"],
    );
    assert_in(&seen(&lab, &["apply", "1"]), &["Branch:     robot-to/apply-"]);
    assert!(!run.process.has_ended(), "it was held up");
    run.process.signal(Signal::INT);
    let ran = run.end(PATIENCE);
    ran.assert_end(130, "interrupted");
    let attempts = seen(&lab, &["attempts", &id]);
    assert_in(
        &attempts,
        &["   2  interrupted          +1 −0 in 1 file       interrupted\n"],
    );
    assert_in(
        &seen(&lab, &["apply", "2"]),
        &["robot-to 2 (not accepted): interrupted\n"],
    );
    assert_eq!(
        lab.repo
            .git(&["show", &format!("robot-to/apply-{id}-2:parts/two")]),
        "ok"
    );
}

#[test]
fn a_run_that_was_killed_is_told_from_one_that_goes_on() {
    let lab = Lab::new([Reply::hang()]);
    let run = lab.start(&[]);
    lab.server.wait_for_requests(1, PATIENCE);
    run.process.signal(Signal::KILL);
    run.process.wait(PATIENCE);
    let id = run_id(&lab);
    let status = seen(&lab, &["status"]);
    assert_in(
        &status,
        &["— cut off: ", &format!("Next:       robot-to resume {id}\n")],
    );
    assert_in(
        &refused(&lab, &["apply", "1"]),
        &["iteration 1 was cut off, and nothing is kept of it"],
    );
}

#[test]
fn places_of_its_own_lead_to_the_run_and_are_named_in_what_comes_next() {
    let lab = Lab::new([part("one", "broken\n")]);
    let copies = lab.env.root().join("private copies");
    let places = ["--run-dir", ".runs", "--work-dir", copies.to_str().unwrap()];
    let flags = [
        &["--max-iterations", "1", "--max-verify-repairs", "0"],
        &places[..],
    ]
    .concat();
    lab.env.run(lab.arguments(&flags)).assert_code(0);
    assert_in(&refused(&lab, &["status"]), &["there are no runs in "]);
    assert_in(
        &seen(&lab, &["attempts", "--run-dir", ".runs"]),
        &["is gone", "--work-dir"],
    );
    let attempts = seen(&lab, &[&["attempts"], &places[..]].concat());
    let next = format!(" ITER --run-dir .runs --work-dir '{}'\n", copies.display());
    assert_in(&attempts, &["   1  the gate failed ", &next]);
    assert_in(
        &seen(&lab, &[&["apply", "1"], &places[..]].concat()),
        &["Branch:     "],
    );
}

#[test]
fn a_hostile_summary_and_a_hostile_patch_cannot_steer_the_terminal() {
    let hostile = "Done\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\u{9b}31m\u{202e}evil";
    let lab = Lab::new([Reply::calls([
        write("parts/one", "a\u{1b}[2Jb\u{9b}31m\u{202e}\r\n"),
        submit(hostile),
    ])]);
    lab.run(&["--max-iterations", "1", "--max-verify-repairs", "0"]);
    let steers = |text: &str| {
        let found = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
        text.chars().find(|c| found(*c))
    };
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["attempts"],
        &["attempts", "--json"],
    ] {
        let text = seen(&lab, arguments);
        assert_eq!(steers(&text), None, "{arguments:?}: {text:?}");
        assert_in(&text, &["evil"]);
    }
    // Into a file the patch goes as it is; to a terminal it does not.
    assert!(seen(&lab, &["show", "1"]).contains("+a\u{1b}[2Jb"));
    let shown = on_a_terminal(&lab, &["show", "1"], true);
    assert_eq!(steers(&shown), None, "{shown:?}");
    assert_in(
        &shown,
        &[
            "Summary:    Done [2J ]0;owned 31m evil\n",
            "+a^[[2Jb<U+009B>31m<U+202E>^M\n",
        ],
    );
    let colours = on_a_terminal(&lab, &["show", "1"], false);
    assert_in(&colours, &["\u{1b}[32m+a^[[2Jb<U+009B>31m<U+202E>^M\u{1b}[0m\n"]);

    assert_eq!(steers(&seen(&lab, &["apply", "1"])), None);
    let message = lab.repo.git(&[
        "log",
        "-1",
        "--format=%B",
        &format!("robot-to/apply-{}-1", run_id(&lab)),
    ]);
    assert_eq!(steers(&message), None, "{message:?}");
}

/// What a terminal gets.
fn on_a_terminal(lab: &Lab, arguments: &[&str], no_colour: bool) -> String {
    let script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let program = env!("CARGO_BIN_EXE_robot-to");
    let mut command = lab
        .env
        .command_of("python3", [&["-c", script, program], arguments].concat());
    if no_colour {
        command.env("NO_COLOR", "1");
    }
    command.stdin(Stdio::null());
    let finished = Running::start(command).wait(PATIENCE);
    finished.assert_code(0);
    finished.stdout.replace("\r\n", "\n")
}

#[test]
fn all_of_it_works_in_a_linked_worktree() {
    let mut lab = Lab::with(
        TestRepo::new(),
        testkit::ModelServer::start([part("one", "broken\n")]),
    );
    let linked = lab.repo.beside("linked");
    lab.repo.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "other",
        linked.to_str().unwrap(),
    ]);
    lab.env.cwd(&linked);
    let flags = ["--max-iterations", "1", "--max-verify-repairs", "0"];
    lab.env.run(lab.arguments(&flags)).assert_code(0);
    assert_in(&seen(&lab, &["attempts"]), &["   1  the gate failed "]);
    assert_in(&seen(&lab, &["show", "1"]), &["+broken\n"]);
    assert_in(&seen(&lab, &["apply", "1"]), &["Branch:     robot-to/apply-"]);
    assert_eq!(lab.repo.git_in(&linked, &["status", "--porcelain"]), "");
}
