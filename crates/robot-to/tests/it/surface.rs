//! Everything that people see of one run, so that a change of it is noticed.

use insta::{assert_snapshot, with_settings};
use testkit::{Call, Reply};

use crate::lab::{Lab, Ran};
use crate::replies::{bash, give_up, good, part, submit, write};

/// What was printed, without what differs from run to run.
fn printed(ran: &Ran<'_>) -> String {
    let text = format!(
        "{}--- standard output ---{}",
        ran.finished.stderr, ran.finished.stdout
    );
    ran.lab.env.normalize(&text)
}

#[test]
fn what_people_see_of_a_run() {
    let read = Call::new("read", serde_json::json!({ "path": "test.sh" }));
    let lab = Lab::new([
        Reply::text("I look first.")
            .with_calls([read, bash("sh test.sh; echo status $?")])
            .usage(1_200, 60),
        part("one", "nearly").usage(1_400, 80),
        part("one", "ok\n").usage(1_600, 80),
        Reply::calls([give_up("Nothing comes to mind")]).usage(1_000, 20),
        Reply::text("Done.").usage(1_000, 5),
        Reply::calls([submit("Nothing to change")]).usage(1_100, 30),
        part("two", "broken").usage(1_000, 50),
        Reply::calls([write("../outside", "x"), give_up("It stays broken")]).usage(1_200, 50),
        good("three").usage(1_000, 50),
    ]);
    lab.repo.write("untracked", "1\n");
    let ran = lab.run(&["--max-iterations", "5"]);
    ran.assert_end(0, "max iterations reached (5)");
    let filters = vec![
        (r" +\d+:\d\d ", " [CLOCK] "),
        (r"— \d+:\d\d\n", "— [CLOCK]\n"),
        (r"[0-9a-f]{7,12}\b", "[OID]"),
    ];
    with_settings!({ filters => filters }, { assert_snapshot!(printed(&ran)) });
}

#[test]
fn what_people_see_of_a_provider_that_refuses() {
    let lab = Lab::new([Reply::status(401)]);
    let ran = lab.run(&["--max-iterations", "5"]);
    ran.finished.assert_code(5);
    let filters = vec![
        (r" +\d+:\d\d ", " [CLOCK] "),
        (r"— \d+:\d\d\n", "— [CLOCK]\n"),
        (r"[0-9a-f]{7,12}\b", "[OID]"),
    ];
    with_settings!({ filters => filters }, { assert_snapshot!(printed(&ran)) });
}

#[test]
fn the_commands_that_the_summary_shows_work() {
    let lab = Lab::new([part("one", "broken"), good("two")]);
    let copies = lab.env.root().join("private copies");
    let flags = [
        "--max-iterations",
        "2",
        "--max-verify-repairs",
        "0",
        "--work-dir",
        copies.to_str().unwrap(),
    ];
    let finished = lab.env.run(lab.arguments(&flags));
    finished.assert_code(0);
    let (_, next) = finished.stdout.split_once("Next:").unwrap();
    let commands: Vec<_> = next.lines().map(str::trim).collect();
    let shown = [
        ("git log ", "robot-to 2: Add part two"),
        ("git diff ", "+ok"),
        ("robot-to report ", "- **1**, the gate failed: Add part one"),
        ("robot-to attempts ", "   1  the gate failed "),
    ];
    assert_eq!(commands.len(), shown.len(), "{}", finished.stdout);
    for (command, (begins, shown)) in commands.iter().zip(shown) {
        assert!(command.starts_with(begins), "{command}");
        let output = lab.env.shell(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains(shown),
            "{command}\n{said}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
