//! `robot-to clean`: what goes, what stays, and what is said of it afterwards.

use std::path::{Path, PathBuf};

use robot_lab_to::event::to_line;
use robot_lab_to::log::read_log;
use serde_json::Value;
use testkit::{Reply, Signal};

use crate::attempts::{assert_in, look, refused, run_id, seen};
use crate::lab::{Lab, PATIENCE, text_of};
use crate::replies::{good, part};

/// One attempt that the gate refused, and one commit.
fn finished() -> (Lab, String) {
    let lab = Lab::new([part("one", "broken\n"), good("two")]);
    lab.run(&["--max-iterations", "2", "--max-verify-repairs", "0"])
        .assert_end(0, "max iterations reached (2)");
    let id = run_id(&lab);
    (lab, id)
}

fn record(lab: &Lab, id: &str) -> PathBuf {
    lab.top.join(".robot_lab_to/runs").join(id)
}

fn copies(lab: &Lab, id: &str) -> PathBuf {
    lab.env.state().join("robot-to/runs").join(id)
}

fn trash(lab: &Lab) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(lab.env.state().join("robot-to/trash"));
    let mut entries: Vec<_> = listed
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    entries
}

/// Makes the log of a run as if all of it had happened so many days earlier.
fn age(lab: &Lab, id: &str, days: i64) {
    let path = record(lab, id).join("run.log");
    let records = read_log(&path).unwrap().records;
    let lines = records.into_iter().map(|mut record| {
        record.ts -= jiff::SignedDuration::from_hours(24 * days);
        to_line(&record).unwrap() + "\n"
    });
    std::fs::write(&path, lines.collect::<String>()).unwrap();
}

fn excluded(lab: &Lab) -> bool {
    text_of(&lab.repo.path().join(".git/info/exclude")).contains(".robot_lab_to")
}

fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir).map(Iterator::count).unwrap_or(0)
}

#[test]
fn a_run_that_is_named_goes_into_the_trash_and_its_branch_stays() {
    let (lab, id) = finished();
    let refs = lab.repo.git(&["for-each-ref"]);
    assert!(excluded(&lab));
    let exclude = lab.repo.path().join(".git/info/exclude");
    std::fs::write(&exclude, text_of(&exclude) + "*.mine\n").unwrap();

    let page = seen(&lab, &["clean", &id, "--dry-run"]);
    assert_in(&page, &[&format!("To clean:   {id}\n")]);
    assert!(record(&lab, &id).is_dir() && copies(&lab, &id).is_dir() && trash(&lab).is_empty());

    let page = seen(&lab, &["clean", &id]);
    let normal = lab.env.normalize(&page);
    insta::assert_snapshot!(normal);
    assert!(!lab.top.join(".robot_lab_to").exists() && !copies(&lab, &id).exists());
    assert!(!excluded(&lab) && text_of(&exclude).ends_with("*.mine\n"));
    assert_eq!(lab.repo.git(&["for-each-ref"]), refs);
    let entries = trash(&lab);
    assert_eq!(entries.len(), 1);
    assert!(entries[0].join("record/notes.md").is_file() && entries[0].join("work/run.git").is_dir());

    assert!(seen(&lab, &["runs"]).starts_with("no runs in "));
    for command in ["status", "attempts", "report", "clean"] {
        assert_in(
            &refused(&lab, &[command, &id]),
            &[
                &format!("the run {id} was cleaned away; what it left is in "),
                "git branch --list",
            ],
        );
    }
    assert_in(&refused(&lab, &["status"]), &["there are no runs in "]);
    assert_in(
        &refused(&lab, &["clean", "20200101-000000-000000"]),
        &["there is no run 20200101-000000-000000 in "],
    );
    // It is whole, and can be taken back.
    std::fs::create_dir_all(record(&lab, &id).parent().unwrap()).unwrap();
    std::fs::rename(entries[0].join("record"), record(&lab, &id)).unwrap();
    std::fs::rename(entries[0].join("work"), copies(&lab, &id)).unwrap();
    assert_in(&seen(&lab, &["attempts"]), &["   1  the gate failed "]);
}

#[test]
fn without_a_name_only_what_old_and_finished_runs_left_goes() {
    let (lab, id) = finished();
    assert_eq!(seen(&lab, &["clean"]), "nothing to clean\n");
    age(&lab, &id, 29);
    assert_eq!(seen(&lab, &["clean"]), "nothing to clean\n");
    age(&lab, &id, 2);
    assert_in(
        &seen(&lab, &["clean", "--dry-run"]),
        &[&format!("To clean:   {id}: attempts and private copies\n")],
    );
    assert!(copies(&lab, &id).is_dir());
    let page = seen(&lab, &["clean"]);
    assert_in(
        &page,
        &[
            &format!("Cleaned:    {id}: attempts and private copies\n"),
            "            its log and notes stay, and robot-to/make-every-part-hold-",
            " (1 commit)\n",
            "branches and commits are never cleaned\n",
        ],
    );
    assert!(!copies(&lab, &id).exists() && record(&lab, &id).join("run.log").is_file() && excluded(&lab));
    assert_in(
        &seen(&lab, &["attempts"]),
        &[&format!(
            "what the run {id} made and did not commit was cleaned away; it is in "
        )],
    );
    assert_in(&seen(&lab, &["report"]), &["the gate failed"]);
    assert_in(&refused(&lab, &["apply", "1"]), &["was cleaned away; it is in "]);
    assert_eq!(seen(&lab, &["clean"]), "nothing to clean\n");
    // By age, all of it goes.
    assert_eq!(
        seen(&lab, &["clean", "--older-than", "32d"]),
        "nothing to clean\n"
    );
    assert_in(
        &seen(&lab, &["clean", "--older-than", "31"]),
        &[&format!("Cleaned:    {id}\n"), " (1 commit) stays\n"],
    );
    assert!(!record(&lab, &id).exists());
}

