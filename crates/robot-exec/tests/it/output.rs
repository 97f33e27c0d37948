//! Output is bounded, counted and in order.

use std::time::Duration;

use robot_exec::{Capture, Status, Stderr};

use crate::Case;

const ALTERNATING: &str = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";

#[tokio::test]
async fn merged_streams_keep_their_order() {
    let case = Case::new();
    let output = case.run(ALTERNATING).await;
    assert_eq!(output.stdout.text(), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
    assert_eq!(output.stderr.total(), 0);
}

#[tokio::test]
async fn separate_streams_are_separate() {
    let case = Case::new();
    let capture = Capture::default().stderr(Stderr::Separate);
    let output = case
        .run_command(&case.shell(ALTERNATING).capture(capture))
        .await
        .unwrap();
    assert_eq!(output.stdout.text(), "o1\no2\no3\no4\no5\n");
    assert_eq!(output.stderr.text(), "e1\ne2\ne3\ne4\ne5\n");
}

#[tokio::test]
async fn all_that_was_printed_before_the_end_is_there() {
    let case = Case::new();
    let capture = Capture::new(1000, 1000);
    let command = case
        .shell("head -c 5000000 /dev/zero; printf the-end")
        .capture(capture);
    for _ in 0..5 {
        let output = case.run_command(&command).await.unwrap();
        assert_eq!(output.stdout.total(), 5_000_007);
        assert!(output.stdout.tail().ends_with(b"the-end"));
    }
}

#[tokio::test]
async fn case_107_endless_output_takes_little_memory() {
    let case = Case::new();
    let before = resident();
    let command = case
        .shell("yes")
        .capture(Capture::new(1000, 2000))
        .timeout(Duration::from_secs(2));
    let output = case.run_command(&command).await.unwrap();
    assert!(matches!(output.status, Status::TimedOut { .. }));
    assert_eq!(
        (output.stdout.head().len(), output.stdout.tail().len()),
        (1000, 2000)
    );
    assert!(output.stdout.total() > 1 << 20, "{}", output.stdout.total());
    assert_eq!(output.stdout.left_out(), output.stdout.total() - 3000);
    assert!(output.stdout.text().len() < 4000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "grown by {grown} bytes");
}

/// Bytes of memory this process holds.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn the_full_text_goes_to_a_file_up_to_a_cap() {
    let case = Case::new();
    let path = case.path().join("full.log");
    std::fs::write(&path, "an older and longer text than the new one will ever be").unwrap();
    for (cap, kept) in [(u64::MAX, "0123456789"), (10, "0123456789"), (4, "0123"), (0, "")] {
        let capture = Capture::new(1, 1).full(&path, cap);
        let command = case.shell("printf 01234; printf 56789 >&2").capture(capture);
        let output = case.run_command(&command).await.unwrap();
        let full = output.full.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), kept);
        assert_eq!(
            (full.path.as_path(), full.written),
            (path.as_path(), kept.len() as u64)
        );
        assert_eq!(full.left_out, 10 - full.written);
    }
}

#[tokio::test]
async fn case_167_a_full_disk_does_not_stop_the_command() {
    let case = Case::new();
    let capture = Capture::default().full("/dev/full", 1 << 20);
    let output = case
        .run_command(&case.shell("echo hello").capture(capture))
        .await
        .unwrap();
    assert_eq!(
        (output.status, output.stdout.text().as_str()),
        (Status::Exited(0), "hello\n")
    );
    let full = output.full.unwrap();
    assert_eq!((full.written, full.left_out), (0, 6));
}

#[tokio::test]
async fn a_file_that_cannot_be_made_is_a_typed_error() {
    let case = Case::new();
    let capture = Capture::default().full(case.path().join("no/such/dir"), 1);
    let error = case
        .run_command(&case.shell("touch ran").capture(capture))
        .await
        .unwrap_err();
    assert!(matches!(error, robot_exec::ExecError::FullText { .. }));
    assert!(!case.path().join("ran").exists());
}
