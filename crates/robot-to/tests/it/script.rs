//! The same loop over a script in place of a provider.

use crate::lab::{Lab, OBJECTIVE, PATIENCE, Ran};

const GOOD: &str = "
  - calls:
      - tool: write
        args: { path: parts/one, content: \"ok\\n\" }
      - tool: submit_iteration_result
        args: { success: true, summary: Add part one }
    usage: { input: 100, output: 20 }
";

/// Plays these turns, without any key.
fn play<'a>(lab: &'a mut Lab, turns: &str, extra: &[&str]) -> Ran<'a> {
    lab.env.env_remove("OPENAI_API_KEY");
    let script = lab.env.root().join("script.yaml");
    std::fs::write(&script, format!("turns:\n{turns}")).unwrap();
    let mut command = lab.env.command([
        OBJECTIVE,
        "--verify",
        "sh test.sh",
        "--provider",
        "script",
        "--model",
    ]);
    command.arg(&script).args(extra);
    lab.launch(command).end(PATIENCE)
}

#[test]
fn a_script_plays_the_whole_loop() {
    let mut lab = Lab::new([]);
    let turns = format!("{}{GOOD}", GOOD.replace("ok", "broken").replace("Add", "Break"));
    let ran = play(&mut lab, &turns, &["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.count("eval:repair"), 1);
    assert_eq!(ran.file.state.usage.total(), 240);
    assert!(ran.shown().contains("script/"), "{}", ran.shown());
}

#[test]
fn an_expectation_that_is_not_met_ends_the_run() {
    let mut lab = Lab::new([]);
    let ran = play(&mut lab, "  - { expect: no such words, text: hello }\n", &[]);
    ran.finished.assert_code(5);
    assert!(
        ran.reason()
            .contains("turn 1 of the script expects \"no such words\""),
        "{}",
        ran.reason()
    );
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
}

#[test]
fn a_script_that_is_used_up_ends_the_run() {
    let mut lab = Lab::new([]);
    let ran = play(&mut lab, GOOD, &[]);
    ran.finished.assert_code(5);
    assert!(
        ran.reason().contains("the script is used up after 1 turn;"),
        "{}",
        ran.reason()
    );
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
}

#[test]
fn scripts_that_cannot_be_read_are_refused() {
    let lab = Lab::new([]);
    let script = lab.env.root().join("script.yaml");
    std::fs::write(&script, "turns:\n  - txet: a\n").unwrap();
    for (path, part) in [
        (script.as_path(), "line 2 of the script"),
        (&lab.env.root().join("none"), "No such file"),
    ] {
        let mut command = lab.env.command([OBJECTIVE, "--provider", "script", "--model"]);
        command.arg(path);
        let finished = lab.refuse_command(command);
        for part in [part, "nothing was changed", "--model names a file"] {
            assert!(finished.stderr.contains(part), "{}", finished.stderr);
        }
    }
}
