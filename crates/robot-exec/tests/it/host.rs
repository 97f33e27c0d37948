//! What happens to the calling process, and when it is killed: it runs here as a process of its own.

use std::process::{Child, Command, Stdio};

use robot_exec::Status;
use tokio_util::sync::CancellationToken;

use crate::{Case, DAEMON, RESPAWNER, eventually, exec, survivors};

const SCRIPT: &str = "ROBOT_EXEC_TEST_SCRIPT";

/// Starts one of the ignored tests below alone in a process.
fn start(test: &str, script: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored"])
        .env(SCRIPT, script)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn nothing_survives_a_killed_caller() {
    let case = Case::new();
    let up = case.path().join("up");
    let mark = &case.mark;
    let script = format!(
        "export ROBOT_EXEC_TEST={mark}; sh -c '{daemon}; {respawner} & touch {up}; sleep 1000'",
        daemon = DAEMON.replace('\'', "'\\''"),
        respawner = RESPAWNER.replace('\'', "'\\''"),
        up = up.display(),
    );
    let mut caller = start("host::caller", &script);
    case.made("up").await;
    assert!(!survivors(mark).is_empty());
    caller.kill().unwrap();
    caller.wait().unwrap();
    eventually("all are gone", || survivors(mark).is_empty()).await;
}

#[test]
#[ignore = "started by `nothing_survives_a_killed_caller`"]
fn caller() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let script = std::env::var(SCRIPT).unwrap();
    let case = Case::new();
    runtime
        .block_on(exec().run(&case.shell(&script), &CancellationToken::new()))
        .unwrap();
}

#[test]
fn neither_zombies_nor_files_pile_up() {
    let status = start("host::many_commands", "").wait().unwrap();
    assert!(status.success());
}

#[tokio::test]
#[ignore = "started by `neither_zombies_nor_files_pile_up`"]
async fn many_commands() {
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
