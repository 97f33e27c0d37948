//! The user's unfinished work, and exact ways back.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use testkit::{ModelServer, Reply, Signal, TestRepo};

use crate::lab::{Lab, PATIENCE, text_of};
use crate::replies::{bash, give_up, good, submit, write};

/// Everything of the user's that a run could destroy: changed, staged, untracked and ignored files.
fn dirty(lab: &Lab) {
    lab.repo.write(".gitignore", ".env\n");
    lab.repo.commit_all("ignore the environment");
    lab.repo.write("parts/base", "mine\n");
    lab.repo.write("new.txt", "staged and not committed\n");
    lab.repo.git(&["add", "new.txt"]);
    lab.repo.write("notes-of-mine.txt", "draft\n");
    lab.repo.write(".env", "mine too\n");
}

#[test]
fn case_01_02_05_12_a_rejected_iteration_leaves_the_users_files_as_they_are() {
    let lab = Lab::new([
        Reply::calls([
            bash("rm -rf parts test.sh new.txt notes-of-mine.txt .env; git clean -fdxq; git reset -q --hard"),
            write("parts/base", "broken\n"),
            submit("Break it"),
        ]),
        Reply::calls([write("parts/base", "broken too\n"), give_up("Gave up")]),
    ]);
    dirty(&lab);
    // That everything is byte for byte as it was is checked after each run.
    let ran = lab.run(&["--max-iterations", "2", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "iteration:failure"]);
    assert!(
        ran.shown()
            .contains("3 uncommitted changes are not part of the run"),
        "{}",
        ran.shown()
    );
    assert_eq!(text_of(&lab.top.join("new.txt")), "staged and not committed\n");
}

#[test]
fn case_01_02_05_12_a_crash_leaves_the_users_files_as_they_are() {
    let lab = Lab::new([
        Reply::calls([bash("git reset -q --hard; git clean -fdxq; echo x > parts/base")]),
        Reply::hang(),
    ]);
    dirty(&lab);
    let before = lab.repo.fingerprint();
    let process = lab.env.spawn(lab.arguments(&[]));
    lab.server.wait_for_requests(2, PATIENCE);
    process.signal(Signal::KILL);
    process.wait(PATIENCE);
    before.assert_same(&lab.repo.fingerprint());
    crate::checks::no_process_is_left(&lab.env);
}

#[test]
fn case_04_what_the_user_edits_during_a_run_is_neither_committed_nor_reverted() {
    let place: Arc<Mutex<PathBuf>> = Arc::default();
    let server = ModelServer::answering({
        let place = Arc::clone(&place);
        move |_| {
            let docs = place.lock().unwrap().join("docs");
            std::fs::create_dir_all(&docs).unwrap();
            std::fs::write(docs.join("a.md"), "human\n").unwrap();
            std::fs::write(place.lock().unwrap().join("parts/base"), "human\n").unwrap();
            Reply::calls([write("parts/base", "broken\n"), submit("Break it")])
        }
    });
    let lab = Lab::serving(server);
    lab.top.clone_into(&mut place.lock().unwrap());
    let finished = lab
        .env
        .run(lab.arguments(&["--max-iterations", "1", "--max-verify-repairs", "0"]));
    finished.assert_code(0);
    assert_eq!(text_of(&lab.top.join("docs/a.md")), "human\n");
    assert_eq!(text_of(&lab.top.join("parts/base")), "human\n");
    assert_eq!(
        lab.repo.git(&["status", "--porcelain"]),
        " M parts/base\n?? docs/"
    );
    assert_eq!(
        lab.repo.git(&["log", "--all", "--format=%s"]),
        "a suite that passes"
    );
}

/// Leaves all that a way back could overlook.
const LITTER: &str = "set -e; git init -q vendor/x; cd vendor/x; echo x >f; git add f; \
    git -c user.name=x -c user.email=x@y commit -qm x; cd ../..; \
    : >'naïve é.txt'; : >\"$(printf 'a\\nb')\"; : >'\"q\"'; : >./-rf; : >\"$(printf '\\377')\"; \
    mkfifo pipe; mkdir closed; echo x >closed/f; chmod -R a-w closed; \
    git tag v9; git branch junk; git remote add evil /nowhere; git checkout -qb other; git stash list; \
    rm test.sh; ln -s /etc test.sh; echo x >>a/one; echo x >>b/one";

#[test]
fn case_07_11_26_52_159_165_166_the_next_iteration_begins_exactly_at_the_parent() {
    let look = "find . -path ./.git -prune -o -print | sort; git status --porcelain --ignored; git tag; \
                git branch --list junk; git remote; git diff --quiet HEAD && git write-tree && git rev-parse HEAD^{tree}";
    let repo = TestRepo::new();
    repo.write("a/one", "1\n");
    repo.write("b/one", "1\n");
    let lab = Lab::with(
        repo,
        ModelServer::start([
            Reply::calls([bash(LITTER), submit("Litter")]),
            Reply::calls([bash(look)]),
            good("two"),
        ]),
    );
    let ran = lab.run(&["--max-iterations", "2", "--max-verify-repairs", "0"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["iteration:gate_failure", "commit:success"]);
    let told = ran.requests()[2].last_text("tool").unwrap();
    let tree = lab.repo.git(&["rev-parse", "main^{tree}"]);
    let files = ".\n./a\n./a/one\n./b\n./b/one\n./parts\n./parts/base\n./test.sh";
    assert!(told.contains(&format!("{files}\n{tree}\n{tree}\n")), "{told}");
    assert!(
        ran.notes().contains("vendor/x is a git repository of its own"),
        "{}",
        ran.notes()
    );
    // No link to a repository without its content was committed.
    let modes = lab.repo.git(&["ls-tree", "-r", &ran.file.branch]);
    assert!(!modes.contains("160000"), "{modes}");
}

#[test]
fn case_17_a_workspace_that_disappears_costs_an_iteration_and_nothing_committed() {
    let state: Arc<Mutex<PathBuf>> = Arc::default();
    let server = ModelServer::answering({
        let state = Arc::clone(&state);
        move |request| {
            let told = request.last_text("user").unwrap_or_default();
            if told.contains("This is iteration 1.") {
                return good("one");
            }
            if told.contains("This is iteration 2.") {
                let runs = state.lock().unwrap().join("robot-to/runs");
                for run in std::fs::read_dir(runs).unwrap().flatten() {
                    remove_everything_in(&run.path().join("checkouts"));
                }
                return good("two");
            }
            good("three")
        }
    });
    let lab = Lab::serving(server);
    *state.lock().unwrap() = lab.env.state();
    let before = lab.repo.fingerprint();
    let finished = lab
        .env
        .run(lab.arguments(&["--max-iterations", "3", "--max-verify-repairs", "0"]));
    before.assert_same(&lab.repo.fingerprint());
    let branch = lab
        .repo
        .git(&["for-each-ref", "--format=%(refname)", "refs/heads/robot-to/"]);
    let subjects = lab
        .repo
        .git(&["log", "--reverse", "--format=%s", &format!("main..{branch}")]);
    finished.assert_code(0);
    assert_eq!(
        subjects, "robot-to 1: Add part one\nrobot-to 3: Add part three",
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("was deleted or replaced"),
        "{}",
        finished.stderr
    );
    crate::checks::no_process_is_left(&lab.env);
}

fn remove_everything_in(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        std::fs::remove_dir_all(entry.path()).unwrap();
    }
}
