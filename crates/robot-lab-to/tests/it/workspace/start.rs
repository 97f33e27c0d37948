//! Finding the repository: each thing that can be wrong has its own error, and nothing is changed.

use std::fs;
use std::path::Path;

use robot_lab_to::workspace::{FindGitError, Git, HostEnv, Ledger, StartError};
use testkit::TestRepo;

use super::{World, usual_repo};

async fn discover(repo: &TestRepo, cwd: &Path) -> Result<Ledger, StartError> {
    let git = Git::find(&HostEnv::new(repo.env())).await.unwrap();
    Ledger::discover(&git, cwd).await
}

#[tokio::test]
async fn every_start_error_is_told_apart() {
    let repo = usual_repo();
    let empty = repo.beside("empty");
    fs::create_dir(&empty).unwrap();
    let error = discover(&repo, &empty).await.unwrap_err();
    assert!(matches!(error, StartError::NotARepository(_)), "{error}");
    assert!(error.to_string().contains("git init"));

    let bare = repo.beside("bare.git");
    repo.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let error = discover(&repo, &bare).await.unwrap_err();
    assert!(matches!(error, StartError::Bare(_)), "{error}");

    let error = discover(&repo, &repo.path().join(".git")).await.unwrap_err();
    assert!(matches!(error, StartError::InsideGitDir(_)), "{error}");

    let unborn = TestRepo::new();
    let error = discover(&unborn, unborn.path()).await.unwrap_err();
    assert!(matches!(error, StartError::NoCommit(_)), "{error}");
    assert!(error.to_string().contains("git commit"));

    repo.git(&["config", "--unset", "user.name"]);
    repo.git(&["config", "user.useConfigOnly", "true"]);
    let before = repo.fingerprint();
    let error = discover(&repo, repo.path()).await.unwrap_err();
    assert!(matches!(error, StartError::NoIdentity(_)), "{error}");
    assert!(error.to_string().contains("user.name"));
    before.assert_same(&repo.fingerprint());
}

#[tokio::test]
async fn a_repository_of_another_user_is_told() {
    use std::os::unix::fs::chown;
    let repo = usual_repo();
    if chown(repo.path(), Some(54321), None).is_err() {
        return; // Only root can make such a repository.
    }
    let error = discover(&repo, repo.path()).await.unwrap_err();
    assert!(
        matches!(&error, StartError::DubiousOwnership(path) if path == repo.path()),
        "{error:?}"
    );
    assert!(error.to_string().contains("safe.directory"));
}

#[tokio::test]
async fn git_missing_or_too_old_is_told() {
    let repo = TestRepo::new();
    let dir = repo.beside("bin");
    fs::create_dir(&dir).unwrap();
    let host = HostEnv::new([("PATH", format!("relative:{}", dir.display()))]);
    assert!(matches!(
        Git::find(&host).await.unwrap_err(),
        FindGitError::Missing
    ));
    let fake = dir.join("git");
    let say = |text: &str| {
        fs::write(&fake, format!("#!/bin/sh\necho '{text}'\n")).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    };
    say("git version 2.33.8");
    let error = Git::find(&host).await.unwrap_err();
    assert!(
        matches!(&error, FindGitError::TooOld { found, .. } if found == "2.33.8"),
        "{error}"
    );
    say("hello");
    assert!(matches!(
        Git::find(&host).await.unwrap_err(),
        FindGitError::Broken { .. }
    ));
    say("git version 2.34.1");
    assert_eq!(Git::find(&host).await.unwrap().version(), (2, 34));
}

#[tokio::test]
async fn variables_that_name_another_repository_mean_nothing() {
    let (repo, other) = (usual_repo(), usual_repo());
    other.commit_all("something else");
    let before = other.fingerprint();
    let mut env = repo.env();
    for name in ["GIT_DIR", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"] {
        env.push((name.into(), other.path().join(".git").into()));
    }
    env.push(("GIT_WORK_TREE".into(), other.path().into()));
    env.push(("GIT_INDEX_FILE".into(), other.path().join(".git/index").into()));
    let git = Git::find(&HostEnv::new(env)).await.unwrap();
    let ledger = Ledger::discover(&git, repo.path()).await.unwrap();
    assert_eq!(ledger.top(), repo.path());
    assert_eq!(ledger.base().as_str(), repo.git(&["rev-parse", "HEAD"]));
    before.assert_same(&other.fingerprint());
}

