//! A run as reports tell it: one value, made from the log and completed by what git knows, that every form of a report
//! is rendered from. All text of robots in it is one line, without control characters, and of bounded length.

use crate::commit_message::{clip, one_line};
use crate::event::{Event, Record};
use crate::iteration::{RunState, StopKind};
use crate::run::{Began, LoggedIteration, Standing};
use crate::workspace::{DiffStat, Oid};
use jiff::Timestamp;
use robot_lab::Cost;
use serde::Serialize;
use std::collections::HashSet;

/// The version of the format.
pub const REPORT_VERSION: u32 = 1;
/// Longest text, in characters.
const MAX_TEXT: usize = 500;
/// Most learnings; the latest are kept.
const MAX_LEARNINGS: usize = 200;

/// A run, told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportData {
    /// The version of this format.
    pub version: u32,
    /// The run.
    pub run_id: String,
    /// How it stands: running, waiting, ended, cut off, never began.
    pub standing: String,
    /// Whether it has done what was asked.
    pub complete: bool,
    /// Why it ended.
    pub reason: Option<String>,
    /// The kind of that.
    pub kind: Option<StopKind>,
    /// What the user wants.
    pub objective: Option<String>,
    /// The run branch.
    pub branch: Option<String>,
    /// Where it began.
    pub base: Option<Oid>,
    /// Where the run left it.
    pub tip: Option<Oid>,
    /// Where it is now, if that is not where the run left it: a commit, or `gone`.
    pub moved: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The command that grades.
    pub verify_command: Option<String>,
    /// How it is measured.
    pub measure: Option<ReportMeasure>,
    /// When it began, UTC.
    pub started: Option<String>,
    /// When it wrote its last record, UTC.
    pub updated: Option<String>,
    /// Time that it was at work, in milliseconds.
    pub elapsed_ms: u64,
    /// Of that: time in which it waited for providers.
    pub waited_ms: u64,
    /// Iterations committed.
    pub commits: u32,
    /// Iterations discarded.
    pub discarded: u32,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Of the tokens read: those from the provider's cache.
    pub cached_tokens: u64,
    /// Whether a part of the tokens is an estimate.
    pub estimated: bool,
    /// What they cost; `None` when it is not known.
    pub cost: Option<Cost>,
    /// Whether there were requests of which nobody knows the price, so that it costs more.
    pub unpriced: bool,
    /// The cost of each committed iteration, those that were not committed shared among them.
    pub cost_per_commit: Option<Cost>,
    /// What all commits change together; `None` when it is not known.
    pub changes: Option<DiffStat>,
    /// The iterations, in order.
    pub iterations: Vec<ReportIteration>,
    /// What robots learnt, in order and each thing once.
    pub learnings: Vec<Learning>,
    /// Events of the log that this version does not know.
    pub unknown_events: usize,
    #[serde(skip)]
    base_tree: Option<Oid>,
}

/// How a run is measured, and how that went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportMeasure {
    /// The command.
    pub command: String,
    /// Whether lower is better.
    pub minimize: bool,
    /// The score to reach.
    pub target: Option<f64>,
    /// The score of the base commit.
    pub base: Option<f64>,
    /// The score of the last commit.
    pub now: Option<f64>,
    /// The best score.
    pub best: Option<f64>,
}

/// One iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportIteration {
    /// Its number.
    pub number: u32,
    /// The outcome in words.
    pub outcome: String,
    /// Whether it was committed.
    pub committed: bool,
    /// What the robot says of it.
    pub summary: String,
    /// Why it was not committed, where more is known than the outcome says.
    pub why: Option<String>,
    /// The commit.
    pub commit: Option<Oid>,
    /// Its score.
    pub score: Option<f64>,
    /// What it changes; `None` when nothing is kept of it.
    pub changes: Option<DiffStat>,
    /// Tokens read and written.
    pub tokens: u64,
    /// Whether a part of the tokens is an estimate.
    pub estimated: bool,
    /// What they cost; `None` when a part of it is not known.
    pub cost: Option<Cost>,
    /// Time that it took, in milliseconds.
    pub elapsed_ms: u64,
    #[serde(skip)]
    candidate: u32,
    #[serde(skip)]
    parent_tree: Option<Oid>,
    #[serde(skip)]
    tree: Option<Oid>,
}

