//! The way back: branch, objects, compare-and-swap, and nothing else.

use std::fs;

use robot_lab_to::workspace::{AcceptError, BranchError, Oid, RunRepo};

use super::{World, tree_of, usual_repo};

#[tokio::test]
async fn an_accepted_commit_changes_the_branch_and_nothing_else() {
    let repo = usual_repo();
    repo.write("a.txt", "the user's own edit");
    repo.write("untracked", "the user's");
    repo.write("staged", "the user's");
    repo.git(&["add", "staged"]);
    repo.git(&["config", "core.hooksPath", "hooks"]);
    for hook in [
        "reference-transaction",
        "post-update",
        "pre-commit",
        "post-index-change",
    ] {
        let path = format!("hooks/{hook}");
        repo.write(
            &path,
            format!("#!/bin/sh\ntouch '{}'\n", repo.beside("hook-ran").display()),
        );
        std::process::Command::new("chmod")
            .arg("+x")
            .arg(repo.path().join(&path))
            .status()
            .unwrap();
    }
    let before = repo.fingerprint();
    let world = World::of(repo).await;
    let (branch, commit) = world.accept_something().await;
    before.assert_same(&world.repo.fingerprint());
    assert!(!world.repo.beside("hook-ran").exists());
    assert_eq!(branch.name(), "robot-to/slug-id");
    assert_eq!(world.ledger.tip(&branch).await.unwrap(), Some(commit.clone()));
    assert_eq!(
        world
            .repo
            .git(&["log", "-1", "--format=%an <%ae> %cn %at %P", branch.name()]),
        format!(
            "Test User <test@example.invalid> Test User 1800000000 {}",
            world.base
        )
    );
    world.repo.git(&["fsck", "--strict"]);
    // Once more, as after a crash: nothing happens.
    world
        .ledger
        .accept(&world.zones, &branch, &commit, &world.base)
        .await
        .unwrap();
    // A fresh clone has the tree that was graded.
    let clone = world.repo.beside("clone");
    world.repo.git(&[
        "clone",
        "-q",
        "--no-local",
        "--branch",
        branch.name(),
        ".",
        clone.to_str().unwrap(),
    ]);
    assert_eq!(fs::read_to_string(clone.join("new file")).unwrap(), "new");
    assert_eq!(
        world.repo.git_in(&clone, &["rev-parse", "HEAD^{tree}"]),
        world.tree(&commit).await.as_str()
    );
}

#[tokio::test]
async fn only_objects_of_accepted_commits_come_back() {
    let world = World::usual().await;
    let before = world.repo.objects();
    let mut robot = world.robot().await;
    fs::write(robot.path().join("bad"), "discarded").unwrap();
    let tree = tree_of(&mut robot, &world.base).await;
    let kept = world
        .zones
        .keep_attempt(1, 0, &tree, &world.base, "no improvement")
        .await
        .unwrap();
    assert_eq!(world.zones.attempt(1, 0).await.unwrap(), Some(kept.clone()));
    assert_eq!(world.zones.attempt(1, 1).await.unwrap(), None);
    assert_eq!(world.repo.objects(), before);
    let (_, commit) = world.accept_something().await;
    let mut added = world.repo.objects();
    added.retain(|object| !before.contains(object));
    let blob = world.repo.git(&["rev-parse", &format!("{commit}:new file")]);
    let mut expected = vec![commit.to_string(), world.tree(&commit).await.to_string(), blob];
    expected.sort();
    assert_eq!(added, expected);
    // The attempt can still be read where it is kept.
    let run_git = world.zones.work().run_git();
    let shown = world.repo.git_in(&run_git, &["show", "refs/attempts/1-0:bad"]);
    assert_eq!(shown, "discarded");
}

#[tokio::test]
async fn a_moved_or_deleted_branch_is_left_alone() {
    let world = World::usual().await;
    let (branch, commit) = world.accept_something().await;
    let mut robot = world.robot().await;
    fs::write(robot.path().join("second"), "2").unwrap();
    let tree = tree_of(&mut robot, &commit).await;
    let second = world.commit(&tree, &commit).await;
    for other in [Some(world.base.clone()), None] {
        match &other {
            Some(other) => world.repo.git(&["branch", "-f", branch.name(), other.as_str()]),
            None => world.repo.git(&["branch", "-D", branch.name()]),
        };
        let (before, objects) = (world.repo.fingerprint(), world.repo.objects());
        let error = world
            .ledger
            .accept(&world.zones, &branch, &second, &commit)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, AcceptError::BranchMoved { found, expected, .. } if *found == other && *expected == commit),
            "{error}"
        );
        assert_eq!(world.ledger.tip(&branch).await.unwrap(), other);
        before.assert_same(&world.repo.fingerprint());
        assert_eq!(world.repo.objects(), objects);
    }
}

#[tokio::test]
async fn a_lock_left_on_the_branch_is_an_error_and_not_a_move() {
    let world = World::usual().await;
    let (branch, commit) = world.accept_something().await;
    let lock = world
        .repo
        .path()
        .join(".git/refs/heads")
        .join(format!("{}.lock", branch.name()));
    fs::write(&lock, "").unwrap();
    let next = world.commit(&world.tree(&commit).await, &commit).await;
    let error = world
        .ledger
        .accept(&world.zones, &branch, &next, &commit)
        .await
        .unwrap_err();
    assert!(matches!(error, AcceptError::Git(_)), "{error}");
    fs::remove_file(lock).unwrap();
    world
        .ledger
        .accept(&world.zones, &branch, &next, &commit)
        .await
        .unwrap();
}

