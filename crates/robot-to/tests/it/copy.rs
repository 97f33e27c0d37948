//! `--copy`: ignored files of the user's checkout get into the private copies, and into no commit.

use testkit::Reply;

use crate::lab::{Lab, PATIENCE};
use crate::replies::{bash, good, submit, write};

/// A lab with ignored files, and a verify command that needs them.
fn lab(replies: impl IntoIterator<Item = Reply>) -> Lab {
    let mut lab = Lab::new(replies);
    lab.repo.write(".gitignore", ".env\nnode_modules/\n");
    lab.repo.commit_all("ignore");
    lab.repo.write(".env", "TOKEN=x\n");
    lab.repo
        .write("node_modules/tool/run.sh", "#!/bin/sh\nsh test.sh\n");
    std::os::unix::fs::symlink("tool/run.sh", lab.repo.path().join("node_modules/tool.sh")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", lab.repo.path().join("node_modules/out")).unwrap();
    lab.verify = None;
    lab
}

const VERIFY: &str = "grep -q TOKEN .env && test ! -e node_modules/out && sh node_modules/tool.sh";
const COPY: [&str; 6] = ["--verify", VERIFY, "--copy", ".env", "--copy", "node_modules"];

#[test]
fn case_37_copied_files_are_where_robots_work_and_where_they_are_graded() {
    let lab = lab([
        Reply::calls([
            bash("sh node_modules/tool.sh && cat .env && git clean -fdxq && ls -A"),
            write("parts/one", "ok\n"),
            submit("Add part one"),
        ]),
        Reply::calls([
            bash("cat .env"),
            write("parts/two", "ok\n"),
            submit("Add part two"),
        ]),
        good("three"),
    ]);
    lab.run(&[&COPY[..], &["--max-iterations", "2"]].concat())
        .assert_end(0, "max iterations reached (2)");
    let again = lab.env.command(["resume", "--max-iterations", "3"]);
    let ran = lab.launch(again).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (3)");
    assert_eq!(ran.subjects().len(), 3);
    let told = ran.requests()[1].body["messages"].to_string();
    assert!(
        !told.contains("TOKEN=x"),
        "nothing reads it out by itself: {told}"
    );
    assert!(
        ran.shown()
            .contains("(29 bytes) are copied, for robots to read; left out: node_modules/out"),
        "{}",
        ran.shown()
    );
    let files = lab.repo.git(&["ls-tree", "-r", "--name-only", &ran.file.branch]);
    assert!(
        !files.contains(".env") && !files.contains("node_modules"),
        "{files}"
    );
}

#[test]
fn a_copied_file_enters_no_commit_whatever_is_done_to_the_rules_for_ignoring() {
    let lab = lab([
        Reply::calls([
            bash("printf '!.env\\n!node_modules/\\n' >> .gitignore"),
            write("parts/one", "ok\n"),
            submit("Stop ignoring"),
        ]),
        Reply::calls([
            bash("rm -r .gitignore .env node_modules; printf 'TOKEN=x\\n' > node_modules"),
            submit("Put something else in its place"),
        ]),
        Reply::calls([bash("rm node_modules"), submit("Leave nothing to ignore")]),
        good("two"),
    ]);
    let ran = lab.run(&[&COPY[..], &["--max-iterations", "2"]].concat());
    let refused: Vec<String> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            robot_lab_to::event::Event::Snapshotted { refused, .. } if !refused.is_empty() => {
                Some(refused.join("; "))
            }
            _ => None,
        })
        .collect();
    assert!(
        refused[0].contains(".env was copied from the user's checkout"),
        "{refused:?}"
    );
    assert!(
        refused[0].contains("node_modules/tool/run.sh was copied"),
        "{refused:?}"
    );
    assert!(refused[1].contains("node_modules was copied"), "{refused:?}");
    assert!(refused[2].contains(".env was copied"), "{refused:?}");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
    let everything = lab
        .repo
        .try_git(&ran.run_git(), &["cat-file", "--batch", "--batch-all-objects"])
        .stdout;
    assert!(
        !everything.windows(7).any(|window| window == b"TOKEN=x"),
        "the content is in an object of the run"
    );
}

#[test]
fn a_pattern_that_matches_no_ignored_file_is_named() {
    let lab = lab([]);
    lab.repo.write("untracked.txt", "x\n");
    for pattern in [
        "nothing",
        "test.sh",
        "untracked.txt",
        "tool",
        ".robot_lab_to",
        "../x",
    ] {
        let finished = lab.refuse(&["--copy", ".env", "--copy", pattern]);
        let parts = [
            &format!("--copy {pattern:?} matches no ignored file"),
            "nothing was changed",
        ];
        for part in parts {
            assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
        }
    }
}
