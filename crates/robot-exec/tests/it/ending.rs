//! Commands end at their timeout, when cancelled, and when their caller goes.

use std::time::{Duration, Instant};

use robot_exec::Status;
use tokio_util::sync::CancellationToken;

use crate::{Case, DAEMON, LONG, RESPAWNER, eventually, exec, survivors};

const SHORT: Duration = Duration::from_millis(300);

/// For a timeout and a grace of [`SHORT`]: far above what is promised, far below [`LONG`].
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn case_102_a_timeout_ends_what_ignores_sigterm() {
    let case = Case::new();
    let script = format!("trap '' TERM; {DAEMON}; {RESPAWNER} & echo ok; while :; do sleep 1; done");
    let begun = Instant::now();
    let command = case.shell(&script).timeout(SHORT).grace(SHORT);
    let output = case.run_command(&command).await.unwrap();
    assert_eq!(output.status, Status::TimedOut { after: SHORT });
    assert_eq!((output.stdout.text().as_str(), output.leaked), ("ok\n", 0));
    assert!(output.elapsed >= SHORT && begun.elapsed() >= SHORT + SHORT);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_grace_is_used_and_not_waited_out() {
    let case = Case::new();
    let begun = Instant::now();
    let script = "trap 'echo cleaned; exit 0' TERM; touch up; while :; do sleep 0.05; done";
    let command = case.shell(script).timeout(SHORT * 3).grace(LONG);
    let output = case.run_command(&command).await.unwrap();
    assert!(matches!(output.status, Status::TimedOut { .. }));
    // The shell says that its `sleep` was terminated too.
    assert!(
        output.stdout.text().ends_with("cleaned\n"),
        "{}",
        output.stdout.text()
    );
    assert!(begun.elapsed() < LONG / 2);
}

#[tokio::test]
async fn no_timeout_is_too_long_or_too_short() {
    let case = Case::new();
    for timeout in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
        let command = case.shell("exit 3").timeout(timeout).grace(timeout);
        assert_eq!(
            case.run_command(&command).await.unwrap().status,
            Status::Exited(3)
        );
    }
    let output = case
        .run_command(&case.shell("sleep 1000").timeout(Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(
        output.status,
        Status::TimedOut {
            after: Duration::ZERO
        }
    );
}

#[tokio::test]
async fn a_cancelled_command_ends() {
    let case = Case::new();
    let cancel = CancellationToken::new();
    let (command, exec) = (case.shell("echo ok; touch up; sleep 1000"), exec());
    let stop = async {
        case.made("up").await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(exec.run(&command, &cancel), stop);
    let output = output.unwrap();
    assert_eq!(
        (output.status, output.stdout.text().as_str()),
        (Status::Cancelled, "ok\n")
    );
    assert_eq!(survivors(&case.mark), [0; 0]);
}

#[tokio::test]
async fn cancelled_before_the_start_it_does_not_run() {
    let case = Case::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let output = exec().run(&case.shell("touch ran"), &cancel).await.unwrap();
    assert_eq!(output.status, Status::Cancelled);
    assert!(!case.path().join("ran").exists());
}

#[tokio::test]
async fn a_dropped_future_ends_the_command() {
    let case = Case::new();
    let (command, cancel) = (
        case.shell(&format!("{DAEMON}; touch up; sleep 1000")),
        CancellationToken::new(),
    );
    let exec = exec();
    tokio::select! {
        _ = exec.run(&command, &cancel) => panic!("it ended by itself"),
        () = case.made("up") => {}
    }
    eventually("all are gone", || survivors(&case.mark).is_empty()).await;
}

#[tokio::test]
async fn a_helper_that_hangs_is_given_up() {
    let case = Case::new();
    let begun = Instant::now();
    let command = case
        .shell("echo ok; kill -STOP $PPID; sleep 1000")
        .timeout(SHORT)
        .grace(SHORT);
    let output = case.run_command(&command).await.unwrap();
    assert_eq!(
        (output.status, output.stdout.text().as_str()),
        (Status::HelperLost, "ok\n")
    );
    assert!(begun.elapsed() < SOON * 2);
}

#[tokio::test]
async fn two_at_once_do_not_touch_each_other() {
    let (long, short) = (Case::new(), Case::new());
    let quiet = async {
        long.run("sleep 1000 & s=$!; touch up; sleep 2; kill -0 $s && echo alive")
            .await
    };
    let noisy = async {
        long.made("up").await;
        short
            .run(&format!("{DAEMON}; {RESPAWNER} & sleep 1000 & echo ok"))
            .await
    };
    let (quiet, noisy) = tokio::join!(quiet, noisy);
    assert_eq!(
        (quiet.status, quiet.stdout.text().as_str()),
        (Status::Exited(0), "alive\n")
    );
    assert_eq!(
        (noisy.status, noisy.stdout.text().as_str()),
        (Status::Exited(0), "ok\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_on_many_threads() {
    let runs: Vec<_> = (0..8)
        .map(|code| {
            tokio::spawn(async move { Case::new().run(&format!("sleep 1000 & exit {code}")).await.status })
        })
        .collect();
    for (code, run) in (0..8).zip(runs) {
        assert_eq!(run.await.unwrap(), Status::Exited(code));
    }
}
