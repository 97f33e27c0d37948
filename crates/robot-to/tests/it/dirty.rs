//! `--include-dirty`: the user's uncommitted changes are the commit that the run starts from, and stay as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use testkit::{ModelServer, TestRepo};

use crate::lab::{Lab, PATIENCE};
use crate::replies::good;

#[test]
fn uncommitted_changes_are_where_the_run_starts() {
    let lab = Lab::new([good("one"), good("two")]);
    lab.repo.write("old.txt", "old\n");
    lab.repo.write("dir/file", "x\n");
    lab.repo.write(".gitignore", "ignored\n");
    let head = lab.repo.commit_all("more");
    lab.repo.write("ignored", "x\n");
    lab.repo.write("parts/staged", "ok\n");
    lab.repo.git(&["add", "parts/staged"]);
    lab.repo.write("parts/staged", "ok\nand not ok\n");
    lab.repo.write("parts/staged", "ok\n");
    lab.repo.write("new dir/untracked é", "new\n");
    fs::remove_file(lab.repo.path().join("old.txt")).unwrap();
    // A file where a directory was.
    fs::remove_dir_all(lab.repo.path().join("dir")).unwrap();
    lab.repo.write("dir", "now a file\n");
    fs::set_permissions(lab.repo.path().join("test.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    lab.repo.git(&["stash", "list"]);
    let ran = lab.run(&["--include-dirty", "--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    let base = ran.file.base.to_string();
    assert_eq!(
        lab.repo.git(&["rev-parse", &format!("{base}^")]).trim(),
        head.trim()
    );
    let shown = lab
        .repo
        .git(&["show", "--format=%s", "--raw", "--abbrev=1", &base]);
    assert!(
        shown.starts_with("robot-to: the uncommitted changes that the run starts from"),
        "{shown}"
    );
    let files = lab
        .repo
        .git(&["ls-tree", "-r", "--name-only", "-z", &ran.file.branch]);
    let files: Vec<&str> = files.trim_end_matches('\0').split('\0').collect();
    assert_eq!(
        files,
        [
            ".gitignore",
            "dir",
            "new dir/untracked é",
            "parts/base",
            "parts/one",
            "parts/staged",
            "test.sh"
        ]
    );
    let mode = lab.repo.git(&["ls-tree", &base, "test.sh"]);
    assert!(mode.starts_with("100755"), "{mode}");
    assert!(
        ran.shown().contains("uncommitted changes are the commit ")
            && !ran.shown().contains("not part of the run"),
        "{}",
        ran.shown()
    );
    // It goes on, whatever the checkout looks like by then.
    lab.repo.write("later", "x\n");
    let again = lab
        .launch(lab.env.command(["resume", "--max-iterations", "2"]))
        .end(PATIENCE);
    again.assert_end(0, "max iterations reached (2)");
    assert_eq!(again.file.base.to_string(), base);
    assert_eq!(again.subjects().len(), 2);
}

#[test]
fn without_changes_there_is_no_commit_of_them() {
    let lab = Lab::new([good("one")]);
    let ran = lab.run(&["--include-dirty", "--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(
        ran.file.base.to_string(),
        lab.repo.git(&["rev-parse", "HEAD"]).trim()
    );
    assert!(!ran.shown().contains("uncommitted"), "{}", ran.shown());
}

#[test]
fn changes_that_can_enter_no_commit_are_named_and_nothing_begins() {
    type Spoil = fn(&Lab);
    let cases: [(&str, Spoil); 6] = [
        ("large.bin has 2097152 bytes", |lab| {
            lab.repo.write("large.bin", vec![b'x'; 2 << 20]);
        }),
        ("nested/ is a git repository", |lab| {
            lab.repo.write("nested/file", "x\n");
            lab.repo.git(&["init", "-q", "nested"]);
        }),
        ("parts/base is a FIFO", |lab| {
            let path = lab.repo.path().join("parts/base");
            fs::remove_file(&path).unwrap();
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("leaves is a symbolic link out of the tree", |lab| {
            std::os::unix::fs::symlink("/etc/passwd", lab.repo.path().join("leaves")).unwrap();
        }),
        ("forced is added although it is ignored", |lab| {
            lab.repo.write(".git/info/exclude", "forced\n");
            lab.repo.write("forced", "x\n");
            lab.repo.git(&["add", "-f", "forced"]);
        }),
        ("parts/base is in the middle of a merge", |lab| {
            for (branch, said) in [("a", "one\n"), ("b", "two\n")] {
                lab.repo.git(&["checkout", "-q", "-b", branch, "HEAD"]);
                lab.repo.write("parts/base", said);
                lab.repo.commit_all(branch);
                lab.repo.git(&["checkout", "-q", "-"]);
            }
            lab.repo.git(&["checkout", "-q", "a"]);
            let merged = lab.repo.try_git(lab.repo.path(), &["merge", "-q", "b"]);
            assert!(!merged.status.success());
        }),
    ];
    for (part, spoil) in cases {
        let lab = Lab::new([]);
        spoil(&lab);
        if part.contains("FIFO") {
            // The fingerprint would wait for it.
            let command = lab.env.command(lab.arguments(&["--include-dirty"]));
            let finished = testkit::Running::start(command).wait(PATIENCE);
            finished.assert_code(2);
            assert!(finished.stderr.contains(part), "{}", finished.stderr);
            continue;
        }
        let finished = lab.refuse(&["--include-dirty", "--max-file-mb", "1"]);
        for part in [
            part,
            "the uncommitted changes cannot be a commit",
            "nothing was changed",
        ] {
            assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
        }
    }
}

#[test]
fn files_with_a_filter_are_told_of_and_never_committed_without_it() {
    let repo = TestRepo::new();
    repo.write(".gitattributes", "secret.* filter=crypt\n");
    repo.git(&["config", "filter.crypt.clean", "base64"]);
    repo.git(&["config", "filter.crypt.smudge", "base64 -d"]);
    repo.write("secret.txt", "password one\n");
    let lab = Lab::with(repo, ModelServer::start([good("one")]));
    lab.repo.write("secret.txt", "password two\n");
    let refused = lab.refuse(&["--include-dirty"]);
    assert!(
        refused.stderr.contains("without the filter crypt") && refused.stderr.contains("nothing was changed"),
        "{}",
        refused.stderr
    );
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(
        ran.shown()
            .contains("the filter crypt of .gitattributes is not run"),
        "{}",
        ran.shown()
    );
}
