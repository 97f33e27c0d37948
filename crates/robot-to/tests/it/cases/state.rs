//! What a run left behind: torn, moved, newer, or from a process that was killed at any step.

use std::path::PathBuf;
use std::process::Command;

use robot_lab_to::run::RunDir;
use testkit::{ModelServer, Reply, Running, Signal};

use crate::lab::{Lab, PATIENCE, Ran, text_of};
use crate::replies::{bash, good, write};

fn run_dir(lab: &Lab) -> PathBuf {
    let runs = RunDir::list(&lab.top.join(".robot_lab_to")).unwrap();
    runs.last().unwrap().1.path().to_owned()
}

fn resume<'a>(lab: &'a Lab, extra: &[&str]) -> Ran<'a> {
    let arguments = [&["resume"], extra].concat();
    lab.launch(lab.env.command(&arguments)).end(PATIENCE)
}

#[test]
fn case_169_a_torn_state_file_is_made_again_from_the_log() {
    let lab = Lab::new([good("one")]);
    lab.run(&["--max-iterations", "1"])
        .assert_end(0, "max iterations reached (1)");
    let path = run_dir(&lab).join("run.json");
    let whole = std::fs::read(&path).unwrap();
    // Nothing, half a line, and all but the end. The number of tries bounds the time.
    for (cut, iterations) in [(0, "2"), (whole.len() / 2, "3"), (whole.len() - 1, "4")] {
        std::fs::write(&path, whole.get(..cut).unwrap()).unwrap();
        lab.server.push(good(iterations));
        let ran = resume(&lab, &["--max-iterations", iterations]);
        ran.assert_end(0, &format!("max iterations reached ({iterations})"));
        assert_eq!(ran.subjects().len().to_string(), iterations);
        assert_eq!(ran.subjects()[0], "robot-to 1: Add part one");
    }
}

#[test]
fn case_171_a_run_that_was_killed_at_any_step_comes_to_the_same_commits() {
    for (mark, moved) in [
        ("\"iteration:start\"", false),
        ("\"agent:run:end\"", false),
        ("\"eval:start\"", false),
        ("\"event\":\"eval\"", false),
        ("\"commit:start\"", true),
        ("\"commit:success\"", true),
    ] {
        let lab = Lab::new([good("one")]);
        let first = lab.run(&["--max-iterations", "1"]);
        let branch = first.file.branch.clone();
        let tip = lab.repo.git(&["rev-parse", &branch]);
        let log = first.dir.log();
        let text = text_of(&log);
        let last = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(mark))
            .last();
        let kept = last.unwrap_or_else(|| panic!("no {mark} in {text}")).0;
        let lines: Vec<&str> = text.lines().take(kept + 1).collect();
        std::fs::write(&log, format!("{}\n{{\"event\":\"torn", lines.join("\n"))).unwrap();
        if !moved {
            lab.repo
                .git(&["update-ref", &format!("refs/heads/{branch}"), "main"]);
        }
        for reply in [good("one"), good("two")].into_iter().skip(usize::from(moved)) {
            lab.server.push(reply);
        }
        let ran = resume(&lab, &["--max-iterations", "2"]);
        ran.assert_end(0, "max iterations reached (2)");
        let subjects = ran.subjects();
        assert_eq!(subjects.len(), 2, "{mark}: {subjects:?}");
        assert!(subjects[0].ends_with("Add part one") && subjects[1].ends_with("Add part two"));
        if moved {
            assert_eq!(
                lab.repo.git(&["rev-parse", &format!("{branch}~1")]),
                tip,
                "{mark}"
            );
        }
        assert_eq!(lab.server.remaining(), 0, "{mark}");
    }
}

#[test]
fn case_172_half_the_edits_of_a_killed_robot_do_not_reach_the_next_one() {
    let lab = Lab::new([
        Reply::calls([write("parts/half", "broken\n"), bash("rm test.sh")]),
        Reply::hang(),
    ]);
    lab.repo.write("parts/base", "mine, and not committed\n");
    let run = lab.start(&["--max-iterations", "1"]);
    lab.server.wait_for_requests(2, PATIENCE);
    run.process.signal(Signal::KILL);
    run.process.wait(PATIENCE);
    lab.server
        .push(Reply::calls([bash("git status --porcelain; ls parts")]));
    lab.server.push(good("one"));
    let ran = resume(&lab, &[]);
    ran.assert_end(0, "max iterations reached (1)");
    let told = ran.requests()[3].last_text("tool").unwrap();
    assert!(told.contains("base\n") && !told.contains("half"), "{told}");
    assert_eq!(text_of(&lab.top.join("parts/base")), "mine, and not committed\n");
    assert_eq!(ran.attempts(), ["refs/attempts/1-0"], "{}", ran.shown());
    assert_eq!(ran.in_attempt("1-0", "parts/half"), "broken");
}

