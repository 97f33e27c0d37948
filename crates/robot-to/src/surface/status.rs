//! How a run stands, for people and for programs: a fold of its records, at a given time.

use super::Style;
use super::cost::{self, Bill};
use super::plain::{clock, line};
use robot_lab::counted;
use robot_lab_to::commit_message::{clip, one_line};
use robot_lab_to::event::{Event, Record};
use robot_lab_to::iteration::RunState;
use robot_lab_to::run::{Began, Standing};
use serde_json::{Value, json};

/// How many events are shown, and the longest line of one in characters.
const EVENTS: usize = 6;
const MAX_LINE: usize = 120;

/// A run, and the time at which somebody asks.
pub(crate) struct Status<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) records: &'a [Record],
    /// Events that this version does not know.
    pub(crate) unknown: usize,
    /// Whether a process is at work on it.
    pub(crate) held: bool,
    /// Whether it has done what was asked.
    pub(crate) complete: bool,
    pub(crate) now: jiff::Timestamp,
    pub(crate) places: Places,
}

/// Where things are, as they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub(crate) notes: String,
    pub(crate) log: String,
    /// The run repository, when it is there.
    pub(crate) attempts: Option<String>,
    /// The flags that lead another command to the run.
    pub(crate) flags: String,
}

/// More of how a run stands than its word.
pub(super) fn detail(standing: &Standing, now: jiff::Timestamp) -> String {
    match standing {
        Standing::Running(doing) => (*doing).to_owned(),
        Standing::Waiting(waiting) => {
            let (until, why) = (super::local(waiting.until, now), waiting.why());
            if waiting.announced {
                format!("for {} until {until} ({why})", waiting.model)
            } else {
                format!("for {} ({why}), until {until} at most", waiting.model)
            }
        }
        Standing::Retrying { kind, left } => {
            let left = clock(i64::try_from(left.as_secs()).unwrap_or(i64::MAX));
            format!("for the model ({kind}), which is asked again in {left}")
        }
        Standing::Ended { reason, .. } => reason.clone(),
        Standing::CutOff => "its process ended without a word".into(),
        Standing::NeverBegan => "its process ended while the run was set up; it made no branch".into(),
    }
}

/// The measured scores.
struct Scores {
    base: Option<f64>,
    now: Option<f64>,
    best: Option<f64>,
    target: Option<f64>,
    minimize: bool,
}

