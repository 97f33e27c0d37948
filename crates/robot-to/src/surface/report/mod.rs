//! The report of a run in Markdown, to be read in a minute: how it ended first, every iteration last.

mod chart;
mod escape;

use super::cost::{self, Bill};
use super::extent;
use super::plain::{clock, count, lasted};
use chart::{Point, chart, number};
use escape::{code, text};
use robot_lab::counted;
use robot_lab_to::commit_message::one_line;
use robot_lab_to::report::{ReportData, ReportIteration, ReportMeasure};
use robot_lab_to::workspace::{DiffStat, Oid};

/// Most rows of the table, most discarded attempts and most learnings; the latest are shown.
const MAX_ROWS: usize = 1_000;
const MAX_ATTEMPTS: usize = 25;
const MAX_LEARNINGS: usize = 25;

/// The page. `flags` lead another command to the run, with a space before each.
pub(crate) fn markdown(report: &ReportData, flags: &str) -> String {
    let mut page = format!("# robot-to {}: {}\n", report.run_id, verdict(report));
    if let Some(reason) = &report.reason {
        page.push_str(&format!("\n**Reason:** {}\n", text(reason)));
    }
    page.push('\n');
    page.push_str(&facts(report));
    if let Some(measure) = &report.measure
        && let Some(drawing) = chart(&points(report, measure), measure.target)
    {
        let target = measure
            .target
            .map(|target| format!("   ┄ target {}", number(target)))
            .unwrap_or_default();
        let legend = format!("● committed   × discarded   ─ the branch{target}");
        page.push_str(&section("Score", &verbatim(&format!("{drawing}\n{legend}"))));
    }
    let discarded: Vec<_> = report.iterations.iter().filter(|told| !told.committed).collect();
    if !discarded.is_empty() {
        let shown = latest(&discarded, MAX_ATTEMPTS, "the table has them");
        let list = shown.list(|told| attempt(told, &report.run_id, flags));
        page.push_str(&section("Not committed", &list));
    }
    if !report.learnings.is_empty() {
        let shown = latest(&report.learnings, MAX_LEARNINGS, "the notes have them");
        let list = shown.list(|learning| {
            let of = if learning.committed { "" } else { " (discarded)" };
            format!("From {}{of}: {}", learning.iteration, text(&learning.text))
        });
        page.push_str(&section("Learnings", &list));
    }
    page.push_str(&section("Next", &verbatim(&next(report, flags).join("\n"))));
    if !report.iterations.is_empty() {
        page.push_str(&section("Iterations", &table(report)));
    }
    page
}

fn verdict(report: &ReportData) -> &str {
    match report.standing.as_str() {
        "ended" if report.complete => "complete",
        "ended" => "stopped",
        standing => standing,
    }
}

/// What there is to know of the run as a whole.
fn facts(report: &ReportData) -> String {
    let mut list = String::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            list.push_str(&format!("- **{name}:** {value}\n"));
        }
    };
    fact("Objective", report.objective.as_deref().map(text));
    let from = |branch: &String| {
        let base = report.base.as_ref().map(|base| code(base.short()));
        let from = base.map(|base| format!(", from {base}")).unwrap_or_default();
        format!("{}{from}{}", code(branch), moved(report))
    };
    fact("Branch", report.branch.as_ref().map(from));
    let iterations = report.iterations.len();
    fact(
        "Iterations",
        Some(format!(
            "{iterations} ({} committed, {} discarded)",
            report.commits, report.discarded
        )),
    );
    fact("Changes", report.changes.as_ref().map(extent));
    fact("Score", report.measure.as_ref().map(score));
    let (input, cached) = (report.input_tokens, report.cached_tokens);
    let used = cost::tokens(input, cached, report.output_tokens, report.estimated);
    fact("Tokens", Some(used));
    let bill = Bill {
        cost: report.cost,
        unpriced: report.unpriced,
        estimated: report.estimated,
        per_commit: report.cost_per_commit,
    };
    fact("Cost", Some(bill.text()));
    let ends = report.started.as_ref().zip(report.updated.as_ref());
    let ends = ends.map(|(started, updated)| format!(", {} UTC", span(started, updated)));
    fact(
        "Time",
        Some(format!("{}{}", time(report.elapsed_ms), ends.unwrap_or_default())),
    );
    if report.waited_ms > 0 {
        let waited = format!("{} for providers", lasted(report.waited_ms));
        fact("Waited", Some(waited));
    }
    fact("Model", report.model.as_deref().map(text));
    fact("Gate", report.verify_command.as_deref().map(code));
    let measure = report.measure.as_ref();
    fact("Measure", measure.map(|measure| code(&measure.command)));
    if report.unknown_events > 0 {
        let unknown = format!(
            "{} of a newer robot-to, passed over",
            counted(report.unknown_events, "event")
        );
        fact("Unknown", Some(unknown));
    }
    list
}

