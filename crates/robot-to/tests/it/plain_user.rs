//! As a user without rights, for whom permissions hold: root is refused nothing, so these run as nobody when started
//! by root.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::Path;
use std::process::Command;

use testkit::{Finished, Running, TestEnvironment, TestRepo};

use crate::checks::no_process_is_left;
use crate::lab::{KEY, PATIENCE};

const NOBODY: &str = "65534";

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn give(path: &Path, owner: &str) {
    if is_root() {
        let done = Command::new("chown")
            .args(["-R", owner])
            .arg(path)
            .status()
            .unwrap();
        assert!(done.success());
    }
}

/// Runs the program as nobody, who owns everything that it may write.
fn run(env: &TestEnvironment, arguments: &[&str]) -> Finished {
    let binary = env!("CARGO_BIN_EXE_robot-to");
    give(env.root(), NOBODY);
    let ids = [
        format!("--reuid={NOBODY}"),
        format!("--regid={NOBODY}"),
        "--clear-groups".into(),
    ];
    let command = if is_root() {
        let arguments = ids
            .iter()
            .map(String::as_str)
            .chain([binary])
            .chain(arguments.iter().copied());
        env.command_of("setpriv", arguments)
    } else {
        env.command(arguments)
    };
    let finished = Running::start(command).wait(PATIENCE);
    give(env.root(), "0");
    finished
}

#[test]
fn a_whole_run_needs_no_rights() {
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    // With a key the program starts itself again, by way of files in `/proc` that are its own only.
    env.env("OPENAI_API_KEY", KEY);
    let dir = env.root().join("demo");
    let finished = run(&env, &["demo", "--fast", "--dir", dir.to_str().unwrap()]);
    finished.assert_code(0);
    assert!(
        finished
            .stdout
            .contains("Iterations: 3 (2 committed, 1 discarded)"),
        "{}",
        finished.stdout
    );
    no_process_is_left(&env);
}

#[test]
fn a_checkout_that_cannot_be_written_is_refused_and_left_as_it_is() {
    let repo = TestRepo::new();
    repo.write("a", "a\n");
    repo.commit_all("start");
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let script = env.root().join("script.yaml");
    std::fs::write(&script, "turns:\n  - text: hello\n").unwrap();
    let before = repo.fingerprint();
    give(repo.path(), NOBODY);
    let mode = std::fs::metadata(repo.path()).unwrap().permissions();
    std::fs::set_permissions(repo.path(), PermissionsExt::from_mode(0o555)).unwrap();
    env.cwd(repo.path());
    let script = script.to_str().unwrap();
    let finished = run(
        &env,
        &["say hello to all", "--provider", "script", "--model", script],
    );
    std::fs::set_permissions(repo.path(), mode).unwrap();
    give(repo.path(), "0");
    assert!(matches!(finished.code, Some(2 | 5)), "{finished:?}");
    assert!(
        finished.stderr.contains("Permission denied"),
        "{}",
        finished.stderr
    );
    before.assert_same(&repo.fingerprint());
    assert!(!repo.path().join(".robot_lab_to").exists());
}

#[test]
fn what_a_grade_hides_in_a_directory_that_cannot_be_read_is_gone_at_the_next() {
    let repo = TestRepo::new();
    // The first candidate's grade leaves a file and closes the directory; later ones must not find the file.
    repo.write(
        "test.sh",
        "if [ -e parts/hidden ]; then echo planted; exit 1; fi\n\
         if [ -e parts/one ] && [ ! -e parts/two ]; then echo x > parts/hidden; chmod 311 parts; fi\n",
    );
    repo.write("parts/base", "ok\n");
    repo.commit_all("start");
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let script = env.root().join("script.yaml");
    let turn = |name: &str| {
        format!(
            "  - calls:\n      - tool: write\n        args: {{ path: parts/{name}, content: \"ok\" }}\n      - tool: \
             submit_iteration_result\n        args: {{ success: true, summary: Add {name} }}\n"
        )
    };
    std::fs::write(&script, format!("turns:\n{}{}", turn("one"), turn("two"))).unwrap();
    give(repo.path(), NOBODY);
    env.cwd(repo.path());
    let script = script.to_str().unwrap();
    let finished = run(
        &env,
        &[
            "add all the parts",
            "--verify",
            "sh test.sh",
            "--max-iterations",
            "2",
            "--provider",
            "script",
            "--model",
            script,
        ],
    );
    give(repo.path(), "0");
    finished.assert_code(0);
    assert!(
        finished
            .stdout
            .contains("Iterations: 2 (2 committed, 0 discarded)"),
        "{}\n{}",
        finished.stderr,
        finished.stdout
    );
}

#[test]
fn copied_files_that_a_robot_makes_unreadable_come_back() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "conf/\n");
    repo.write("a", "a\n");
    repo.commit_all("start");
    repo.write("conf/local/x", "x\n");
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let script = env.root().join("script.yaml");
    let turn = |name: &str| {
        format!(
            "  - calls:\n      - tool: bash\n        args: {{ command: 'cat conf/local/x > {name}; chmod 000 conf' }}\n      \
             - tool: submit_iteration_result\n        args: {{ success: true, summary: Add {name} }}\n"
        )
    };
    std::fs::write(&script, format!("turns:\n{}{}", turn("one"), turn("two"))).unwrap();
    give(repo.path(), NOBODY);
    env.cwd(repo.path());
    let arguments = [
        "make every part hold",
        "--provider",
        "script",
        "--model",
        script.to_str().unwrap(),
        "--copy",
        "conf",
        "--verify",
        "grep -q x conf/local/x && chmod 000 conf",
        "--max-iterations",
        "2",
    ];
    let finished = run(&env, &arguments);
    give(repo.path(), "0");
    finished.assert_code(0);
    assert!(
        finished.stdout.contains("Iterations: 2 (2 committed"),
        "{}\n{}",
        finished.stdout,
        finished.stderr
    );
    let branch = repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/robot-to*/**"]);
    for name in ["one", "two"] {
        assert_eq!(repo.git(&["show", &format!("{}:{name}", branch.trim())]), "x");
    }
    no_process_is_left(&env);
}
