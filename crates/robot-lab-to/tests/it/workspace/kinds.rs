//! Kinds of repositories: worktrees, odd paths, other formats, shallow, partial and sparse ones, line ends, filters,
//! submodules.

use std::fs;
use std::path::Path;

use robot_lab_to::workspace::{Checkout, Git, HostEnv, Ledger, RejectionKind, RunRepo, WorkDir, ZoneError};
use testkit::TestRepo;

use super::{World, reason_of, tree_of, usual_repo};

/// A whole small run: nothing but the branch changes, and a clone has the result.
async fn whole_run(repo: TestRepo, cwd: &Path) -> World {
    let before = repo.fingerprint();
    let world = World::at(repo, cwd).await;
    let mut robot = world.robot().await;
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
    assert_eq!(
        world
            .sh(
                &robot,
                "git status --porcelain; git fsck 2>&1; git log -1 --format=%H"
            )
            .trim(),
        world.base.as_str()
    );
    let (branch, commit) = world.accept_something().await;
    before.assert_same(&world.repo.fingerprint());
    assert_eq!(world.repo.git(&["rev-parse", branch.name()]), commit.as_str());
    assert_eq!(
        world.repo.git(&["show", &format!("{}:new file", branch.name())]),
        "new"
    );
    robot.prepare(&commit, &commit).await.unwrap();
    assert_eq!(world.sh(&robot, "git status --porcelain; cat 'new file'"), "new");
    world
}

#[tokio::test]
async fn paths_with_anything_in_them() {
    for name in [
        "with space",
        "it's \"quoted\"",
        "na\u{ef}ve \u{1f980}",
        "new\nline",
        "#hash",
        "end\n",
    ] {
        let repo = TestRepo::named(name, &[]);
        repo.write("sub dir/a", "1");
        repo.commit_all("base");
        let cwd = repo.path().join("sub dir");
        let world = whole_run(repo, &cwd).await;
        assert_eq!(world.ledger.top(), world.repo.path());
        assert_eq!(world.ledger.subdir(), Path::new("sub dir"));
    }
}

