//! Where runs start: subdirectories, linked worktrees, odd names, dirty checkouts, and places of the user's choice.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use testkit::{ModelServer, Reply, TestRepo};

use crate::lab::{Lab, PATIENCE, text_of};
use crate::replies::{bash, good, submit, write};

const ONE: [&str; 2] = ["--max-iterations", "1"];

#[test]
fn case_30_a_run_in_a_subdirectory_works_and_grades_there() {
    let mut lab = Lab::new([
        Reply::calls([write("note", "ok\n"), bash("pwd; sh check.sh")]),
        Reply::calls([submit("Add a note")]),
    ]);
    lab.repo
        .write("sub/dir/check.sh", "cat note 2>/dev/null; [ -e ../../test.sh ]\n");
    lab.repo.commit_all("a subdirectory");
    lab.start_in("sub/dir");
    lab.verify = Some("sh check.sh".into());
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.on_branch("sub/dir/note"), "ok");
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert!(told.contains("/sub/dir\nok\n"), "{told}");
}

#[test]
fn case_31_a_run_in_a_linked_worktree_starts_from_its_commit() {
    let mut lab = Lab::new([good("one")]);
    let linked = lab.repo.beside("linked");
    lab.repo.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    std::fs::write(linked.join("parts/side"), "ok\n").unwrap();
    lab.repo.git_in(&linked, &["add", "--all"]);
    lab.repo
        .git_in(&linked, &["commit", "--quiet", "--message", "on the side"]);
    let side = lab.repo.git(&["rev-parse", "side"]);
    lab.top.clone_from(&linked);
    lab.start_in("");
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.file.base.to_string(), side);
    assert_eq!(ran.on_branch("parts/side"), "ok");
    assert_eq!(
        lab.repo.git_in(&linked, &["status", "--porcelain"]),
        "",
        "the run directory is excluded"
    );
    assert_eq!(
        lab.repo.git_in(&linked, &["symbolic-ref", "HEAD"]),
        "refs/heads/side"
    );
}

#[test]
fn case_01_02_12_a_dirty_checkout_is_not_part_of_the_run_and_stays_as_it_is() {
    let lab = Lab::new([Reply::calls([
        bash("ls parts; cat parts/base"),
        write("parts/one", "ok\n"),
        submit("Add one"),
    ])]);
    lab.repo.write("parts/base", "changed, and it would fail\n");
    lab.repo.write("parts/staged", "staged, and it would fail\n");
    lab.repo.git(&["add", "parts/staged"]);
    lab.repo
        .write("parts/untracked", "untracked, and it would fail\n");
    lab.repo.git(&["config", "stash.x", "y"]);
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(
        ran.shown()
            .contains("3 uncommitted changes are not part of the run"),
        "{}",
        ran.shown()
    );
    let files = lab.repo.git(&["ls-tree", "-r", "--name-only", &ran.file.branch]);
    assert_eq!(files, "parts/base\nparts/one\ntest.sh");
    assert_eq!(ran.on_branch("parts/base"), "ok");
}

#[test]
fn case_27_a_detached_head_is_where_the_run_starts() {
    let lab = Lab::new([good("one")]);
    lab.repo.git(&["checkout", "--quiet", "--detach"]);
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
}

#[test]
fn case_16_162_spaces_quotes_and_letters_of_all_kinds_in_paths_are_no_obstacle() {
    let repo = TestRepo::named("my \"own\" 'repo' – größe 日本 $HOME", &[]);
    repo.write("a file with spaces", "1\n");
    repo.write("größe/日本 'x' \"y\"", "2\n");
    let lab = Lab::with(
        repo,
        ModelServer::start([Reply::calls([
            write("parts/an odd 'näme' \"日\" $(x)", "ok\n"),
            submit("Add a part with an odd name"),
        ])]),
    );
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.on_branch("parts/an odd 'näme' \"日\" $(x)"), "ok");
    let listed = lab.env.run(["runs"]);
    listed.assert_code(0);
    assert!(listed.stdout.contains(&ran.file.run_id), "{}", listed.stdout);
}

#[test]
fn a_branch_named_robot_to_is_not_in_the_way() {
    let lab = Lab::new([good("one")]);
    lab.repo.git(&["branch", "robot-to"]);
    let ran = lab.run(&ONE);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(
        ran.file.branch.starts_with("robot-to-make-every-part-hold-"),
        "{}",
        ran.file.branch
    );
}

