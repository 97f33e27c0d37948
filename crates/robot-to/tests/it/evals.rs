//! Evals of the user's own: a program that reads what it is told as JSON and answers with a score.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use robot_lab_to::event::Event;
use serde_json::Value;
use testkit::Reply;

use crate::lab::{Lab, PATIENCE, Ran};
use crate::replies::{bash, good, part, submit, write};

/// Writes a program.
fn program(path: &Path, script: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A program outside the repository, and the value of the flag that names it.
fn outside(lab: &Lab, script: &str) -> (PathBuf, String) {
    let path = lab.env.root().join("my evals/score");
    program(&path, script);
    let flag = format!("command:{}", path.display());
    (path, flag)
}

/// The parts of the repository, counted.
const COUNT: &str = "cat >/dev/null; echo \"{\\\"gate_ok\\\": true, \\\"value\\\": $(ls parts | wc -l)}\"";

/// A repository that goes by an eval alone.
fn lab(replies: impl IntoIterator<Item = Reply>) -> Lab {
    let mut lab = Lab::new(replies);
    lab.verify = None;
    lab
}

/// The scores of the log: iteration, gate, whether it is better, value, detail.
fn scores(ran: &Ran<'_>) -> Vec<(u32, bool, bool, Option<f64>, String)> {
    let score = |record: &robot_lab_to::event::Record| match &record.event {
        Event::Eval {
            gate,
            improved,
            value,
            detail,
            ..
        } => Some((record.iteration, *gate, *improved, *value, detail.clone())),
        _ => None,
    };
    ran.records.iter().filter_map(score).collect()
}

#[test]
fn a_program_decides_by_its_value_and_ends_the_run_at_the_target() {
    let lab = lab([
        good("one"),
        Reply::calls([write("parts/one", "other\n"), submit("Change part one")]),
        good("two"),
    ]);
    let (path, flag) = outside(
        &lab,
        &format!(
            "tee -a \"$XDG_STATE_HOME/told\" >/dev/null; pwd >>\"$XDG_STATE_HOME/where\"; env >&2; {COUNT}"
        ),
    );
    let ran = lab.run(&["--eval", &flag, "--target", "3"]);
    ran.assert_end(0, "target met: eval=true, value=3 (before 2)");
    assert_eq!(
        ran.outcomes(),
        ["commit:success", "iteration:no_improvement", "commit:success"]
    );
    let told = std::fs::read_to_string(lab.env.state().join("told")).unwrap();
    let told: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |key: &str| told.iter().map(|told| told[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("iteration"), [0, 1, 2, 3]);
    assert_eq!(
        of("previous_value"),
        [Value::Null, 1.0.into(), 2.0.into(), 2.0.into()]
    );
    assert_eq!(told[0]["objective"], crate::lab::OBJECTIVE);
    assert_eq!(told[0]["run_id"], ran.file.run_id.as_str());
    assert_eq!(told[0]["previous_ref"], ran.file.base.as_str());
    let tree = lab
        .repo
        .git(&["rev-parse", &format!("{}^{{tree}}", ran.file.branch)]);
    assert_eq!(told[3]["tree"], tree.as_str());
    let place = std::fs::read_to_string(lab.env.state().join("where")).unwrap();
    assert!(
        place
            .lines()
            .all(|place| Some(place) == told[0]["work_dir"].as_str()),
        "{place}"
    );
    // What the robot is told does not lead to a program that it should not see.
    let prompt = ran.requests()[0].body.to_string();
    assert!(prompt.contains("a program outside the repository scores") && !prompt.contains("my evals"));
    let named = ran.records.iter().find_map(|record| match &record.event {
        Event::RunStarted { eval, plan, .. } => Some((eval.clone(), plan.eval.clone())),
        _ => None,
    });
    let name = format!("command:{}", path.display());
    assert_eq!(named, Some((name.clone(), Some(name))));
}

#[test]
fn what_produced_a_score_is_in_the_log() {
    let lab = Lab::new([good("one")]);
    let (_, flag) = outside(&lab, "cat >/dev/null; echo '{\"gate_ok\":true}'; echo why >&2");
    let ran = lab.run(&[
        "--eval",
        &flag,
        "--measure",
        "ls parts | wc -l",
        "--max-iterations",
        "1",
    ]);
    ran.assert_end(0, "max iterations reached (1)");
    let known: Vec<_> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Eval { provenance, .. } => Some(provenance.clone()),
            _ => None,
        })
        .collect();
    let [base, first] = known.as_slice() else {
        panic!("{known:?}")
    };
    for known in [base, first] {
        assert_eq!(
            (known.verify_exit, known.eval_exit, known.measure_exit),
            (Some(0), Some(0), Some(0))
        );
        assert!(known.verify_ms.is_some() && known.eval_ms.is_some() && known.measure_ms.is_some());
    }
    assert_eq!((&base.samples, &first.samples), (&vec![1.0], &vec![2.0]));
    assert_ne!(base.output_sha256, first.output_sha256);
    assert_eq!(
        scores(&ran)[1].4,
        "verify=true, eval=true, measure=2 (before 1)",
        "each has its say"
    );
}

