//! Ignored files: what of the user's checkout matches a pattern, and what of it no snapshot takes.

use std::path::{Path, PathBuf};

use robot_lab_to::workspace::{Ledger, RejectionKind};

use super::{World, reason_of, reasons_of, tree_of, usual_repo};

async fn ignored(ledger: &Ledger, pattern: &str) -> Vec<String> {
    let mut found: Vec<String> = ledger
        .ignored(pattern)
        .await
        .unwrap()
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_pattern_matches_exactly_the_ignored_files_under_it() {
    let repo = usual_repo();
    repo.write("target/kept.txt", "tracked\n");
    repo.git(&["add", "-f", "target/kept.txt"]);
    repo.commit_all("a tracked file in an ignored directory");
    repo.write("target/debug/a.o", "1");
    repo.write("target/b.log", "1");
    repo.write("deep/er/target/c", "1");
    repo.write("a.log", "1");
    repo.write("plain.txt", "untracked");
    std::fs::create_dir_all(repo.path().join("target/own")).unwrap();
    repo.git(&["init", "-q", "target/own"]);
    let before = repo.fingerprint();
    let world = World::of(repo).await;
    for (pattern, expected) in [
        ("target", &["target/b.log", "target/debug/a.o", "target/own/"][..]),
        ("target/debug", &["target/debug/a.o"]),
        ("././/target/debug/", &["target/debug/a.o"]),
        ("a.log", &["a.log"]),
        ("*.log", &["a.log", "target/own/"]),
        ("**/*.log", &["a.log", "target/b.log", "target/own/"]),
        ("../outside", &[]),
        (
            "**/target",
            &[
                "deep/er/target/c",
                "target/b.log",
                "target/debug/a.o",
                "target/own/",
            ],
        ),
        ("a.txt", &[]),
        ("plain.txt", &[]),
        ("target/kept.txt", &[]),
    ] {
        assert_eq!(ignored(&world.ledger, pattern).await, expected, "{pattern}");
    }
    let mut named = world.ledger.ignored_named(&["target"]).await.unwrap();
    named.sort();
    assert_eq!(named, [PathBuf::from("deep/er/target/")]);
    before.assert_same(&world.repo.fingerprint());
}

#[tokio::test]
async fn no_snapshot_takes_what_was_copied() {
    let world = World::usual().await;
    world
        .zones
        .keep_out([Path::new("secret.log"), Path::new("conf/local/x.log")]);
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "mkdir -p conf/local; echo s > secret.log; echo s > conf/local/x.log; echo s > other.log",
    );
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
    for script in [
        "echo '!secret.log' >> .gitignore",
        "rm secret.log; echo 'nothing' > .gitignore; rm -r conf other.log; mkdir secret.log; touch secret.log/x; rm -r \
         secret.log; echo moved > secret.log",
    ] {
        world.sh(&robot, script);
        let (path, kind) = reason_of(&mut robot, &world.base).await;
        assert_eq!((path.as_str(), kind), ("secret.log", RejectionKind::Copied));
        robot.prepare(&world.base, &world.base).await.unwrap();
        world.sh(&robot, "test -e secret.log");
    }
    // To delete it and no longer ignore it would let the next one in.
    world.sh(&robot, "rm -rf secret.log conf; echo '*.o' > .gitignore");
    let paths: Vec<PathBuf> = reasons_of(&mut robot, &world.base)
        .await
        .into_iter()
        .map(|reason| reason.path)
        .collect();
    assert_eq!(paths, ["conf/local/x.log", "secret.log"].map(PathBuf::from));
    robot.prepare(&world.base, &world.base).await.unwrap();
    world.sh(&robot, "echo '*.o' >> .gitignore");
    tree_of(&mut robot, &world.base).await;
    // Something in the place of a directory above would take its place too.
    world.sh(&robot, "rm -rf conf; echo x > conf");
    let (path, kind) = reason_of(&mut robot, &world.base).await;
    assert_eq!((path.as_str(), kind), ("conf", RejectionKind::Copied));
}

#[tokio::test]
async fn what_is_ignored_in_a_checkout_is_listed_and_removed() {
    let world = World::usual().await;
    let mut bench = world.robot().await;
    world.sh(
        &bench,
        "mkdir -p target/deep/empty; touch target/deep/x a.log src/b.log",
    );
    let mut found = bench.ignored().await.unwrap();
    found.sort();
    assert_eq!(found, ["a.log", "src/b.log", "target"].map(PathBuf::from));
    let before = bench.incarnation();
    bench.discard(found).await.unwrap();
    assert!(bench.ignored().await.unwrap().is_empty());
    assert_eq!(bench.incarnation(), before);
    bench.empty().await.unwrap();
    assert_eq!(bench.incarnation(), None);
    bench.prepare(&world.base, &world.base).await.unwrap();
    world.sh(&bench, "test -f src/main.rs && test ! -e target");
}

#[tokio::test]
async fn a_link_in_the_place_of_a_copied_directory_is_a_reason_and_no_fault() {
    let world = World::usual().await;
    world.zones.keep_out([
        Path::new("conf.log/deep/er/x"),
        Path::new("conf.log/y"),
        Path::new("secret.log"),
    ]);
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "ln -s \"$CANARY\" conf.log; echo s > secret.log; echo '*.o' >> .gitignore",
    );
    let (path, kind) = reason_of(&mut robot, &world.base).await;
    assert_eq!((path.as_str(), kind), ("conf.log", RejectionKind::Copied));
    // What is not behind a link is asked for as before.
    world.sh(&robot, "echo '!secret.log' >> .gitignore; rm secret.log");
    let paths: Vec<PathBuf> = reasons_of(&mut robot, &world.base)
        .await
        .into_iter()
        .map(|reason| reason.path)
        .collect();
    assert_eq!(paths, ["conf.log", "secret.log"].map(PathBuf::from));
    world.sh(
        &robot,
        "rm conf.log; mkdir conf.log; printf 'target/\n*.log\n*.o\n' > .gitignore",
    );
    tree_of(&mut robot, &world.base).await;
    world.assert_canary();
}
