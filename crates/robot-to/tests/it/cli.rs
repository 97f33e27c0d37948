//! The command line: helps, mistakes, and where the objective comes from.

use std::fs::File;

use insta::assert_snapshot;
use testkit::{Finished, TestEnvironment};

use crate::lab::{Lab, PATIENCE};
use crate::replies::good;

fn environment() -> TestEnvironment {
    TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"))
}

fn run(arguments: &[&str]) -> Finished {
    let env = environment();
    let finished = env.run(arguments);
    for directory in [env.state(), env.work(), env.tmp()] {
        assert_eq!(
            std::fs::read_dir(&directory).unwrap().count(),
            0,
            "{}",
            directory.display()
        );
    }
    finished
}

fn help_of(arguments: &[&str]) -> String {
    let finished = run(arguments);
    finished.assert_code(0);
    assert_eq!(finished.stderr, "");
    finished.stdout
}

#[test]
fn the_help_of_a_run() {
    assert_snapshot!(help_of(&["--help"]));
}

#[test]
fn the_short_help_of_a_run() {
    assert_snapshot!(help_of(&["-h"]));
}

#[test]
fn the_help_of_runs() {
    assert_snapshot!(help_of(&["runs", "--help"]));
}

#[test]
fn the_help_of_the_demo() {
    assert_snapshot!(help_of(&["demo", "--help"]));
}

#[test]
fn the_help_of_a_status() {
    assert_snapshot!(help_of(&["status", "--help"]));
}

#[test]
fn the_help_of_attempts() {
    assert_snapshot!(help_of(&["attempts", "--help"]));
}

#[test]
fn the_help_of_showing() {
    assert_snapshot!(help_of(&["show", "--help"]));
}

#[test]
fn the_help_of_applying() {
    assert_snapshot!(help_of(&["apply", "--help"]));
}

#[test]
fn the_help_of_completions() {
    assert_snapshot!(help_of(&["completions", "--help"]));
}

#[test]
fn the_help_of_the_manual() {
    assert_snapshot!(help_of(&["man", "--help"]));
}

#[test]
fn the_help_of_checking() {
    assert_snapshot!(help_of(&["check", "--help"]));
}

#[test]
fn the_help_of_reporting() {
    assert_snapshot!(help_of(&["report", "--help"]));
}

#[test]
fn the_help_of_cleaning() {
    assert_snapshot!(help_of(&["clean", "--help"]));
}

#[test]
fn the_help_of_the_doctor() {
    assert_snapshot!(help_of(&["doctor", "--help"]));
}

#[test]
fn the_help_of_models() {
    assert_snapshot!(help_of(&["models", "--help"]));
}