#[test]
fn the_run_directory_and_the_private_copies_go_where_the_user_says() {
    let lab = Lab::new([good("one")]);
    let (records, copies) = (lab.env.root().join("records"), lab.env.root().join("copies"));
    let before = lab.repo.fingerprint();
    let places = [
        "--run-dir",
        records.to_str().unwrap(),
        "--work-dir",
        copies.to_str().unwrap(),
        "--keep-workspace",
    ];
    let finished = lab.env.run(lab.arguments(&[&ONE[..], &places].concat()));
    finished.assert_code(0);
    before.assert_same(&lab.repo.fingerprint());
    assert!(!lab.top.join(".robot_lab_to").exists());
    assert_eq!(std::fs::read_dir(lab.env.state()).unwrap().count(), 0);
    let run = std::fs::read_dir(copies.join("runs"))
        .unwrap()
        .flatten()
        .next()
        .unwrap()
        .path();
    assert!(run.join("checkouts/robot-0").is_dir(), "the workspace is kept");
    let listed = lab.env.run(["runs", "--run-dir", records.to_str().unwrap()]);
    listed.assert_code(0);
    assert!(
        listed.stdout.contains("  1 iteration,    1 commit"),
        "{}",
        listed.stdout
    );
    crate::checks::no_process_is_left(&lab.env);
    crate::checks::the_key_is_nowhere(&lab, &finished);
}

#[test]
fn the_users_own_exclude_file_keeps_its_lines_and_gets_one_more() {
    let lab = Lab::new([good("one"), good("two")]);
    let exclude = lab.repo.path().join(".git/info/exclude");
    std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    std::fs::write(&exclude, "# mine\n*.swp").unwrap();
    lab.run(&ONE).assert_end(0, "max iterations reached (1)");
    assert_eq!(text_of(&exclude), "# mine\n*.swp\n/.robot_lab_to/\n");
    lab.run(&ONE).assert_end(0, "max iterations reached (1)");
    assert_eq!(text_of(&exclude), "# mine\n*.swp\n/.robot_lab_to/\n");
    assert_eq!(lab.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn two_runs_at_once_in_one_repository_do_not_meet() {
    let lab = Lab::serving(ModelServer::answering(|_| good("one")));
    let before = lab.repo.fingerprint();
    let both = [
        lab.env.spawn(lab.arguments(&ONE)),
        lab.env.spawn(lab.arguments(&ONE)),
    ];
    for finished in both.map(|process| process.wait(PATIENCE)) {
        finished.assert_code(0);
        assert!(
            finished.stdout.contains("(1 committed, 0 discarded)"),
            "{}",
            finished.stdout
        );
    }
    before.assert_same(&lab.repo.fingerprint());
    let branches = lab
        .repo
        .git(&["for-each-ref", "--format=%(subject)", "refs/heads/robot-to/"]);
    assert_eq!(branches, "robot-to 1: Add part one\nrobot-to 1: Add part one");
    let listed = lab.env.run(["runs"]);
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    crate::checks::no_process_is_left(&lab.env);
}

#[test]
fn a_run_branch_that_somebody_else_moves_is_left_where_it_is() {
    let place: Arc<Mutex<PathBuf>> = Arc::default();
    let server = ModelServer::answering({
        let place = Arc::clone(&place);
        move |request| {
            let iteration = request.last_text("user").unwrap_or_default();
            if iteration.contains("This is iteration 1.") {
                return good("one");
            }
            let move_back =
                "git update-ref $(git for-each-ref --format='%(refname)' 'refs/heads/robot-to/') main";
            let moved = Command::new("/bin/sh")
                .args(["-c", move_back])
                .current_dir(&*place.lock().unwrap())
                .status();
            assert!(moved.unwrap().success());
            good("two")
        }
    });
    let lab = Lab::serving(server);
    lab.repo.path().clone_into(&mut place.lock().unwrap());
    let before = lab.repo.fingerprint();
    let finished = lab.env.run(lab.arguments(&["--max-iterations", "3"]));
    finished.assert_code(5);
    assert!(
        finished.stdout.contains("Reason:     branch moved: "),
        "{}",
        finished.stdout
    );
    before.assert_same(&lab.repo.fingerprint());
    let main = lab.repo.git(&["rev-parse", "main"]);
    assert_eq!(
        lab.repo
            .git(&["for-each-ref", "--format=%(objectname)", "refs/heads/robot-to/"]),
        main
    );
    crate::checks::no_process_is_left(&lab.env);
}
