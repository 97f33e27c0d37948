//! One readable line per thing that happens, on standard error; on a terminal also a line that shows what goes on.

use super::Style;
use super::wrap::wrap;
use robot_lab::{Cost, counted};
use robot_lab_to::commit_message::{clip, one_line};
use robot_lab_to::event::{Event, Record};
use robot_lab_to::log::Observer;
use robot_lab_to::tools::SUBMIT;
use robot_lab_to::view::{RunView, Waiting};
use serde_json::Value;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

/// Longest text of a line, in characters.
const MAX_TEXT: usize = 160;
/// Where text begins after the prefix of a line.
const INDENT: usize = 23;
/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Prints what happens.
pub(crate) struct Plain {
    style: Style,
    terminal: bool,
    words: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    view: RunView,
    /// Bytes that the model wrote in the present reply.
    written: usize,
    /// Whether the progress line stands on the terminal.
    progress: bool,
}

impl Plain {
    /// A surface in this style. `words`: show how much the model has written of a reply on its way.
    pub(crate) fn new(style: Style, words: bool) -> Self {
        Self {
            style,
            terminal: std::io::stderr().is_terminal(),
            words,
            state: Mutex::default(),
        }
    }

    /// Brings the progress line up to date; called about once a second.
    pub(crate) fn tick(&self) {
        if self.terminal {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.draw_progress(&mut state);
        }
    }

    /// Takes the progress line away.
    pub(crate) fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        clear(&mut state);
    }

    fn draw_progress(&self, state: &mut State) {
        if state.view.started.is_none() || state.view.iteration == 0 {
            return;
        }
        let now = jiff::Timestamp::now();
        let written = if self.words && state.written > 0 {
            format!(", {}", counted(state.written, "byte"))
        } else {
            String::new()
        };
        let doing = match &state.view.waiting {
            Some(waiting) => waits(waiting, now),
            None => format!("{}{written} …", state.view.doing),
        };
        let text = format!("{} {doing}", prefix(&state.view, now));
        let room = width().saturating_sub(2);
        drop(write!(
            std::io::stderr().lock(),
            "\r\x1b[2K{}",
            self.style.dim(&clip(&text, room))
        ));
        state.progress = true;
    }
}

impl Observer for Plain {
    fn record(&self, record: &Record) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.view.apply(record);
        if matches!(record.event, Event::ModelFinished { .. }) {
            state.written = 0;
        }
        let said = match (&record.event, &state.view.waiting) {
            (
                Event::ProviderWait {
                    message,
                    other_model,
                    other_message,
                    ..
                },
                Some(waiting),
            ) => {
                let other = other_model.as_ref().zip(other_message.as_ref());
                let other = other.map(|(model, said)| format!("; {model}: {said}"));
                Some(format!(
                    "{}: {}{}",
                    self.style.bad(&waits(waiting, record.ts)),
                    clip(&one_line(message), MAX_TEXT),
                    clip(&one_line(&other.unwrap_or_default()), MAX_TEXT)
                ))
            }
            (event, _) => line(self.style, event),
        };
        if let Some(text) = said {
            clear(&mut state);
            let before = match record.iteration {
                _ if matches!(record.event, Event::RunResumed { .. }) => String::new(),
                0 => String::new(),
                _ => format!("{} ", self.style.dim(&prefix(&state.view, record.ts))),
            };
            let whole = format!("{before}{text}");
            let whole = if self.terminal {
                let indent = if before.is_empty() {
                    INDENT
                } else {
                    prefix(&state.view, record.ts).chars().count() + 1
                };
                wrap(&whole, width(), indent)
            } else {
                whole
            };
            drop(writeln!(std::io::stderr().lock(), "{whole}"));
        }
        if self.terminal {
            self.draw_progress(&mut state);
        }
    }

    fn delta(&self, bytes: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.written += bytes;
    }
}

/// What is waited for, until when by the clock on the wall, and how to stop it.
fn waits(waiting: &Waiting, now: jiff::Timestamp) -> String {
    let until = super::local(waiting.until, now);
    format!(
        "{}, Ctrl-C stops",
        if waiting.announced {
            format!(
                "waiting for {} until {until} ({})",
                waiting.provider(),
                waiting.why()
            )
        } else {
            format!(
                "waiting for {} ({}), until {until} at most",
                waiting.provider(),
                waiting.why()
            )
        }
    )
}

/// Columns of the terminal.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    size.map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(COLUMNS)
}

fn clear(state: &mut State) {
    if std::mem::take(&mut state.progress) {
        drop(write!(std::io::stderr().lock(), "\r\x1b[2K"));
    }
}

/// `#3 1:02:33   12.3k tok`, and what that cost.
fn prefix(view: &RunView, now: jiff::Timestamp) -> String {
    let mark = if view.estimated { "~" } else { "" };
    let cost = match view.cost {
        Cost::ZERO => String::new(),
        cost => format!("{mark}{cost} "),
    };
    format!(
        "#{:<3}{:>6} {:>6} tok {cost}",
        view.iteration,
        clock(view.elapsed_seconds(now)),
        format!("{mark}{}", count(view.tokens))
    )
}

