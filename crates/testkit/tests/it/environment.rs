//! Programs run in an environment of their own, and can be signalled and found.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use testkit::{Signal, TestEnvironment, files_containing};

const LIMIT: Duration = Duration::from_secs(20);

fn shell() -> TestEnvironment {
    TestEnvironment::new("/bin/sh")
}

#[test]
fn a_run_sees_only_its_own_environment() {
    let mut environment = shell();
    environment.env("EXTRA", "1");
    let finished = environment.run(["-c", "env | sort; pwd; echo oops >&2; exit 3"]);
    finished.assert_code(3);
    assert_eq!(finished.stderr, "oops\n");
    let shown = environment.normalize(&finished.stdout);
    for line in [
        "EXTRA=1",
        "HOME=[HOME]",
        "XDG_STATE_HOME=[STATE]",
        "TMPDIR=[TMP]",
        "TZ=UTC",
        "[WORK]",
    ] {
        assert!(shown.lines().any(|other| other == line), "{shown}");
    }
    assert!(!shown.contains("CARGO"));
    assert!(!shown.contains(environment.marker()));
}

#[test]
fn a_run_over_the_limit_is_killed_with_its_output() {
    let mut environment = shell();
    environment.limit(Duration::from_millis(300));
    let panic = catch_unwind(AssertUnwindSafe(|| {
        environment.run(["-c", "echo early; sleep 600"])
    }))
    .unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(
        text.contains("did not end within 300ms") && text.contains("early"),
        "{text}"
    );
    #[cfg(target_os = "linux")]
    assert_eq!(testkit::wait_until_gone(environment.marker(), LIMIT), []);
}

#[test]
fn a_signal_reaches_the_process() {
    let environment = shell();
    let script = "trap 'echo caught; exit 7' TERM; echo ready >&2; while :; do sleep 0.05; done";
    let running = environment.spawn(["-c", script]);
    running.wait_for_stderr("ready", LIMIT);
    running.signal(Signal::TERM);
    let finished = running.wait(LIMIT);
    finished.assert_code(7);
    assert_eq!(finished.stdout, "caught\n");

    let running = environment.spawn(["-c", "echo ready; sleep 600"]);
    running.wait_for_stdout("ready", LIMIT);
    running.signal_group(Signal::KILL);
    let finished = running.wait(LIMIT);
    assert_eq!((finished.code, finished.signal), (None, Some(9)));
}

#[cfg(target_os = "linux")]
#[test]
fn survivors_are_found() {
    let environment = shell();
    assert_eq!(testkit::survivors(environment.marker()), []);
    let running = environment.spawn(["-c", "echo ready; exec sleep 600"]);
    running.wait_for_stdout("ready", LIMIT);
    let found = testkit::wait_until_gone(environment.marker(), Duration::from_millis(100));
    assert_eq!(found.first().map(|(id, _)| *id), Some(running.id()));
    assert!(
        found.iter().any(|(_, command)| command.contains("sleep 600")),
        "{found:?}"
    );
    drop(running);
    assert_eq!(testkit::wait_until_gone(environment.marker(), LIMIT), []);
}

#[test]
fn bytes_are_found_in_files_and_names() {
    let environment = shell();
    let work = environment.work();
    fs::create_dir_all(work.join("a/key-in-name")).unwrap();
    fs::write(work.join("a/with"), b"\xff\0the key-in-name here").unwrap();
    fs::write(work.join("a/without"), b"key").unwrap();
    let found = files_containing(&work, b"key-in-name");
    assert_eq!(found, [work.join("a/key-in-name"), work.join("a/with")]);
}