#[test]
fn the_version_is_printed() {
    assert_eq!(
        help_of(&["--version"]),
        format!("robot-to {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn mistakes_are_named_with_what_helps() {
    for (arguments, parts) in [
        (
            &["dmeo"][..],
            &["`dmeo` looks like the command `demo`", "robot-to demo"][..],
        ),
        (&["run"], &["looks like the command `runs`"]),
        (&["statsu"], &["looks like the command `status`", "in more words"]),
        (&["config", "--colour", "red"], &["--colour"]),
        (
            &["--max-iteratoins", "3", "do it well"],
            &["--max-iteratoins", "--max-iterations"],
        ),
        (&["do it well", "--max-iterations", "0"], &["--max-iterations"]),
        (&["do it well", "--max-tokens", "many"], &["--max-tokens", "many"]),
        (
            &["do it well", "--iteration-timeout", "1d"],
            &["--iteration-timeout", "90m"],
        ),
        (&["do it well", "and more"], &["and more"]),
        (&["do it well", "--objective-file", "f"], &["--objective-file"]),
        (&[""], &["there is no objective", "robot-to demo"]),
        (&["  \n "], &["there is no objective"]),
        // The standard input is empty here.
        (&[], &["there is no objective", "robot-to --help"]),
        (&["--objective-file", "no-such-file"], &["no-such-file"]),
        (&["runs"], &["not in a git repository"]),
        (&["runs", "more"], &["more"]),
        (&["status"], &["not in a git repository"]),
        (&["show", "two"], &["<ITER>", "two"]),
        (&["apply"], &["<ITER>"]),
    ] {
        let finished = run(arguments);
        finished.assert_code(2);
        assert_eq!(finished.stdout, "", "{arguments:?}");
        assert!(
            finished.stderr.starts_with("error: "),
            "{arguments:?}: {}",
            finished.stderr
        );
        for part in parts {
            assert!(
                finished.stderr.contains(part),
                "{arguments:?}: {part:?} is not in:\n{}",
                finished.stderr
            );
        }
    }
}

#[test]
fn an_equals_sign_and_a_space_are_the_same_and_verify_has_two_names() {
    let lab = Lab::new([good("one")]);
    let mut command = lab
        .env
        .command(["do it well", "--verify-command=sh test.sh", "--max-iterations=1"]);
    command.args([
        format!("--base-url={}", lab.server.base_url()),
        "--model=test-model".into(),
    ]);
    let ran = lab.launch(command).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.file.verify_command.as_deref(), Some("sh test.sh"));
}

#[test]
fn the_objective_comes_from_standard_input() {
    let lab = Lab::new([good("one")]);
    let file = lab.env.root().join("objective");
    std::fs::write(&file, "\n  raise the coverage of größer\n\n").unwrap();
    let mut command = lab.env.command(lab.options(&["--max-iterations", "1"]));
    command.stdin(File::open(&file).unwrap());
    let ran = lab.launch(command).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.file.objective, "raise the coverage of größer");
    assert!(
        ran.requests()[0]
            .last_text("system")
            .unwrap()
            .contains("raise the coverage of größer")
    );
    assert!(
        ran.file.branch.starts_with("robot-to/raise-the-coverage-of-gr"),
        "{}",
        ran.file.branch
    );
}

#[test]
fn the_objective_comes_from_a_file() {
    let mut lab = Lab::new([good("one")]);
    lab.repo.write("docs/goal.md", "tidy the parts\n");
    lab.repo.commit_all("a goal");
    lab.start_in("docs");
    lab.verify = Some("cd .. && sh test.sh".into());
    let options = lab.options(&["--max-iterations", "1", "--objective-file", "goal.md"]);
    let ran = lab.launch(lab.env.command(options)).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.file.objective, "tidy the parts");
}

#[test]
fn an_objective_without_letters_still_names_a_branch() {
    let lab = Lab::new([good("one")]);
    let mut arguments = lab.options(&["--max-iterations", "1"]);
    arguments.insert(0, "日本語".into());
    let ran = lab.launch(lab.env.command(arguments)).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(
        ran.file.branch.starts_with("robot-to/takeover-"),
        "{}",
        ran.file.branch
    );
}

#[test]
fn every_provider_is_named_in_the_help() {
    let help = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"))
        .run(["--help"])
        .stdout;
    for provider in robot_lab_providers::known_providers() {
        assert!(help.contains(provider), "{provider}");
    }
}

#[test]
fn a_path_that_does_not_fit_is_a_mistake_of_the_command_line() {
    let lab = Lab::new([]);
    lab.repo.write("taken", "");
    let refused = lab.refuse(&["--run-dir", "taken"]);
    refused.assert_code(2);
    assert!(
        refused.stderr.contains("nothing of the run is left"),
        "{}",
        refused.stderr
    );
    let env = environment();
    for line in [vec!["demo", "--dir", "."], vec!["fix", "the", "tests"]] {
        let finished = env.run(&line);
        finished.assert_code(2);
        assert!(finished.stderr.contains("\nhint: "), "{}", finished.stderr);
    }
}

#[test]
fn a_list_of_models_that_cannot_be_had_says_why() {
    for (line, code, said) in [
        (vec!["models"], 2, "OPENAI_API_KEY is not set"),
        (vec!["models", "--provider", "script"], 2, "has no list of models"),
        (
            vec!["models", "--base-url", "http://127.0.0.1:1"],
            5,
            "no connection",
        ),
        (vec!["models", "--base-url", "nonsense"], 2, "nonsense"),
    ] {
        let finished = run(&line);
        finished.assert_code(code);
        assert!(finished.stderr.contains(said), "{line:?}: {}", finished.stderr);
    }
}