/// Seconds as `m:ss` or `h:mm:ss`.
pub(super) fn clock(seconds: i64) -> String {
    let (h, m, s) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if h > 0 {
        format!("{h}:{m:02}:{s:02}")
    } else {
        format!("{m}:{s:02}")
    }
}

/// How long something took that took some time.
pub(super) fn lasted(ms: u64) -> String {
    clock(i64::try_from(ms.div_ceil(1_000)).unwrap_or(i64::MAX))
}

/// A number in at most five characters.
pub(super) fn count(n: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", n / unit, n % unit * 10 / unit);
    match n {
        0..1_000 => n.to_string(),
        1_000..100_000 => format!("{}k", tenths(1_000)),
        100_000..1_000_000 => format!("{}k", n / 1_000),
        1_000_000..100_000_000 => format!("{}M", tenths(1_000_000)),
        _ => format!("{}M", n / 1_000_000),
    }
}

/// The line of an event; `None` for events that people need not see.
pub(super) fn line(style: Style, event: &Event) -> Option<String> {
    let text = |text: &str| clip(&one_line(text), MAX_TEXT);
    let line = match event {
        Event::Notice { message } => format!("note: {}", text(message)),
        Event::RunStarted {
            run_id,
            branch,
            model,
            ..
        } => {
            format!(
                "{}\n  branch {branch}\n  model  {}",
                style.bold(&format!("robot-to {run_id}")),
                text(model)
            )
        }
        Event::RunResumed {
            run_id,
            branch,
            model,
            ..
        } => {
            format!(
                "{} goes on\n  branch {branch}\n  model  {}",
                style.bold(&format!("robot-to {run_id}")),
                text(model)
            )
        }
        Event::Eval {
            attempt: 0,
            detail,
            gate,
            ..
        } => {
            let note = if *gate { "" } else { "; the robot is told" };
            format!("  base   {}{note}", text(detail))
        }
        Event::IterationStarted { from: Some(_), .. } => {
            style.bold("iteration begins, with the change that was refused")
        }
        Event::SetupStarted { place, locks } if locks.is_empty() => format!("setting up the {}", text(place)),
        Event::SetupStarted { place, locks } => format!(
            "setting up the {} again, since {} changed",
            text(place),
            text(&locks.join(", "))
        ),
        Event::SetupFinished { ok: true, .. } => return None,
        Event::SetupFinished { detail, output, .. } => style.bad(&format!(
            "setup failed ({}): {}",
            text(detail),
            text(output.lines().last().unwrap_or_default())
        )),
        Event::IterationStarted { .. } => style.bold("iteration begins"),
        Event::ToolFinished {
            tool,
            ok: false,
            output,
            ..
        } => {
            // What our own tools refuse begins so.
            let (how, why) = match output.strip_prefix("refused: ") {
                Some(why) => ("refused", why),
                None => ("failed", output.as_str()),
            };
            format!("{} {}", style.bad(&format!("{tool} {how}:")), text(why))
        }
        Event::ToolFinished { tool, output, .. } if tool == "bash" => {
            let status = output.lines().next().unwrap_or_default();
            format!("     ↳ {}", text(status))
        }
        Event::ToolStarted { tool, arguments, .. } => {
            let name = if tool == SUBMIT { "submit" } else { tool };
            format!("{name} {}", argument(arguments))
        }
        Event::ModelFailed {
            kind,
            message,
            retry_in_ms,
            ..
        } => {
            let next = retry_in_ms
                .map(|ms| format!("; again in {} s", ms.div_ceil(1_000)))
                .unwrap_or_default();
            format!("{} {}{next}", style.bad(&format!("model {kind}:")), text(message))
        }
        Event::ProviderWait {
            model, kind, message, ..
        } => {
            let waiting = format!("waiting for {} ({}):", text(model), kind.replace('_', " "));
            format!("{} {}", style.bad(&waiting), text(message))
        }
        Event::ProviderResumed {
            model,
            waited_ms,
            answered: true,
            ..
        } => format!("{} answers, after {}", text(model), lasted(*waited_ms)),
        Event::ProviderResumed {
            waited_ms,
            answered: false,
            ..
        } => format!("not waited any longer, after {}", lasted(*waited_ms)),
        Event::Compacted {
            before_tokens,
            after_tokens,
            ..
        } => format!(
            "conversation shortened from ~{} to ~{} tokens",
            count(*before_tokens),
            count(*after_tokens)
        ),
        Event::Nudged { .. } => "did not submit; asked to".into(),
        Event::Ordered { limit, .. } => format!("{}; ordered to submit", text(limit)),
        Event::EvalStarted { .. } => "grading".into(),
        Event::Eval {
            gate,
            improved,
            detail,
            ..
        } => {
            let detail = text(detail);
            match (gate, improved) {
                (true, true) => style.good(&detail),
                (true, false) => detail,
                (false, _) => style.bad(&detail),
            }
        }
        Event::Snapshotted { refused, .. } if !refused.is_empty() => {
            style.bad(&format!("cannot be committed: {}", text(&refused.join("; "))))
        }
        Event::HooksEnded {
            refused: Some(hook),
            output,
            ..
        } => {
            let said = text(output.as_deref().unwrap_or_default());
            style.bad(&format!("{hook} refuses: {said}"))
        }
        Event::HooksEnded { tree: Some(_), .. } => "pre-commit changed files; graded again".into(),
        Event::Repair { repair, .. } => format!("repair {repair}: the robot sees what was printed"),
        Event::Committed { commit, message, .. } => {
            format!(
                "{} {} {}",
                style.good("✔ committed"),
                commit.short(),
                text(without_number(message))
            )
        }
        Event::CommitFailed { output, .. } => style.bad(&format!("✘ commit failed: {}", text(output))),
        Event::Failure { summary, .. } => style.bad(&format!("✘ failed: {}", text(summary))),
        Event::GateFailure { summary, .. } => {
            style.bad(&format!("✘ discarded, the gate failed: {}", text(summary)))
        }
        Event::NoImprovement { summary, .. } => {
            style.bad(&format!("✘ discarded, not better: {}", text(summary)))
        }
        Event::Tampered { paths, .. } => style.bad(&format!(
            "✘ discarded, locked files were changed: {}",
            text(&paths.join(", "))
        )),
        Event::NoChange { repeat, .. } => style.bad(if *repeat {
            "✘ nothing new: this was tried before"
        } else {
            "✘ nothing was changed"
        }),
        Event::AgentError { error, message, .. } => {
            style.bad(&format!("✘ {}: {}", text(error), text(message)))
        }
        Event::Interrupted { reason, .. } => format!("stopped: {}", text(reason)),
        Event::ModelAdapted { note, .. } => {
            style.dim(&format!("the provider wants it otherwise: {}", text(note)))
        }
        Event::WindowLearnt { model, tokens, .. } => style.dim(&format!(
            "{} takes {} tokens at once",
            text(model),
            count(*tokens)
        )),
        Event::ModelSwitched {
            model,
            instead_of,
            why,
            ..
        } => {
            let why = why.as_ref().map(|why| format!(": {}", text(why)));
            format!(
                "{} answers in place of {}{}",
                text(model),
                text(instead_of),
                why.unwrap_or_default()
            )
        }
        Event::ModelServed { model, served_by, .. } if !is_version(model, served_by) => style.dim(&format!(
            "{} answers in place of {}",
            text(served_by),
            text(model)
        )),
        Event::AgentStarted { .. }
        | Event::ModelServed { .. }
        | Event::AgentEnded { .. }
        | Event::SnapshotStarted { .. }
        | Event::Snapshotted { .. }
        | Event::HooksStarted { .. }
        | Event::HooksEnded { .. }
        | Event::CommitStarted { .. }
        | Event::Aborted { .. }
        | Event::Reopened {}
        | Event::Ended { .. }
        | Event::ModelFinished { .. }
        | Event::ToolFinished { .. } => return None,
    };
    Some(line)
}

