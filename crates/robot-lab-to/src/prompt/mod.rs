//! What the robot is told. The stable part is the system prompt, so that providers can cache it; the changing part is
//! the first message of each iteration. What robots wrote earlier is fenced and labelled as data.

mod listing;
mod project;

pub use listing::listing;
pub use project::{MAX_INSTRUCTIONS, Project};

use crate::commit_message::one_line;
use crate::notes::digest;
use crate::shell::head_and_tail;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, context};
use std::path::Path;

/// Bytes of the notes that a prompt holds: 6,000 tokens at four bytes each.
const NOTES_BUDGET: usize = 24_000;
/// Bytes of the objective, which are all that a run takes.
const OBJECTIVE_BUDGET: usize = 20_000;
/// Bytes of a command, of a condition, and of what a command printed.
const TEXT_BUDGET: usize = 4_000;
/// Bytes of a path.
const PATH_BUDGET: usize = 400;
/// Bytes of a list of files that a small prompt holds; a longer one is left out.
const SMALL_LISTING: usize = 1_500;
/// Most locked files that are named.
const MAX_LOCKED: usize = 30;

/// Writes prompts. The templates are part of the program, and a test renders each of them.
pub struct Prompts {
    templates: Environment<'static>,
}

/// What stays the same for a whole run.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// What the user wants.
    pub objective: &'a str,
    /// The command that grades.
    pub verify_command: Option<&'a str>,
    /// The command that measures, and whether lower is better.
    pub measure: Option<(&'a str, bool)>,
    /// Who else grades, in a few words.
    pub eval: Option<&'a str>,
    /// Files that may not be changed.
    pub locked: &'a [String],
    /// Whether commits are conventional.
    pub conventional: bool,
    /// The condition that ends the run when the robot judges it met.
    pub stop_when: Option<&'a str>,
    /// What is known of the project.
    pub project: &'a Project,
    /// Whether it is told in few words, as weak models need it: they go on with a long prompt instead of following it.
    pub small: bool,
}

/// What is new in an iteration.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The iteration.
    pub iteration: u32,
    /// The working directory.
    pub work_dir: &'a Path,
    /// A text that robots cannot foresee, for the fences.
    pub nonce: &'a str,
    /// The notes, whole.
    pub notes: &'a str,
    /// Where the robot finds the whole of them.
    pub notes_file: Option<&'a Path>,
    /// What the verify command says before any work, when it fails.
    pub failing: Option<&'a str>,
    /// How the measure stands, in a measured run.
    pub score: Option<Standing>,
}

/// What a robot in small steps is told.
#[derive(Clone, Debug)]
pub struct StepFacts<'a> {
    /// The rule.
    pub rule: &'a str,
    /// The files that it is about, which are answered with whole; none where they are too large.
    pub files: Vec<(&'a Path, &'a str)>,
    /// What the verify command prints, where it fails.
    pub failing: Option<&'a str>,
    /// Why the last answer was not taken.
    pub refused: Option<&'a str>,
}

/// How a measured run stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The best score so far, once there is one.
    pub best: Option<f64>,
    /// The score of the present commit.
    pub parent: Option<f64>,
    /// The score to reach.
    pub target: Option<f64>,
    /// Whether lower is better.
    pub minimize: bool,
    /// Iterations since the last improvement.
    pub since_improvement: u32,
    /// Whether anything was committed.
    pub committed: bool,
}