/// Where the branch is now, when somebody moved it: the commits that are told may not be on it.
fn moved(report: &ReportData) -> String {
    let (Some(now), Some(tip)) = (&report.moved, &report.tip) else {
        return String::new();
    };
    let now = match now.parse::<Oid>() {
        Ok(now) => format!("now at {}", code(now.short())),
        Err(_) => "gone now".to_owned(),
    };
    format!("; {now}, the run left it at {}", code(tip.short()))
}

fn score(measure: &ReportMeasure) -> String {
    let shown = |value: Option<f64>| value.map_or_else(|| "none".into(), number);
    let better = if measure.minimize { "lower" } else { "higher" };
    let target = measure
        .target
        .map(|target| format!("; target {}", number(target)))
        .unwrap_or_default();
    format!(
        "{} → {} (best {}; {better} is better{target})",
        shown(measure.base),
        shown(measure.now),
        shown(measure.best)
    )
}

/// The scores that were measured, in order.
fn points(report: &ReportData, measure: &ReportMeasure) -> Vec<Point> {
    let base = measure.base.map(|score| Point {
        iteration: 0,
        score,
        taken: true,
    });
    let each = report.iterations.iter().filter_map(|told| {
        Some(Point {
            iteration: told.number,
            score: told.score?,
            taken: told.committed,
        })
    });
    base.into_iter().chain(each).collect()
}

fn attempt(told: &ReportIteration, run_id: &str, flags: &str) -> String {
    let why = why(told).map(|why| format!(" ({why})")).unwrap_or_default();
    let show = match told.changes {
        Some(_) => format!(
            "; {}",
            code(&format!("robot-to show {run_id} {}{flags}", told.number))
        ),
        None => String::new(),
    };
    let summary = if told.summary.is_empty() {
        "no summary".into()
    } else {
        text(&told.summary)
    };
    format!("**{}**, {}: {summary}{why}{show}", told.number, told.outcome)
}

/// Why it was not committed, where that adds something.
fn why(told: &ReportIteration) -> Option<String> {
    told.why
        .as_deref()
        .filter(|why| !told.summary.contains(why))
        .map(text)
}

