//! Signals in the middle of whatever goes on: a clean end, with everything kept and nothing committed.

use std::thread::sleep;
use std::time::{Duration, Instant};

use testkit::{Reply, Signal, survivors};

use crate::lab::{Lab, PATIENCE, Ran, Started};
use crate::replies::{bash, good, submit, write};

/// What a clean end may take on a machine that is busy with other things; what it interrupts takes far longer.
const SOON: Duration = Duration::from_secs(20);

/// Waits until a process of the run has this in its command line.
fn wait_for_process(lab: &Lab, part: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !survivors(lab.env.marker())
        .iter()
        .any(|(_, line)| line.starts_with(part))
    {
        assert!(
            Instant::now() < deadline,
            "no process {part:?}: {:?}",
            survivors(lab.env.marker())
        );
        sleep(Duration::from_millis(20));
    }
}

fn is_a_clean_end<'a>(started: Started<'a>) -> Ran<'a> {
    let ran = started.end(SOON);
    ran.assert_end(130, "interrupted");
    assert!(
        ran.finished.stdout.contains("robot-to stopped"),
        "the summary is printed: {}",
        ran.shown()
    );
    assert_eq!(ran.subjects(), Vec::<String>::new(), "nothing is committed");
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    assert_eq!(ran.file.state.failures_in_a_row, 0, "it is nobody's failure");
    assert_eq!(ran.attempts(), ["refs/attempts/1-0"], "{}", ran.shown());
    ran
}

/// The model has written a file, and then says nothing any more.
fn while_the_model_hangs(signal: Signal) {
    let lab = Lab::new([Reply::calls([write("parts/one", "ok\n")]), Reply::hang()]);
    let started = lab.start(&[]);
    lab.server.wait_for_requests(2, PATIENCE);
    started.process.signal(signal);
    let ran = is_a_clean_end(started);
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "ok");
}

#[test]
fn sigint_while_the_model_hangs_is_a_clean_end() {
    while_the_model_hangs(Signal::INT);
}

#[test]
fn case_109_sigterm_while_the_model_hangs_is_a_clean_end() {
    while_the_model_hangs(Signal::TERM);
}

#[test]
fn case_109_sighup_while_the_model_hangs_is_a_clean_end() {
    while_the_model_hangs(Signal::HUP);
}

#[test]
fn ctrl_c_at_a_terminal_while_a_command_runs_is_a_clean_end() {
    let lab = Lab::new([Reply::calls([
        write("parts/one", "ok\n"),
        bash("sleep 1000; true"),
    ])]);
    let started = lab.start(&[]);
    wait_for_process(&lab, "sleep 1000");
    // A terminal signals the whole group.
    started.process.signal_group(Signal::INT);
    let ran = is_a_clean_end(started);
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "ok");
}

#[test]
fn sigint_while_verify_runs_is_a_clean_end() {
    let lab = Lab::new([Reply::calls([
        write("slow", ""),
        write("parts/one", "ok\n"),
        submit("Take it slow"),
    ])]);
    let started = lab.start(&[]);
    wait_for_process(&lab, "sleep 1000");
    started.process.signal(Signal::INT);
    let ran = is_a_clean_end(started);
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "ok");
    assert_eq!(ran.count("eval:start"), 1);
}

#[test]
fn sigint_keeps_what_was_committed_before() {
    let lab = Lab::new([good("one"), Reply::hang()]);
    let started = lab.start(&[]);
    lab.server.wait_for_requests(2, PATIENCE);
    started.process.signal(Signal::INT);
    let ran = started.end(SOON);
    ran.assert_end(130, "interrupted");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.outcomes(), ["commit:success", "iteration:interrupted"]);
    assert_eq!(
        ran.attempts(),
        Vec::<String>::new(),
        "nothing was made in the second iteration"
    );
}

#[test]
fn case_14_a_second_signal_ends_a_run_at_once_with_everything_it_started() {
    let stubborn = "trap '' TERM INT HUP; echo begun >begun; while :; do sleep 1000; done";
    let lab = Lab::new([Reply::calls([bash(stubborn)])]);
    let before = lab.repo.fingerprint();
    let process = lab.env.spawn(lab.arguments(&[]));
    wait_for_process(&lab, "sleep 1000");
    process.signal(Signal::INT);
    sleep(Duration::from_millis(300));
    process.signal(Signal::INT);
    let finished = process.wait(SOON);
    finished.assert_code(130);
    before.assert_same(&lab.repo.fingerprint());
    crate::checks::no_process_is_left(&lab.env);
    crate::checks::the_key_is_nowhere(&lab, &finished);
    let runs = std::fs::read_dir(lab.env.state().join("robot-to/runs")).unwrap();
    let workspace = runs.flatten().next().unwrap().path().join("checkouts/robot-0");
    assert_eq!(crate::lab::text_of(&workspace.join("begun")), "begun\n");
    let told = format!("what was under way is in {}\n", workspace.display());
    assert!(finished.stdout.contains(&told), "{}", finished.stdout);
    assert_eq!(
        lab.repo.git(&["log", "--format=%s", "--all"]),
        "a suite that passes"
    );

    // The next iteration begins there, so what was made is kept by then.
    lab.server.push(good("one"));
    let resumed = lab.env.command(["resume", "--max-iterations", "1"]);
    let ran = lab.launch(resumed).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.attempts(), ["refs/attempts/1-0"]);
    assert_eq!(ran.in_attempt("1-0", "begun"), "begun");
}

#[test]
fn sigint_before_the_run_has_begun_leaves_nothing_behind() {
    let lab = Lab::new([]);
    lab.repo.write("slow", "");
    lab.repo.commit_all("a suite that takes its time");
    let before = lab.repo.fingerprint();
    let process = lab.env.spawn(lab.arguments(&[]));
    wait_for_process(&lab, "sleep 1000");
    process.signal(Signal::INT);
    let finished = process.wait(SOON);
    finished.assert_code(130);
    assert!(
        finished.stderr.contains("nothing of the run is left"),
        "{}",
        finished.stderr
    );
    before.assert_same(&lab.repo.fingerprint());
    assert_eq!(lab.repo.git(&["for-each-ref", "refs/heads/robot-to*"]), "");
    assert!(!lab.top.join(".robot_lab_to").exists());
    crate::checks::no_process_is_left(&lab.env);
}

#[test]
fn case_15_110_a_killed_run_takes_everything_it_started_with_it() {
    let lab = Lab::new([Reply::calls([bash("(setsid sleep 1002 &); sleep 1000; true")])]);
    let before = lab.repo.fingerprint();
    let process = lab.env.spawn(lab.arguments(&[]));
    wait_for_process(&lab, "sleep 1002");
    process.signal(Signal::KILL);
    let finished = process.wait(SOON);
    assert_eq!(finished.signal, Some(9));
    before.assert_same(&lab.repo.fingerprint());
    crate::checks::no_process_is_left(&lab.env);
    let listed = lab.env.run(["runs"]);
    listed.assert_code(0);
    assert!(listed.stdout.contains("cut off"), "{}", listed.stdout);
}