/// Something that later iterations should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Learning {
    /// The iteration that learnt it.
    pub iteration: u32,
    /// Whether that was committed.
    pub committed: bool,
    /// What.
    pub text: String,
}

impl ReportData {
    /// Reads a run. `held`: whether a process is at work on it; `complete`: whether it has done what was asked.
    #[must_use]
    pub fn of(
        run_id: &str,
        records: &[Record],
        held: bool,
        complete: bool,
        unknown: usize,
        now: Timestamp,
    ) -> Self {
        let state = RunState::fold(records);
        let began = Began::of(records);
        let plan = began.map(|began| began.plan);
        let standing = Standing::of(records, held, now);
        let (reason, kind) = match &standing {
            Standing::Ended { reason, kind } => (Some(line(reason)), *kind),
            _ => (None, None),
        };
        let base_tree = records.iter().find_map(|record| match &record.event {
            Event::RunStarted { base_tree, .. } => Some(base_tree.clone()),
            _ => None,
        });
        let baseline = records.iter().find_map(|record| match &record.event {
            Event::Eval { value, .. } if record.iteration == 0 => Some(*value),
            _ => None,
        });
        let mut iterations = Vec::new();
        let mut learnings = Vec::new();
        let mut tree = base_tree.clone();
        for records in records.chunk_by(|a, b| a.iteration == b.iteration) {
            let number = records.first().map_or(0, |record| record.iteration);
            if let Some(told) = LoggedIteration::of(records, number) {
                let iteration = ReportIteration::of(&told, records, tree.clone());
                if iteration.committed {
                    tree.clone_from(&iteration.tree);
                }
                learnings.extend(learnt(&told, iteration.committed));
                iterations.push(iteration);
            }
        }
        let mut known = HashSet::new();
        learnings.retain(|learning: &Learning| known.insert(learning.text.clone()));
        learnings.drain(..learnings.len().saturating_sub(MAX_LEARNINGS));
        Self {
            version: REPORT_VERSION,
            run_id: run_id.to_owned(),
            standing: standing.word().to_owned(),
            complete,
            reason,
            kind,
            objective: began.map(|began| line(began.objective)),
            branch: began.map(|began| one_line(began.branch)),
            base: began.map(|began| began.base.clone()),
            tip: state.parent.clone(),
            moved: None,
            model: began.map(|began| line(began.model)),
            verify_command: plan.and_then(|plan| plan.verify_command.as_deref()).map(line),
            measure: plan.filter(|plan| plan.is_scored()).map(|plan| ReportMeasure {
                command: line(plan.measure.as_ref().map_or_else(
                    || plan.eval.as_deref().unwrap_or_default(),
                    |measure| &measure.command,
                )),
                minimize: plan.goal.minimize,
                target: plan.goal.target,
                base: baseline.flatten(),
                now: state.parent_value,
                best: state.best,
            }),
            started: began.map(|began| time(began.started)),
            updated: records.last().map(|record| time(record.ts)),
            elapsed_ms: state.elapsed_ms,
            waited_ms: state.waited_ms,
            commits: state.commits,
            discarded: state.discarded,
            input_tokens: state.usage.input,
            output_tokens: state.usage.output,
            cached_tokens: state.usage.cached_input,
            estimated: state.usage.estimated,
            cost: state.known_cost(),
            unpriced: state.unpriced,
            cost_per_commit: state.cost_per_commit(),
            changes: None,
            iterations,
            learnings,
            unknown_events: unknown,
            base_tree,
        }
    }

    /// Takes in where the run branch is now; `None` when it is gone.
    pub fn branch_is_at(&mut self, tip: Option<Oid>) {
        if tip != self.tip && self.tip.is_some() {
            self.moved = Some(tip.map_or_else(|| "gone".to_owned(), |tip| tip.to_string()));
        }
    }

    /// The trees whose difference is still to be told: what all commits change together, and then what each iteration
    /// does. `kept` knows the trees of attempts that the log does not name.
    #[must_use]
    pub fn pairs(&self, kept: impl Fn(u32, u32) -> Option<Oid>) -> Vec<(Oid, Oid)> {
        let last = self.iterations.iter().rev().find(|told| told.committed);
        let all = self
            .base_tree
            .clone()
            .zip(last.and_then(|told| told.tree.clone()));
        let each = self.iterations.iter().filter_map(|told| told.pair(&kept));
        all.into_iter().chain(each).collect()
    }