#[test]
fn case_174_a_run_goes_on_in_a_repository_that_was_moved() {
    let mut lab = Lab::new([good("one"), good("two")]);
    lab.run(&["--max-iterations", "1"])
        .assert_end(0, "max iterations reached (1)");
    let moved = lab.repo.beside("moved elsewhere");
    std::fs::rename(lab.repo.path(), &moved).unwrap();
    lab.env.cwd(&moved);
    let finished = lab.env.run(["resume", "--max-iterations", "2"]);
    finished.assert_code(0);
    let subjects = lab.repo.git_in(
        &moved,
        &[
            "log",
            "--reverse",
            "--format=%s",
            "--branches=robot-to/*",
            "^main",
        ],
    );
    assert_eq!(subjects, "robot-to 1: Add part one\nrobot-to 2: Add part two");
    std::fs::rename(&moved, lab.repo.path()).unwrap();
}

#[test]
fn case_175_a_run_of_a_newer_version_is_refused_and_left_as_it_is() {
    let lab = Lab::new([good("one")]);
    lab.run(&["--max-iterations", "1"])
        .assert_end(0, "max iterations reached (1)");
    let (log, state) = (run_dir(&lab).join("run.log"), run_dir(&lab).join("run.json"));
    let newer = text_of(&state).replacen("\"version\": 1", "\"version\": 99", 1);
    assert_ne!(newer, text_of(&state));
    std::fs::write(&state, &newer).unwrap();
    let before = (lab.repo.fingerprint(), text_of(&log));
    let refused = lab.env.run(["resume", "--max-iterations", "2"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("newer"), "{}", refused.stderr);
    assert_eq!((text_of(&state), text_of(&log)), (newer, before.1));
    before.0.assert_same(&lab.repo.fingerprint());
}

#[test]
fn case_167_a_run_whose_log_finds_no_room_stops_and_goes_on_when_there_is() {
    let lab = Lab::serving(ModelServer::answering(|request| {
        let told = request.last_text("user").unwrap_or_default();
        let (_, rest) = told.split_once("This is iteration ").unwrap();
        good(rest.split('.').next().unwrap())
    }));
    let before = lab.repo.fingerprint();
    // A limit on the size of a file is met as a full disk is: by a write that fails half-way.
    let run = lab.env.command(lab.arguments(&["--max-iterations", "40"]));
    let mut limited = Command::new("/bin/sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 40; exec \"$0\" \"$@\""])
        .arg(run.get_program())
        .args(run.get_args())
        .current_dir(&lab.top)
        .env_clear();
    for (name, value) in run.get_envs() {
        if let Some(value) = value {
            limited.env(name, value);
        }
    }
    let finished = Running::start(limited).wait(PATIENCE);
    finished.assert_code(5);
    assert!(
        finished
            .stdout
            .contains("Reason:     environment: the log could not be written: File too large"),
        "{}",
        finished.stdout
    );
    before.assert_same(&lab.repo.fingerprint());
    crate::checks::no_process_is_left(&lab.env);
    let branch = lab
        .repo
        .git(&["for-each-ref", "--format=%(refname)", "refs/heads/robot-to/"]);
    let tip = lab.repo.git(&["rev-parse", &branch]);
    let committed: u32 = lab
        .repo
        .git(&["rev-list", "--count", &format!("main..{branch}")])
        .parse()
        .unwrap();
    assert!(committed > 0, "{}", finished.stderr);

    let ran = resume(&lab, &["--max-iterations", &(committed + 2).to_string()]);
    assert!(ran.subjects().len() as u32 > committed, "{}", ran.shown());
    lab.repo
        .git(&["merge-base", "--is-ancestor", &tip, &ran.file.branch]);
}

#[test]
fn case_186_a_report_says_that_the_branch_is_not_where_the_run_left_it() {
    let lab = Lab::new([good("one"), good("two")]);
    let ran = lab.run(&["--max-iterations", "2"]);
    let reference = format!("refs/heads/{}", ran.file.branch);
    let short = |revision: &str| lab.repo.git(&["rev-parse", "--short=10", revision]);
    let (tip, base) = (short(&reference), short("main"));
    let page = || lab.env.run(["report"]).assert_code(0).stdout.clone();
    assert!(!page().contains("the run left it at"), "{}", page());
    lab.repo.git(&["update-ref", &reference, "main"]);
    let told = format!(", from `{base}`; now at `{base}`, the run left it at `{tip}`\n");
    assert!(page().contains(&told), "{}", page());
    lab.repo.git(&["update-ref", "-d", &reference]);
    let told = format!("; gone now, the run left it at `{tip}`\n");
    assert!(page().contains(&told), "{}", page());
}