#[test]
fn the_digest_of_one_command_is_that_of_what_it_printed() {
    let lab = lab([good("one")]);
    let (_, flag) = outside(&lab, "cat >/dev/null; printf '{\"gate_ok\":true}'");
    let ran = lab.run(&["--eval", &flag, "--max-iterations", "1"]);
    let digest = ran.records.iter().find_map(|record| match &record.event {
        Event::Eval { provenance, .. } => provenance.output_sha256.clone(),
        _ => None,
    });
    let sum = lab
        .env
        .command_of("/bin/sh", ["-c", "printf '{\"gate_ok\":true}' | sha256sum"])
        .output()
        .unwrap();
    assert_eq!(
        digest.as_deref(),
        String::from_utf8_lossy(&sum.stdout).split_whitespace().next()
    );
}

#[test]
fn case_71_an_answer_that_is_no_score_never_wins() {
    // Whatever is wrong with it, once there is a part named as here.
    let wrong = r#"cat >/dev/null
if [ -e parts/nan ]; then echo '{"gate_ok": true, "value": NaN}'
elif [ -e parts/typo ]; then echo '{"gate_ok": true, "vlaue": 9}'
elif [ -e parts/exit ]; then echo '{"gate_ok": true}'; exit 3
elif [ -e parts/flood ]; then head -c 300000 /dev/zero | tr '\0' ' '; echo '{"gate_ok": true}'
elif [ -e parts/late ]; then echo started >&2; sleep 1000
elif [ -e parts/silent ]; then echo whispered >&2
else echo '{"gate_ok": true, "value": 1}'
fi"#;
    let names = ["nan", "typo", "exit", "flood", "late", "silent"];
    let lab = lab(names.map(good));
    let (_, flag) = outside(&lab, wrong);
    let ran = lab.run(&[
        "--eval",
        &flag,
        "--max-iterations",
        "6",
        "--max-verify-repairs",
        "0",
        "--max-consecutive-failures",
        "9",
        "--verify-timeout",
        "6",
    ]);
    ran.assert_end(0, "max iterations reached (6)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure"; 6]);
    assert!(
        scores(&ran)[1..]
            .iter()
            .all(|(_, gate, improved, value, detail)| {
                !gate && !improved && value.is_none() && detail == "eval=invalid"
            }),
        "{:?}",
        scores(&ran)
    );
    let notes = ran.notes();
    for said in [
        "`value`: ",
        "unknown field `vlaue`",
        "it must exit 0, also for a score that fails the gate, but: exit 3",
        "too many for a score",
        "timed out after 6 s\n    started",
        "it printed nothing",
        "whispered",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
}

