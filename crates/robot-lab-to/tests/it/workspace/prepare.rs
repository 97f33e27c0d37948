//! Bringing a directory exactly to a tree, whatever a robot did to it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use robot_lab_to::workspace::{Checkout, Snapshot, SnapshotRules, ZoneError};

use super::{World, tree_of};

/// After any script, a snapshot is harmless, and `prepare` gives the base back, with and without one before it.
async fn survives(script: &str) {
    let world = World::usual().await;
    world.canary();
    let before = world.repo.fingerprint();
    let mut robot = world.robot().await;
    for snapshot in [true, false] {
        world.sh(&robot, script);
        if snapshot {
            robot
                .snapshot(&world.base, &SnapshotRules::default())
                .await
                .unwrap();
        }
        world.assert_canary();
        restored(&world, &mut robot).await;
    }
    before.assert_same(&world.repo.fingerprint());
}

async fn restored(world: &World, robot: &mut Checkout) {
    robot.prepare(&world.base, &world.base).await.unwrap();
    world.assert_canary();
    assert_eq!(world.sh(robot, "git status --porcelain --ignored=no"), "");
    assert_eq!(
        world.sh(robot, "git rev-parse HEAD; git symbolic-ref HEAD"),
        format!("{}\nrefs/heads/work\n", world.base)
    );
    assert_eq!(fs::read_to_string(robot.path().join("a.txt")).unwrap(), "one\n");
    assert_eq!(
        fs::read_link(robot.path().join("link")).unwrap().to_str(),
        Some("a.txt")
    );
    assert_eq!(
        fs::metadata(robot.path().join("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o111,
        0o111
    );
    let mut names: Vec<_> = fs::read_dir(robot.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.retain(|name| name != "target");
    names.sort();
    assert_eq!(names, [".git", ".gitignore", "a.txt", "link", "run.sh", "src"]);
    assert_eq!(tree_of(robot, &world.base).await, world.tree(&world.base).await);
    world.assert_canary();
}

macro_rules! survives {
    ($($name:ident: $script:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            survives($script).await;
        })*
    };
}

survives! {
    commits_and_branches: "echo x >> a.txt; git commit -qam x; git checkout -q -b other; git tag v1; echo y > b; git stash -u";
    index_flags: "git update-index --skip-worktree a.txt; git update-index --assume-unchanged src/main.rs; \
        echo x > a.txt; echo y > src/main.rs; echo '*' > .git/info/exclude; echo z > new";
    a_monitor: "git config core.fsmonitor 'touch \"$CANARY/pwned\"; false'; echo x > a.txt";
    hooks: "mkdir h; for hook in pre-commit post-checkout post-index-change reference-transaction fsmonitor-watchman; \
        do printf '#!/bin/sh\\ntouch '\"$CANARY\"'/pwned\\n' > h/$hook; chmod +x h/$hook; done; \
        cp -r h .git/hooks; git config core.hooksPath h";
    filters: "git config filter.x.clean 'touch \"$CANARY/pwned\"; cat'; git config filter.x.smudge 'touch \"$CANARY/pwned\"; cat'; \
        git config filter.x.process 'touch \"$CANARY/pwned\"'; echo '* filter=x' > .gitattributes; \
        echo '* filter=x diff=x' > .git/info/attributes; git config diff.external 'touch \"$CANARY/pwned\"'; \
        git config diff.x.textconv 'touch \"$CANARY/pwned\"'; echo x > a.txt";
    an_included_configuration: "printf '[core]\\nfsmonitor = touch %s/pwned\\n' \"$CANARY\" > cfg; git config include.path ../cfg; \
        echo x > a.txt";
    a_git_file: "rm -rf .git; echo \"gitdir: $CANARY\" > .git; echo x > a.txt";
    a_git_link: "rm -rf .git; ln -s \"$CANARY\" .git; echo x > a.txt";
    a_git_of_its_own: "rm -rf .git; git init -q; git config core.worktree \"$CANARY\"; git config core.fsmonitor 'touch \"$CANARY/pwned\"'";
    no_git: "rm -rf .git; rm -rf src; echo x > y";
    a_root_that_is_gone: "rm -rf \"$PWD\"";
    a_root_that_is_a_link: "p=$PWD; cd ..; rm -rf \"$p\"; ln -s \"$CANARY\" \"$p\"";
    a_root_that_is_a_file: "p=$PWD; cd ..; rm -rf \"$p\"; echo x > \"$p\"";
    another_root: "p=$PWD; cd ..; mv \"$p\" \"$p.old\"; mkdir \"$p\"; cp \"$CANARY/a.txt\" \"$p\"; rm -rf \"$p.old\"";
    a_directory_that_is_a_link: "rm -rf src; ln -s \"$CANARY\" src; rm a.txt; ln -s \"$CANARY/a.txt\" a.txt";
    an_untracked_link: "ln -s \"$CANARY\" out; mkdir d; ln -s \"$CANARY\" d/out";
    no_rights: "mkdir -p d/e; echo x > d/e/f; chmod -R a-w .; chmod 000 a.txt run.sh src d/e d";
    a_nested_repository: "git init -q vendor/x; cd vendor/x; echo x > f; git add f; git -c user.name=x -c user.email=x commit -qm x";
    an_empty_nested_repository: "git init -q vendor/x";
    a_repository_in_a_tracked_directory: "git init -q src; git -C src config core.fsmonitor 'touch \"$CANARY/pwned\"'";
    files_for_directories: "rm -rf src; echo x > src; rm a.txt; mkdir a.txt; echo y > a.txt/b";
    special_files: "mkfifo pipe src/pipe; mkdir d; mkfifo d/pipe; rm a.txt; mkfifo a.txt";
    odd_names: "printf x > '-rf'; printf x > \"$(printf 'a\\nb')\"; printf x > '\"q\"'; printf x > \"$(printf '\\377')\"; mkdir ' '; touch ' / '";
    ignore_files: "printf 'junk\\n.gitignore\\n' > .gitignore; mkdir junk sub; echo x > junk/f; printf 'f\\n' > sub/.gitignore; echo x > sub/f";
    everything_ignored_by_an_untracked_file: "mkdir d; echo 'hidden' > d/.gitignore; echo x > d/hidden; mkdir d/e; echo '*.x' > d/e/.gitignore; echo x > d/e/f.x";
    git_in_disguise: "mkdir .GIT; echo x > .GIT/config; mkdir 'git~1'; echo x > 'git~1/config'";
    same_size_same_second: "printf 'two\\n' > a.txt; touch -r src/main.rs a.txt";
    modes: "chmod -x run.sh; chmod +x a.txt; chmod 600 src/main.rs";
}

#[tokio::test]
async fn ignored_files_stay_and_untracked_ones_go() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(&robot, "mkdir -p target/debug; echo cache > target/debug/x; echo l > my.log; echo u > untracked; mkdir empty");
    let tree = world.tree(&world.base).await;
    robot.prepare(&tree, &world.base).await.unwrap();
    let there = |name: &str| robot.path().join(name).exists();
    assert!(there("target/debug/x") && there("my.log") && !there("untracked") && !there("empty"));
    // A second owner of the same directory finds the caches too.
    let mut again = Checkout::create(&world.zones, "robot-0").await.unwrap();
    again.prepare(&world.base, &world.base).await.unwrap();
    assert!(again.path().join("target/debug/x").exists());
    again.remove().await.unwrap();
    assert!(!robot.path().exists());
}

#[tokio::test]
async fn case_51_a_broken_or_locked_private_index_is_mended() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    let index = world.zones.work().index("robot-0");
    fs::write(world.zones.work().path().join("index/robot-0.lock"), "").unwrap();
    robot.prepare(&world.base, &world.base).await.unwrap();
    world.sh(&robot, "echo x > a.txt; mkdir target; echo cache > target/x");
    fs::write(&index, "junk").unwrap();
    fs::write(world.zones.work().path().join("index/robot-0.lock"), "").unwrap();
    let tree = tree_of(&mut robot, &world.base).await;
    assert_ne!(tree, world.tree(&world.base).await);
    fs::write(&index, "junk").unwrap();
    restored(&world, &mut robot).await;
    assert!(robot.path().join("target/x").exists());
}

