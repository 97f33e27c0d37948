//! `run.log` as programs read it, and the events on standard output.

use robot_lab_to::event::parse_line;
use serde_json::{Value, json};
use testkit::Reply;

use crate::lab::{Lab, Ran, text_of};
use crate::replies::{give_up, good, part};

fn mixed() -> Lab {
    Lab::new([
        good("one").usage(100, 10),
        Reply::calls([give_up("It was too hard")]).usage(200, 20),
        part("two", "broken").usage(300, 30),
        good("three").usage(400, 40),
    ])
}

const FLAGS: [&str; 4] = ["--max-iterations", "4", "--max-verify-repairs", "0"];

fn lines(ran: &Ran<'_>) -> Vec<Value> {
    text_of(&ran.dir.log())
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// `jq 'select(.event == "…")'`.
fn select<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

#[test]
fn the_log_answers_the_usual_questions() {
    let lab = mixed();
    let ran = lab.run(&FLAGS);
    ran.assert_end(0, "max iterations reached (4)");
    let lines = lines(&ran);
    for (line, n) in lines.iter().zip(1..) {
        let keys: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys[..4], ["event", "ts", "seq", "iteration"], "{line}");
        assert_eq!(keys.last(), Some(&"crc"), "{line}");
        assert_eq!(line["seq"], n);
        let ts = line["ts"].as_str().unwrap();
        assert!(
            ts.len() == "2026-11-30T02:03:04.005Z".len() && ts.ends_with('Z'),
            "{ts}"
        );
        assert!(!line["event"].as_str().unwrap().is_empty());
    }
    assert_eq!(lines[0]["event"], "orchestrator:start");
    assert_eq!(select(&lines, "commit:success").len(), 2);
    let failures: Vec<_> = select(&lines, "iteration:failure")
        .iter()
        .map(|line| line["summary"].clone())
        .collect();
    assert_eq!(failures, ["It was too hard"]);
    let ends = select(&lines, "orchestrator:end");
    let totals: Vec<_> = ["iterations", "commits", "input_tokens", "output_tokens"]
        .map(|key| ends[0][key].clone())
        .into();
    assert_eq!((ends.len(), json!(totals)), (1, json!([4, 2, 1_000, 100])));
    for (key, value) in lines.iter().flat_map(|line| line.as_object().unwrap()) {
        let known = ["arguments", "submission", "metrics", "plan"].contains(&key.as_str());
        assert!(known || !value.is_object(), "all else is flat: {key} is {value}");
    }
}

#[test]
fn the_events_on_standard_output_are_the_lines_of_the_log() {
    let lab = mixed();
    let ran = lab.run(&[&FLAGS[..], &["--json"]].concat());
    ran.assert_end(0, "max iterations reached (4)");
    for line in ran.finished.stdout.lines() {
        parse_line(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    assert_eq!(ran.finished.stdout, text_of(&ran.dir.log()));
    assert!(
        ran.finished.stderr.contains("robot-to stopped"),
        "the summary is on standard error"
    );
}

#[test]
fn nobody_reading_the_events_does_not_stop_a_run() {
    let lab = mixed();
    let arguments = lab.arguments(&[&FLAGS[..], &["--json"]].concat());
    let binary = env!("CARGO_BIN_EXE_robot-to");
    let words: Vec<_> = ["-c", "\"$0\" \"$@\" | head -n 1", binary]
        .into_iter()
        .map(Into::into)
        .chain(arguments)
        .collect();
    let ran = lab
        .launch(lab.env.command_of("/bin/sh", &words))
        .end(crate::lab::PATIENCE);
    assert_eq!(ran.finished.stdout.lines().count(), 1);
    assert_eq!(ran.file.state.iteration, 4);
}

#[test]
fn a_run_on_its_way_is_listed_as_running() {
    let lab = Lab::new([Reply::hang()]);
    let started = lab.start(&[]);
    lab.server.wait_for_requests(1, crate::lab::PATIENCE);
    let listed = lab.env.run(["runs"]);
    listed.assert_code(0);
    assert!(listed.stdout.contains("running"), "{}", listed.stdout);
    started.process.signal(testkit::Signal::INT);
    started.end(crate::lab::PATIENCE).assert_end(130, "interrupted");
    let listed = lab.env.run(["runs"]);
    assert!(listed.stdout.contains("interrupted"), "{}", listed.stdout);
}
