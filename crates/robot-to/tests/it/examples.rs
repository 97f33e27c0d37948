//! The examples, as cargo built them: what they print, and what they do where nobody serves a model.

use std::path::Path;

use insta::{assert_snapshot, with_settings};
use testkit::{TestEnvironment, TestRepo};

use crate::checks::no_process_is_left;

/// An environment that an example runs in. `cargo test` builds examples; with `--test it` they are those of before.
fn example(name: &str) -> TestEnvironment {
    let built = Path::new(env!("CARGO_BIN_EXE_robot-to"))
        .with_file_name("examples")
        .join(name);
    assert!(
        built.is_file(),
        "build it first: cargo build -p robot-to --example {name}"
    );
    let mut env = TestEnvironment::new(built);
    let output = env.root().join("output");
    env.env("RLTO_DIR", output)
        .placeholder(concat!(env!("CARGO_MANIFEST_DIR"), "/examples"), "[EXAMPLES]");
    env
}

#[test]
fn the_basic_example_shows_a_whole_run_and_begins_anew_each_time() {
    let mut env = example("01_basic_usage");
    env.env("RLTO_PROVIDER", "script")
        .env("OPENAI_API_KEY", "sk-unused-0123456789");
    let first = env.run([""; 0]);
    first.assert_code(0);
    assert!(!first.stdout.contains("Cleaning leftover"), "{}", first.stdout);
    let again = env.run([""; 0]);
    again.assert_code(0);
    no_process_is_left(&env);
    let printed = format!("{}--- standard error ---\n{}", again.stdout, again.stderr);
    with_settings!({ filters => vec![(r"(?m)^[0-9a-f]{7,} ", "[OID] ")] }, {
        assert_snapshot!(env.normalize(&printed));
    });
    // The implementation is on the branch alone.
    let project = env.root().join("output/project");
    let git = TestRepo::new();
    assert_eq!(git.git_in(&project, &["status", "--porcelain"]), "");
    assert_eq!(git.git_in(&project, &["branch", "--show-current"]), "main");
    assert!(!project.join("lib").exists());
    assert!(!env.root().join("output/final").exists());
}

#[test]
fn without_a_model_the_basic_example_says_so_once_and_makes_nothing() {
    let mut env = example("01_basic_usage");
    // Nobody can listen there.
    env.env("OLLAMA_BASE", "http://127.0.0.1:0/v1");
    for (variables, said) in [
        (&[][..], "nobody serves a model at http://127.0.0.1:0/v1"),
        (
            &[("RLTO_LOCAL", "false"), ("RLTO_PROVIDER", "openai")],
            "OPENAI_API_KEY",
        ),
        (
            &[("RLTO_PROVIDER", "script"), ("RLTO_MODEL", "no/such/script")],
            "no/such/script",
        ),
    ] {
        for (name, value) in variables {
            env.env(name, value);
        }
        let finished = env.run([""; 0]);
        finished.assert_code(2);
        assert_eq!(finished.stdout, "");
        let lines: Vec<_> = finished.stderr.lines().collect();
        assert!(
            lines.len() == 1 && finished.stderr.contains(said),
            "{}",
            finished.stderr
        );
        assert!(!env.root().join("output").exists());
    }
}
