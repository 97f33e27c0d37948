//! How a command ended is reported exactly.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use robot_exec::{Command, ExecError, Limits, Status};

use crate::{Case, LONG};

#[tokio::test]
async fn exit_codes() {
    let case = Case::new();
    for code in [0, 1, 2, 126, 127, 255] {
        let output = case.run(&format!("exit {code}")).await;
        assert_eq!(output.status, Status::Exited(code));
        assert_eq!(output.status.success(), code == 0);
        assert_eq!(output.leaked, 0);
    }
}

#[tokio::test]
async fn a_signal() {
    let case = Case::new();
    for signal in [9, 15, 11] {
        assert_eq!(
            case.run(&format!("kill -{signal} $$")).await.status,
            Status::Signaled(signal)
        );
    }
}

#[tokio::test]
async fn a_missing_program_is_127() {
    let case = Case::new();
    for program in ["no-such-program-anywhere", "/no/such/program", ""] {
        let command = Command::new(program, case.path()).env(case.env().set("PATH", "/usr/bin:/bin"));
        let output = case.run_command(&command).await.unwrap();
        assert_eq!(output.status, Status::Exited(127));
        let text = output.stdout.text();
        assert!(
            text.starts_with(&format!("robot-exec: cannot run `{program}`: ")),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_is_126() {
    let case = Case::new();
    std::fs::write(case.path().join("data"), "no program").unwrap();
    for program in ["./data", "/"] {
        let command = Command::new(program, case.path()).env(case.env());
        assert_eq!(
            case.run_command(&command).await.unwrap().status,
            Status::Exited(126)
        );
    }
}

#[tokio::test]
async fn a_missing_working_directory_is_a_typed_error() {
    let case = Case::new();
    let missing = case.path().join("missing");
    match case.run_command(&Command::shell("true", &missing)).await {
        Err(ExecError::Cwd { path, source }) => {
            assert_eq!(path, missing);
            assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_passed_are_a_typed_error() {
    let case = Case::new();
    for arg in ["a\0b".to_owned(), "x".repeat(300 << 10), "x".repeat(40 << 20)] {
        let command = Command::new("true", case.path()).args([arg]).env(case.env());
        let result = case.run_command(&command).await;
        assert!(
            matches!(result, Err(ExecError::Start { .. })),
            "{:?}",
            result.map(|output| output.status)
        );
    }
}

#[tokio::test]
async fn a_program_that_is_no_helper_is_a_typed_error() {
    let case = Case::new();
    let cancel = tokio_util::sync::CancellationToken::new();
    let run = async |helper: &str| {
        let exec = robot_exec::Exec::new(helper);
        exec.run(&case.shell("true"), &cancel).await.unwrap_err()
    };
    assert!(matches!(run("/bin/true").await, ExecError::NotAHelper { .. }));
    assert!(matches!(run("/bin/cat").await, ExecError::NotAHelper { .. }));
    assert!(matches!(run("/no/such/helper").await, ExecError::Helper { .. }));
}

#[tokio::test]
async fn bytes_that_are_not_utf8_arrive() {
    let case = Case::new();
    let odd = OsString::from_vec(b"a\xff\xfe\nb \x80".to_vec());
    let dir = case.path().join(&odd);
    std::fs::create_dir(&dir).unwrap();
    let command = Command::new("/bin/sh", &dir)
        .args([
            OsString::from("-c"),
            "printf '%s|%s|' \"$1\" \"$ODD\"; pwd".into(),
            "sh".into(),
            odd.clone(),
        ])
        .env(case.env().set("ODD", odd.clone()));
    let output = case.run_command(&command).await.unwrap();
    let mut expected = [odd.as_bytes(), b"|", odd.as_bytes(), b"|"].concat();
    expected.extend_from_slice(dir.canonicalize().unwrap().as_os_str().as_bytes());
    expected.push(b'\n');
    assert_eq!(output.stdout.complete().unwrap(), expected);
}

#[tokio::test]
async fn limits_hold() {
    let case = Case::new();
    let limits = Limits {
        file_size: Some(4096),
        open_files: Some(32),
        ..Limits::default()
    };
    let script = "ulimit -c; ulimit -n; head -c 100000 /dev/zero > big; wc -c < big";
    let output = case
        .run_command(&case.shell(script).limits(limits).timeout(LONG))
        .await
        .unwrap();
    let text = output.stdout.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (lines.first(), lines.get(1), lines.last()),
        (Some(&"0"), Some(&"32"), Some(&"4096")),
        "{text}"
    );
}
