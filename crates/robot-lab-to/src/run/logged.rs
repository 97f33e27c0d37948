//! A run as its log tells it: found and read whether it goes on or is over, and never held.

use super::assemble::work_dir;
use super::past::is_complete;
use super::{RunDir, RunId};
use crate::commit_message::one_line;
use crate::event::{Event, Record};
use crate::iteration::Submission;
use crate::log::read_log;
use crate::settings::Plan;
use crate::workspace::Oid;
use jiff::Timestamp;
use std::io;
use std::path::{Path, PathBuf};

/// A run that is looked at.
#[derive(Debug)]
pub struct Logged {
    /// The run.
    pub id: RunId,
    /// Where it is recorded.
    pub dir: RunDir,
    /// What its log holds, in order.
    pub records: Vec<Record>,
    /// How many events of the log this version does not know.
    pub unknown: usize,
    /// Whether a process is at work on it.
    pub held: bool,
}

/// Why a run cannot be looked at. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// No run of that id.
    #[error("there is no run {wanted} in {}; `robot-to runs` lists them", run_dir.display())]
    NoSuchRun {
        /// The id.
        wanted: String,
        /// Where it was looked for.
        run_dir: PathBuf,
    },
    /// No run at all.
    #[error("there are no runs in {}", run_dir.display())]
    NoRuns {
        /// Where was looked.
        run_dir: PathBuf,
    },
    /// The log cannot be read.
    #[error("the run {id} cannot be read: {source}")]
    Unreadable {
        /// The run.
        id: RunId,
        /// Why.
        source: io::Error,
    },
    /// The directory of the runs cannot be read.
    #[error("{} cannot be read: {source}; nothing was changed", run_dir.display())]
    Runs {
        /// Which.
        run_dir: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Logged {
    /// Reads the run of this id, or the latest.
    pub fn read(run_dir: &Path, wanted: Option<&str>) -> Result<Self, LogError> {
        let mut runs = RunDir::list(run_dir).map_err(|source| LogError::Runs {
            run_dir: run_dir.to_owned(),
            source,
        })?;
        let (id, dir) = match wanted {
            Some(wanted) => runs
                .into_iter()
                .find(|(id, _)| id.as_str() == wanted)
                .ok_or_else(|| LogError::NoSuchRun {
                    wanted: one_line(wanted),
                    run_dir: run_dir.to_owned(),
                })?,
            None => runs.pop().ok_or_else(|| LogError::NoRuns {
                run_dir: run_dir.to_owned(),
            })?,
        };
        let read = || -> io::Result<_> {
            // Before and after, so that a run which begins or ends meanwhile is not taken for one that was cut off.
            let before = dir.is_held()?;
            let log = read_log(&dir.log())?;
            Ok((before || dir.is_held()?, log))
        };
        match read() {
            Ok((held, log)) => Ok(Self {
                id,
                dir,
                records: log.records,
                unknown: log.unknown.len(),
                held,
            }),
            // Its directory was made, and nothing else yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self {
                id,
                dir,
                records: Vec::new(),
                unknown: 0,
                held: false,
            }),
            Err(source) => Err(LogError::Unreadable { id, source }),
        }
    }

    /// Where its repositories are, below the directory for private copies.
    #[must_use]
    pub fn work_dir(&self, root: &Path) -> PathBuf {
        work_dir(root, &self.id)
    }

    /// Whether it has done what was asked, and does not go on by itself.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        is_complete(&self.records)
    }
}

/// How a run began, and the plan that it goes by now.
#[derive(Clone, Copy, Debug)]
pub struct Began<'a> {
    /// The version of its log.
    pub version: u32,
    /// What the user wants.
    pub objective: &'a str,
    /// The run branch.
    pub branch: &'a str,
    /// Where that began.
    pub base: &'a Oid,
    /// The model.
    pub model: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// When.
    pub started: Timestamp,
}

impl<'a> Began<'a> {
    /// Reads it from the records; `None` when the run was cut off before its branch was made.
    #[must_use]
    pub fn of(records: &'a [Record]) -> Option<Self> {
        let mut began: Option<Self> = None;
        for record in records {
            match &record.event {
                Event::RunStarted {
                    version,
                    objective,
                    branch,
                    base,
                    model,
                    plan,
                    ..
                } => {
                    began = Some(Self {
                        version: *version,
                        objective,
                        branch,
                        base,
                        model,
                        plan,
                        started: record.ts,
                    });
                }
                Event::RunResumed { model, plan, .. } => {
                    if let Some(began) = &mut began {
                        (began.model, began.plan) = (model, plan);
                    }
                }
                _ => {}
            }
        }
        began
    }
}

/// What the gate said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate<'a> {
    /// One line.
    pub detail: &'a str,
    /// What it printed.
    pub output: &'a str,
}

/// An iteration as the log tells it.
#[derive(Clone, Copy, Debug)]
pub struct LoggedIteration<'a> {
    /// Its number.
    pub number: u32,
    /// The candidate that the outcome is of.
    pub candidate: u32,
    /// The commit that it began from.
    pub parent: &'a Oid,
    /// What the robot reported last.
    pub submission: Option<&'a Submission>,
    /// What the gate said last.
    pub gate: Option<Gate<'a>>,
    /// The outcome; `None` while it is under way, or when the process ended in the middle of it.
    pub outcome: Option<&'a Record>,
}