#[test]
fn the_trash_is_emptied_of_what_lies_there_for_a_month() {
    let (lab, id) = finished();
    seen(&lab, &["clean", "--all"]);
    let entry = trash(&lab).remove(0);
    let old = entry.with_file_name(format!("20200101-000000-{id}"));
    std::fs::rename(&entry, &old).unwrap();
    // What robots make may lack rights.
    let odd = old.join("work/checkouts/odd/dir");
    std::fs::create_dir_all(&odd).unwrap();
    std::fs::write(odd.join("file"), "").unwrap();
    let locked = std::os::unix::fs::PermissionsExt::from_mode(0o500);
    std::fs::set_permissions(&odd, locked).unwrap();
    assert_in(
        &seen(&lab, &["clean", "--dry-run"]),
        &["To empty:   the trash of 1 thing"],
    );
    assert!(old.exists());
    assert_in(&seen(&lab, &["clean"]), &["Emptied:    the trash of 1 thing"]);
    assert!(trash(&lab).is_empty());
}

#[test]
fn a_run_under_way_is_never_touched() {
    let lab = Lab::new([Reply::hang()]);
    let run = lab.start(&[]);
    lab.server.wait_for_requests(1, PATIENCE);
    let id = run_id(&lab);
    assert_eq!(seen(&lab, &["clean", "--all"]), "nothing to clean\n");
    for extra in [&["clean", &id][..], &["clean", &id, "--dry-run"]] {
        let finished = look(&lab, extra);
        finished.assert_code(6);
        assert_in(
            &finished.stderr,
            &[&format!("the run {id} is held by another process")],
        );
    }
    assert!(copies(&lab, &id).join("run.git").is_dir() && trash(&lab).is_empty());
    run.process.signal(Signal::INT);
    run.end(PATIENCE).assert_end(130, "interrupted");
}

#[test]
fn a_run_that_can_be_resumed_goes_only_by_its_name() {
    let lab = Lab::new([good("one"), Reply::hang()]);
    let run = lab.start(&[]);
    lab.server.wait_for_requests(2, PATIENCE);
    run.process.signal(Signal::KILL);
    run.process.wait(PATIENCE);
    let id = run_id(&lab);
    age(&lab, &id, 100);
    for flags in [
        &["clean"][..],
        &["clean", "--all"],
        &["clean", "--older-than", "9"],
    ] {
        let page = seen(&lab, flags);
        let kept =
            format!("Kept:       {id}: it can be resumed; to clean it all the same: robot-to clean {id}\n");
        assert_eq!(page, kept);
    }
    assert!(
        files(&copies(&lab, &id).join("checkouts")) > 0,
        "its workspace is left"
    );
    assert_in(&seen(&lab, &["clean", &id]), &[&format!("Cleaned:    {id}\n")]);
    assert!(!copies(&lab, &id).exists());
}

#[test]
fn a_run_that_was_killed_while_it_was_set_up_is_named_so_and_can_be_cleaned() {
    let lab = Lab::new([]);
    lab.repo.write("slow", "");
    lab.repo.commit_all("slow");
    let run = lab.start(&[]);
    let began = std::time::Instant::now();
    while !seen(&lab, &["runs"]).contains("setting up") {
        assert!(began.elapsed() < PATIENCE, "it is not listed");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    run.process.signal(Signal::KILL);
    run.process.wait(PATIENCE);
    assert_in(
        &seen(&lab, &["runs"]),
        &["  0 iterations,   0 commits  never began: its process ended while it was set up\n"],
    );
    let json: Value = serde_json::from_str(seen(&lab, &["runs", "--json"]).trim()).unwrap();
    assert_eq!((&json["branch"], &json["commits"]), (&Value::Null, &0.into()));
    let id = json["run_id"].as_str().unwrap().to_owned();
    assert_in(
        &seen(&lab, &["status"]),
        &[
            " — never began: its process ended while the run was set up",
            &format!("Next:       robot-to clean {id}\n"),
        ],
    );
    // A run may be at this point for a moment, so only its name takes it away at once.
    assert_eq!(seen(&lab, &["clean", "--all"]), "nothing to clean\n");
    assert_in(&seen(&lab, &["clean", &id]), &[&format!("Cleaned:    {id}\n")]);
    assert!(!lab.top.join(".robot_lab_to").exists() && !excluded(&lab));
}

#[test]
fn private_copies_of_a_repository_that_is_gone_go_when_they_are_old() {
    let (lab, id) = finished();
    let other = lab.env.state().join("robot-to/runs/20200101-000000-abcdef");
    let copy = std::process::Command::new("cp")
        .args(["-R".as_ref(), copies(&lab, &id).as_os_str(), other.as_os_str()])
        .status();
    assert!(copy.unwrap().success());
    let objects = lab.repo.path().with_file_name("gone").join(".git/objects");
    std::fs::write(
        other.join("run.git/objects/info/alternates"),
        format!("{}\n", objects.display()),
    )
    .unwrap();
    assert_eq!(seen(&lab, &["clean"]), "nothing to clean\n");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(31 * 24 * 3_600);
    std::fs::File::open(&other).unwrap().set_modified(old).unwrap();
    assert_in(
        &seen(&lab, &["clean"]),
        &["Cleaned:    20200101-000000-abcdef: private copies of a repository that is gone\n"],
    );
    assert!(!other.exists() && copies(&lab, &id).exists());
}