/// A row per iteration, with columns that line up where the page is read as text.
fn table(report: &ReportData) -> String {
    let heads = [
        "#", "outcome", "score", "changes", "tokens", "cost", "time", "summary",
    ];
    let rules = ["--:", ":--", "--:", ":--", "--:", "--:", "--:", ":--"];
    let shown = latest(&report.iterations, MAX_ROWS, "--format json has them");
    let row = |told: &ReportIteration| {
        let outcome = match &told.commit {
            Some(commit) => format!("✔ {}", code(commit.short())),
            None => told.outcome.clone(),
        };
        let summary = [Some(text(&told.summary)), why(told)];
        let summary: Vec<_> = summary
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        [
            told.number.to_string(),
            outcome,
            told.score.map(number).unwrap_or_default(),
            told.changes.as_ref().map(lines).unwrap_or_default(),
            cost::guessed(count(told.tokens), told.estimated && told.tokens > 0),
            told.cost
                .map(|cost| cost::money(cost, told.estimated))
                .unwrap_or_default(),
            time(told.elapsed_ms),
            summary.join(" — "),
        ]
    };
    let rows: Vec<[String; 8]> = shown.items.iter().map(row).collect();
    // The last column need not line up.
    let widths: Vec<usize> = heads
        .iter()
        .take(7)
        .enumerate()
        .map(|(column, head)| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| cell.chars().count())
                .chain([head.len(), 3])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().enumerate().map(|(column, cell)| {
            let width = widths.get(column).copied().unwrap_or(0);
            match rules.get(column) {
                Some(rule) if rule.starts_with('-') && *cell != *rule => format!("{cell:>width$}"),
                Some(rule) if *cell == *rule => rule.replacen("--", &"-".repeat(width.max(3) - 1), 1),
                _ => format!("{cell:<width$}"),
            }
        });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut table = shown.note();
    table.push_str(&line(heads.to_vec()));
    table.push_str(&line(rules.to_vec()));
    for row in &rows {
        table.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    table
}

fn next(report: &ReportData, flags: &str) -> Vec<String> {
    let id = &report.run_id;
    let mut next = Vec::new();
    if let (Some(base), Some(branch), 1..) = (&report.base, &report.branch, report.commits) {
        let range = format!("{}..{branch}", base.short());
        next.extend([format!("git log {range}"), format!("git diff {range}")]);
    }
    match verdict(report) {
        "stopped" | "cut off" => next.push(format!("robot-to resume {id}{flags}")),
        "running" | "waiting" => next.push(format!("robot-to status {id}{flags}")),
        "never began" => next.push(format!("robot-to clean {id}{flags}")),
        _ => {}
    }
    let kept = |told: &ReportIteration| !told.committed && told.changes.is_some();
    if report.iterations.iter().any(kept) {
        next.push(format!("robot-to attempts {id}{flags}"));
    }
    next.push(format!("robot-to status {id}{flags}"));
    next.dedup();
    next
}

/// A list that was cut to its latest items.
struct Latest<'a, T> {
    items: &'a [T],
    left: usize,
    /// Where the others are.
    rest: &'static str,
}

fn latest<'a, T>(items: &'a [T], most: usize, rest: &'static str) -> Latest<'a, T> {
    let left = items.len().saturating_sub(most);
    let items = items.get(left..).unwrap_or_default();
    Latest { items, left, rest }
}

impl<T> Latest<'_, T> {
    /// Says what was left out.
    fn note(&self) -> String {
        match self.left {
            0 => String::new(),
            left => {
                let are = if left == 1 { "is" } else { "are" };
                format!(
                    "{} {are} left out; {}.\n\n",
                    counted(left, "earlier one"),
                    self.rest
                )
            }
        }
    }

    fn list(&self, item: impl Fn(&T) -> String) -> String {
        let items = self.items.iter().map(|value| format!("- {}\n", item(value)));
        self.note() + &items.collect::<String>()
    }
}

fn section(title: &str, body: &str) -> String {
    format!("\n## {title}\n\n{}\n", body.trim_end_matches('\n'))
}

/// Lines as they are: nothing in an indented block is read as Markdown.
fn verbatim(lines: &str) -> String {
    lines
        .lines()
        .map(|line| format!("    {line}").trim_end().to_owned() + "\n")
        .collect()
}

fn lines(stat: &DiffStat) -> String {
    format!("+{} −{}", stat.added, stat.removed)
}

fn time(ms: u64) -> String {
    clock(i64::try_from(ms / 1_000).unwrap_or(i64::MAX))
}

/// From one time of the log to another, in minutes, with the date said once where it is one.
fn span(started: &str, updated: &str) -> String {
    let minute = |time: &str| {
        one_line(time)
            .chars()
            .take(16)
            .collect::<String>()
            .replace('T', " ")
    };
    let (started, updated) = (minute(started), minute(updated));
    let later = match (started.split_once(' '), updated.split_once(' ')) {
        (Some((day, _)), Some((same, time))) if day == same => time.to_owned(),
        _ => updated,
    };
    format!("{started} to {later}")
}

#[cfg(test)]
mod tests;