#[test]
fn a_program_without_a_score_for_the_base_is_a_mistake_of_the_user() {
    let lab = lab([]);
    for (script, said) in [
        (
            "echo so-it-is-broken; exit 1",
            "it must exit 0, also for a score that fails the gate, but: exit 1; it printed: so-it-is-broken",
        ),
        ("echo '{\"gate\": true}'", "unknown field `gate`"),
        ("sleep 1000", "timed out after 2 s"),
    ] {
        let (_, flag) = outside(&lab, script);
        let refused = lab.refuse(&["--eval", &flag, "--verify-timeout", "2"]);
        for part in [said, "the eval command gives no score", "nothing was changed"] {
            assert!(refused.stderr.contains(part), "{}", refused.stderr);
        }
    }
    let (path, flag) = outside(&lab, "true");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let refused = lab.refuse(&["--eval", &flag]);
    assert!(
        refused.stderr.contains("cannot be run (exit 126)"),
        "{}",
        refused.stderr
    );
    for (flags, said) in [
        (
            &["--eval", "command:no/such/eval"][..],
            "there is no eval no/such/eval",
        ),
        (&["--eval", "taste"], "give null, code, or command:PATH"),
        (&["--eval", "command:"], "give null, code, or command:PATH"),
        (&["--eval", "code"], "neither a verify nor a measure command"),
        (
            &["--eval", "null", "--verify", "true"],
            "leave out one of the two",
        ),
        (&["--target", "3"], "--target needs --measure or --eval"),
        (
            &["--eval", "null", "--minimize"],
            "--minimize needs --measure or --eval",
        ),
    ] {
        let refused = lab.refuse(flags);
        assert!(refused.stderr.contains(said), "{flags:?}: {}", refused.stderr);
    }
}