#[tokio::test]
async fn a_bench_shows_the_candidate_against_its_parent() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(&robot, "echo two >> a.txt; echo new > b");
    let tree = tree_of(&mut robot, &world.base).await;
    let mut bench = Checkout::create(&world.zones, "bench").await.unwrap();
    bench.prepare(&tree, &world.base).await.unwrap();
    assert_eq!(
        world.sh(
            &bench,
            "cat b; git status --porcelain; git diff --cached --numstat"
        ),
        "new\nM  a.txt\nA  b\n1\t0\ta.txt\n1\t0\tb\n"
    );
    assert_eq!(world.sh(&bench, "git rev-parse HEAD").trim(), world.base.as_str());
    bench.prepare(&world.base, &world.base).await.unwrap();
    assert!(!bench.path().join("b").exists());
    assert!(matches!(
        Checkout::create(&world.zones, "../x").await,
        Err(ZoneError::Name(_))
    ));
}

#[tokio::test]
async fn attributes_that_change_rewrite_the_files() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(&robot, "echo '*.txt text eol=crlf' > .gitattributes");
    let tree = tree_of(&mut robot, &world.base).await;
    let mut bench = Checkout::create(&world.zones, "bench").await.unwrap();
    bench.prepare(&world.base, &world.base).await.unwrap();
    bench.prepare(&tree, &world.base).await.unwrap();
    assert_eq!(fs::read_to_string(bench.path().join("a.txt")).unwrap(), "one\r\n");
    bench.prepare(&world.base, &world.base).await.unwrap();
    assert_eq!(fs::read_to_string(bench.path().join("a.txt")).unwrap(), "one\n");
}

