//! `robot-to check`: it shows what a run would begin with, and leaves nothing behind.

use std::ffi::OsString;

use serde_json::Value;
use testkit::{Finished, Running, Signal};

use crate::attempts::assert_in;
use crate::checks;
use crate::lab::{Lab, PATIENCE};
use crate::replies::good;

/// Checks with these flags, and that nothing is left of it.
fn check(lab: &Lab, extra: &[&str]) -> Finished {
    let running = lab.env.command(arguments(lab, extra));
    leaves_nothing(lab, || Running::start(running).wait(PATIENCE))
}

fn arguments(lab: &Lab, extra: &[&str]) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec!["check".into()];
    all.extend(lab.arguments(extra));
    all
}

fn leaves_nothing(lab: &Lab, act: impl FnOnce() -> Finished) -> Finished {
    let exclude = lab.repo.path().join(".git/info/exclude");
    let state = || {
        (
            lab.repo.git(&["for-each-ref"]),
            lab.repo.objects(),
            std::fs::read(&exclude).ok(),
        )
    };
    let (before, kept) = (lab.repo.fingerprint(), state());
    let finished = act();
    before.assert_same(&lab.repo.fingerprint());
    assert_eq!(state(), kept);
    assert!(!lab.top.join(".robot_lab_to").exists());
    for part in ["runs", "checks"] {
        let left = std::fs::read_dir(lab.env.state().join("robot-to").join(part));
        assert_eq!(left.map(Iterator::count).unwrap_or(0), 0, "{part}");
    }
    assert_eq!(lab.server.requests().len(), 0, "the model was asked");
    checks::no_process_is_left(&lab.env);
    checks::the_key_is_nowhere(lab, &finished);
    finished
}

/// The part of the page between two marks.
fn part<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = page.split_once(from).unwrap();
    rest.split_once(to).unwrap().0.trim()
}

#[test]
fn the_prompt_that_is_shown_is_the_one_that_a_run_sends() {
    let lab = Lab::new([good("one")]);
    lab.repo.write("parts/base", "an uncommitted change");
    let flags = [
        "--max-iterations",
        "1",
        "--protect-path",
        "test.sh",
        "--measure",
        "ls parts | wc -l",
    ];
    std::fs::remove_file(lab.repo.path().join(".git/info/exclude")).ok();
    let finished = check(&lab, &flags);
    finished.assert_code(0);
    let page = finished.stdout;
    assert_in(
        &page,
        &[
            "Key:        OPENAI_API_KEY is set\n",
            "Gate:       sh test.sh\n",
            "Measure:    ls parts | wc -l (higher is better)\n",
            "Locked:     test.sh\n",
            "Note:       1 uncommitted change is not part of the run; it stays as it is\n",
            "Baseline:   verify=true, measure=1\n",
            "Ready: a run would begin. Nothing was changed, and no token was spent.\n",
        ],
    );
    let ran = lab.run(&flags);
    ran.assert_end(0, "max iterations reached (1)");
    let request = &ran.requests()[0];
    let (system, message) = (
        request.last_text("system").unwrap(),
        request.last_text("user").unwrap(),
    );
    assert_eq!(
        lab.env
            .normalize(part(&page, "--- system ---\n", "--- first message ---")),
        lab.env.normalize(system.trim())
    );
    assert_eq!(
        lab.env
            .normalize(part(&page, "--- first message ---\n", "--- end ---")),
        lab.env.normalize(message.trim())
    );
    let bytes: usize = part(&page, "Prompt:", " bytes").parse().unwrap();
    assert_eq!(bytes, system.len() + message.len());
}

#[test]
fn what_a_check_shows() {
    let lab = Lab::new([]);
    lab.repo.write("parts/base", "broken\n");
    lab.repo.commit_all("a suite that fails");
    let finished = check(&lab, &["--max-tokens", "1000"]);
    finished.assert_code(0);
    let (head, _) = finished.stdout.split_once("--- system ---").unwrap();
    let filters = vec![
        (r"Git: .*", "Git: [GIT]"),
        (r"Base: .*", "Base: [OID]"),
        (r"\d+ bytes, about \d+", "[N] bytes, about [N]"),
    ];
    let normal = lab.env.normalize(head);
    insta::with_settings!({ filters => filters }, { insta::assert_snapshot!(normal) });
}

