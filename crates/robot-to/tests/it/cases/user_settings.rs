//! Settings and leftovers of the user's repository that could hold a run up or lead it astray.

use testkit::{ModelServer, Reply, TestRepo};

use crate::lab::Lab;
use crate::replies::{bash, good, submit, write};

#[test]
fn case_34_46_47_51_nothing_in_the_users_git_is_waited_for_or_fetched() {
    let waiting = "git log -3; git commit --allow-empty && git rebase -q -i HEAD~1; git rebase --abort; \
                   git commit -q --amend --allow-empty; echo went on";
    let repo = TestRepo::new();
    repo.write("old", "old\n");
    repo.commit_all("what origin has");
    repo.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    repo.git(&["config", "remote.origin.url", "https://127.0.0.1:9/nothing"]);
    repo.git(&["config", "branch.main.remote", "origin"]);
    repo.git(&["config", "branch.main.merge", "refs/heads/main"]);
    for (key, value) in [
        ("core.editor", "sleep 9999"),
        ("sequence.editor", "sleep 9999"),
        ("core.pager", "sleep 9999"),
        ("gpg.program", "/nowhere/gpg"),
        ("pull.rebase", "true"),
    ] {
        repo.git(&["config", key, value]);
    }
    let mut lab = Lab::with(
        repo,
        ModelServer::start([Reply::calls([bash(waiting)]), good("one")]),
    );
    lab.repo.git(&["config", "commit.gpgsign", "true"]);
    lab.repo.write(".git/index.lock", "");
    lab.env
        .env("EDITOR", "sleep 9999")
        .env("GIT_EDITOR", "sleep 9999")
        .env("PAGER", "sleep 9999");
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert!(told.contains("went on"), "{told}");

    let head = lab.repo.git(&["rev-parse", "main"]);
    assert_eq!(ran.file.base.to_string(), head, "the base is where HEAD is");
    assert!(ran.shown().contains(head.get(..7).unwrap()), "{}", ran.shown());
    let signed = lab.repo.git(&["cat-file", "commit", &ran.file.branch]);
    assert!(!signed.contains("gpgsig"), "{signed}");
}

#[test]
fn case_32_the_same_objective_twice_a_day_makes_two_branches() {
    let lab = Lab::new([good("one"), good("one")]);
    let first = lab.run(&["--max-iterations", "1"]).file.branch.clone();
    let tip = lab.repo.git(&["rev-parse", &first]);
    let elsewhere = lab.repo.beside("elsewhere");
    lab.repo
        .git(&["worktree", "add", "--quiet", elsewhere.to_str().unwrap(), &first]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_ne!(ran.file.branch, first);
    assert_eq!(lab.repo.git(&["rev-parse", &first]), tip);
    assert_eq!(lab.repo.git_in(&elsewhere, &["status", "--porcelain"]), "");
}

#[test]
fn case_31_runs_in_two_worktrees_at_once_share_nothing() {
    let lab = Lab::serving(ModelServer::answering(|_| good("one")));
    let linked = lab.repo.beside("linked");
    lab.repo.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    let arguments = lab.arguments(&["--max-iterations", "1"]);
    let here = lab.env.spawn(&arguments);
    let mut command = lab.env.command(&arguments);
    command.current_dir(&linked);
    let there = testkit::Running::start(command);
    for finished in [here, there].map(|process| process.wait(crate::lab::PATIENCE)) {
        finished.assert_code(0);
    }
    for top in [&lab.top, &linked] {
        let runs = robot_lab_to::run::RunDir::list(&top.join(".robot_lab_to")).unwrap();
        assert_eq!(runs.len(), 1, "{}", top.display());
        assert_eq!(lab.repo.git_in(top, &["status", "--porcelain"]), "");
    }
    crate::checks::no_process_is_left(&lab.env);
}

#[test]
fn case_40_variables_that_name_another_repository_reach_nobody() {
    let other = TestRepo::new();
    other.write("f", "other\n");
    other.commit_all("another repository");
    let untouched = other.fingerprint();
    let mut lab = Lab::new([Reply::calls([
        bash("test -z \"$GIT_DIR$GIT_INDEX_FILE$GIT_WORK_TREE\" && git add -A && git commit -qm mine"),
        write("parts/one", "ok\n"),
        submit("Add part one"),
    ])]);
    let git_dir = other.path().join(".git");
    lab.env
        .env("GIT_DIR", &git_dir)
        .env("GIT_INDEX_FILE", git_dir.join("index"))
        .env("GIT_WORK_TREE", other.path());
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    untouched.assert_same(&other.fingerprint());
}
