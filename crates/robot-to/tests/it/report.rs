//! `robot-to report`: a run on a page, whether it is over, under way, or was cut off.

use serde_json::Value;
use testkit::{Reply, Signal, TestEnvironment};

use crate::attempts::{assert_in, look, refused, run_id, seen};
use crate::lab::{Lab, PATIENCE};
use crate::replies::{good, part, submit, write};

#[test]
fn the_report_of_the_demo() {
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let demo = env.root().join("demo");
    let arguments = [
        "demo".as_ref(),
        "--fast".as_ref(),
        "--dir".as_ref(),
        demo.as_os_str(),
    ];
    env.run(arguments).assert_code(0);
    let finished = env
        .cwd(demo.join("kata"))
        .run(["report", "--work-dir", "../state"]);
    finished.assert_code(0);
    assert_eq!(finished.stderr, "");
    insta::with_settings!({ filters => [(r"\b\d+:\d\d\b", "[TIME]"), (r"\[WHEN\] to \S+ UTC", "[WHEN]"), (r"\b[0-9a-f]{10}\b", "[OID]")] }, {
        insta::assert_snapshot!(env.normalize(&finished.stdout));
    });
}

#[test]
fn a_report_is_written_into_a_file_and_leaves_the_rest_alone() {
    let lab = Lab::new([part("one", "broken\n"), good("two")]);
    lab.run(&["--max-iterations", "2", "--max-verify-repairs", "0"])
        .assert_end(0, "max iterations reached (2)");
    let page = seen(&lab, &["report"]);
    let id = run_id(&lab);
    assert_in(
        &page,
        &[
            &format!("# robot-to {id}: stopped\n"),
            "**Reason:** max iterations reached (2)\n",
            "- **Iterations:** 2 (1 committed, 1 discarded)\n- **Changes:** +1 −0 in 1 file\n",
            &format!(
                "- **1**, the gate failed: Add part one (verify=false (exit 1)); `robot-to show {id} 1`\n"
            ),
            "- From 2: learning of: Add part two\n",
            &format!("    robot-to resume {id}\n    robot-to attempts {id}\n"),
        ],
    );
    let file = lab.env.root().join("morning.md");
    let said = seen(&lab, &["report", &id, "-o", file.to_str().unwrap()]);
    assert_eq!(said, format!("Report:     {}\n", file.display()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), page);
    let finished = look(&lab, &["report", "--output", "no/such/dir/x.md"]);
    finished.assert_code(2);
    assert_in(&finished.stderr, &["the report cannot be written to "]);

    let json: Value = serde_json::from_str(&seen(&lab, &["report", "--format", "json"])).unwrap();
    assert_eq!(json["iterations"][0]["outcome"], "the gate failed");
    assert_eq!(json["iterations"][1]["changes"]["added"], 1);
    assert_eq!((&json["commits"], &json["complete"]), (&1.into(), &false.into()));
    assert_in(
        &refused(&lab, &["report", "20200101-000000-000000"]),
        &["there is no run"],
    );
}

#[test]
fn a_run_under_way_and_one_that_was_killed_are_told_too() {
    let lab = Lab::new([good("one"), Reply::hang()]);
    let run = lab.start(&[]);
    lab.server.wait_for_requests(2, PATIENCE);
    let page = seen(&lab, &["report"]);
    assert_in(&page, &[": running\n", "| under way", "    robot-to status "]);
    run.process.signal(Signal::KILL);
    run.process.wait(PATIENCE);
    // Without the private copies, what was committed is still known.
    std::fs::remove_dir_all(lab.env.state().join("robot-to")).unwrap();
    let page = seen(&lab, &["report"]);
    assert_in(
        &page,
        &[
            ": cut off\n",
            "- **Changes:** +1 −0 in 1 file\n",
            "    robot-to resume ",
        ],
    );
}

#[test]
fn what_a_robot_wrote_cannot_shape_the_report() {
    let hostile = "x | y\u{1b}[2J\n# heading <img src=x onerror=alert(1)> [a](http://b) \u{202e}";
    let lab = Lab::new([Reply::calls([write("parts/one", "ok\n"), submit(hostile)])]);
    lab.run(&["--max-iterations", "1"]);
    let page = seen(&lab, &["report"]);
    assert_in(
        &page,
        &["x \\| y \\[2J # heading \\<img src=x onerror=alert(1)\\> \\[a\\](http:\\//b)"],
    );
    let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!page.contains(steers), "{page:?}");
    let json = seen(&lab, &["report", "--format", "json"]);
    assert!(!json.contains(steers), "{json:?}");
}
