//! `robot-to demo` and `robot-to runs`: a whole run without a key, and its trace.

use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::{TestEnvironment, TestRepo};

use crate::checks::no_process_is_left;

fn demo() -> (TestEnvironment, PathBuf, testkit::Finished) {
    let env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let dir = env.root().join("a demo");
    let finished = env.run([
        "demo".as_ref(),
        "--fast".as_ref(),
        "--dir".as_ref(),
        dir.as_os_str(),
    ]);
    (env, dir.join("kata"), finished)
}

fn runs(env: &mut TestEnvironment, kata: &Path, flags: &[&str]) -> String {
    let finished = env.cwd(kata).run([&["runs"], flags].concat());
    finished.assert_code(0);
    finished.stdout
}

#[test]
fn the_demo_repairs_is_refused_discards_meets_its_target_and_is_listed() {
    let (mut env, kata, finished) = demo();
    finished.assert_code(0);
    no_process_is_left(&env);
    let git = TestRepo::new();
    let log = git.git_in(
        &kata,
        &["log", "--format=%s", "--reverse", "--branches=robot-to*"],
    );
    assert_eq!(
        log.lines().collect::<Vec<_>>(),
        [
            "a kata with a failing test suite",
            "robot-to 1: Convert with subtractive numerals",
            "robot-to 3: Refuse with one test",
        ]
    );
    assert_eq!(git.git_in(&kata, &["status", "--porcelain"]), "");
    for part in [
        "robot-to complete — script/script — ",
        "Reason:     target met: verify=true, measure=12 (before 18)\n",
        "Iterations: 3 (2 committed, 1 discarded)\n",
    ] {
        assert!(finished.stdout.contains(part), "{}", finished.stdout);
    }
    for part in [
        "repair 1: the robot sees what was printed\n",
        "edit refused: test.sh is locked: ",
        "✘ discarded, not better: Refuse in a function\n",
    ] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }

    let listed = runs(&mut env, &kata, &[]);
    assert!(
        listed.contains(
            "3 iterations,   2 commits  target met: verify=true, measure=12 (before 18)  write roman.sh"
        ),
        "{listed}"
    );
    let listed = runs(&mut env, &kata, &["--json"]);
    let lines: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 1);
    for (key, expected) in [("iterations", 3), ("commits", 2), ("discarded", 1)] {
        assert_eq!(lines[0][key], expected, "{key}");
    }
    assert_eq!(
        lines[0]["standing"],
        "target met: verify=true, measure=12 (before 18)"
    );
    for key in ["notes", "log"] {
        assert!(Path::new(lines[0][key].as_str().unwrap()).is_file(), "{key}");
    }

    // A second demo never writes over the first.
    let again = env.run([
        "demo".as_ref(),
        "--fast".as_ref(),
        "--dir".as_ref(),
        kata.parent().unwrap().as_os_str(),
    ]);
    again.assert_code(2);
    assert!(again.stderr.contains("the demo cannot begin"), "{}", again.stderr);
}

#[test]
fn the_commands_that_the_demo_shows_work() {
    let (env, kata, finished) = demo();
    finished.assert_code(0);
    let (_, commands) = finished.stdout.split_once("Look at it:\n").unwrap();
    let commands: Vec<_> = commands
        .lines()
        .take_while(|line| line.starts_with("  "))
        .map(str::trim)
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let script = commands.join(" && ");
    let output = env.command_of("/bin/sh", ["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{script}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        said.contains("robot-to 1: Convert") && said.contains("[NO IMPROVEMENT]"),
        "{said}"
    );
    assert!(kata.is_dir());
}

#[test]
fn a_repository_without_runs_says_so() {
    let repo = TestRepo::new();
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    assert!(runs(&mut env, repo.path(), &[]).starts_with("no runs in "));
    assert_eq!(runs(&mut env, repo.path(), &["--json"]), "");
}