#[tokio::test]
async fn a_missing_tree_is_an_error_that_keeps_nothing_half() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    let nothing = "1".repeat(40).parse().unwrap();
    assert!(robot.prepare(&nothing, &world.base).await.is_err());
    restored(&world, &mut robot).await;
    let snapshot = robot.snapshot(&nothing, &SnapshotRules::default()).await;
    assert!(!matches!(snapshot, Ok(Snapshot::Tree(_))));
}

#[tokio::test]
async fn attributes_that_no_tree_has_decide_over_no_file() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    fs::write(robot.path().join("src/main.rs"), "fn main() { run() }\n").unwrap();
    fs::create_dir(robot.path().join("new")).unwrap();
    fs::write(robot.path().join("new/file"), "one\ntwo\n").unwrap();
    let tree = tree_of(&mut robot, &world.base).await;
    for ignored in ["", "echo .gitattributes > .git/info/exclude;"] {
        robot.prepare(&world.base, &world.base).await.unwrap();
        world.sh(
            &robot,
            &format!(
                "{ignored} mkdir -p new target/cache; \
                 for dir in src new target/cache; do echo '* text eol=crlf' > $dir/.gitattributes; done"
            ),
        );
        robot.prepare(&tree, &world.base).await.unwrap();
        for (path, text) in [
            ("src/main.rs", "fn main() { run() }\n"),
            ("new/file", "one\ntwo\n"),
        ] {
            assert_eq!(fs::read_to_string(robot.path().join(path)).unwrap(), text);
        }
        assert!(!robot.path().join("src/.gitattributes").exists());
        assert!(
            robot.path().join("target/cache/.gitattributes").exists(),
            "build caches stay"
        );
    }
}