#[tokio::test]
async fn branches_are_new_or_refused() {
    let world = World::usual().await;
    let first = world.ledger.create_branch("x-1").await.unwrap();
    assert_eq!(first.name(), "robot-to/x-1");
    assert!(matches!(
        world.ledger.create_branch("x-1").await,
        Err(BranchError::Exists(_))
    ));
    for bad in ["", "a..b", "a b", "x.lock", "a\nb"] {
        assert!(
            matches!(
                world.ledger.create_branch(bad).await,
                Err(BranchError::Invalid(_))
            ),
            "{bad:?}"
        );
    }
    assert_eq!(world.repo.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    let json = serde_json::to_string(&first).unwrap();
    assert_eq!(json, "\"robot-to/x-1\"");
}

#[tokio::test]
async fn a_branch_in_the_way_gives_another_prefix() {
    let world = World::usual().await;
    world.repo.git(&["branch", "robot-to"]);
    let branch = world.ledger.create_branch("x-1").await.unwrap();
    assert_eq!(branch.name(), "robot-to-x-1");
    assert_eq!(world.ledger.tip(&branch).await.unwrap(), Some(world.base.clone()));
}

#[tokio::test]
async fn the_same_commit_always_has_the_same_id() {
    let world = World::usual().await;
    let tree = world.tree(&world.base).await;
    let first = world.commit(&tree, &world.base).await;
    assert_eq!(first, world.commit(&tree, &world.base).await);
    let message = world.repo.git_in(
        &world.zones.work().run_git(),
        &["log", "-1", "--format=%B", first.as_str()],
    );
    assert_eq!(message.trim_end(), "robot-to 1: better\n\nRobot-To-Iteration: 1");
}

#[tokio::test]
async fn a_robot_cannot_read_other_branches() {
    let repo = usual_repo();
    repo.git(&["checkout", "-q", "-b", "secret"]);
    repo.write("secret.txt", "the answer");
    let secret = repo.commit_all("secret");
    let blob = repo.git(&["rev-parse", "HEAD:secret.txt"]);
    repo.git(&["checkout", "-q", "main"]);
    let world = World::of(repo).await;
    let robot = world.robot().await;
    for id in [&secret, &blob] {
        let script = format!("if git cat-file -e {id} 2>/dev/null; then echo readable; fi");
        assert_eq!(world.sh(&robot, &script), "");
    }
    assert_eq!(world.sh(&robot, "git log --all --format=%s"), "base\n");
    assert_eq!(world.sh(&robot, "git status --porcelain && git fsck"), "");
}

#[tokio::test]
async fn robots_see_the_latest_hundred_commits_and_what_was_accepted() {
    let repo = usual_repo();
    for number in 0..120 {
        repo.git(&["commit", "-q", "--allow-empty", "-m", &format!("c{number}")]);
    }
    let world = World::of(repo).await;
    let robot = world.robot().await;
    assert_eq!(world.sh(&robot, "git rev-list --count HEAD").trim(), "100");
    let (_, commit) = world.accept_something().await;
    let mut robot = robot;
    robot.prepare(&commit, &commit).await.unwrap();
    assert_eq!(
        world
            .sh(
                &robot,
                "git rev-list --count HEAD; git status --porcelain; git fsck"
            )
            .trim(),
        "101"
    );
    world.sh(
        &robot,
        "git commit -q --allow-empty -m mine && git stash list && git diff HEAD~1 --stat",
    );
}

#[tokio::test]
async fn a_later_process_takes_the_repositories_over() {
    let world = World::usual().await;
    let (_, commit) = world.accept_something().await;
    // As if the process had ended between the branch and the visible repository.
    let visible = world.zones.work().visible_git();
    world
        .repo
        .git_in(&visible, &["update-ref", "refs/heads/base", world.base.as_str()]);
    let work = world.zones.work().clone();
    let zones = RunRepo::create(&world.git, &world.ledger, &work, &commit)
        .await
        .unwrap();
    assert_eq!(
        world.repo.git_in(&visible, &["rev-parse", "base"]),
        commit.as_str()
    );
    // And as if everything had gone.
    drop(zones);
    work.clone().remove_all().unwrap();
    let work = robot_lab_to::workspace::WorkDir::create(work.path()).unwrap();
    let zones = RunRepo::create(&world.git, &world.ledger, &work, &commit)
        .await
        .unwrap();
    assert!(zones.tree_of(&commit).await.is_ok());
}

#[tokio::test]
async fn a_change_is_told_in_paths_lines_and_text() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "printf 'one\\ntwo\\n' > a.txt; rm src/main.rs; chmod -x run.sh; head -c 100 /dev/zero > bin",
    );
    let tree = tree_of(&mut robot, &world.base).await;
    let changes = world.zones.changed_paths(&world.base, &tree).await.unwrap();
    let paths: Vec<_> = changes
        .iter()
        .map(|change| change.path.to_str().unwrap())
        .collect();
    assert_eq!(paths, ["a.txt", "bin", "run.sh", "src/main.rs"]);
    let stat = world.zones.diff_stat(&world.base, &tree).await.unwrap();
    assert_eq!((stat.files, stat.added, stat.removed), (4, 1, 1));
    let patch = world.zones.patch(&world.base, &tree, 1 << 20).await.unwrap();
    assert!(!patch.truncated && String::from_utf8_lossy(&patch.bytes).contains("+two"));
    let patch = world.zones.patch(&world.base, &tree, 10).await.unwrap();
    assert!(patch.truncated && patch.bytes.len() == 10);
    let nothing: Oid = "1".repeat(40).parse().unwrap();
    assert!(world.zones.patch(&nothing, &tree, 10).await.is_err());
}
