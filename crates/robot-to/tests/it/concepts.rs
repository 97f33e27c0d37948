//! docs/concepts.md against the program: outcomes and their counters, reasons to end, exit codes.

use std::collections::BTreeMap;

use robot_lab_to::event::{Event, Record};
use robot_lab_to::iteration::{RunState, StopKind, Submission};
use robot_lab_to::notes;
use robot_lab_to::run::LoggedIteration;
use robot_lab_to::workspace::Oid;
use testkit::TestEnvironment;

use crate::docs::document;

fn oid() -> Oid {
    "a".repeat(40).parse().unwrap()
}

/// One of each outcome.
fn outcomes() -> Vec<Event> {
    let (summary, text) = (String::new, String::new);
    vec![
        Event::Committed {
            candidate: 0,
            commit: oid(),
            tree: oid(),
            message: text(),
            improved: true,
            value: None,
            submission: Submission::default(),
            stop: None,
            stop_text: None,
        },
        Event::Failure {
            candidate: 0,
            summary: summary(),
            learnings: vec![],
        },
        Event::GateFailure {
            candidate: 0,
            summary: summary(),
            learnings: vec![],
            detail: text(),
            output: text(),
            tree: None,
        },
        Event::NoImprovement {
            candidate: 0,
            summary: summary(),
            learnings: vec![],
            detail: text(),
            tree: oid(),
        },
        Event::NoChange {
            candidate: 0,
            summary: summary(),
            learnings: vec![],
            repeat: false,
        },
        Event::Tampered {
            candidate: 0,
            summary: summary(),
            paths: vec![],
            tree: oid(),
        },
        Event::CommitFailed {
            candidate: 0,
            tree: oid(),
            summary: summary(),
            kind: StopKind::Environment,
            output: text(),
        },
        Event::AgentError {
            candidate: 0,
            error: text(),
            message: text(),
        },
        Event::Interrupted {
            candidate: 0,
            kind: StopKind::Interrupted,
            reason: text(),
        },
    ]
}

/// The cells of a table's rows, by the first of them.
fn table(page: &str, head: &str) -> BTreeMap<String, Vec<String>> {
    let (_, rows) = page.split_once(head).unwrap();
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<String> = row
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect();
        (cells[0].clone(), cells[1..].to_vec())
    })
    .collect()
}

#[test]
fn the_outcomes_count_as_the_page_says() {
    let page = document("docs/concepts.md");
    let mut rows = table(&page, "| outcome | in the notes | event |");
    for event in outcomes() {
        let record = |seq, event| Record {
            seq,
            ts: jiff::Timestamp::UNIX_EPOCH,
            iteration: 1,
            event,
        };
        let records = [
            record(
                1,
                Event::IterationStarted {
                    parent: oid(),
                    from: None,
                },
            ),
            record(2, event.clone()),
        ];
        let word = LoggedIteration::of(&records, 1).unwrap().outcome();
        let row = rows.remove(word).unwrap_or_else(|| panic!("{word} is missing"));
        let marker = notes::entry(1, &event)
            .and_then(|entry| {
                let (_, marker) = entry.lines().nth(1)?.split_once('[')?;
                Some(format!("`[{marker}`"))
            })
            .unwrap_or_default();
        assert_eq!((&row[0], &row[1]), (&marker, &format!("`{}`", event.name())));
        let mut state = RunState {
            failures_in_a_row: 2,
            since_improvement: 5,
            ..RunState::default()
        };
        for record in &records {
            state.apply(record);
        }
        let told = |before: u32, after: u32| match after {
            0 => "0",
            after if after == before => "as it was",
            after if after == before + 1 => "+1",
            after => panic!("{word}: {before} became {after}"),
        };
        assert_eq!(row[2], told(2, state.failures_in_a_row), "{word}");
        assert!(row[3].starts_with(told(5, state.since_improvement)), "{word}");
    }
    assert!(rows.is_empty(), "no such outcome: {rows:?}");
}

#[test]
fn the_reasons_to_end_are_those_of_the_program() {
    let page = document("docs/concepts.md");
    let rows = table(&page, "| kind | when | exit code |");
    let source = document("crates/robot-lab-to/src/iteration/stop.rs");
    let (_, kinds) = source.split_once("pub enum StopKind {").unwrap();
    let (kinds, _) = kinds.split_once("\n}").unwrap();
    let kinds = kinds
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .filter(|kind| kind.chars().all(char::is_alphanumeric));
    let named: Vec<String> = kinds
        .map(|kind| {
            let kind: StopKind = serde_json::from_value(snake(kind).into()).unwrap();
            format!("`{}`", serde_json::to_value(kind).unwrap().as_str().unwrap())
        })
        .collect();
    assert_eq!(named.len(), 16);
    let mut sorted = named.clone();
    sorted.sort();
    assert_eq!(rows.keys().cloned().collect::<Vec<_>>(), sorted);
    let help = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"))
        .run(["--help"])
        .stdout;
    let (_, codes) = help.split_once("Exit codes:").unwrap();
    let codes: Vec<&str> = codes
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let said = page.replace(|c: char| !c.is_ascii_digit(), " ");
    for code in &codes {
        assert!(said.split_whitespace().any(|word| word == *code), "code {code}");
    }
    for (kind, row) in &rows {
        let code = row[1].split([',', ' ']).next().unwrap();
        assert!(codes.contains(&code), "{kind}: {code}");
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}