impl<'a> LoggedIteration<'a> {
    /// The iteration of this number; `None` when none of that number began.
    #[must_use]
    pub fn of(records: &'a [Record], number: u32) -> Option<Self> {
        let records = || records.iter().filter(move |record| record.iteration == number);
        let parent = records().find_map(|record| match &record.event {
            Event::IterationStarted { parent, .. } => Some(parent),
            _ => None,
        })?;
        let mut outcomes = records().filter(|record| record.event.is_outcome());
        let outcome = outcomes.next_back();
        let wanted = outcome.map_or(0, |record| candidate(&record.event));
        let mut told = Self {
            number,
            candidate: wanted,
            parent,
            submission: None,
            gate: None,
            outcome,
        };
        for record in records() {
            match &record.event {
                Event::AgentEnded {
                    candidate,
                    submission: Some(submission),
                    ..
                } if *candidate == wanted => told.submission = Some(submission),
                Event::Eval {
                    candidate,
                    detail,
                    output,
                    ..
                } if *candidate == wanted => {
                    let output = output.as_deref().unwrap_or_default();
                    told.gate = Some(Gate { detail, output });
                }
                // A workspace that cannot become a tree fails the gate without being graded.
                Event::GateFailure { detail, output, .. } => told.gate = Some(Gate { detail, output }),
                _ => {}
            }
        }
        Some(told)
    }

    /// The outcome in words.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self.outcome.map(|record| &record.event) {
            None => "under way",
            Some(Event::Committed { .. }) => "committed",
            Some(Event::CommitFailed { .. }) => "the commit failed",
            Some(Event::Failure { .. }) => "failed",
            Some(Event::GateFailure { .. }) => "the gate failed",
            Some(Event::NoImprovement { .. }) => "not better",
            Some(Event::NoChange { repeat: true, .. }) => "tried before",
            Some(Event::NoChange { .. }) => "nothing was changed",
            Some(Event::Tampered { .. }) => "locked files were changed",
            Some(Event::AgentError { .. }) => "ended by an error",
            Some(Event::Interrupted { .. }) => "interrupted",
            Some(_) => "discarded",
        }
    }

    /// What there is to say of it, in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let reported = self.submission.map(|submission| submission.summary.as_str());
        let text = match self.outcome.map(|record| &record.event) {
            Some(Event::AgentError { error, message, .. }) => format!("{error}: {message}"),
            Some(Event::Interrupted { reason, .. }) => match reported {
                Some(summary) => format!("{reason}: {summary}"),
                None => reason.clone(),
            },
            // Without a submission, these say why there is none.
            Some(Event::Failure { summary, .. } | Event::GateFailure { summary, .. }) => summary.clone(),
            _ => reported.unwrap_or_default().to_owned(),
        };
        one_line(&text)
    }
}

/// The candidate that an outcome is of.
fn candidate(outcome: &Event) -> u32 {
    match outcome {
        Event::Committed { candidate, .. }
        | Event::CommitFailed { candidate, .. }
        | Event::Failure { candidate, .. }
        | Event::GateFailure { candidate, .. }
        | Event::NoImprovement { candidate, .. }
        | Event::NoChange { candidate, .. }
        | Event::Tampered { candidate, .. }
        | Event::AgentError { candidate, .. }
        | Event::Interrupted { candidate, .. } => *candidate,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iteration::StopKind;

    fn records(events: impl IntoIterator<Item = (u32, Event)>) -> Vec<Record> {
        let record = |(seq, (iteration, event))| Record {
            seq,
            ts: "2026-11-30T01:02:03Z".parse().unwrap(),
            iteration,
            event,
        };
        (1..).zip(events).map(record).collect()
    }

    fn oid(digit: &str) -> Oid {
        digit.repeat(40).parse().unwrap()
    }

    fn submitted(summary: &str) -> Event {
        Event::AgentEnded {
            candidate: 0,
            attempt: 1,
            stop: "submitted".into(),
            submission: Some(Submission {
                summary: summary.into(),
                ..Submission::default()
            }),
        }
    }

    fn interrupted() -> Event {
        Event::Interrupted {
            candidate: 0,
            kind: StopKind::Interrupted,
            reason: "a\nsignal".into(),
        }
    }

    #[test]
    fn an_iteration_is_told_by_its_own_records_and_the_last_words() {
        let log = records([
            (
                1,
                Event::IterationStarted {
                    parent: oid("1"),
                    from: None,
                },
            ),
            (1, submitted("first")),
            (1, submitted("second")),
            (1, interrupted()),
            (
                2,
                Event::IterationStarted {
                    parent: oid("2"),
                    from: None,
                },
            ),
        ]);
        let one = LoggedIteration::of(&log, 1).unwrap();
        assert_eq!(
            (one.outcome(), one.summary().as_str()),
            ("interrupted", "a signal: second")
        );
        let two = LoggedIteration::of(&log, 2).unwrap();
        assert_eq!((two.outcome(), two.summary().as_str()), ("under way", ""));
        assert_eq!((two.parent, two.gate), (&oid("2"), None));
        for number in [0, 3] {
            assert!(LoggedIteration::of(&log, number).is_none(), "{number}");
        }
    }

    #[test]
    fn a_run_is_read_while_it_is_held_and_before_it_has_a_log() {
        let home = tempfile::tempdir().unwrap();
        let none = Logged::read(home.path(), None).unwrap_err();
        assert!(matches!(none, LogError::NoRuns { .. }), "{none}");
        let id = RunId::parse("20261130-010203-abcdef").unwrap();
        let dir = RunDir::create(home.path(), &id).unwrap();
        let run = Logged::read(home.path(), None).unwrap();
        assert!(!run.held && run.records.is_empty());
        let log = dir.create_log().unwrap();
        let run = Logged::read(home.path(), Some(id.as_str())).unwrap();
        assert!(run.held && !run.is_complete());
        drop(log);
        let wrong = Logged::read(home.path(), Some("x\u{1b}[2J"))
            .unwrap_err()
            .to_string();
        assert!(
            wrong.contains("no run x [2J in") && wrong.contains("`robot-to runs`"),
            "{wrong}"
        );
    }
}