#[tokio::test]
async fn a_linked_worktree() {
    let repo = usual_repo();
    let linked = repo.beside("linked tree");
    repo.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    fs::write(linked.join("a.txt"), "side\n").unwrap();
    repo.git_in(&linked, &["commit", "-qam", "side"]);
    let mut world = whole_run(repo, &linked).await;
    assert_eq!(world.ledger.top(), linked);
    assert_eq!(world.base.as_str(), world.repo.git(&["rev-parse", "side"]));
    assert!(world.ledger.exclude_line(&linked.join(".robot_lab_to")).unwrap());
    fs::create_dir(linked.join(".robot_lab_to")).unwrap();
    fs::write(linked.join(".robot_lab_to/x"), "").unwrap();
    assert_eq!(world.repo.git_in(&linked, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_detached_head() {
    let repo = usual_repo();
    repo.git(&["checkout", "-q", "--detach"]);
    let cwd = repo.path().to_owned();
    whole_run(repo, &cwd).await;
}

#[tokio::test]
async fn sha256_and_reftable() {
    for options in [
        &["--object-format=sha256"][..],
        &["--ref-format=reftable"],
        &["--object-format=sha256", "--ref-format=reftable"],
    ] {
        if options.iter().any(|option| option.contains("reftable")) && git_version().await < (2, 45) {
            continue;
        }
        let repo = TestRepo::named("repo", options);
        repo.write("a", "1");
        repo.commit_all("base");
        let cwd = repo.path().to_owned();
        let world = whole_run(repo, &cwd).await;
        let length = if options[0].contains("sha256") { 64 } else { 40 };
        assert_eq!(world.base.as_str().len(), length);
    }
}

async fn git_version() -> (u32, u32) {
    Git::find(&HostEnv::new(TestRepo::new().env()))
        .await
        .unwrap()
        .version()
}

/// A clone of a usual repository beside it, made with these options, as a repository of its own.
fn cloned(options: &[&str]) -> (TestRepo, TestRepo) {
    let origin = usual_repo();
    for number in 0..5 {
        origin.write("a.txt", format!("{number}\n"));
        origin.write("deep/down/b.txt", format!("{number}\n"));
        origin.commit_all("more");
    }
    origin.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = TestRepo::new();
    fs::remove_dir_all(clone.path()).unwrap();
    let url = format!("file://{}", origin.path().display());
    let target = clone.path().to_str().unwrap();
    let args = [&["clone", "-q"], options, &[url.as_str(), target]].concat();
    clone.git_in(&clone.beside("home"), &args);
    clone.git(&["config", "user.name", "Test User"]);
    clone.git(&["config", "user.email", "test@example.invalid"]);
    (origin, clone)
}

#[tokio::test]
async fn a_shallow_clone() {
    let (_origin, repo) = cloned(&["--depth=2"]);
    let cwd = repo.path().to_owned();
    let world = whole_run(repo, &cwd).await;
    assert_eq!(world.repo.git(&["rev-list", "--count", "HEAD"]), "2");
}

#[tokio::test]
async fn a_sparse_checkout() {
    let (_origin, repo) = cloned(&["--sparse"]);
    assert!(!repo.path().join("deep/down/b.txt").exists());
    let cwd = repo.path().to_owned();
    let world = whole_run(repo, &cwd).await;
    assert!(world.robot().await.path().join("deep/down/b.txt").exists());
}

#[tokio::test]
async fn a_partial_clone_with_its_files_there() {
    let (origin, repo) = cloned(&["--filter=blob:none"]);
    fs::rename(origin.path(), origin.beside("gone")).unwrap();
    let cwd = repo.path().to_owned();
    let before = repo.fingerprint();
    let world = World::at(repo, &cwd).await;
    world.accept_something().await;
    before.assert_same(&world.repo.fingerprint());
}

#[tokio::test]
async fn a_partial_clone_without_its_files_is_told() {
    let (_origin, repo) = cloned(&["--filter=blob:none", "--sparse"]);
    let git = Git::find(&HostEnv::new(repo.env())).await.unwrap();
    let ledger = Ledger::discover(&git, repo.path()).await.unwrap();
    let work = WorkDir::create(&repo.beside("state")).unwrap();
    let objects = repo.path().join(".git/objects");
    let count = || fs::read_dir(&objects).unwrap().count();
    let before = (repo.fingerprint(), count());
    let error = RunRepo::create(&git, &ledger, &work, ledger.base())
        .await
        .unwrap_err();
    assert!(matches!(error, ZoneError::MissingObjects { .. }), "{error:?}");
    before.0.assert_same(&repo.fingerprint());
    assert_eq!(before.1, count());
    repo.git(&["fetch", "-q", "--refetch", "--no-filter"]);
    RunRepo::create(&git, &ledger, &work, ledger.base())
        .await
        .unwrap();
}

#[tokio::test]
async fn line_ends_make_no_changes() {
    for (autocrlf, attributes) in [
        ("true", ""),
        ("input", ""),
        ("false", "* text=auto\n"),
        ("false", "* text\n"),
        ("true", "* text eol=crlf\n"),
        ("false", "* text eol=lf\n*.id ident\n"),
    ] {
        let repo = TestRepo::new();
        repo.git(&["config", "core.safecrlf", "false"]);
        repo.write("lf", "a\nb\n");
        repo.write("crlf", "a\r\nb\r\n");
        repo.write("mixed", "a\r\nb\n");
        repo.write("bom", "\u{feff}a\r\n");
        repo.write("x.id", "$Id: stale $\r\n");
        repo.commit_all("as they are");
        repo.write(".gitattributes", attributes);
        repo.git(&["add", ".gitattributes"]);
        repo.git(&["commit", "-qm", "attributes"]);
        repo.git(&["config", "core.autocrlf", autocrlf]);
        let world = World::of(repo).await;
        let mut robot = world.robot().await;
        let tree = world.tree(&world.base).await;
        let label = format!("{autocrlf} {attributes:?}");
        assert_eq!(tree_of(&mut robot, &world.base).await, tree, "{label}");
        // Also when the files look new to git, and a real change beside them.
        world.sh(
            &robot,
            "touch -d '2001-01-01' lf crlf mixed bom x.id; echo new > new",
        );
        let changed = tree_of(&mut robot, &world.base).await;
        let changes = world.zones.changed_paths(&world.base, &changed).await.unwrap();
        assert_eq!(changes.len(), 1, "{label} {changes:?}");
        robot.prepare(&world.base, &world.base).await.unwrap();
        assert_eq!(tree_of(&mut robot, &world.base).await, tree, "{label}");
    }
}

#[tokio::test]
async fn case_54_without_file_mode_there_is_no_mode_noise() {
    let repo = usual_repo();
    repo.git(&["config", "core.fileMode", "false"]);
    let world = World::of(repo).await;
    let mut robot = world.robot().await;
    world.sh(&robot, "chmod +x a.txt; chmod -x run.sh");
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
    assert_eq!(world.sh(&robot, "git status --porcelain"), "");
    world.sh(&robot, "echo x >> run.sh");
    let tree = tree_of(&mut robot, &world.base).await;
    let changes = world.zones.changed_paths(&world.base, &tree).await.unwrap();
    assert_eq!(
        changes[0].old.as_ref().unwrap().mode,
        changes[0].new.as_ref().unwrap().mode
    );
}

#[tokio::test]
async fn the_users_large_file_filter_is_passed_on() {
    let repo = usual_repo();
    repo.git(&["config", "filter.lfs.clean", "tr a-y b-z"]);
    repo.git(&["config", "filter.lfs.smudge", "tr b-z a-y"]);
    repo.git(&["config", "filter.lfs.required", "true"]);
    repo.write(".gitattributes", "*.big filter=lfs\n");
    repo.write("x.big", "hello\n");
    repo.commit_all("filtered");
    assert_eq!(repo.git(&["cat-file", "-p", "HEAD:x.big"]), "ifmmp");
    let world = World::of(repo).await;
    let mut robot = world.robot().await;
    assert_eq!(world.sh(&robot, "cat x.big; git status --porcelain"), "hello\n");
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
    world.sh(&robot, "echo bye > y.big");
    let tree = tree_of(&mut robot, &world.base).await;
    let stored = world.repo.git_in(
        &world.zones.work().run_git(),
        &["cat-file", "-p", &format!("{tree}:y.big")],
    );
    assert_eq!(stored, "czf");
}

async fn with_submodule() -> World {
    let (inner, repo) = (usual_repo(), usual_repo());
    let url = inner.path().to_str().unwrap();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url,
        "mods/sub",
    ]);
    repo.commit_all("with a submodule");
    World::of(repo).await
}

#[tokio::test]
async fn submodules_stay_as_they_are() {
    let world = with_submodule().await;
    let mut robot = world.robot().await;
    let base = world.tree(&world.base).await;
    let sub = robot.path().join("mods/sub");
    assert_eq!(fs::read_dir(&sub).unwrap().count(), 0);
    assert_eq!(tree_of(&mut robot, &world.base).await, base);
    world.sh(&robot, "rm -r mods");
    assert_eq!(tree_of(&mut robot, &world.base).await, base);
    world.sh(&robot, "mkdir -p mods/sub; echo x > mods/sub/file");
    assert_eq!(tree_of(&mut robot, &world.base).await, base);
    robot.prepare(&world.base, &world.base).await.unwrap();
    assert_eq!(fs::read_dir(&sub).unwrap().count(), 0);
    world.accept_something().await;
    robot.prepare(&world.base, &world.base).await.unwrap();
    // Taking it out on purpose is a change like any other.
    world.sh(&robot, "rm -r mods .gitmodules");
    let tree = tree_of(&mut robot, &world.base).await;
    assert_eq!(
        world.zones.changed_paths(&world.base, &tree).await.unwrap().len(),
        2
    );
}

#[tokio::test]
async fn a_repository_in_the_place_of_a_submodule_runs_nothing() {
    let world = with_submodule().await;
    world.canary();
    let mut robot = world.robot().await;
    world.sh(
        &robot,
        "cd mods/sub; git init -q; git config core.fsmonitor 'touch \"$CANARY/pwned\"; false'; \
         printf '#!/bin/sh\\ntouch %s/pwned\\n' \"$CANARY\" > .git/hooks/post-index-change || true; echo x > f; cd ../..; \
         printf '[submodule \"mods/sub\"]\\n\\tpath = mods/sub\\n\\turl = x\\n\\tignore = none\\n' > .gitmodules",
    );
    fs::remove_file(world.canary().join("pwned")).ok();
    assert_eq!(
        reason_of(&mut robot, &world.base).await,
        ("mods/sub".to_owned(), RejectionKind::NestedRepository)
    );
    world.assert_canary();
    robot.prepare(&world.base, &world.base).await.unwrap();
    world.assert_canary();
    assert_eq!(
        tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
    // In the place of a file likewise.
    world.sh(&robot, "rmdir mods/sub; echo x > mods/sub");
    assert_eq!(
        reason_of(&mut robot, &world.base).await.1,
        RejectionKind::NestedRepository
    );
}

#[tokio::test]
async fn several_checkouts_work_side_by_side() {
    let world = World::usual().await;
    let mut first = Checkout::create(&world.zones, "robot-0").await.unwrap();
    let mut second = Checkout::create(&world.zones, "robot-1").await.unwrap();
    let (base, zones) = (&world.base, &world.zones);
    let (one, two) = tokio::join!(first.prepare(base, base), second.prepare(base, base));
    one.and(two).unwrap();
    fs::write(first.path().join("x"), "1").unwrap();
    fs::write(second.path().join("x"), "2").unwrap();
    let (one, two) = tokio::join!(tree_of(&mut first, base), tree_of(&mut second, base));
    assert_ne!(one, two);
    assert_eq!(zones.changed_paths(&one, &two).await.unwrap().len(), 1);
}