impl Status<'_> {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let standing = self.standing();
        let state = RunState::fold(self.records);
        let began = Began::of(self.records);
        let mut text = format!(
            "robot-to {} — {}: {}\n",
            self.run_id,
            standing.word(),
            one_line(&detail(&standing, self.now))
        );
        let mut line = |name: &str, value: &str| text.push_str(&format!("{name:<11} {value}\n"));
        if let Some(began) = &began {
            line("Objective:", &clip(&one_line(began.objective), MAX_LINE));
            line("Model:", &one_line(began.model));
            line("Branch:", &one_line(began.branch));
        }
        line(
            "Iterations:",
            &format!(
                "{} ({} committed, {} discarded)",
                state.iteration, state.commits, state.discarded
            ),
        );
        line("Tokens:", &cost::usage(state.usage));
        line("Cost:", &Bill::of(&state).text());
        if let Some(answers) = super::answers(&state) {
            line("Answers:", &answers);
        }
        line("Elapsed:", &clock(self.elapsed_ms(&state) / 1_000));
        if state.waited_ms > 0 {
            line("Waited:", &super::waited(&state));
        }
        if let Some(scores) = self.scores(&state) {
            line("Score:", &scores.text());
        }
        line("Notes:", &self.places.notes);
        line("Log:", &self.places.log);
        if let Some(attempts) = &self.places.attempts {
            line("Kept in:", attempts);
        }
        if self.unknown > 0 {
            let unknown = format!(
                "{} of a newer robot-to, passed over",
                counted(self.unknown, "event")
            );
            line("Unknown:", &unknown);
        }
        let mut name = "Lately:";
        for (record, said) in self.events() {
            let ago = clock(self.since(record) / 1_000);
            let said = format!("{ago:>7} ago  #{:<3} {said}", record.iteration);
            line(std::mem::take(&mut name), &said);
        }
        let mut name = "Next:";
        for next in self.next(&standing, &state, began.as_ref()) {
            line(std::mem::take(&mut name), &next);
        }
        text
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let standing = self.standing();
        let state = RunState::fold(self.records);
        let began = Began::of(self.records);
        let kind = match &standing {
            Standing::Ended { kind, .. } => *kind,
            _ => None,
        };
        let events: Vec<Value> = self
            .events()
            .map(|(record, said)| {
                json!({
                    "ts": time(record.ts),
                    "iteration": record.iteration,
                    "event": record.event.name(),
                    "text": said,
                })
            })
            .collect();
        json!({
            "run_id": self.run_id,
            "standing": standing.word(),
            "detail": one_line(&detail(&standing, self.now)),
            "kind": kind,
            "complete": self.complete,
            "objective": began.map(|began| began.objective),
            "model": began.map(|began| began.model),
            "branch": began.map(|began| began.branch),
            "base": began.map(|began| began.base.as_str()),
            "tip": state.parent.as_ref().map(ToString::to_string),
            "iterations": state.iteration,
            "commits": state.commits,
            "discarded": state.discarded,
            "input_tokens": state.usage.input,
            "output_tokens": state.usage.output,
            "cached_tokens": state.usage.cached_input,
            "estimated": state.usage.estimated,
            "cost": state.known_cost(),
            "unpriced": state.unpriced,
            "cost_per_commit": state.cost_per_commit(),
            "elapsed_ms": self.elapsed_ms(&state),
            "waited_ms": state.waited_ms,
            "answers": state.answers,
            "waiting": match &standing {
                Standing::Waiting(waiting) => json!({
                    "model": waiting.model,
                    "kind": waiting.kind,
                    "until": time(waiting.until),
                    "announced": waiting.announced,
                }),
                _ => Value::Null,
            },
            "score": self.scores(&state).map(|scores| json!({
                "base": scores.base,
                "now": scores.now,
                "best": scores.best,
                "target": scores.target,
                "minimize": scores.minimize,
            })),
            "started": began.map(|began| time(began.started)),
            "updated": self.records.last().map(|record| time(record.ts)),
            "notes": self.places.notes,
            "log": self.places.log,
            "run_repository": self.places.attempts,
            "unknown_events": self.unknown,
            "events": events,
            "next": self.next(&standing, &state, began.as_ref()),
        })
    }

    fn standing(&self) -> Standing {
        Standing::of(self.records, self.held, self.now)
    }

    /// Milliseconds since a record.
    fn since(&self, record: &Record) -> i64 {
        (self.now.as_millisecond() - record.ts.as_millisecond()).max(0)
    }

    fn elapsed_ms(&self, state: &RunState) -> i64 {
        let logged = i64::try_from(state.elapsed_ms).unwrap_or(i64::MAX);
        match self.records.last() {
            Some(last) if self.held => logged.saturating_add(self.since(last)),
            _ => logged,
        }
    }

    fn scores(&self, state: &RunState) -> Option<Scores> {
        let plan = Began::of(self.records)?.plan;
        if !plan.is_scored() {
            return None;
        }
        let base = self.records.iter().find_map(|record| match &record.event {
            Event::Eval { value, .. } if record.iteration == 0 => Some(*value),
            _ => None,
        });
        Some(Scores {
            base: base.flatten(),
            now: state.parent_value,
            best: state.best,
            target: plan.goal.target,
            minimize: plan.goal.minimize,
        })
    }

    /// The last events that people are shown, oldest first.
    fn events(&self) -> impl Iterator<Item = (&Record, String)> {
        let told = self.records.iter().rev().filter_map(|record| {
            let text = first_line(&line(Style::default(), &record.event)?);
            Some((record, text))
        });
        let mut told: Vec<_> = told.take(EVENTS).collect();
        told.reverse();
        told.into_iter()
    }

    fn next(&self, standing: &Standing, state: &RunState, began: Option<&Began<'_>>) -> Vec<String> {
        let (id, flags) = (self.run_id, &self.places.flags);
        let mut next = Vec::new();
        if matches!(standing, Standing::NeverBegan) {
            next.push(format!("robot-to clean {id}{flags}"));
        }
        let over = matches!(standing, Standing::Ended { .. } | Standing::CutOff);
        if let Some(began) = began {
            if over && !self.complete {
                next.push(format!("robot-to resume {id}{flags}"));
            }
            if over {
                next.push(format!("robot-to report {id}{flags}"));
            }
            if state.commits > 0 {
                next.push(format!(
                    "git log {}..{}",
                    began.base.short(),
                    one_line(began.branch)
                ));
            }
        }
        let other = |event: &Event| event.is_outcome() && !matches!(event, Event::Committed { .. });
        if self.records.iter().any(|record| other(&record.event)) {
            next.push(format!("robot-to attempts {id}{flags}"));
        }
        next
    }
}

impl Scores {
    fn text(&self) -> String {
        let shown = |value: Option<f64>| value.map_or_else(|| "none".into(), |value| value.to_string());
        let mut text = format!(
            "{} (base {}, best {}; {} is better",
            shown(self.now),
            shown(self.base),
            shown(self.best),
            if self.minimize { "lower" } else { "higher" }
        );
        if self.target.is_some() {
            text.push_str(&format!("; target {}", shown(self.target)));
        }
        text.push(')');
        text
    }
}

