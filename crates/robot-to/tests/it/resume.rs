//! A run goes on where it ended: limits raised, a process killed, a commit half done, and what is refused.

use std::path::PathBuf;
use std::time::Duration;

use robot_lab_to::log::read_log;
use robot_lab_to::run::RunDir;
use testkit::{Reply, Signal};

use crate::lab::{Lab, PATIENCE, Ran, text_of};
use crate::replies::{bash, good, submit, write};

/// Lets the latest run of the lab go on.
fn resume<'a>(lab: &'a Lab, extra: &[&str]) -> Ran<'a> {
    let arguments = [&["resume"], extra].concat();
    lab.launch(lab.env.command(&arguments)).end(PATIENCE)
}

fn log_path(lab: &Lab) -> PathBuf {
    let runs = RunDir::list(&lab.top.join(".robot_lab_to")).unwrap();
    runs.last().unwrap().1.log()
}

/// Cuts the log after the last line that holds `mark`, as if the process had ended there.
fn cut_log_after(lab: &Lab, mark: &str, torn: &str) {
    let path = log_path(lab);
    let text = text_of(&path);
    let kept: usize = text.lines().position(|line| line.contains(mark)).unwrap();
    let lines: Vec<&str> = text.lines().take(kept + 1).collect();
    std::fs::write(path, format!("{}\n{torn}", lines.join("\n"))).unwrap();
}

