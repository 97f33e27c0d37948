//! Long runs and hostile ones, as the report tells them.

use super::*;
use robot_lab_to::event::{Event, Record};
use robot_lab_to::iteration::Submission;
use robot_lab_to::settings::Plan;
use robot_lab_to::workspace::Oid;

fn oid(digit: &str) -> Oid {
    digit.repeat(40).parse().unwrap()
}

/// A run of so many iterations, every third of which is committed; robots say this.
fn records(iterations: u32, said: &str) -> Vec<Record> {
    let submission = Submission {
        summary: said.into(),
        key_learnings: vec![format!("{said} 1"), format!("{said} 2")],
        ..Submission::default()
    };
    let mut events = vec![(
        0,
        Event::RunStarted {
            version: 1,
            run_id: "R".into(),
            objective: said.into(),
            branch: "robot-to/go-R".into(),
            base: oid("b"),
            base_tree: oid("0"),
            model: "script/a".into(),
            eval: "code".into(),
            hooks: vec![],
            plan: Box::new(Plan::new("go")),
        },
    )];
    for number in 1..=iterations {
        events.push((
            number,
            Event::IterationStarted {
                parent: oid("b"),
                from: None,
            },
        ));
        for _ in 0..20 {
            events.push((
                number,
                Event::ToolFinished {
                    candidate: 0,
                    call_id: "c".into(),
                    tool: "bash".into(),
                    ok: true,
                    output: said.into(),
                    elapsed_ms: 1,
                },
            ));
        }
        let outcome = if number % 3 == 0 {
            Event::Committed {
                candidate: 0,
                commit: oid("c"),
                tree: oid("1"),
                message: "m".into(),
                improved: true,
                value: None,
                submission: submission.clone(),
                stop: None,
                stop_text: None,
            }
        } else {
            Event::GateFailure {
                candidate: 0,
                summary: said.into(),
                learnings: vec![format!("{said} {number}")],
                detail: "verify=false (exit 1)".into(),
                output: said.into(),
                tree: None,
            }
        };
        events.push((number, outcome));
    }
    let record = |(seq, (iteration, event))| Record {
        seq,
        ts: "2026-11-30T01:02:03Z".parse().unwrap(),
        iteration,
        event,
    };
    (1..).zip(events).map(record).collect()
}

fn page(records: &[Record]) -> String {
    let report = ReportData::of("R", records, false, false, 0, jiff::Timestamp::UNIX_EPOCH);
    markdown(&report, " --run-dir x")
}

#[test]
fn a_long_run_is_told_within_bounds() {
    let text = page(&records(1_500, &"long words ".repeat(100)));
    assert!(text.contains("\n500 earlier ones are left out; --format json has them.\n"));
    assert!(text.contains("| 1500 |") && !text.contains("|  500 |"));
    assert!(text.contains("975 earlier ones are left out; the table has them."));
    assert!(text.len() < 1_000_000, "{}", text.len());
}

#[test]
fn nothing_that_robots_wrote_shapes_the_page() {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let hostile =
        "a|b\n# H\n- item\n\n```\n<script>x</script> <!-- \x1b[2J [l](http://x) | c |\n|--|--|\n---";
    let shape = |text: &str| -> Vec<String> {
        Parser::new_ext(text, Options::all())
            .filter_map(|event| match event {
                Event::Start(Tag::CodeBlock(_)) => Some("code block".into()),
                Event::Start(tag) => Some(format!("{tag:?}")),
                Event::Html(html) | Event::InlineHtml(html) => Some(format!("html {html}")),
                _ => None,
            })
            .collect()
    };
    let (calm, attacked) = (page(&records(4, "words")), page(&records(4, hostile)));
    assert_eq!(shape(&calm), shape(&attacked), "{attacked}");
    assert!(attacked.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn what_was_estimated_and_waited_is_told() {
    let mut records = records(2, "words");
    let spent = |estimated| {
        let usage = robot_lab::Usage {
            input: 12_000,
            output: 300,
            estimated,
            ..robot_lab::Usage::default()
        };
        let cost = Some(robot_lab::Cost::from_cents(7));
        Event::model_finished(0, "p/m".into(), usage, cost, None, 5)
    };
    let waited = Event::ProviderResumed {
        candidate: 0,
        model: "p/m".into(),
        waited_ms: 61_001,
        answered: true,
    };
    let template = records[0].clone();
    for (number, estimated) in [(1, false), (2, true)] {
        let after = |record: &Record| record.iteration <= number;
        let at = records.iter().rposition(after).unwrap();
        for event in [spent(estimated), waited.clone()] {
            let record = Record {
                iteration: number,
                event,
                ..template.clone()
            };
            records.insert(at, record);
        }
    }
    let text = page(&records);
    for part in [
        "- **Tokens:** ~24.0k in, ~600 out\n",
        "- **Cost:** ~$0.14",
        "- **Waited:** 2:03 for providers\n",
        "|  12.3k |  $0.07 |",
        "| ~12.3k | ~$0.07 |",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        !page(&self::records(2, "words")).contains("Waited"),
        "nothing was"
    );
}

#[test]
fn a_day_is_said_once() {
    let at = |hour: &str| format!("2026-11-30T{hour}:05.000Z");
    assert_eq!(span(&at("01:02"), &at("03:04")), "2026-11-30 01:02 to 03:04");
    assert_eq!(
        span(&at("23:00"), "2026-12-01T01:00:00.000Z"),
        "2026-11-30 23:00 to 2026-12-01 01:00"
    );
}
