//! What a command reads on standard input.

use robot_exec::ExecError;

use crate::Case;

#[tokio::test]
async fn every_byte_arrives_and_then_the_end() {
    let case = Case::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let command = case.shell("cat > got; cat | wc -c").stdin(bytes.clone());
    let output = case.run_command(&command).await.unwrap();
    assert_eq!(output.stdout.text().trim(), "0");
    assert_eq!(std::fs::read(case.path().join("got")).unwrap(), bytes);
}

#[tokio::test]
async fn input_that_nobody_reads_holds_nothing_up() {
    let case = Case::new();
    let command = case.shell("exit 3").stdin("x".repeat(1 << 20));
    let output = case.run_command(&command).await.unwrap();
    assert_eq!(output.status, robot_exec::Status::Exited(3));
}

#[tokio::test]
async fn without_input_there_is_an_end_at_once() {
    let case = Case::new();
    assert_eq!(case.run("wc -c").await.stdout.text().trim(), "0");
}

#[tokio::test]
async fn more_than_a_mebibyte_is_a_typed_error() {
    let case = Case::new();
    let command = case.shell("touch ran").stdin("x".repeat((1 << 20) + 1));
    let result = case.run_command(&command).await;
    assert!(matches!(result, Err(ExecError::Stdin { bytes }) if bytes == (1 << 20) + 1));
    assert!(!case.path().join("ran").exists());
}
