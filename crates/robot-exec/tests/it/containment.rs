//! What a command starts does not outlive it, and what it sees is only what it was given.

use std::time::Instant;

use robot_exec::{Env, Status};

use crate::{Case, DAEMON, LONG, RESPAWNER};

#[tokio::test]
async fn case_106_standard_input_is_empty() {
    let case = Case::new();
    assert_eq!(case.run("cat; cat; echo done").await.stdout.text(), "done\n");
    assert_eq!(case.run("read x").await.status, Status::Exited(1));
}

#[tokio::test]
async fn case_115_there_is_no_terminal() {
    let case = Case::new();
    let script = "test -t 0 || echo 0; test -t 1 || echo 1; test -t 2 || echo 2; (: </dev/tty) || echo tty";
    let text = case.run(script).await.stdout.text();
    assert!(text.starts_with("0\n1\n2\n") && text.ends_with("tty\n"), "{text}");
    // The session is the command's own, so no terminal of the caller can be reached.
    let output = case
        .run("read pid name state parent group session tty rest < /proc/$$/stat; echo $$ $session $tty")
        .await;
    let text = output.stdout.text();
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert!(
        matches!(fields[..], [pid, session, "0"] if pid == session),
        "{text}"
    );
}

#[tokio::test]
async fn case_104_a_background_child_neither_blocks_nor_survives() {
    let case = Case::new();
    let begun = Instant::now();
    let output = case.run("sleep 1000 & echo ok").await;
    assert_eq!(
        (output.status, output.stdout.text().as_str()),
        (Status::Exited(0), "ok\n")
    );
    assert_eq!(output.leaked, 1);
    assert!(begun.elapsed() < LONG / 4);
}

#[tokio::test]
async fn a_child_about_to_end_is_no_leak() {
    let case = Case::new();
    let output = case.run("(sleep 0.01; echo late) & echo early").await;
    assert!(output.stdout.text().starts_with("early\n"));
    assert_eq!(output.status, Status::Exited(0));
}

#[tokio::test]
async fn daemons_do_not_survive() {
    let case = Case::new();
    let output = case
        .run(&format!("for i in 1 2 3; do {DAEMON}; done; sleep 0.3"))
        .await;
    assert_eq!((output.status, output.leaked), (Status::Exited(0), 3));
}

#[tokio::test]
async fn respawners_do_not_survive() {
    let case = Case::new();
    for count in [1, 10] {
        let begun = Instant::now();
        let output = case
            .run(&format!(
                "for i in $(seq {count}); do {RESPAWNER} & done; sleep 0.3"
            ))
            .await;
        assert_eq!(output.status, Status::Exited(0));
        assert!(output.leaked >= 1);
        assert!(begun.elapsed() < LONG / 4);
    }
}

#[tokio::test]
async fn a_stopped_child_does_not_survive() {
    let case = Case::new();
    let output = case.run("sleep 1000 & kill -STOP $!; echo ok").await;
    assert_eq!((output.status, output.leaked), (Status::Exited(0), 1));
}

#[tokio::test]
async fn signals_to_its_own_group_do_not_reach_the_helper() {
    let case = Case::new();
    assert_eq!(case.run("kill -9 0").await.status, Status::Signaled(9));
    assert_eq!(
        case.run("trap '' TERM; kill 0; exit 3").await.status,
        Status::Exited(3)
    );
}

#[tokio::test]
async fn a_command_that_kills_its_helper_does_not_survive() {
    let case = Case::new();
    let begun = Instant::now();
    let output = case
        .run(&format!(
            "{DAEMON}; {RESPAWNER} & sleep 0.2; echo ok; kill -9 $PPID; sleep 1000"
        ))
        .await;
    assert_eq!(
        (output.status, output.stdout.text().as_str()),
        (Status::HelperLost, "ok\n")
    );
    assert!(begun.elapsed() < LONG / 4);
}

#[tokio::test]
async fn only_the_given_environment_is_seen() {
    let case = Case::new();
    let host = [
        ("PATH", "/usr/bin:/bin"),
        ("ANTHROPIC_API_KEY", "sk-secret"),
        ("GIT_DIR", "/elsewhere"),
    ];
    let host = host.map(|(name, value)| (name.into(), value.into()));
    let env = Env::allow_listed(host, &[]).set("MINE", "1");
    let names: Vec<_> = env
        .iter()
        .map(|(name, _)| name.to_str().unwrap().to_owned())
        .collect();
    let output = case
        .run_command(&case.shell("env -u PWD -u SHLVL -u _").env(env))
        .await
        .unwrap();
    let text = output.stdout.text();
    let mut seen: Vec<_> = text.lines().map(|line| line.split_once('=').unwrap().0).collect();
    seen.retain(|name| !matches!(*name, "ROBOT_EXEC_CALL" | "OLDPWD"));
    seen.sort_unstable();
    assert_eq!(seen, names);
    assert!(seen.contains(&"PATH") && seen.contains(&"MINE") && !text.contains("sk-secret"));
}

#[tokio::test]
async fn the_helper_holds_nothing_of_the_hosts_environment() {
    let case = Case::new();
    let output = case.run("cat /proc/$PPID/environ | wc -c").await;
    assert!(
        output.stdout.text().trim().ends_with('0'),
        "{}",
        output.stdout.text()
    );
}