#[tokio::test]
async fn what_is_read_at_the_start() {
    let repo = usual_repo();
    repo.write("a.txt", "changed");
    repo.write("new one", "");
    repo.write("src/new two", "");
    fs::rename(repo.path().join("run.sh"), repo.path().join("renamed")).unwrap();
    repo.write("rules", "\u{feff}*.mine\n*.last");
    repo.git(&[
        "config",
        "core.excludesFile",
        repo.path().join("rules").to_str().unwrap(),
    ]);
    fs::create_dir_all(repo.path().join(".git/info")).unwrap();
    fs::write(repo.path().join(".git/info/exclude"), "/private/\n").unwrap();
    let before = repo.fingerprint();
    let ledger = discover(&repo, &repo.path().join("src")).await.unwrap();
    assert_eq!((ledger.top(), ledger.subdir()), (repo.path(), Path::new("src/")));
    assert_eq!(ledger.identity().name, "Test User");
    assert_eq!(ledger.identity().email, "test@example.invalid");
    assert_eq!(ledger.dirty_paths(), 6);
    assert_eq!(
        String::from_utf8_lossy(ledger.excludes()),
        "*.mine\n*.last\n/private/\n"
    );
    before.assert_same(&repo.fingerprint());
}

#[tokio::test]
async fn the_exclude_line_is_appended_once_and_exactly() {
    let repo = usual_repo();
    let exclude = repo.path().join(".git/info/exclude");
    fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    fs::write(&exclude, b"# mine\n\xff without a line end").unwrap();
    let mut ledger = discover(&repo, repo.path()).await.unwrap();
    let before = repo.fingerprint();
    assert!(ledger.exclude_line(Path::new(".robot_lab_to")).unwrap());
    assert!(!ledger.exclude_line(&repo.path().join(".robot_lab_to")).unwrap());
    before.assert_same(&repo.fingerprint());
    let expected = b"# mine\n\xff without a line end\n/.robot_lab_to/\n";
    assert_eq!(fs::read(&exclude).unwrap(), expected);
    repo.write(".robot_lab_to/runs/x", "");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert!(!ledger.exclude_line(&repo.beside("elsewhere")).unwrap());
    assert!(!ledger.exclude_line(repo.path()).unwrap());

    assert!(ledger.exclude_line(Path::new("odd [dir]* \\")).unwrap());
    repo.write("odd [dir]* \\/x", "");
    repo.write("odd d", "");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? \"odd d\"");
}

#[tokio::test]
async fn a_missing_exclude_file_is_made() {
    let repo = TestRepo::named("bare bones", &["--template="]);
    repo.commit_all("base");
    assert!(!repo.path().join(".git/info").exists());
    let mut ledger = discover(&repo, repo.path()).await.unwrap();
    assert!(ledger.exclude_line(Path::new(".robot_lab_to")).unwrap());
    assert_eq!(
        fs::read_to_string(repo.path().join(".git/info/exclude")).unwrap(),
        "/.robot_lab_to/\n"
    );
}

#[tokio::test]
async fn the_users_rules_hold_in_a_workspace() {
    let repo = usual_repo();
    fs::create_dir_all(repo.path().join(".git/info")).unwrap();
    fs::write(repo.path().join(".git/info/exclude"), "private\n").unwrap();
    let world = World::of(repo).await;
    let mut robot = world.robot().await;
    fs::write(robot.path().join("private"), "x").unwrap();
    assert_eq!(
        super::tree_of(&mut robot, &world.base).await,
        world.tree(&world.base).await
    );
    assert_eq!(world.sh(&robot, "git status --porcelain"), "");
    robot.prepare(&world.base, &world.base).await.unwrap();
    assert!(robot.path().join("private").exists());
}