#[test]
fn without_a_key_all_is_shown_and_the_check_fails_as_a_run_would() {
    let mut lab = Lab::new([]);
    lab.env.env_remove("OPENAI_API_KEY");
    for json in [false, true] {
        let mut command = lab.env.command(["check", "do it", "--verify", "sh test.sh"]);
        if json {
            command.arg("--json");
        }
        let finished = leaves_nothing(&lab, || Running::start(command).wait(PATIENCE));
        finished.assert_code(2);
        assert_in(&finished.stderr, &["there is no key for openai", "robot-to demo"]);
        if json {
            let said: Value = serde_json::from_str(&finished.stdout).unwrap();
            assert_eq!((&said["ready"], &said["key"]), (&false.into(), &false.into()));
            assert_eq!(said["baseline"]["gate"], true);
            assert!(said["prompt"]["estimated_tokens"].as_u64().unwrap() > 100);
        } else {
            assert_in(
                &finished.stdout,
                &[
                    "Key:        OPENAI_API_KEY is not set, and is needed\n",
                    "Baseline:   verify=true\n",
                    "--- first message ---\nThis is iteration 1.",
                    "Not ready: the key is missing.",
                ],
            );
        }
    }
}

#[test]
fn what_would_not_begin_is_refused_in_the_same_words() {
    let mut lab = Lab::new([]);
    for (extra, part) in [
        (
            &["--protect-path", "no-such-file"][..],
            "matches no file of the commit",
        ),
        (&["--env", "OPENAI_API_KEY"], "would show the provider's key"),
        (&["--measure", "echo none"], "gives no score"),
    ] {
        let as_check = lab.refuse_command(lab.env.command(arguments(&lab, extra)));
        assert_in(&as_check.stderr, &[part]);
        let as_run = lab.refuse(extra);
        let lines = |text: &str| -> Vec<String> {
            text.lines()
                .filter(|line| line.starts_with("error: "))
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(lines(&as_check.stderr), lines(&as_run.stderr));
    }
    lab.verify = Some("no-such-command".into());
    let finished = lab.refuse_command(lab.env.command(arguments(&lab, &[])));
    assert_in(&finished.stderr, &["the verify command cannot be run (exit 127)"]);
}

#[test]
fn a_target_that_is_met_already_is_told() {
    let lab = Lab::new([]);
    let finished = check(&lab, &["--measure", "echo 5", "--target", "5"]);
    finished.assert_code(0);
    assert_in(
        &finished.stdout,
        &["A run would end at once: target met: verify=true, measure=5."],
    );
}

/// A check whose base commit is being graded, which takes its time.
fn grading(lab: &Lab) -> Running {
    lab.repo.write("slow", "");
    lab.repo.commit_all("slow");
    let running = lab.env.spawn(arguments(lab, &[]));
    let grades = || {
        let runs = std::fs::read_dir(lab.env.state().join("robot-to/runs"));
        let mut runs = runs.into_iter().flatten().flatten();
        runs.any(|run| run.path().join("checkouts/bench/test.sh").exists())
    };
    let began = std::time::Instant::now();
    while !grades() {
        assert!(began.elapsed() < PATIENCE, "the base is not graded");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running
}

#[test]
fn a_check_that_is_interrupted_leaves_nothing_either() {
    let lab = Lab::new([]);
    let running = grading(&lab);
    let finished = leaves_nothing(&lab, || {
        running.signal(Signal::INT);
        running.wait(PATIENCE)
    });
    finished.assert_code(130);
    assert_eq!(finished.stdout, "");
}

#[test]
fn what_a_killed_check_left_is_named_and_cleaned() {
    let lab = Lab::new([]);
    let running = grading(&lab);
    running.signal(Signal::KILL);
    running.wait(PATIENCE);
    let doctor = lab.env.run(["doctor"]);
    doctor.assert_code(0);
    assert_in(
        &doctor.stdout,
        &[", a check, was killed\n", "fix:       robot-to clean\n"],
    );
    let finished = leaves_nothing(&lab, || lab.env.run(["clean"]));
    finished.assert_code(0);
    assert_in(&finished.stdout, &[": a check that was killed\n"]);
    assert_in(
        &lab.env.run(["doctor"]).stdout,
        &["ok    runs         none yet\n"],
    );
}
