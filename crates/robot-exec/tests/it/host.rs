//! What happens to the calling process, and when it is killed: it runs here as a process of its own.

use std::process::{Child, Command, Stdio};

use robot_exec::Status;
use tokio_util::sync::CancellationToken;

use crate::{Case, DAEMON, RESPAWNER, eventually, exec, survivors};

const SCRIPT: &str = "ROBOT_EXEC_TEST_SCRIPT";

/// Starts one of these tests again, alone in a process, where it plays its other part.
fn start(test: &str, script: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(SCRIPT, script)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn nothing_survives_a_killed_caller() {
    let case = Case::new();
    if let Ok(script) = std::env::var(SCRIPT) {
        // The caller, which is killed in here.
        exec()
            .run(&case.shell(&script), &CancellationToken::new())
            .await
            .unwrap();
        return;
    }
    let up = case.path().join("up");
    let mark = &case.mark;
    let script = format!(
        "export ROBOT_EXEC_TEST={mark}; sh -c '{daemon}; {respawner} & touch {up}; sleep 1000'",
        daemon = DAEMON.replace('\'', "'\\''"),
        respawner = RESPAWNER.replace('\'', "'\\''"),
        up = up.display(),
    );
    let mut caller = start("host::nothing_survives_a_killed_caller", &script);
    case.made("up").await;
    assert!(!survivors(mark).is_empty());
    caller.kill().unwrap();
    caller.wait().unwrap();
    eventually("all are gone", || survivors(mark).is_empty()).await;
}

#[tokio::test]
async fn case_114_neither_zombies_nor_files_pile_up() {
    if std::env::var(SCRIPT).is_err() {
        let status = start("host::case_114_neither_zombies_nor_files_pile_up", "")
            .wait()
            .unwrap();
        assert!(status.success());
        return;
    }
    // Alone in the process, so that its files and children can be counted.
    let (case, dropped) = (Case::new(), Case::new());
    let before = {
        case.run("true").await;
        open_files()
    };
    for _ in 0..8 {
        assert_eq!(case.run("(sleep 1000 &) & true").await.status, Status::Exited(0));
        assert_eq!(
            case.run("kill -9 $PPID; sleep 1000").await.status,
            Status::HelperLost
        );
        let (command, cancel, exec) = (dropped.shell("sleep 1000"), CancellationToken::new(), exec());
        tokio::select! {
            _ = exec.run(&command, &cancel) => panic!("it ended by itself"),
            () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
        }
    }
    eventually("all are gone", || survivors(&dropped.mark).is_empty()).await;
    eventually("no child is left", || children() == 0).await;
    assert_eq!(open_files(), before);
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum()
}