/// The time as the log has it.
fn time(ts: jiff::Timestamp) -> String {
    format!("{ts:.3}")
}

fn first_line(text: &str) -> String {
    clip(
        &one_line(text.trim_start().lines().next().unwrap_or_default()),
        MAX_LINE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab_to::eval::{Goal, Measure, Provenance};
    use robot_lab_to::iteration::StopKind;
    use robot_lab_to::settings::Plan;
    use robot_lab_to::workspace::Oid;
    use std::time::Duration;

    const START: &str = "2026-11-30T01:00:00Z";

    fn oid(digit: &str) -> Oid {
        digit.repeat(40).parse().unwrap()
    }

    /// Records at these seconds after the start.
    fn records(events: impl IntoIterator<Item = (i64, u32, Event)>) -> Vec<Record> {
        let start: jiff::Timestamp = START.parse().unwrap();
        let record = |(seq, (at, iteration, event))| Record {
            seq,
            ts: start + jiff::SignedDuration::from_secs(at),
            iteration,
            event,
        };
        (1..).zip(events).map(record).collect()
    }

    fn begun() -> [(i64, u32, Event); 3] {
        let measure = Measure {
            command: "wc -l".into(),
            timeout: Duration::from_secs(1),
            metric: None,
        };
        let goal = Goal {
            minimize: true,
            target: Some(0.0),
            ..Goal::default()
        };
        let plan = Plan {
            measure: Some(measure),
            goal,
            ..Plan::new("fewer lines")
        };
        let started = Event::RunStarted {
            hooks: vec![],
            version: 1,
            run_id: "R".into(),
            objective: "fewer\x1b[2J lines".into(),
            branch: "robot-to/fewer-lines-R".into(),
            base: oid("b"),
            base_tree: oid("1"),
            model: "script/a".into(),
            eval: "code".into(),
            plan: Box::new(plan),
        };
        let base = Event::Eval {
            candidate: 0,
            attempt: 0,
            tree: oid("1"),
            gate: true,
            improved: false,
            value: Some(20.0),
            metrics: std::collections::BTreeMap::new(),
            met_target: false,
            detail: "measure=20".into(),
            output: None,
            elapsed_ms: 5,
            provenance: Provenance::default(),
        };
        let parent = oid("b");
        [
            (0, 0, started),
            (1, 0, base),
            (2, 1, Event::IterationStarted { parent, from: None }),
        ]
    }

    fn waits() -> Event {
        Event::ModelFailed {
            candidate: 0,
            kind: "overloaded".into(),
            message: "503\r\nbusy".into(),
            retry_in_ms: Some(90_000),
        }
    }

    fn status<'a>(records: &'a [Record], held: bool, at: i64) -> Status<'a> {
        let start: jiff::Timestamp = START.parse().unwrap();
        Status {
            run_id: "R",
            records,
            unknown: 0,
            held,
            complete: false,
            now: start + jiff::SignedDuration::from_secs(at),
            places: Places {
                notes: "notes.md".into(),
                log: "run.log".into(),
                attempts: Some("/state/run.git".into()),
                flags: " --run-dir x".into(),
            },
        }
    }

    #[test]
    fn a_run_that_waits() {
        let records = records(begun().into_iter().chain([(10, 1, waits())]));
        insta::assert_snapshot!(status(&records, true, 40).text(), @r"
        robot-to R — waiting: for the model (overloaded), which is asked again in 1:00
        Objective:  fewer [2J lines
        Model:      script/a
        Branch:     robot-to/fewer-lines-R
        Iterations: 1 (0 committed, 0 discarded)
        Tokens:     0 in, 0 out
        Cost:       $0.00
        Elapsed:    0:40
        Score:      20 (base 20, best 20; lower is better; target 0)
        Notes:      notes.md
        Log:        run.log
        Kept in:    /state/run.git
        Lately:        0:40 ago  #0   robot-to R
                       0:39 ago  #0   base measure=20
                       0:38 ago  #1   iteration begins
                       0:30 ago  #1   model overloaded: 503 busy; again in 90 s
        ");
        let later = status(&records, true, 200).text();
        assert!(later.starts_with("robot-to R — running: "), "{later}");
    }

    #[test]
    fn a_run_that_waits_for_its_provider_says_until_when() {
        let start: jiff::Timestamp = START.parse().unwrap();
        let wait = |announced| Event::ProviderWait {
            candidate: 0,
            model: "openai/gpt-5.5".into(),
            kind: "rate_limited".into(),
            message: "slow down".into(),
            until: start + jiff::SignedDuration::from_secs(7_200),
            announced,
            other_model: (!announced).then(|| "anthropic/claude".into()),
            other_kind: (!announced).then(|| "overloaded".into()),
            other_message: None,
        };
        let at = crate::surface::local(
            start + jiff::SignedDuration::from_secs(7_200),
            start + jiff::SignedDuration::from_secs(40),
        );
        for (announced, said) in [
            (
                true,
                format!("waiting: for openai/gpt-5.5 until {at} (rate limit)\n"),
            ),
            (
                false,
                format!(
                    "waiting: for openai/gpt-5.5 (rate limit; anthropic/claude: overloaded), until {at} at most\n"
                ),
            ),
        ] {
            let records = records(begun().into_iter().chain([(10, 1, wait(announced))]));
            let waiting = status(&records, true, 40);
            assert!(waiting.text().contains(&said), "{}", waiting.text());
            assert_eq!(waiting.json()["waiting"]["until"], "2026-11-30T03:00:00.000Z");
            let killed = status(&records, false, 40).text();
            assert!(killed.starts_with("robot-to R — cut off"), "{killed}");
        }
        let resumed = Event::ProviderResumed {
            candidate: 0,
            model: "openai/gpt-5.5".into(),
            waited_ms: 3_600_000,
            answered: true,
        };
        let records = records(
            begun()
                .into_iter()
                .chain([(10, 1, wait(true)), (3_610, 1, resumed)]),
        );
        let text = status(&records, true, 4_000).text();
        assert!(text.starts_with("robot-to R — running: "), "{text}");
        assert!(text.contains("Waited:     1:00:00 for providers\n"), "{text}");
    }

    #[test]
    fn a_run_that_ended() {
        let failure = Event::Failure {
            candidate: 0,
            summary: "no\nidea".into(),
            learnings: vec![],
        };
        let used = Event::ModelFinished {
            candidate: 0,
            model: "a".into(),
            input_tokens: 12_345,
            cached_tokens: 0,
            cache_write_tokens: 0,
            output_tokens: 67,
            reasoning_tokens: 0,
            estimated: true,
            finish: None,
            elapsed_ms: 1,
            cost: Some(robot_lab::Cost::from_cents(7)),
        };
        let aborted = Event::Aborted {
            kind: StopKind::Failures,
            reason: "1 consecutive failures".into(),
        };
        let ended = Event::Ended {
            iterations: 1,
            commits: 0,
            discarded: 1,
            input_tokens: 12_345,
            output_tokens: 67,
            estimated: true,
            abort_reason: "1 consecutive failures".into(),
            elapsed: 61.0,
            cost: None,
        };
        let tail = [(60, 1, used), (60, 1, failure), (61, 1, aborted), (61, 1, ended)];
        let records = records(begun().into_iter().chain(tail));
        let status = status(&records, false, 3_600);
        insta::assert_snapshot!(status.text(), @r"
        robot-to R — ended: 1 consecutive failures
        Objective:  fewer [2J lines
        Model:      script/a
        Branch:     robot-to/fewer-lines-R
        Iterations: 1 (0 committed, 1 discarded)
        Tokens:     ~12.3k in, ~67 out
        Cost:       ~$0.07
        Elapsed:    1:01
        Score:      20 (base 20, best 20; lower is better; target 0)
        Notes:      notes.md
        Log:        run.log
        Kept in:    /state/run.git
        Lately:     1:00:00 ago  #0   robot-to R
                      59:59 ago  #0   base measure=20
                      59:58 ago  #1   iteration begins
                      59:00 ago  #1   ✘ failed: no idea
        Next:       robot-to resume R --run-dir x
                    robot-to report R --run-dir x
                    robot-to attempts R --run-dir x
        ");
        let json = status.json();
        assert_eq!(
            (json["standing"].as_str(), json["kind"].as_str()),
            (Some("ended"), Some("failures"))
        );
        assert_eq!(json["elapsed_ms"], 61_000, "the time since counts for nothing");
        assert_eq!(json["score"]["base"], 20.0);
        assert_eq!(
            (json["cost"].as_str(), json["unpriced"].as_bool()),
            (Some("0.07"), Some(false))
        );
    }

    #[test]
    fn a_run_that_has_hardly_begun_and_one_that_was_cut_off() {
        assert!(
            status(&[], true, 0)
                .text()
                .starts_with("robot-to R — running: setting up\n")
        );
        let records = records(begun());
        let text = status(&records, false, 9).text();
        assert!(
            text.starts_with("robot-to R — cut off: its process ended without a word\n"),
            "{text}"
        );
        assert!(text.contains("robot-to resume R --run-dir x\n"), "{text}");
    }
}