#[test]
fn case_170_a_run_goes_on_with_a_raised_limit_and_everything_else_as_it_was() {
    let lab = Lab::new([good("one"), good("two")]);
    let first = lab.run(&["--max-iterations", "1", "--max-tool-rounds", "7"]);
    first.assert_end(0, "max iterations reached (1)");
    let ran = resume(&lab, &["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.subjects().len(), 2);
    assert_eq!(ran.count("orchestrator:resume"), 1);
    assert_eq!(
        ran.file.state.usage.total(),
        2 * first.file.state.usage.total(),
        "tokens go on"
    );
    let past = read_log(&ran.dir.log()).unwrap();
    let resumed = past.records.iter().find_map(|record| match &record.event {
        robot_lab_to::event::Event::RunResumed { plan, .. } => Some(plan.clone()),
        _ => None,
    });
    let plan = resumed.unwrap();
    assert_eq!(
        plan.verify_command.as_deref(),
        Some("sh test.sh"),
        "the gate is restored"
    );
    assert_eq!(plan.max_tool_calls, 7);
    assert!(ran.notes().contains("### Iteration 2"), "{}", ran.notes());
}

#[test]
fn a_spent_limit_is_named_with_the_flag_that_raises_it() {
    let lab = Lab::new([good("one")]);
    lab.run(&["--max-iterations", "1"]);
    let log = text_of(&log_path(&lab));
    let refused = lab.env.run(["resume"]);
    refused.assert_code(2);
    assert!(
        refused
            .stderr
            .contains("1 iteration; raise it with --max-iterations"),
        "{}",
        refused.stderr
    );
    assert_eq!(text_of(&log_path(&lab)), log, "the log is as it was");
}

#[test]
fn case_172_a_killed_run_loses_the_iteration_in_flight_and_nothing_else() {
    let lab = Lab::new([
        good("one"),
        Reply::calls([write("parts/lost", "ok\n")]),
        Reply::hang(),
    ]);
    let run = lab.start(&["--max-iterations", "3"]);
    lab.server.wait_for_requests(3, PATIENCE);
    run.process.signal(Signal::KILL);
    run.process.wait(PATIENCE);
    assert!(text_of(&log_path(&lab)).contains("commit:success"));

    // The lost iteration counts for nothing, so two of three are left.
    lab.server.push(good("two"));
    lab.server.push(good("three"));
    let ran = resume(&lab, &[]);
    ran.assert_end(0, "max iterations reached (3)");
    let (success, lost) = ("commit:success", "iteration:interrupted");
    assert_eq!(ran.outcomes(), [success, lost, success, success]);
    let subjects = [
        "robot-to 1: Add part one",
        "robot-to 3: Add part two",
        "robot-to 4: Add part three",
    ];
    assert_eq!(ran.subjects(), subjects);
    assert_eq!(ran.file.state.failures_in_a_row, 0);
}

#[test]
fn case_20_171_a_commit_that_was_made_but_not_recorded_is_recorded_once() {
    let lab = Lab::new([good("one")]);
    let first = lab.run(&["--max-iterations", "1"]);
    let commits = first.subjects();
    let tip = lab.repo.git(&["rev-parse", first.file.branch.as_str()]);
    cut_log_after(&lab, "\"commit:start\"", "{\"event\":\"commit:succ");
    lab.server.push(good("two"));
    let ran = resume(&lab, &["--max-iterations", "2"]);
    assert_eq!(ran.subjects().len(), 2, "the first is neither lost nor doubled");
    assert!(ran.subjects().starts_with(&commits));
    assert_eq!(
        lab.repo.git(&["rev-parse", &format!("{}~1", ran.file.branch)]),
        tip
    );
    assert_eq!(ran.outcomes(), ["commit:success", "commit:success"]);
}

#[test]
fn case_171_a_commit_that_was_announced_but_not_made_is_made_exactly_so() {
    let lab = Lab::new([good("one")]);
    let first = lab.run(&["--max-iterations", "1"]);
    let branch = first.file.branch.clone();
    let tip = lab.repo.git(&["rev-parse", branch.as_str()]);
    cut_log_after(&lab, "\"commit:start\"", "");
    lab.repo.git(&[
        "update-ref",
        &format!("refs/heads/{branch}"),
        &format!("{}~1", tip.trim()),
    ]);
    lab.server.push(good("two"));
    let ran = resume(&lab, &["--max-iterations", "2"]);
    assert_eq!(
        lab.repo.git(&["rev-parse", &format!("{branch}~1")]),
        tip,
        "the same commit, to the last bit"
    );
    assert_eq!(ran.subjects().len(), 2);
}

#[test]
fn a_run_that_another_process_has_is_not_touched() {
    let lab = Lab::new([Reply::hang()]);
    let mut run = lab.start(&["--max-iterations", "1"]);
    lab.server.wait_for_requests(1, PATIENCE);
    let id = log_path(&lab)
        .parent()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    for arguments in [vec!["resume"], vec!["resume", &id], vec!["--resume", &id]] {
        let refused = lab.env.run(&arguments);
        refused.assert_code(6);
        assert!(
            refused.stderr.contains("is held by another process"),
            "{}",
            refused.stderr
        );
    }
    assert!(!run.process.has_ended());
    run.process.signal(Signal::INT);
    run.end(Duration::from_secs(60)).assert_end(130, "interrupted");
}

#[test]
fn what_cannot_go_on_is_refused_and_left_as_it_is() {
    let lab = Lab::new([good("one"), good("two")]);
    let first = lab.run(&["--max-iterations", "1"]);
    let branch = format!("refs/heads/{}", first.file.branch);
    let tip = lab.repo.git(&["rev-parse", &branch]);
    let log = text_of(&log_path(&lab));
    let refuse = |expected: &str| {
        let refused = lab.env.run(["resume", "--max-iterations", "2"]);
        refused.assert_code(2);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    };
    lab.repo
        .git(&["update-ref", &branch, &format!("{}~1", tip.trim())]);
    refuse("was moved");
    lab.repo.git(&["update-ref", "-d", &branch]);
    refuse("is gone; bring it back with");
    lab.repo.git(&["update-ref", &branch, tip.trim()]);
    std::fs::write(log_path(&lab), log.replace("commit:success", "commit:succesS")).unwrap();
    refuse("checksum");
    std::fs::write(log_path(&lab), &log).unwrap();
    let ran = resume(&lab, &["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    let unknown = lab.env.run(["resume", "20200101-000000-abcdef"]);
    unknown.assert_code(2);
    assert!(unknown.stderr.contains("there is no run"), "{}", unknown.stderr);
}

#[test]
fn a_run_that_has_done_what_was_asked_is_not_resumed_by_itself() {
    let lab = Lab::new([
        Reply::calls([bash("true"), submit("Nothing")]),
        Reply::calls([bash("true"), submit("Nothing")]),
        Reply::calls([bash("true"), submit("Nothing")]),
    ]);
    lab.run(&[])
        .assert_end(0, "nothing to do: 3 iterations without a change");
    let refused = lab.env.run(["resume"]);
    refused.assert_code(2);
    assert!(
        refused.stderr.contains("there is no run to resume"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_run_goes_on_in_the_directory_that_it_was_started_in() {
    let mut lab = Lab::new([good("one"), write_in_sub()]);
    lab.repo.write("sub/check.sh", "test -e here\n");
    lab.repo.write("sub/here", "");
    lab.repo.commit_all("a subdirectory");
    lab.verify = Some("sh check.sh".into());
    lab.start_in("sub");
    let first = lab.run(&["--max-iterations", "1"]);
    first.assert_end(0, "max iterations reached (1)");
    let top = lab.top.clone();
    lab.env.cwd(top);
    let ran = resume(&lab, &["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(
        ran.outcomes(),
        ["commit:success", "commit:success"],
        "{}",
        ran.shown()
    );
    assert_eq!(ran.on_branch("sub/two.txt"), "two");
}

fn write_in_sub() -> Reply {
    Reply::calls([write("two.txt", "two\n"), submit("Write beside the others")])
}

#[test]
fn a_target_that_was_met_before_the_process_died_is_not_paid_for_again() {
    let lab = Lab::new([good("one")]);
    let first = lab.run(&["--measure", "ls parts | wc -l", "--target", "2"]);
    first.assert_end(0, "target met: verify=true, measure=2 (before 1)");
    cut_log_after(&lab, "\"commit:start\"", "");
    let ran = resume(&lab, &[]);
    ran.assert_end(0, "target met: verify=true, measure=2 (before 1)");
    assert_eq!((ran.subjects().len(), ran.requests().len()), (1, 1));
}
