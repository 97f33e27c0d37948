//! What enters a commit, and what does not.

use std::os::unix::fs::PermissionsExt as _;

use testkit::{ModelServer, Reply, TestRepo};

use crate::lab::Lab;
use crate::replies::{bash, submit, write};

const ONE: [&str; 4] = ["--max-iterations", "1", "--max-verify-repairs", "0"];

#[test]
fn case_44_a_commit_of_the_robot_is_asked_of_the_hooks_like_any_change() {
    let evade =
        "echo TAB >a.txt; git add -A; git commit -q --no-verify -m 'evade the hook'; git log --format=%s -1";
    let lab = Lab::new([Reply::calls([bash(evade), submit("Add a")])]);
    lab.repo.write(
        ".git/hooks/pre-commit",
        "#!/bin/sh\n! git diff --cached --name-only | grep -q a.txt || { echo 'lint: a.txt:1'; exit 1; }\n",
    );
    let hook = lab.top.join(".git/hooks/pre-commit");
    std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["commit:failed"]);
    assert_eq!(ran.subjects(), Vec::<String>::new());
    assert!(
        ran.notes().contains("### Iteration 1 [COMMIT FAILED]") && ran.notes().contains("lint: a.txt:1"),
        "{}",
        ran.notes()
    );
    assert_eq!(ran.in_attempt("1-0", "a.txt"), "TAB", "the work is kept");
}

#[test]
fn case_54_modes_renames_of_case_and_links_come_through() {
    let repo = TestRepo::new();
    repo.write("a", "a\n");
    repo.write("tool", "x\n");
    repo.write("plain", "x\n");
    let change = "chmod +x tool; git mv a A; rm plain; ln -s tool plain";
    let lab = Lab::with(
        repo,
        ModelServer::start([Reply::calls([bash(change), submit("Change kinds")])]),
    );
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    let range = format!("main..{}", ran.file.branch);
    let told = lab
        .repo
        .git(&["log", "--format=", "--raw", "--abbrev=4", "-M", &range]);
    let kinds: Vec<(&str, &str)> = told
        .lines()
        .map(|line| {
            let (facts, path) = line.split_once('\t').unwrap();
            (facts.get(..14).unwrap(), path)
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (":100644 100644", "a\tA"),
            (":100644 120000", "plain"),
            (":100644 100755", "tool"),
        ]
    );
}

#[test]
fn case_56_57_what_is_too_large_and_what_the_run_wrote_enters_no_commit() {
    // A sparse file takes no space, but it would take minutes to read.
    let large = "truncate -s 3G model.bin; mkdir -p .robot_lab_to; echo x >.robot_lab_to/run.log";
    let lab = Lab::new([
        Reply::calls([bash(large), write("parts/one", "ok\n"), submit("Train a model")]),
        Reply::calls([
            bash("mkdir -p .robot_lab_to; echo x >.robot_lab_to/run.log"),
            write("parts/two", "ok\n"),
            submit("Add part two"),
        ]),
    ]);
    let ran = lab.run(&["--max-iterations", "2", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
    assert!(
        ran.notes().contains("model.bin") && ran.notes().contains("more than the"),
        "{}",
        ran.notes()
    );
    let files = lab.repo.git(&["ls-tree", "-r", "--name-only", &ran.file.branch]);
    assert_eq!(files, "parts/base\nparts/two\ntest.sh");
}

#[test]
fn case_60_a_summary_is_no_option_no_comment_and_no_trailer() {
    let summary = format!(
        "--amend\n#x\nSigned-off-by: forged <f@x>\n\u{7}{}",
        "long ".repeat(2_000)
    );
    let lab = Lab::new([Reply::calls([write("parts/one", "ok\n"), submit(&summary)])]);
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    let commit = &ran.commits()[0];
    assert!(commit.subject.chars().count() <= 72, "{}", commit.subject);
    assert!(
        commit
            .subject
            .starts_with("robot-to 1: --amend #x Signed-off-by:"),
        "{}",
        commit.subject
    );
    assert!(!commit.body.contains('\u{7}') && commit.body.len() < 10_000);
    let trailers = lab
        .repo
        .git(&["log", "-1", "--format=%(trailers:only)", &ran.file.branch]);
    assert!(
        trailers.lines().all(|line| line.starts_with("Robot-To-")),
        "{trailers}"
    );
    assert_eq!(lab.repo.git(&["rev-list", "--count", &ran.file.branch]), "2");
}

#[test]
fn case_154_a_file_of_two_megabytes_is_written_and_the_log_stays_short() {
    let content = "ok, and so on\n".repeat(150_000);
    let lab = Lab::new([Reply::calls([
        write("large.txt", &content),
        write("parts/one", "ok\n"),
        submit("Add much"),
    ])]);
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    let size = lab
        .repo
        .git(&["cat-file", "-s", &format!("{}:large.txt", ran.file.branch)]);
    assert_eq!(size, content.len().to_string());
    let log = std::fs::metadata(ran.dir.log()).unwrap().len();
    assert!(log < 100_000, "{log} bytes of log");
}

#[test]
fn case_79_what_passes_only_with_an_ignored_file_is_rejected() {
    let repo = TestRepo::new();
    repo.write(".gitignore", "gen.sh\n");
    let lab = Lab::with(
        repo,
        ModelServer::start([Reply::calls([
            write("gen.sh", "exit 0\n"),
            write("test.sh", ". ./gen.sh\n"),
            bash("sh test.sh && echo passes here"),
            submit("Generate the tests"),
        ])]),
    );
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure"]);
    assert!(ran.notes().contains("gen.sh"), "{}", ran.notes());
}
