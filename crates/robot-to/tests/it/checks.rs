//! What must hold after every run, whatever happened in it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use robot_lab_to::event::Event;
use robot_lab_to::iteration::RunState;
use testkit::{Fingerprint, Finished, TestEnvironment, files_containing, wait_until_gone};

use crate::lab::{KEY, Lab, Ran};

/// Checks all of it.
pub(crate) fn after_a_run(ran: &Ran<'_>, before: &Fingerprint) {
    before.assert_same(&ran.lab.repo.fingerprint());
    no_process_is_left(&ran.lab.env);
    the_key_is_nowhere(ran.lab, &ran.finished);
    the_log_is_the_truth(ran);
    every_commit_passes(ran);
    the_checkouts_are_gone(ran);
    ran.lab.server.assert_valid();
    assert_eq!(
        ran.lab.server.unexpected(),
        0,
        "more was asked of the model than the test foresaw\n{}",
        ran.shown()
    );
}

/// No process of the run lives on. The helpers of a program that was killed have a moment to notice.
pub(crate) fn no_process_is_left(env: &TestEnvironment) {
    let left = wait_until_gone(env.marker(), Duration::from_secs(15));
    assert!(left.is_empty(), "processes outlived the run: {left:?}");
}

/// The key is in no output, no file, no object of git, and no request but for its header.
pub(crate) fn the_key_is_nowhere(lab: &Lab, finished: &Finished) {
    assert!(
        !finished.stdout.contains(KEY) && !finished.stderr.contains(KEY),
        "the key was printed"
    );
    let around = lab
        .repo
        .path()
        .parent()
        .expect("a directory around the repository");
    for directory in [lab.env.root(), around] {
        let found = files_containing(directory, KEY.as_bytes());
        assert!(found.is_empty(), "the key was written to {found:?}");
    }
    let runs = lab.env.state().join("robot-to/runs");
    let repositories = std::fs::read_dir(runs)
        .into_iter()
        .flatten()
        .flatten()
        .map(|run| run.path().join("run.git"));
    for repository in repositories
        .chain([lab.repo.path().to_owned()])
        .filter(|path| path.is_dir())
    {
        let objects = lab
            .repo
            .try_git(&repository, &["cat-file", "--batch", "--batch-all-objects"])
            .stdout;
        let found = objects.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "the key is in an object of {}", repository.display());
    }
    for request in lab.server.requests() {
        assert!(
            !request.body.to_string().contains(KEY),
            "the key was told to the model"
        );
        let others = request
            .headers
            .iter()
            .filter(|(name, _)| name != request.key_header());
        assert!(
            others.into_iter().all(|(_, value)| !value.contains(KEY)),
            "the key is in a second header"
        );
    }
}

/// The log is whole and in order, and its fold is the state that was saved.
fn the_log_is_the_truth(ran: &Ran<'_>) {
    let seqs: Vec<u64> = ran.records.iter().map(|record| record.seq).collect();
    let expected: Vec<u64> = (1..).take(ran.records.len()).collect();
    assert_eq!(seqs, expected, "the numbers of the log have gaps");
    assert!(
        ran.records.windows(2).all(|pair| pair[0].ts <= pair[1].ts),
        "the log is not in the order of time"
    );
    let mut fold = RunState::fold(&ran.records);
    // What grows with the run is in the log alone.
    fold.seen = Arc::default();
    assert_eq!(fold, ran.file.state, "run.json is not the fold of the log");
    let mut last = ran
        .records
        .iter()
        .rev()
        .filter(|record| !matches!(record.event, Event::Notice { .. }));
    let reason = ran.file.reason.as_ref().expect("a run that ended has a reason");
    let Some(Event::Ended {
        abort_reason,
        commits,
        ..
    }) = last.next().map(|record| &record.event)
    else {
        panic!("the log does not end with the end of the run: {:?}", ran.events());
    };
    assert_eq!((abort_reason, *commits), (&reason.text, ran.file.state.commits));
    let begun = ran.count("iteration:start");
    assert_eq!(
        ran.outcomes().len(),
        begun,
        "each iteration has one outcome: {:?}",
        ran.events()
    );
}

/// Every commit of the run branch passes the test suite in a clone that nobody worked in.
fn every_commit_passes(ran: &Ran<'_>) {
    let range = format!("{}..{}", ran.file.base, ran.file.branch);
    let commits = ran.lab.repo.git(&["rev-list", "--reverse", &range]);
    assert_eq!(
        commits.lines().count(),
        ran.file.state.commits as usize,
        "{}",
        ran.shown()
    );
    let Some(verify) = ran.lab.verify.as_ref().filter(|_| !commits.is_empty()) else {
        return;
    };
    let clone = tempfile::tempdir().expect("a directory for the clone");
    let place = clone.path().join("clone");
    let words = ["clone", "--quiet", "--no-checkout", "--branch", &ran.file.branch].map(Path::new);
    ran.lab.repo.git_in(
        clone.path(),
        &[&words[..], &[ran.lab.repo.path(), &place]].concat(),
    );
    for commit in commits.lines() {
        ran.lab
            .repo
            .git_in(&place, &["checkout", "--quiet", "--detach", commit]);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", verify])
            .current_dir(place.join(&ran.lab.subdir))
            .stdin(Stdio::null());
        let output = command.output().expect("a shell");
        assert!(
            output.status.success(),
            "commit {commit} fails: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

/// Workspaces and benches are removed at the end.
fn the_checkouts_are_gone(ran: &Ran<'_>) {
    let place = ran.run_git().with_file_name("checkouts");
    let left: Vec<_> = std::fs::read_dir(place)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "these are left: {left:?}");
}
