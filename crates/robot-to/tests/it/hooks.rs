//! The user's git hooks as the last gate, and signing.

use std::process::Command;
use testkit::{Reply, TestRepo};

use crate::lab::{Lab, PATIENCE};
use crate::replies::{bash, give_up, good, part, submit, write};

/// Puts an executable hook into the user's git directory.
fn hook(repo: &TestRepo, name: &str, script: &str) {
    executable(repo, &format!(".git/hooks/{name}"), script);
}

fn executable(repo: &TestRepo, path: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    repo.write(path, format!("#!/bin/sh\n{script}\n"));
    let file = repo.path().join(path);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const NO_TABS: &str =
    "if git diff --cached --name-only | xargs -r grep -l TAB; then echo 'no TAB, please' >&2; exit 1; fi";

#[test]
fn case_45_hooks_see_the_parent_as_head_the_candidate_as_index_and_who_commits() {
    let lab = Lab::new([good("one"), good("two")]);
    let seen = lab.env.root().join("seen");
    let script = format!(
        "{{ echo \"$(basename $0) $# $GIT_AUTHOR_NAME <$GIT_AUTHOR_EMAIL>\"; git status --porcelain; git log --format=%s -1; \
         ls $GIT_INDEX_FILE >/dev/null && pwd; echo key=$OPENAI_API_KEY; }} >> '{}'",
        seen.display()
    );
    hook(&lab.repo, "pre-commit", &script);
    hook(
        &lab.repo,
        "commit-msg",
        &format!("cat $1 >> '{}'", seen.display()),
    );
    hook(
        &lab.repo,
        "post-commit",
        &format!("echo post >> '{}'", seen.display()),
    );
    hook(
        &lab.repo,
        "reference-transaction",
        &format!("echo moved >> '{}'", seen.display()),
    );
    let ran = lab.run(&["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    let seen = crate::lab::text_of(&seen);
    // The base commit is tried first, so that a hook that refuses everything is known at once.
    let bench = seen.lines().find(|line| line.ends_with("/bench")).unwrap();
    let expected = format!(
        "pre-commit 0 Test User <test@example.invalid>\n\
         a suite that passes\n{bench}\nkey=\nrobot-to 1: describe the change in a line\n\n"
    );
    assert!(seen.starts_with(&expected), "{seen}");
    let first = format!(
        "pre-commit 0 Test User <test@example.invalid>\nA  parts/one\na suite that passes\n{bench}\nkey=\nrobot-to 1: Add \
         part one\n"
    );
    let second = format!("A  parts/two\nrobot-to 1: Add part one\n{bench}\nkey=\nrobot-to 2: Add part two\n");
    assert!(seen.contains(&first) && seen.contains(&second), "{seen}");
    assert!(!seen.contains("post") && !seen.contains("moved"), "{seen}");
    assert_eq!((ran.count("hooks:start"), ran.count("hooks:finish")), (2, 2));
}

#[test]
fn case_41_a_hook_that_refuses_is_repaired_by_the_same_robot() {
    let lab = Lab::new([
        Reply::calls([
            write("parts/one", "ok\n"),
            write("a.txt", "TAB\n"),
            submit("Add a"),
        ]),
        Reply::calls([write("a.txt", "four spaces\n"), submit("Add a, with spaces")]),
    ]);
    hook(&lab.repo, "pre-commit", NO_TABS);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add a, with spaces"]);
    let told = ran.requests()[1].last_text("user").unwrap();
    for part in ["pre-commit refuses the commit", "no TAB, please", "a.txt"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(ran.shown().contains("pre-commit refuses"), "{}", ran.shown());
}

#[test]
fn case_41_a_refused_change_is_kept_for_one_more_iteration_and_then_set_aside() {
    let bad = || Reply::calls([write("a.txt", "TAB\n"), submit("Add a")]);
    let lab = Lab::new([
        bad(),
        // The next robot finds the change, and makes it worse.
        Reply::calls([bash("cat a.txt && echo more TAB >> a.txt"), submit("Mend a")]),
        // The third starts from the parent again.
        Reply::calls([
            bash("test ! -e a.txt && echo gone"),
            write("parts/one", "ok\n"),
            submit("Add part one"),
        ]),
    ]);
    hook(&lab.repo, "pre-commit", NO_TABS);
    let ran = lab.run(&["--max-iterations", "3", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (3)");
    assert_eq!(
        ran.outcomes(),
        ["commit:failed", "commit:failed", "commit:success"]
    );
    assert_eq!(ran.subjects(), ["robot-to 3: Add part one"]);
    assert_eq!(ran.attempts(), ["refs/attempts/1-0", "refs/attempts/2-0"]);
    assert_eq!(ran.in_attempt("2-0", "a.txt"), "TAB\nmore TAB");
    let requests = ran.requests();
    let second = requests[1].last_text("user").unwrap();
    assert!(
        second.contains("no TAB, please") && second.contains("This is iteration 2"),
        "{second}"
    );
    let third = requests[2].last_text("user").unwrap();
    assert!(!third.contains("It is the last try"), "{third}");
    assert!(
        ran.notes().contains("### Iteration 1 [COMMIT FAILED]"),
        "{}",
        ran.notes()
    );
    assert!(ran.notes().contains("no TAB, please"), "{}", ran.notes());
}

#[test]
fn case_42_hooks_that_refuse_everything_end_the_run_by_its_failures() {
    let bad = |n: u32| Reply::calls([write("a.txt", &format!("TAB {n}\n")), submit("Add a")]);
    let lab = Lab::new([bad(1), bad(2), bad(3)]);
    hook(&lab.repo, "pre-commit", "echo never; exit 1");
    let ran = lab.run(&["--max-verify-repairs", "0"]);
    ran.assert_end(3, "commit rejected: 3 consecutive failures");
    assert!(
        ran.shown()
            .contains("the pre-commit hook refuses the base commit itself"),
        "{}",
        ran.shown()
    );
    assert_eq!(ran.subjects(), Vec::<String>::new());
}

#[test]
fn what_a_hook_changes_is_graded_again_and_committed() {
    let lab = Lab::new([Reply::calls([
        write("parts/one", "ok\n"),
        write("list.txt", "b\na\n"),
        submit("Add a list"),
    ])]);
    hook(
        &lab.repo,
        "pre-commit",
        "if [ -e list.txt ]; then sort -o list.txt list.txt; git add list.txt; fi",
    );
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.on_branch("list.txt"), "a\nb");
    assert_eq!(
        ran.count("eval"),
        3,
        "the base, the candidate, and what the hook made of it"
    );
    assert!(
        ran.shown().contains("pre-commit changed files; graded again"),
        "{}",
        ran.shown()
    );
}

#[test]
fn what_a_hook_breaks_is_not_committed() {
    let lab = Lab::new([good("one")]);
    hook(
        &lab.repo,
        "pre-commit",
        "echo broken > parts/base; git add parts/base",
    );
    let ran = lab.run(&["--max-iterations", "1", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure"]);
    assert!(
        ran.shown().contains("changes files of the base commit itself"),
        "{}",
        ran.shown()
    );
}

#[test]
fn a_hook_that_changes_a_locked_file_is_not_the_robots_doing() {
    let lab = Lab::new([good("one")]);
    hook(&lab.repo, "pre-commit", "echo 'exit 0' > test.sh");
    let ran = lab.run(&[
        "--max-iterations",
        "1",
        "--max-verify-repairs",
        "0",
        "--protect-path",
        "test.sh",
    ]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["commit:failed"]);
    assert!(
        ran.notes().contains("it changes locked files: test.sh"),
        "{}",
        ran.notes()
    );
    assert_eq!(ran.in_attempt("1-0", "parts/one"), "ok");
}

#[test]
fn the_message_is_what_the_hook_makes_of_it_with_our_trailers() {
    let lab = Lab::new([good("one")]);
    hook(
        &lab.repo,
        "commit-msg",
        "sed -i -e 's/^robot-to/JIRA-7 robot-to/' -e '/^Robot-To-Run/d' $1; echo 'Change-Id: I1' >> $1",
    );
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    let commit = &ran.commits()[0];
    assert_eq!(commit.subject, "JIRA-7 robot-to 1: Add part one");
    for part in ["Change-Id: I1", &format!("Robot-To-Run: {}", ran.file.run_id)] {
        assert!(commit.body.contains(part), "{}", commit.body);
    }
    assert!(
        ran.shown().contains("JIRA-7 robot-to 1: Add part one"),
        "{}",
        ran.shown()
    );
}

#[test]
fn case_45_a_message_that_is_refused_needs_only_a_better_message() {
    let lab = Lab::new([good("one"), Reply::calls([submit("Add part one, closes 7")])]);
    hook(
        &lab.repo,
        "commit-msg",
        "grep -q 'closes [0-9]' $1 || { echo 'name the ticket'; exit 1; }",
    );
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one, closes 7"]);
    assert_eq!(ran.count("eval"), 2, "the files were graded before");
    assert!(
        ran.shown()
            .contains("the commit-msg hook refuses a message such as `robot-to 1: describe"),
        "{}",
        ran.shown()
    );
}

#[test]
fn a_robot_that_gives_up_on_a_refusal_has_not_failed_the_gate() {
    let lab = Lab::new([
        Reply::calls([write("a.txt", "TAB\n"), submit("Add a")]),
        Reply::calls([give_up("No idea")]),
    ]);
    hook(&lab.repo, "pre-commit", NO_TABS);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["commit:failed"]);
}

#[test]
fn hooks_in_the_tree_are_those_of_the_base_commit() {
    let repo = TestRepo::new();
    executable(
        &repo,
        ".husky/pre-commit",
        "echo base-hook >&2; grep -q ok parts/one",
    );
    // As some tools have it: the configured directory is not tracked, and calls what lies above it.
    executable(
        &repo,
        ".husky/_/pre-commit",
        "exec sh \"$(dirname \"$(dirname \"$0\")\")/pre-commit\"",
    );
    repo.write(".husky/_/.gitignore", "*\n");
    repo.write("parts/one", "ok\n");
    repo.git(&["config", "core.hooksPath", ".husky/_"]);
    let weaken = Reply::calls([
        write(".husky/pre-commit", "#!/bin/sh\nexit 0\n"),
        write("parts/one", "odd\n"),
        write("test.sh", "exit 0\n"),
        submit("Weaken everything"),
    ]);
    let lab = Lab::with(repo, testkit::ModelServer::start([weaken]));
    let ran = lab.run(&["--max-iterations", "1", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["commit:failed"]);
    assert!(ran.notes().contains("base-hook"), "{}", ran.notes());
}

#[test]
fn no_hooks_passes_hooks_over_and_git_passes_over_what_is_not_executable() {
    let lab = Lab::new([good("one")]);
    hook(&lab.repo, "pre-commit", "exit 1");
    let ran = lab.run(&["--max-iterations", "1", "--no-hooks"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!((ran.subjects().len(), ran.count("hooks:start")), (1, 0));

    let lab = Lab::new([good("one")]);
    lab.repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(ran.shown().contains("is not executable"), "{}", ran.shown());
    assert_eq!(ran.subjects().len(), 1);
}

#[test]
fn a_hook_that_hangs_is_ended_by_the_time_that_verify_has() {
    let lab = Lab::new([part("one", "ok\n")]);
    hook(&lab.repo, "pre-commit", "test ! -e parts/one || sleep 1000");
    let ran = lab.run(&[
        "--max-iterations",
        "1",
        "--max-verify-repairs",
        "0",
        "--verify-timeout",
        "2",
    ]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["commit:failed"]);
    assert!(
        ran.notes().contains("pre-commit refuses the commit"),
        "{}",
        ran.notes()
    );
}

#[test]
fn commits_are_signed_as_git_is_configured_to_and_a_resumed_run_does_not_sign_twice() {
    let lab = Lab::new([good("one"), good("two")]);
    let key = lab.env.root().join("signing");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(&key)
        .status()
        .unwrap();
    assert!(made.success());
    lab.repo.git(&["config", "gpg.format", "ssh"]);
    lab.repo
        .git(&["config", "user.signingkey", key.to_str().unwrap()]);
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let allowed = lab.env.root().join("allowed");
    std::fs::write(&allowed, format!("test@example.invalid {public}")).unwrap();
    let ran = lab.run(&["--max-iterations", "1", "--sign"]);
    ran.assert_end(0, "max iterations reached (1)");
    lab.repo.git(&[
        "-c",
        &format!("gpg.ssh.allowedSignersFile={}", allowed.display()),
        "verify-commit",
        &ran.file.branch,
    ]);

    // The process ended after the branch had moved and before that was written down.
    let log = std::fs::read_to_string(ran.dir.log()).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let end = lines
        .iter()
        .position(|line| line.contains("\"commit:start\""))
        .unwrap();
    std::fs::write(ran.dir.log(), lines[..=end].join("\n") + "\n").unwrap();
    let tip = lab.repo.git(&["rev-parse", &ran.file.branch]);
    let finished =
        testkit::Running::start(lab.env.command(["resume", "--max-iterations", "2"])).wait(PATIENCE);
    finished.assert_code(0);
    assert_eq!(
        lab.repo.git(&["rev-parse", &format!("{}~1", ran.file.branch)]),
        tip
    );
}

#[test]
fn case_46_a_key_that_cannot_sign_is_known_before_anything_begins() {
    let lab = Lab::new([]);
    lab.repo.git(&["config", "gpg.format", "ssh"]);
    lab.repo.git(&["config", "user.signingkey", "/nowhere/key"]);
    lab.repo.write("uncommitted", "x\n");
    for options in [&["--sign"][..], &["--sign", "--include-dirty"]] {
        let finished = lab.refuse(options);
        for part in [
            "commits cannot be signed",
            "leave out --sign",
            "nothing was changed",
        ] {
            assert!(finished.stderr.contains(part), "{}", finished.stderr);
        }
    }
}

#[test]
fn a_hook_of_the_tree_that_is_a_link_is_asked_and_one_that_leads_nowhere_is_refused() {
    let repo = TestRepo::new();
    executable(&repo, "scripts/check", "echo linked-hook; exit 1");
    std::fs::create_dir(repo.path().join(".githooks")).unwrap();
    let link = repo.path().join(".githooks/pre-commit");
    std::os::unix::fs::symlink("../scripts/check", &link).unwrap();
    repo.git(&["config", "core.hooksPath", ".githooks"]);
    let lab = Lab::with(repo, testkit::ModelServer::start([good("one")]));
    let ran = lab.run(&["--max-iterations", "1", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["commit:failed"]);
    assert!(ran.notes().contains("linked-hook"), "{}", ran.notes());

    let repo = TestRepo::new();
    std::fs::create_dir(repo.path().join(".githooks")).unwrap();
    let link = repo.path().join(".githooks/pre-commit");
    std::os::unix::fs::symlink("../scripts/nowhere", &link).unwrap();
    repo.git(&["config", "core.hooksPath", ".githooks"]);
    let lab = Lab::with(repo, testkit::ModelServer::start([]));
    let refused = lab.refuse(&[]);
    assert!(
        refused.stderr.contains("is a link that leads nowhere") && refused.stderr.contains("--no-hooks"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_refused_change_whose_objects_are_gone_does_not_hold_the_run_up() {
    let lab = Lab::new([
        Reply::calls([write("a.txt", "TAB\n"), submit("Add a")]),
        good("one"),
    ]);
    hook(&lab.repo, "pre-commit", NO_TABS);
    let ran = lab.run(&["--max-iterations", "1", "--max-verify-repairs", "0"]);
    assert_eq!(ran.outcomes(), ["commit:failed"]);
    std::fs::remove_dir_all(lab.env.state().join("robot-to/runs")).unwrap();
    let ran = lab
        .launch(lab.env.command(["resume", "--max-iterations", "2"]))
        .end(PATIENCE);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.subjects(), ["robot-to 2: Add part one"]);
    assert!(ran.shown().contains("goes on without it"), "{}", ran.shown());
}