    /// Takes in what the pairs differ by, in their order.
    pub fn changed(&mut self, kept: impl Fn(u32, u32) -> Option<Oid>, stats: &[Option<DiffStat>]) {
        let mut stats = stats.iter().copied();
        if self.iterations.iter().any(|told| told.committed) && self.base_tree.is_some() {
            self.changes = stats.next().flatten();
        }
        for told in &mut self.iterations {
            if told.pair(&kept).is_some() {
                told.changes = stats.next().flatten();
            }
        }
    }
}

impl ReportIteration {
    fn of(told: &LoggedIteration<'_>, records: &[Record], parent_tree: Option<Oid>) -> Self {
        let outcome = told.outcome.map(|record| &record.event);
        let (commit, tree) = match outcome {
            Some(Event::Committed { commit, tree, .. }) => (Some(commit.clone()), Some(tree.clone())),
            Some(
                Event::CommitFailed { tree, .. }
                | Event::NoImprovement { tree, .. }
                | Event::Tampered { tree, .. },
            ) => (None, Some(tree.clone())),
            Some(Event::GateFailure { tree, .. }) => (None, tree.clone()),
            _ => (None, None),
        };
        let why = match outcome {
            Some(Event::GateFailure { detail, .. } | Event::NoImprovement { detail, .. }) => {
                Some(detail.clone())
            }
            Some(Event::Tampered { paths, .. }) => Some(paths.join(", ")),
            Some(Event::CommitFailed { output, .. }) => Some(output.clone()),
            _ => None,
        };
        let score = records.iter().rev().find_map(|record| match &record.event {
            Event::Eval { candidate, value, .. } if *candidate == told.candidate => Some(*value),
            _ => None,
        });
        let tokens = records.iter().map(|record| match &record.event {
            Event::ModelFinished {
                input_tokens,
                output_tokens,
                ..
            } => input_tokens.saturating_add(*output_tokens),
            _ => 0,
        });
        let costs = records.iter().filter_map(|record| match &record.event {
            Event::ModelFinished { cost, .. } => Some(*cost),
            _ => None,
        });
        let estimated = records
            .iter()
            .any(|record| matches!(record.event, Event::ModelFinished { estimated: true, .. }));
        let ends = told.outcome.or(records.last()).map_or(0, |record| record.seq);
        // The time between two processes is none of the run's.
        let gaps = records.windows(2).filter_map(|pair| match pair {
            [_, next] if next.seq > ends || goes_on(next) => None,
            [before, next] => Some(
                next.ts
                    .as_millisecond()
                    .saturating_sub(before.ts.as_millisecond()),
            ),
            _ => None,
        });
        let elapsed = gaps.fold(0, i64::saturating_add);
        Self {
            number: told.number,
            outcome: told.outcome().to_owned(),
            committed: commit.is_some(),
            summary: line(&told.summary()),
            why: why.map(|why| line(&why)).filter(|why| !why.is_empty()),
            commit,
            score: score.flatten(),
            changes: None,
            tokens: tokens.fold(0, u64::saturating_add),
            estimated,
            cost: costs.sum(),
            elapsed_ms: u64::try_from(elapsed).unwrap_or(0),
            candidate: told.candidate,
            parent_tree,
            tree,
        }
    }

    fn pair(&self, kept: impl Fn(u32, u32) -> Option<Oid>) -> Option<(Oid, Oid)> {
        let tree = self.tree.clone().or_else(|| kept(self.number, self.candidate))?;
        Some((self.parent_tree.clone()?, tree))
    }
}

fn goes_on(record: &Record) -> bool {
    matches!(record.event, Event::Reopened {} | Event::RunResumed { .. })
}

/// What an iteration teaches.
fn learnt(told: &LoggedIteration<'_>, committed: bool) -> Vec<Learning> {
    let texts = match told.outcome.map(|record| &record.event) {
        Some(Event::Committed { submission, .. }) => submission.key_learnings.as_slice(),
        Some(
            Event::Failure { learnings, .. }
            | Event::GateFailure { learnings, .. }
            | Event::NoImprovement { learnings, .. }
            | Event::NoChange { learnings, .. },
        ) => learnings.as_slice(),
        _ => &[],
    };
    let learnings = texts.iter().map(|text| Learning {
        iteration: told.number,
        committed,
        text: line(text),
    });
    learnings.filter(|learning| !learning.text.is_empty()).collect()
}