/// Whether a model that answers is the one that was asked, by a longer or a shorter name.
fn is_version(asked: &str, served: &str) -> bool {
    let name = asked.split_once('/').map_or(asked, |(_, name)| name);
    served.contains(name) || name.contains(served)
}

/// The message without `robot-to 3: `, which stands before the line already.
fn without_number(message: &str) -> &str {
    let rest = message.strip_prefix("robot-to ");
    let rest = rest.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message)
}

/// The argument that says most.
fn argument(arguments: &Value) -> String {
    let said = ["path", "file_path", "command", "summary"]
        .iter()
        .find_map(|key| arguments.get(*key)?.as_str());
    said.map_or_else(String::new, |text| clip(&one_line(text), MAX_TEXT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let counts: Vec<_> = [0, 999, 1_000, 12_345, 123_456, 1_234_567, 123_456_789]
            .map(count)
            .into();
        assert_eq!(counts, ["0", "999", "1.0k", "12.3k", "123k", "1.2M", "123M"]);
        assert_eq!([0, 59, 61, 3_661].map(clock), ["0:00", "0:59", "1:01", "1:01:01"]);
    }

    #[test]
    fn the_number_of_an_iteration_is_not_said_twice() {
        for (message, shown) in [
            ("robot-to 12: Add a part", "Add a part"),
            ("fix(a): mend it", "fix(a): mend it"),
            ("robot-to is a name", "robot-to is a name"),
        ] {
            assert_eq!(without_number(message), shown);
        }
        let prefix = prefix(&RunView::default(), jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(prefix.chars().count() + 1, INDENT, "{prefix:?}");
    }

    #[test]
    fn what_robots_write_cannot_steer_the_terminal() {
        let failed = Event::Failure {
            candidate: 0,
            summary: "a\x1b[2J\r\nb\u{202e}".into(),
            learnings: vec![],
        };
        assert_eq!(
            line(Style::default(), &failed).as_deref(),
            Some("✘ failed: a [2J b")
        );
    }
}