#[test]
fn an_eval_with_a_value_beside_a_measure_is_refused_at_the_start_and_gives_no_score_later() {
    let lab = lab([good("one"), good("two")]);
    let why = "it has a value, and so has the measure command, but a run goes by one number; leave out --measure, or let \
               the eval answer without a value";
    for answer in ["\"gate_ok\": true", "\"gate_ok\": false"] {
        let (_, flag) = outside(
            &lab,
            &format!("cat >/dev/null; echo '{{{answer}, \"value\": 6}}'"),
        );
        let refused = lab.refuse(&["--eval", &flag, "--measure", "ls parts | wc -l"]);
        for part in [why, "the eval `command:", "nothing was changed"] {
            assert!(refused.stderr.contains(part), "{}", refused.stderr);
        }
    }
    let only_later = "cat >/dev/null
if [ -e parts/one ]; then echo '{\"gate_ok\": true, \"value\": 6}'; else echo '{\"gate_ok\": true}'; fi";
    let (_, flag) = outside(&lab, only_later);
    let ran = lab.run(&[
        "--eval",
        &flag,
        "--measure",
        "ls parts | wc -l",
        "--max-iterations",
        "2",
        "--max-verify-repairs",
        "0",
    ]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
    assert!(ran.notes().contains(why), "{}", ran.notes());
    assert!(scores(&ran)[1].4.ends_with("eval=invalid"), "{:?}", scores(&ran));
}

#[test]
fn files_beside_a_locked_eval_are_said_to_be_free_unless_they_are_locked_too() {
    let free =
        "but not the files beside it, which it may read or import; lock what it reads: --protect-path tools";
    let lab = lab([good("one"), good("two")]);
    program(&lab.top.join("tools/score"), COUNT);
    lab.repo.commit_all("an eval");
    let flags = ["--eval", "command:tools/score", "--max-iterations", "1"];
    let ran = lab.run(&flags);
    assert_eq!(ran.shown().matches(free).count(), 1, "{}", ran.shown());
    let said = ran.records.iter().any(|record| match &record.event {
        Event::Notice { message } => message.contains(free),
        _ => false,
    });
    assert!(said, "it is in the log");
    let ran = lab.run(&[&flags[..], &["--protect-path", "tools"]].concat());
    assert!(!ran.shown().contains("beside it"), "{}", ran.shown());
}

#[test]
fn a_gate_that_fails_is_told_to_the_robot_in_the_words_of_the_program() {
    let lab = lab([part("one", "bad"), good("one")]);
    let script = r#"cat >/dev/null
if grep -q bad parts/* 2>/dev/null; then echo '{"gate_ok": false, "output": "no part may be bad"}'
else echo '{"gate_ok": true}'
fi"#;
    let (_, flag) = outside(&lab, script);
    let ran = lab.run(&["--eval", &flag, "--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.count("eval:repair"), 1);
    let told = ran.requests()[1].last_text("user").unwrap();
    assert!(told.contains("no part may be bad"), "{told}");
}

#[test]
fn case_61_an_eval_of_the_repository_is_locked_and_runs_as_it_was_committed() {
    let lab = lab([
        Reply::calls([
            bash(
                "printf '#!/bin/sh\\necho \"{\\\\\"gate_ok\\\\\": true, \\\\\"value\\\\\": 99}\"\\n' >tools/score",
            ),
            submit("Improve the score"),
        ]),
        good("one"),
    ]);
    program(&lab.top.join("tools/score"), COUNT);
    lab.repo.commit_all("an eval");
    // Not committed, so not part of the run.
    program(&lab.top.join("tools/score"), "echo '{\"gate_ok\": false}'");
    let ran = lab.run(&["--eval", "command:tools/score", "--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:tampered", "commit:success"]);
    assert!(ran.notes().contains("tools/score"), "{}", ran.notes());
    assert_eq!(
        scores(&ran),
        [
            (0, true, true, Some(1.0), "eval=true, value=1".into()),
            (1, true, true, Some(2.0), "eval=true, value=2 (before 1)".into()),
        ]
        .map(|(iteration, gate, improved, value, detail)| (
            iteration * 2,
            gate,
            improved,
            value,
            detail
        ))
    );
    let prompt = ran.requests()[0].body.to_string();
    assert!(
        prompt.contains("the program `tools/score` of this repository"),
        "{prompt}"
    );
}

#[test]
fn a_candidate_cannot_put_another_eval_in_its_place_by_a_link() {
    let mut lab = lab([Reply::calls([
        bash(
            "mkdir -p ../fake/deep && cp ../cheat ../fake/score && cp ../cheat ../fake/deep/score && cd .. && rm -rf sub && ln -s fake/deep sub",
        ),
        submit("Move sub"),
    ])]);
    lab.repo.write("sub/file", "1\n");
    program(
        &lab.top.join("cheat"),
        "echo '{\"gate_ok\": true, \"value\": 99}'",
    );
    program(
        &lab.top.join("score"),
        "cat >/dev/null; echo '{\"gate_ok\": true, \"value\": 1}'",
    );
    lab.repo.commit_all("an eval above");
    lab.start_in("sub");
    let ran = lab.run(&["--eval", "command:../score", "--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(
        scores(&ran).iter().all(|score| score.3 == Some(1.0)),
        "{:?}",
        scores(&ran)
    );
    assert_eq!(ran.outcomes(), ["iteration:no_improvement"]);
}

#[test]
fn an_eval_that_is_not_committed_runs_from_the_checkout() {
    let lab = lab([
        Reply::calls([
            bash("mkdir -p mine && echo exit 1 >mine/score"),
            submit("Shadow it"),
        ]),
        good("one"),
    ]);
    lab.repo.write(".gitignore", "mine\n");
    lab.repo.commit_all("ignore it");
    program(&lab.top.join("mine/score"), COUNT);
    let ran = lab.run(&["--eval", "command:mine/score", "--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:no_change", "commit:success"]);
}

#[test]
fn a_run_that_goes_on_keeps_its_eval() {
    let lab = lab(["one", "two", "three", "four"].map(good));
    program(&lab.top.join("tools/score"), COUNT);
    lab.repo.commit_all("an eval");
    let (_, outside) = outside(&lab, COUNT);
    for flag in ["command:tools/score", outside.as_str()] {
        let first = lab.run(&["--eval", flag, "--max-iterations", "1"]);
        first.assert_end(0, "max iterations reached (1)");
        assert_eq!(first.file.state.best, Some(2.0));
        // Where it came from may be gone; what is committed is not.
        if flag == "command:tools/score" {
            std::fs::remove_dir_all(lab.top.join("tools")).unwrap();
        }
        let mut command = lab.env.command(["resume"]);
        command.args([
            "--base-url",
            &lab.server.base_url(),
            "--model",
            "test-model",
            "--max-iterations",
            "2",
        ]);
        let again = lab.launch(command).end(PATIENCE);
        again.assert_end(0, "max iterations reached (2)");
        assert!(again.file.state.best >= Some(3.0), "{:?}", again.file.state.best);
        let graded = scores(&again);
        assert!(
            graded.iter().all(|score| score.4.starts_with("eval=true")),
            "{graded:?}"
        );
    }
}

#[test]
fn without_tools_only_the_submission_is_left() {
    let lab = Lab::new([Reply::calls([submit("Nothing can be done")])]);
    let ran = lab.run(&["--no-tools", "--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    let tools = ran.requests()[0].body["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["submit_iteration_result"]);
}
