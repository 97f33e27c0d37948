//! `--setup`: run in each private copy before the baseline, again when a lock file changed, and graded as a part of the
//! candidate when it was the candidate that changed it. `--bench-cache`, and the hint when something is missing.

use robot_lab_to::event::Event;
use testkit::Reply;

use crate::lab::{Lab, PATIENCE, Ran};
use crate::replies::{bash, good, submit, write};

/// A lab in which `deps/` and `cache/` are ignored.
fn lab(replies: impl IntoIterator<Item = Reply>) -> Lab {
    let lab = Lab::new(replies);
    lab.repo.write(".gitignore", "deps/\ncache/\nnode_modules/\n");
    lab.repo.commit_all("ignore what is installed");
    lab
}

/// Where setup ran, and whether it succeeded.
fn setups(ran: &Ran<'_>) -> Vec<(String, bool)> {
    let events = ran.records.iter().map(|record| &record.event);
    events
        .filter_map(|event| match event {
            Event::SetupFinished { place, ok, .. } => Some((place.clone(), *ok)),
            _ => None,
        })
        .collect()
}

fn outputs_of_bash(ran: &Ran<'_>) -> Vec<String> {
    let events = ran.records.iter().map(|record| &record.event);
    events
        .filter_map(|event| match event {
            Event::ToolFinished { tool, output, .. } if tool == "bash" => Some(output.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn setup_runs_once_in_each_copy_before_the_baseline_and_changes_no_file_of_the_tree() {
    let mut lab = lab([
        Reply::calls([
            bash("wc -l < deps/log; cat parts/base; ls extra; git status --short"),
            write("parts/one", "ok\n"),
            submit("Add part one"),
        ]),
        good("two"),
    ]);
    lab.verify = None;
    let setup = "if env | grep -q canary; then exit 9; fi; mkdir -p deps; echo x >> deps/log; echo spoilt > parts/base; \
                 echo new > extra";
    let verify = "test \"$(cat deps/log)\" = x && test ! -e extra && sh test.sh";
    let ran = lab.run(&["--setup", setup, "--verify", verify, "--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.subjects().len(), 2);
    assert_eq!(
        setups(&ran),
        [("workspace".to_owned(), true), ("bench".to_owned(), true)]
    );
    let names = ran.events();
    let at = |name: &str| names.iter().position(|event| event == name).unwrap();
    assert!(at("setup:finish") < at("orchestrator:start"));
    let seen = &outputs_of_bash(&ran)[0];
    assert!(
        seen.contains("1\nok\n") && !seen.contains("extra\n") && !seen.contains(" M "),
        "{seen}"
    );
    assert!(ran.shown().contains("setting up the bench"), "{}", ran.shown());
}

#[test]
fn a_setup_that_fails_at_the_start_leaves_nothing_behind() {
    let lab = lab([]);
    for (extra, part) in [
        (
            &["--setup", "echo no network; exit 3"][..],
            "(exit 3); it printed: no network",
        ),
        (&["--setup", "no-such-command-here"], "no-such-command-here"),
        (
            &["--setup", "echo begun; sleep 100", "--setup-timeout", "1"],
            "begun",
        ),
        (&["--setup", " "], "the setup command is empty"),
    ] {
        let finished = lab.refuse(extra);
        for part in [part, "nothing was changed"] {
            assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
        }
    }
}

#[test]
fn a_changed_lock_file_sets_up_again_and_a_broken_one_is_the_candidates_fault() {
    let lock = |content: &str, summary: &str| {
        Reply::calls([
            write("web/package-lock.json", content),
            write("parts/one", "ok\n"),
            submit(summary),
        ])
    };
    let lab = lab([
        lock("broken", "Lock it wrong"),
        lock("still broken", "Lock it wrong again"),
        lock("fine", "Lock it"),
        good("two"),
    ]);
    let setup =
        "mkdir -p deps; if grep -q broken web/package-lock.json 2>&1; then echo not resolvable; exit 1; fi";
    let ran = lab.run(&["--setup", setup, "--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(
        ran.subjects(),
        ["robot-to 1: Lock it", "robot-to 2: Add part two"]
    );
    let (workspace, bench) = ("workspace".to_owned(), "bench".to_owned());
    let expected = [
        (workspace.clone(), true),
        (bench.clone(), true),
        (bench.clone(), false),
        (bench.clone(), false),
        (bench, true),
        (workspace, true),
    ];
    assert_eq!(setups(&ran), expected);
    let told = ran.requests()[1].body["messages"].to_string();
    assert!(
        told.contains("with your change of web/package-lock.json") && told.contains("not resolvable"),
        "{told}"
    );
    let details: Vec<String> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Eval {
                gate: false, detail, ..
            } => Some(detail.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(details, ["setup=false (exit 1)", "setup=false (exit 1)"]);
}

#[test]
fn a_run_that_goes_on_is_set_up_again_by_its_plan() {
    let mut lab = lab([good("one"), good("two")]);
    lab.verify = None;
    let options = [
        "--setup",
        "mkdir deps",
        "--verify",
        "test -d deps && sh test.sh",
        "--max-iterations",
        "1",
    ];
    lab.run(&options).assert_end(0, "max iterations reached (1)");
    let again = lab
        .env
        .command(["resume", "--max-iterations", "2", "--bench-cache", "accepted"]);
    let ran = lab.launch(again).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!((ran.subjects().len(), setups(&ran).len()), (2, 4));
}

#[test]
fn what_a_grade_that_failed_left_is_put_back_only_when_asked_for() {
    let verify = "mkdir -p cache/sub; [ -e cache/sub/bad ] && { echo seen by the next; exit 7; }; echo ok >> cache/good; \
                  if [ -e parts/bad ]; then touch cache/sub/bad; rm cache/good; exit 1; fi; sh test.sh";
    for (which, commits) in [("keep", 0), ("accepted", 1)] {
        let mut lab = lab([good("bad"), good("two")]);
        lab.verify = None;
        let options = [
            "--max-iterations",
            "2",
            "--max-verify-repairs",
            "0",
            "--setup",
            "mkdir -p cache",
            "--bench-cache",
            which,
            "--verify",
            verify,
        ];
        let ran = lab.run(&options);
        ran.assert_end(0, "max iterations reached (2)");
        assert_eq!(ran.subjects().len(), commits, "{which}: {}", ran.shown());
        assert_eq!(ran.shown().contains("exit 7"), which == "keep");
        assert_eq!(setups(&ran).len(), 2, "{which}");
    }
}

#[test]
fn what_ignored_folders_a_failing_verify_may_need_is_said() {
    let mut lab = lab([good("one")]);
    lab.repo.write("node_modules/x/index.js", "1\n");
    lab.verify = Some("test -d node_modules && sh test.sh".into());
    let hint = "it needs node_modules (--copy node_modules or --setup \"npm ci\")";
    let ran = lab.run(&["--max-iterations", "1", "--max-verify-repairs", "0"]);
    assert_eq!(ran.subjects().len(), 0);
    let notes: Vec<_> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Notice { message } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert!(notes.iter().any(|note| note.contains(hint)), "{notes:?}");
    std::fs::remove_dir_all(lab.repo.path().join(".robot_lab_to")).unwrap();
}

#[test]
fn a_verify_command_that_is_an_ignored_file_gets_the_same_hint() {
    let mut lab = lab([]);
    lab.repo.write("node_modules/.bin/jest", "#!/bin/sh\n");
    lab.verify = Some("node_modules/.bin/jest".into());
    let finished = lab.refuse(&[]);
    for part in ["127", "--copy node_modules or --setup", "nothing was changed"] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
}

#[test]
fn a_setup_that_a_candidate_breaks_without_its_lock_file_is_its_fault_too() {
    let candidate = |script: &str, summary: &str| {
        Reply::calls([bash(script), write("parts/one", "ok\n"), submit(summary)])
    };
    let lab = lab([
        candidate(
            "echo new > package.json; echo broken > package-lock.json",
            "Lock it wrong",
        ),
        candidate("rm package-lock.json", "Take the lock back alone"),
        candidate("echo fine > package-lock.json", "Lock it"),
        good("two"),
    ]);
    let setup = "mkdir -p deps; if [ -e package.json ] && ! grep -q fine package-lock.json; then echo does not fit; exit \
                 1; fi";
    let ran = lab.run(&["--setup", setup, "--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(
        ran.subjects(),
        ["robot-to 1: Lock it", "robot-to 2: Add part two"]
    );
    let told = ran.requests()[2].body["messages"].to_string();
    assert!(
        told.contains("the setup command failed (exit 1) with your change:") && told.contains("does not fit"),
        "{told}"
    );
}

#[test]
fn a_candidate_without_the_directory_that_setup_runs_in_costs_an_iteration_and_not_the_run() {
    let mut lab = lab([
        Reply::calls([bash("rm -r ../web"), submit("Remove all of it")]),
        Reply::calls([bash("echo ok > ../parts/two"), submit("Add part two")]),
    ]);
    lab.repo.write("web/package-lock.json", "fine\n");
    lab.repo.commit_all("a directory with dependencies");
    lab.start_in("web");
    lab.verify = Some("cd .. && sh test.sh".into());
    let ran = lab.run(&[
        "--setup",
        "mkdir -p ../deps",
        "--max-verify-repairs",
        "0",
        "--max-iterations",
        "2",
    ]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
}

#[test]
fn a_run_that_goes_on_with_nothing_to_set_up_puts_the_bench_aside_in_silence() {
    let lab = lab([good("one"), good("two")]);
    let accepted = ["--bench-cache", "accepted", "--max-iterations", "1"];
    lab.run(&accepted).assert_end(0, "max iterations reached (1)");
    let again = lab.env.command(["resume", "--max-iterations", "2"]);
    let ran = lab.launch(again).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (2)");
    let notes: Vec<_> = ran
        .records
        .iter()
        .filter(|record| matches!(record.event, Event::Notice { .. }))
        .collect();
    assert!(!format!("{notes:?}").contains("bench"), "{notes:?}");
}
