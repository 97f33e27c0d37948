//! From files to a tree: what enters exactly, and what is rejected.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use robot_lab_to::workspace::{Checkout, RejectionKind};

use super::{World, reason_of, reasons_of, tree_of, usual_repo};

#[tokio::test]
async fn an_untouched_workspace_is_its_parent() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
}

#[tokio::test]
async fn case_52_159_160_bytes_names_and_modes_come_through_exactly() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    let names: [&[u8]; 8] = [
        b"-rf",
        b"a\nb",
        b"\"q\"",
        b"na\xc3\xafve \xc3\xa9",
        b"\xff\xfe",
        b" ",
        b"--amend",
        b"d\t/:(glob)**",
    ];
    let contents: [&[u8]; 8] = [
        b"\xef\xbb\xbfbom\n",
        b"a\r\nb\r\n",
        b"mixed\r\nends\n",
        b"no end",
        b"",
        b"\0\xff",
        b"\r",
        b"x\n",
    ];
    for (name, content) in names.iter().zip(contents) {
        let path = robot.path().join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    world.sh(
        &robot,
        "chmod +x -- -rf; ln -s src/main.rs rel; ln -s ../a.txt src/up; mv a.txt moved; rm link",
    );
    let tree = tree_of(&mut robot, &world.base).await;
    let mut bench = Checkout::create(&world.zones, "bench").await.unwrap();
    bench.prepare(&tree, &world.base).await.unwrap();
    for (name, content) in names.iter().zip(contents) {
        assert_eq!(
            fs::read(bench.path().join(OsStr::from_bytes(name))).unwrap(),
            content,
            "{name:?}"
        );
    }
    assert_eq!(
        world.sh(
            &bench,
            "test -x ./-rf; test ! -x ./rel; readlink rel; readlink src/up; ls moved"
        ),
        "src/main.rs\n../a.txt\nmoved\n"
    );
    assert_eq!(tree_of(&mut bench, &world.base).await, tree);
    let changes = world.zones.changed_paths(&world.base, &tree).await.unwrap();
    assert!(names.iter().all(|name| {
        changes
            .iter()
            .any(|change| change.path.as_os_str().as_bytes() == *name)
    }));
}

#[tokio::test]
async fn what_a_robot_does_to_its_own_git_means_nothing() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(&robot, "echo two > a.txt; echo new > b");
    let expected = tree_of(&mut robot, &world.base).await;
    for script in [
        "git add -A; git commit -qm mine",
        "git checkout -q -b other; git commit -q --allow-empty -m x; git reset -q --soft HEAD~1",
        "git update-index --skip-worktree a.txt; git update-index --assume-unchanged a.txt; echo b >> .git/info/exclude",
        "git config core.fileMode false; git config core.excludesFile /dev/stdin; git config core.sparseCheckout true; touch .git/index.lock",
        "rm -rf .git",
    ] {
        world.sh(&robot, script);
        assert_eq!(tree_of(&mut robot, &world.base).await, expected, "{script}");
    }
}

#[tokio::test]
async fn the_candidates_own_ignore_rules_count() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "echo secret >> .gitignore; echo x > secret; mkdir target; echo x > target/x",
    );
    let tree = tree_of(&mut robot, &world.base).await;
    let changes = world.zones.changed_paths(&world.base, &tree).await.unwrap();
    assert_eq!(changes.len(), 1);
}

#[tokio::test]
async fn case_07_nested_repositories_are_rejected_with_their_path() {
    for (script, path) in [
        ("git init -q vendor/x; echo x > vendor/x/f", "vendor/x"),
        (
            "git init -q v; cd v; git -c user.name=x -c user.email=x commit -q --allow-empty -m x",
            "v",
        ),
        ("git init -q src", "src"),
    ] {
        let world = World::usual().await;
        let mut robot = world.robot().await;
        world.sh(&robot, script);
        assert_eq!(
            reason_of(&mut robot, &world.base).await,
            (path.to_owned(), RejectionKind::NestedRepository)
        );
    }
}

#[tokio::test]
async fn an_ignored_nested_repository_is_no_concern() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(&robot, "git init -q target/checkouts/x");
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
}

#[tokio::test]
async fn case_56_large_files_are_rejected_unread() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    // Sparse: three gigabytes that take no space, but minutes to hash.
    fs::File::create(robot.path().join("model.bin"))
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(robot.path().join("a.txt"))
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    fs::create_dir(robot.path().join("target")).unwrap();
    fs::File::create(robot.path().join("target/cache"))
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    let start = Instant::now();
    let reasons = reasons_of(&mut robot, &world.base).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    let paths: Vec<_> = reasons
        .iter()
        .map(|reason| reason.path.to_str().unwrap())
        .collect();
    assert_eq!(paths, ["a.txt", "model.bin"]);
    assert_eq!(
        reasons[0].kind,
        RejectionKind::TooLarge {
            bytes: 3 << 30,
            limit: 1000
        }
    );
    assert!(reasons[0].to_string().contains("more than the 1000 allowed"));
}

#[tokio::test]
async fn case_165_special_files_in_place_of_tracked_ones_are_rejected() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(&robot, "mkfifo untracked; rm a.txt; mkfifo a.txt");
    let _socket = std::os::unix::net::UnixListener::bind(robot.path().join("socket")).unwrap();
    assert_eq!(
        reason_of(&mut robot, &world.base).await,
        ("a.txt".to_owned(), RejectionKind::Special)
    );
    world.sh(&robot, "rm a.txt; echo one > a.txt");
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
}

