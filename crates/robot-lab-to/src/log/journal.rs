//! Appends records and folds them: what is not in the log did not happen.

use super::ReadLog;
use super::watchers::{Observer, Watchers};
use crate::clock::Clock;
use crate::event::{Event, Record, Redactor, to_line};
use crate::iteration::{RunState, StopReason};
use crate::run::Halt;
use jiff::Timestamp;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The log of one run and the state that follows from it.
pub struct Journal {
    inner: Mutex<Inner>,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    watchers: Watchers,
    halt: Halt,
}

struct Inner {
    file: File,
    seq: u64,
    /// Whether all that was written is an earlier process's.
    of_before: bool,
    state: RunState,
    /// The first failure to write. From then on the log is not the truth any more, so nothing goes on.
    failed: Option<String>,
}

impl Journal {
    /// Starts a log in an empty file. When it cannot be written any more, `halt` ends the run.
    pub fn new(
        file: File,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        observers: Vec<Arc<dyn Observer>>,
        halt: Halt,
    ) -> Self {
        let inner = Inner {
            file,
            seq: 0,
            of_before: false,
            state: RunState::default(),
            failed: None,
        };
        Self {
            inner: Mutex::new(inner),
            clock,
            redactor,
            watchers: Watchers::new(observers),
            halt,
        }
    }

    /// Goes on with the log of an earlier process, of which `log` was read. A torn last line is cut off first.
    pub fn go_on(
        file: File,
        log: ReadLog,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
        observers: Vec<Arc<dyn Observer>>,
        halt: Halt,
    ) -> io::Result<Self> {
        if log.torn {
            file.set_len(log.whole_bytes)?;
        }
        let inner = Inner {
            file,
            seq: log.records.last().map_or(0, |record| record.seq),
            of_before: true,
            state: RunState::fold(&log.records),
            failed: None,
        };
        Ok(Self {
            inner: Mutex::new(inner),
            clock,
            redactor,
            watchers: Watchers::new(observers),
            halt,
        })
    }

    /// Writes an event, then lets it change the state. After an error the state is as before.
    pub fn append(&self, event: Event) -> io::Result<Record> {
        let event = self.redactor.event(event);
        let mut inner = self.lock();
        // What is written before the run goes on is of this process too, and its time does not begin where the earlier
        // one's ended.
        if std::mem::take(&mut inner.of_before) && !matches!(event, Event::RunResumed { .. }) {
            self.write(&mut inner, Event::Reopened {})?;
        }
        self.write(&mut inner, event)
    }

    fn write(&self, inner: &mut Inner, event: Event) -> io::Result<Record> {
        let durable = event.must_be_durable();
        if let Some(failed) = &inner.failed {
            return Err(io::Error::other(failed.clone()));
        }
        let next = u32::from(matches!(event, Event::IterationStarted { .. }));
        let iteration = inner.state.iteration + next;
        let record = Record {
            seq: inner.seq + 1,
            ts: to_the_millisecond(self.clock.now()),
            iteration,
            event,
        };
        if let Err(error) = write(&mut inner.file, &record, durable) {
            let failed = format!("the log could not be written: {error}");
            self.halt.stop(StopReason::environment(&failed));
            inner.failed = Some(failed.clone());
            return Err(io::Error::new(error.kind(), failed));
        }
        inner.seq = record.seq;
        inner.state.apply(&record);
        // In the order of the log, since the next one waits for the lock.
        self.watchers.record(&record);
        Ok(record)
    }

    /// Writes an event whose loss stops nothing. A failure is remembered all the same.
    pub fn note(&self, event: Event) {
        drop(self.append(event));
    }

    /// The time of day, by the clock that stamps records.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Waits until observers have seen everything, but not longer than `limit`. Answers how many records they missed.
    pub fn flush(&self, limit: Duration) -> u64 {
        self.watchers.flush(limit)
    }

    /// Tells observers of text on its way.
    pub fn delta(&self, bytes: usize) {
        self.watchers.delta(bytes);
    }

    /// The state after everything that was written.
    pub fn state(&self) -> RunState {
        self.lock().state.clone()
    }