fn line(text: &str) -> String {
    clip(&one_line(text), MAX_TEXT)
}

/// The time as the log has it.
fn time(ts: Timestamp) -> String {
    format!("{ts:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iteration::Submission;
    use crate::settings::Plan;

    fn oid(digit: char) -> Oid {
        digit.to_string().repeat(40).parse().unwrap()
    }

    fn records(events: impl IntoIterator<Item = (i64, u32, Event)>) -> Vec<Record> {
        let record = |(seq, (at, iteration, event))| Record {
            seq,
            ts: Timestamp::from_second(1_800_000_000 + at).unwrap(),
            iteration,
            event,
        };
        (1..).zip(events).map(record).collect()
    }

    fn started() -> Event {
        Event::RunStarted {
            hooks: vec![],
            version: 1,
            run_id: "R".into(),
            objective: "go\non".into(),
            branch: "robot-to/go-R".into(),
            base: oid('b'),
            base_tree: oid('0'),
            model: "script/a".into(),
            eval: "code".into(),
            plan: Box::new(Plan::new("go on")),
        }
    }

    fn committed(tree: char, learnt: &str) -> Event {
        Event::Committed {
            candidate: 0,
            commit: oid('c'),
            tree: oid(tree),
            message: "robot-to 1: x".into(),
            improved: true,
            value: None,
            submission: Submission {
                key_learnings: vec![learnt.into()],
                ..Submission::default()
            },
            stop: None,
            stop_text: None,
        }
    }

    fn failed(learnt: &str) -> Event {
        Event::Failure {
            candidate: 0,
            summary: "no\x1b[2J".into(),
            learnings: vec![learnt.into(), "only this\n".into()],
        }
    }

    fn begun(tree: char) -> Event {
        Event::IterationStarted {
            parent: oid(tree),
            from: None,
        }
    }

    #[test]
    fn each_iteration_is_compared_with_the_last_commit_before_it() {
        let records = records([
            (0, 0, started()),
            (1, 1, begun('b')),
            (4, 1, committed('1', "same")),
            (5, 2, begun('c')),
            (9, 2, failed("same")),
            (9, 3, begun('c')),
            (11, 3, committed('3', "new")),
        ]);
        let mut report = ReportData::of("R", &records, false, false, 0, Timestamp::UNIX_EPOCH);
        let kept = |number, _| (number == 2).then(|| oid('2'));
        let pairs = report.pairs(kept);
        let named: Vec<String> = pairs
            .iter()
            .map(|(a, b)| {
                [a, b]
                    .iter()
                    .filter_map(|oid| oid.as_str().chars().next())
                    .collect()
            })
            .collect();
        assert_eq!(named, ["03", "01", "12", "13"]);
        let stat = |added| {
            Some(DiffStat {
                added,
                ..DiffStat::default()
            })
        };
        report.changed(kept, &[stat(9), stat(1), None, stat(3)]);
        assert_eq!(report.changes, stat(9));
        let each: Vec<_> = report.iterations.iter().map(|told| told.changes).collect();
        assert_eq!(each, [stat(1), None, stat(3)]);
        assert_eq!(report.iterations[1].elapsed_ms, 4_000);
        assert_eq!(report.iterations[1].summary, "no [2J");
        let learnt: Vec<_> = report
            .learnings
            .iter()
            .map(|learning| (learning.iteration, learning.text.as_str()))
            .collect();
        assert_eq!(
            learnt,
            [(1, "same"), (2, "only this"), (3, "new")],
            "each thing once"
        );
        assert_eq!(
            (report.standing.as_str(), report.objective.as_deref()),
            ("cut off", Some("go on"))
        );
    }

    #[test]
    fn without_a_beginning_there_is_nothing_to_tell() {
        let report = ReportData::of("R", &[], false, false, 0, Timestamp::UNIX_EPOCH);
        assert_eq!(report.standing, "never began");
        assert!(report.iterations.is_empty() && report.pairs(|_, _| None).is_empty());
    }
}