#[tokio::test]
async fn case_161_links_out_of_the_tree_are_rejected() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "ln -s /etc/passwd abs; ln -s ../x up; ln -s src/../../x sly; ln -s .git/config g; ln -s src fine; \
         ln -sfn /tmp link; rm -r src; ln -s \"$CANARY\" src; ln -s \"$(printf 'a\\nb')\" newline",
    );
    let reasons = reasons_of(&mut robot, &world.base).await;
    let paths: Vec<_> = reasons
        .iter()
        .map(|reason| reason.path.to_str().unwrap())
        .collect();
    assert_eq!(paths, ["abs", "g", "link", "sly", "src", "up"]);
    assert!(
        reasons
            .iter()
            .all(|reason| reason.kind == RejectionKind::LinkLeaves)
    );
}

#[tokio::test]
async fn links_of_the_base_may_stay_as_they_are() {
    let repo = usual_repo();
    std::os::unix::fs::symlink("/etc/hosts", repo.path().join("abs")).unwrap();
    repo.commit_all("a link out");
    let world = World::of(repo).await;
    let mut robot = world.robot().await;
    world.sh(&robot, "echo x > new");
    tree_of(&mut robot, &world.base).await;
}

#[tokio::test]
async fn names_that_are_one_elsewhere_are_rejected() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(&robot, "echo x > A.TXT");
    let (path, kind) = reason_of(&mut robot, &world.base).await;
    assert_eq!(
        (path.as_str(), kind),
        (
            "A.TXT",
            RejectionKind::CaseCollision {
                other: "a.txt".into()
            }
        )
    );
    // A rename that only changes case is fine, also after a rejected try.
    world.sh(&robot, "rm a.txt link");
    let tree = tree_of(&mut robot, &world.base).await;
    world.sh(&robot, "mv A.TXT A.txt");
    assert_ne!(tree_of(&mut robot, &world.base).await, tree);
    world.sh(&robot, "mkdir .GIT; echo x > .GIT/config");
    assert_eq!(
        reason_of(&mut robot, &world.base).await,
        (".GIT/config".to_owned(), RejectionKind::GitName)
    );
}

#[tokio::test]
async fn a_workspace_that_was_replaced_is_rejected() {
    for script in [
        "rm -rf \"$PWD\"",
        "p=$PWD; cd ..; mv \"$p\" \"$p.x\"; ln -s \"$CANARY\" \"$p\"",
    ] {
        let world = World::usual().await;
        let mut robot = world.robot().await;
        world.sh(&robot, script);
        assert_eq!(
            reason_of(&mut robot, &world.base).await,
            (String::new(), RejectionKind::Replaced)
        );
        world.assert_canary();
    }
}

#[tokio::test]
async fn what_git_cannot_add_is_the_robots_fault() {
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "echo 'bad working-tree-encoding=UTF-16' > .gitattributes; printf 'x' > bad",
    );
    let (_, kind) = reason_of(&mut robot, &world.base).await;
    assert!(matches!(kind, RejectionKind::Refused { .. }), "{kind:?}");
}

#[tokio::test]
async fn case_166_closed_files_are_opened_for_the_snapshot() {
    // Root reads everything; for other users the rights are mended on the way.
    let world = World::usual().await;
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "mkdir d; echo x > d/f; echo two > a.txt; chmod 000 d/f a.txt d",
    );
    let tree = tree_of(&mut robot, &world.base).await;
    assert_eq!(
        world.zones.changed_paths(&world.base, &tree).await.unwrap().len(),
        2
    );
}

#[tokio::test]
async fn ten_thousand_files_are_no_trouble() {
    let repo = usual_repo();
    for number in 0..10_000 {
        repo.write(
            format!("d{}/e{}/f{number}", number % 50, number % 7),
            format!("file {number}\n").repeat(20),
        );
    }
    repo.commit_all("many");
    let start = Instant::now();
    let world = World::of(repo).await;
    let create = start.elapsed();
    let mut robot = Checkout::create(&world.zones, "robot-0").await.unwrap();
    let mut timed = vec![("create", create)];
    let start = Instant::now();
    robot.prepare(&world.base, &world.base).await.unwrap();
    timed.push(("first prepare", start.elapsed()));
    for label in ["snapshot at once", "snapshot again"] {
        let start = Instant::now();
        assert_eq!(
            tree_of(&mut robot, &world.base).await,
            world.tree(&world.base).await
        );
        timed.push((label, start.elapsed()));
    }
    for number in 0..20 {
        fs::write(robot.path().join(format!("d{number}/new")), format!("{number}")).unwrap();
    }
    let start = Instant::now();
    let tree = tree_of(&mut robot, &world.base).await;
    timed.push(("snapshot with 20 new files", start.elapsed()));
    let start = Instant::now();
    robot.prepare(&world.base, &world.base).await.unwrap();
    timed.push(("prepare back", start.elapsed()));
    let start = Instant::now();
    robot.prepare(&tree, &world.base).await.unwrap();
    timed.push(("prepare to candidate", start.elapsed()));
    let commit = world.commit(&tree, &world.base).await;
    let branch = world.ledger.create_branch("x").await.unwrap();
    let start = Instant::now();
    world
        .ledger
        .accept(&world.zones, &branch, &commit, &world.base)
        .await
        .unwrap();
    timed.push(("accept", start.elapsed()));
    println!("{timed:?}");
}