    /// Why the log cannot be written any more.
    pub fn failure(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// Takes secrets out of a text that goes elsewhere.
    pub fn redact(&self, text: String) -> String {
        self.redactor.text(text)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time as it is written, so that what was read and what was written is the same.
fn to_the_millisecond(now: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

fn write(file: &mut File, record: &Record, durable: bool) -> io::Result<()> {
    let mut line = to_line(record).map_err(io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())?;
    if durable { file.sync_data() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::log::read_log;

    fn notice(text: &str) -> Event {
        Event::Notice { message: text.into() }
    }

    #[test]
    fn the_fold_of_the_log_is_the_state_and_secrets_stay_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.log");
        let file = File::create(&path).unwrap();
        let journal = Journal::new(
            file,
            Arc::new(SystemClock),
            Redactor::new(["sk-secret-1".to_owned()]),
            Vec::new(),
            Halt::new(),
        );
        let oid = "1".repeat(40).parse::<crate::workspace::Oid>().unwrap();
        journal.append(notice("the key is sk-secret-1")).unwrap();
        journal
            .append(Event::IterationStarted {
                parent: oid,
                from: None,
            })
            .unwrap();
        let error = Event::AgentError {
            candidate: 0,
            error: "limit".into(),
            message: "x".into(),
        };
        journal.append(error).unwrap();
        let log = read_log(&path).unwrap();
        assert_eq!(
            log.records.iter().map(|r| r.iteration).collect::<Vec<_>>(),
            [0, 1, 1]
        );
        assert_eq!(RunState::fold(&log.records), journal.state());
        assert_eq!(journal.state().failures_in_a_row, 1);
        assert!(!std::fs::read_to_string(&path).unwrap().contains("sk-secret-1"));
    }

    /// A clock that stands where it was set.
    struct Set(Timestamp);

    impl Clock for Set {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    #[test]
    fn the_time_between_two_processes_is_none_of_the_run_whatever_the_second_writes_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.log");
        let at = |text: &str| Arc::new(Set(text.parse().unwrap()));
        let parts = || (Redactor::default(), Vec::new(), Halt::new());
        let (redactor, observers, halt) = parts();
        let clock = at("2026-12-01T01:00:00Z");
        let journal = Journal::new(File::create(&path).unwrap(), clock, redactor, observers, halt);
        journal.append(started()).unwrap();
        drop(journal);
        for (time, seconds) in [
            ("2026-12-01T01:00:00Z", 0),
            ("2026-12-01T09:00:00Z", 0),
            ("2026-12-02T09:00:00Z", 0),
        ] {
            let file = File::options().append(true).open(&path).unwrap();
            let log = read_log(&path).unwrap();
            let (redactor, observers, halt) = parts();
            let journal = Journal::go_on(file, log, at(time), redactor, observers, halt).unwrap();
            let interrupted = Event::Interrupted {
                candidate: 0,
                kind: crate::iteration::StopKind::Interrupted,
                reason: "killed".into(),
            };
            journal.append(interrupted).unwrap();
            journal.append(notice("more")).unwrap();
            assert_eq!(journal.state().elapsed_ms, seconds);
        }
        let names: Vec<String> = read_log(&path)
            .unwrap()
            .records
            .iter()
            .map(|record| record.event.name())
            .collect();
        let each = ["orchestrator:reopen", "iteration:interrupted", "notice"];
        let all = [&["orchestrator:start"][..], &each, &each, &each].concat();
        assert_eq!(names, all, "and it is told once");
    }

    fn started() -> Event {
        let oid = |digit: &str| digit.repeat(40).parse::<crate::workspace::Oid>().unwrap();
        Event::RunStarted {
            version: 1,
            run_id: "r".into(),
            objective: "x".into(),
            branch: "b".into(),
            base: oid("1"),
            base_tree: oid("2"),
            model: "m".into(),
            eval: "code".into(),
            hooks: vec![],
            plan: Box::default(),
        }
    }

    #[test]
    fn case_167_after_a_failed_write_nothing_more_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.log");
        std::fs::write(&path, "").unwrap();
        let read_only = File::open(&path).unwrap();
        let halt = Halt::new();
        let journal = Journal::new(
            read_only,
            Arc::new(SystemClock),
            Redactor::default(),
            Vec::new(),
            halt.clone(),
        );
        assert!(journal.append(notice("a")).is_err());
        assert!(
            journal
                .failure()
                .is_some_and(|why| why.starts_with("the log could not be written"))
        );
        assert!(journal.append(notice("b")).is_err());
        assert!(halt.reason().is_some(), "and the run ends");
    }
}
