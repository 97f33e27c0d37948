//! Runs that cannot begin: one clear message, exit code 2, and nothing changed.

use testkit::{ModelServer, TestRepo};

use crate::lab::{Lab, OBJECTIVE};

fn says(finished: &testkit::Finished, parts: &[&str]) {
    for part in parts {
        assert!(
            finished.stderr.contains(part),
            "{part:?} is not in:\n{}",
            finished.stderr
        );
    }
    assert!(
        finished.stderr.lines().any(|line| line.starts_with("error: ")),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_verify_command_that_is_not_there_is_a_mistake_of_the_user() {
    let mut lab = Lab::new([]);
    lab.verify = Some("no-such-command-here --all".into());
    says(
        &lab.refuse(&[]),
        &["no-such-command-here", "127", "nothing was changed"],
    );
    lab.verify = Some("./parts/base".into());
    says(&lab.refuse(&[]), &["126", "nothing was changed"]);
    lab.verify = Some("  ".into());
    says(&lab.refuse(&[]), &["the verify command is empty"]);
}

#[test]
fn case_29_outside_of_a_repository_the_command_that_makes_one_is_named() {
    let mut lab = Lab::new([]);
    let work = lab.env.work();
    lab.env.cwd(&work);
    says(
        &lab.refuse(&[]),
        &["not in a git repository", "git init", "nothing was changed"],
    );
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 0);
}

#[test]
fn in_a_repository_without_a_commit_the_command_that_makes_one_is_named() {
    let lab = Lab::bare(TestRepo::new(), ModelServer::start([]));
    says(
        &lab.refuse(&[]),
        &["has no commit", "git commit", "nothing was changed"],
    );
}

#[test]
fn case_29_in_a_bare_repository_the_command_that_clones_it_is_named() {
    let lab = Lab::bare(TestRepo::named("bare.git", &["--bare"]), ModelServer::start([]));
    says(
        &lab.refuse(&[]),
        &["bare repository", "git clone", "nothing was changed"],
    );
}

#[test]
fn case_29_inside_of_the_git_directory_nothing_begins() {
    let mut lab = Lab::new([]);
    let inside = lab.repo.path().join(".git");
    lab.env.cwd(inside);
    says(
        &lab.refuse(&[]),
        &["inside a git directory", "nothing was changed"],
    );
}

#[test]
fn without_a_name_for_the_commits_the_setting_is_named() {
    let mut lab = Lab::new([]);
    lab.repo.git(&["config", "--unset", "user.name"]);
    lab.repo.git(&["config", "--unset", "user.email"]);
    lab.repo.git(&["config", "user.useConfigOnly", "true"]);
    lab.env.env("GIT_CONFIG_GLOBAL", "/dev/null");
    says(
        &lab.refuse(&[]),
        &["git config --global user.name", "nothing was changed"],
    );
}

#[test]
fn without_a_key_the_variable_and_the_demo_are_named() {
    let mut lab = Lab::new([]);
    lab.env.env_remove("OPENAI_API_KEY");
    let finished = lab.refuse_command(lab.env.command([OBJECTIVE, "--verify", "sh test.sh"]));
    says(
        &finished,
        &[
            "OPENAI_API_KEY",
            "robot-to demo",
            "--base-url",
            "nothing was changed",
        ],
    );
    lab.env.env("OPENAI_API_KEY", " ");
    let finished = lab.refuse_command(lab.env.command([OBJECTIVE, "--verify", "sh test.sh"]));
    says(&finished, &["OPENAI_API_KEY"]);
}

#[test]
fn a_server_of_ones_own_needs_no_key() {
    let mut lab = Lab::new([]);
    lab.env.env_remove("OPENAI_API_KEY");
    let open = ModelServer::start([crate::replies::good("one")]);
    let mut command = lab
        .env
        .command([OBJECTIVE, "--verify", "sh test.sh", "--max-iterations", "1"]);
    command.args(["--model", "test-model", "--base-url", &open.base_url()]);
    let ran = lab.launch(command).end(crate::lab::PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
}

#[test]
fn unknown_providers_and_addresses_that_are_none_are_refused() {
    let lab = Lab::new([]);
    says(
        &lab.refuse(&["--provider", "opnai"]),
        &["opnai", "nothing was changed"],
    );
    let mut command = lab.env.command([OBJECTIVE, "--base-url", "localhost/v1"]);
    command.args(["--model", "test-model"]);
    says(
        &lab.refuse_command(command),
        &["localhost/v1", "nothing was changed"],
    );
}

#[test]
fn a_key_with_spaces_is_refused_without_repeating_it() {
    let mut lab = Lab::new([]);
    lab.env.env("OPENAI_API_KEY", "sk-two words-0123456789");
    let finished = lab.refuse(&[]);
    says(&finished, &["copy it again"]);
    assert!(!finished.stderr.contains("sk-two"), "{}", finished.stderr);
}