/// A prompt that cannot be written: a fault of a template.
#[derive(Debug, thiserror::Error)]
#[error("internal: a prompt template is broken: {0}")]
pub struct PromptError(#[from] minijinja::Error);

impl Prompts {
    /// Loads the templates.
    pub fn new() -> Result<Self, PromptError> {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .build()?,
        );
        for (name, source) in [
            ("system", include_str!("templates/system.md.j2")),
            ("small", include_str!("templates/small.md.j2")),
            ("steps", include_str!("templates/steps.md.j2")),
            ("step", include_str!("templates/step.md.j2")),
            ("iteration", include_str!("templates/iteration.md.j2")),
            ("nudge", include_str!("templates/nudge.md.j2")),
            ("order", include_str!("templates/order.md.j2")),
            ("repair", include_str!("templates/repair.md.j2")),
            ("carried", include_str!("templates/carried.md.j2")),
        ] {
            templates.add_template(name, source)?;
        }
        Ok(Self { templates })
    }

    /// The system prompt.
    pub fn system(&self, facts: &Facts<'_>) -> Result<String, PromptError> {
        let files = facts.project.files.as_deref();
        self.render(
            if facts.small { "small" } else { "system" },
            context! {
                objective => head_and_tail(&one_line(facts.objective), OBJECTIVE_BUDGET),
                verify_command => facts.verify_command.map(shown),
                measure => facts.measure.map(|(command, _)| shown(command)),
                direction => facts.measure.map(|(_, minimize)| if minimize { "lower" } else { "higher" }),
                eval => facts.eval.map(short),
                stop_when => facts.stop_when.map(shown),
                locked => facts.locked.iter().take(MAX_LOCKED).map(|path| short(path)).collect::<Vec<_>>(),
                conventional => facts.conventional,
                mark => facts.project.mark.as_str(),
                instructions => facts.project.instructions.as_deref().map(|text| head_and_tail(text, MAX_INSTRUCTIONS)),
                agents => facts.project.agents.as_deref(),
                files => files.filter(|files| !facts.small || files.len() <= SMALL_LISTING),
            },
        )
    }

    /// The first message of an iteration.
    pub fn iteration(&self, now: &Situation<'_>) -> Result<String, PromptError> {
        let notes = digest(now.notes, NOTES_BUDGET);
        self.render(
            "iteration",
            context! {
                iteration => now.iteration,
                work_dir => now.work_dir.display().to_string(),
                nonce => now.nonce,
                notes => (!notes.is_empty()).then_some(notes),
                notes_file => now.notes_file.map(|path| path.display().to_string()),
                failing => now.failing.map(shown),
                score => now.score.as_ref().map(|score| context! {
                    best => score.best.map(|value| value.to_string()),
                    parent => score.parent.map(|value| value.to_string()),
                    target => score.target.map(|value| value.to_string()),
                    direction => if score.minimize { "lower" } else { "higher" },
                    since_improvement => score.since_improvement,
                    committed => score.committed,
                }),
            },
        )
    }

    /// The system prompt of a robot in small steps.
    pub fn steps(&self, instructions: Option<&str>) -> Result<String, PromptError> {
        let instructions = instructions.map(|text| head_and_tail(text, MAX_INSTRUCTIONS));
        self.render("steps", context! { instructions })
    }

    /// What a robot in small steps is told.
    pub fn step(&self, facts: &StepFacts<'_>) -> Result<String, PromptError> {
        let file = |&(path, text): &(&Path, &str)| context! { path => path.display().to_string(), text };
        self.render(
            "step",
            context! {
                rule => shown(facts.rule),
                files => facts.files.iter().map(file).collect::<Vec<_>>(),
                failing => facts.failing.map(shown),
                refused => facts.refused.map(short),
            },
        )
    }

    /// Asks a robot that did not submit to do so.
    pub fn nudge(&self) -> Result<String, PromptError> {
        self.render("nudge", context! {})
    }

    /// Orders a robot that ran into a limit to submit.
    pub fn order(&self, limit: &str) -> Result<String, PromptError> {
        self.render("order", context! { limit => short(limit) })
    }

    /// Lets a robot repair a failed gate.
    pub fn repair(&self, nonce: &str, output: &str) -> Result<String, PromptError> {
        self.render("repair", context! { nonce, output => shown(output) })
    }

    /// Tells of a change that hooks refused, which lies in the workspace.
    pub fn carried(&self, nonce: &str, output: &str) -> Result<String, PromptError> {
        self.render("carried", context! { nonce, output => shown(output) })
    }

    fn render(&self, name: &str, values: minijinja::Value) -> Result<String, PromptError> {
        Ok(self.templates.get_template(name)?.render(values)?)
    }
}

/// A command, or what one printed, within its budget.
fn shown(text: &str) -> String {
    head_and_tail(text, TEXT_BUDGET)
}

/// One line of limited length.
fn short(text: &str) -> String {
    let line = one_line(text);
    let end = line.floor_char_boundary(PATH_BUDGET.min(line.len()));
    let mark = if end < line.len() { "…" } else { "" };
    format!("{}{mark}", line.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests;
