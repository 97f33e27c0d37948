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

#[test]
fn whatever_lies_in_the_place_of_copied_files_is_replaced_and_the_run_goes_on() {
    let mut lab = lab([]);
    lab.repo.write(".gitignore", ".env\nnode_modules\nsecrets\n");
    lab.repo.write("src/main", "x\n");
    lab.repo.commit_all("ignore links too");
    lab.repo.write("secrets/prod.json", "TOKEN=x\n");
    let outside = lab.env.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(outside.join("tool")).unwrap();
    let there = "test ! -L node_modules && test -f node_modules/tool/run.sh && test -f secrets/prod.json && test ! -e \
                 src/prod.json";
    let link = format!(
        "rm -rf node_modules secrets; ln -s {} node_modules; ln -s src secrets",
        outside.display()
    );
    let file = "rm -rf node_modules secrets; echo x > node_modules; ln -s secrets secrets";
    let robot = |name: &str, then: &str| {
        Reply::calls([
            bash(&format!("({there}) && echo ok > parts/{name}; {then}")),
            submit(&format!("Add part {name}")),
        ])
    };
    lab.server = testkit::ModelServer::start([robot("one", &link), robot("two", file), robot("three", ":")])
        .require_key(crate::lab::KEY);
    // Verify does the same to the bench.
    let verify = format!("({there}) && sh test.sh && {{ {link}; }}");
    let ran = lab.run(&[
        "--verify",
        &verify,
        "--copy",
        "node_modules",
        "--copy",
        "secrets/*",
        "--max-iterations",
        "3",
    ]);
    ran.assert_end(0, "max iterations reached (3)");
    assert_eq!(ran.outcomes(), ["commit:success"; 3]);
    let files = lab.repo.git(&["ls-tree", "-r", "--name-only", &ran.file.branch]);
    assert!(!files.contains("prod.json"), "{files}");
    assert_eq!(std::fs::read_dir(outside.join("tool")).unwrap().count(), 0);
}

#[test]
fn a_run_goes_on_without_copied_files_that_the_user_has_deleted() {
    let mut lab = lab([
        good("one"),
        Reply::calls([
            bash("if [ ! -e .env ]; then echo ok > parts/two; fi"),
            submit("Add part two"),
        ]),
    ]);
    lab.verify = Some("sh test.sh".into());
    lab.run(&["--copy", ".env", "--max-iterations", "1"])
        .assert_end(0, "max iterations reached (1)");
    std::fs::remove_file(lab.repo.path().join(".env")).unwrap();
    let again = lab.env.command(["resume", "--max-iterations", "2"]);
    let ran = lab.launch(again).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.subjects().len(), 2);
    assert!(
        ran.shown().contains("--copy \".env\" matches no ignored file"),
        "{}",
        ran.shown()
    );
}

#[test]
fn copied_files_are_not_written_through_a_link_that_stays_inside() {
    let robot = |name: &str| {
        Reply::calls([
            bash(&format!(
                "test -f secrets/prod.json && test ! -L secrets && echo ok > parts/{name}; rm -rf secrets; ln -s src secrets"
            )),
            submit(&format!("Add part {name}")),
        ])
    };
    let mut lab = lab([robot("one"), robot("two")]);
    lab.repo.write(".gitignore", "secrets\n");
    lab.repo.write("src/main", "x\n");
    lab.repo.commit_all("ignore links too");
    lab.repo.write("secrets/prod.json", "TOKEN=x\n");
    lab.verify = Some("sh test.sh".into());
    let ran = lab.run(&["--copy", "secrets/*", "--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["commit:success"; 2]);
    let files = lab.repo.git(&["ls-tree", "-r", "--name-only", &ran.file.branch]);
    assert!(!files.contains("prod.json"), "{files}");
}
