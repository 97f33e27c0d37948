//! What the robot is told. The stable part is the system prompt, so that providers can cache it; the changing part is
//! the first message of each iteration. What robots wrote earlier is fenced and labelled as data.

use crate::commit_message::one_line;
use crate::notes::digest;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, context};
use std::path::Path;

/// Bytes of the notes that a prompt holds: 6,000 tokens at four bytes each.
const NOTES_BUDGET: usize = 24_000;

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
    /// What the verify command says before any work, when it fails.
    pub failing: Option<&'a str>,
    /// How the measure stands, in a measured run.
    pub score: Option<Standing>,
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
        self.render(
            "system",
            context! {
                objective => one_line(facts.objective),
                verify_command => facts.verify_command,
            measure => facts.measure.map(|(command, _)| command),
            direction => facts.measure.map(|(_, minimize)| if minimize { "lower" } else { "higher" }),
                eval => facts.eval,
                stop_when => facts.stop_when,
                locked => facts.locked.to_vec(),
                conventional => facts.conventional,
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
                failing => now.failing,
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

    /// Asks a robot that did not submit to do so.
    pub fn nudge(&self) -> Result<String, PromptError> {
        self.render("nudge", context! {})
    }

    /// Orders a robot that ran into a limit to submit.
    pub fn order(&self, limit: &str) -> Result<String, PromptError> {
        self.render("order", context! { limit })
    }

    /// Lets a robot repair a failed gate.
    pub fn repair(&self, nonce: &str, output: &str) -> Result<String, PromptError> {
        self.render("repair", context! { nonce, output })
    }

    /// Tells of a change that hooks refused, which lies in the workspace.
    pub fn carried(&self, nonce: &str, output: &str) -> Result<String, PromptError> {
        self.render("carried", context! { nonce, output })
    }

    fn render(&self, name: &str, values: minijinja::Value) -> Result<String, PromptError> {
        Ok(self.templates.get_template(name)?.render(values)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_prompt() {
        let prompts = Prompts::new().unwrap();
        let facts = Facts {
            objective: "make the tests pass",
            verify_command: Some("sh test.sh"),
            measure: Some(("sh count.sh", true)),
            eval: Some("the eval `taste`"),
            locked: &["test.sh".to_owned()],
            conventional: true,
            stop_when: Some("all tests pass"),
        };
        insta::assert_snapshot!(prompts.system(&facts).unwrap());
        let bare = Facts {
            objective: "tidy up",
            verify_command: None,
            measure: None,
            eval: None,
            locked: &[],
            conventional: false,
            stop_when: None,
        };
        insta::assert_snapshot!("system_prompt_bare", prompts.system(&bare).unwrap());
    }

    #[test]
    fn messages() {
        let prompts = Prompts::new().unwrap();
        let now = Situation {
            iteration: 2,
            work_dir: Path::new("/state/robot-0"),
            nonce: "f00d",
            notes: "# x\n\n### Iteration 1 [FAIL]\n\n**Summary:** tried\n",
            failing: Some("1 of 3 tests failed"),
            score: Some(Standing {
                best: Some(84.0),
                parent: Some(84.0),
                target: Some(90.0),
                minimize: false,
                since_improvement: 3,
                committed: true,
            }),
        };
        let first = Situation {
            iteration: 1,
            notes: "",
            failing: None,
            score: None,
            ..now.clone()
        };
        let all = [
            prompts.iteration(&first).unwrap(),
            prompts.iteration(&now).unwrap(),
            prompts.nudge().unwrap(),
            prompts.order("tool call limit reached (100)").unwrap(),
            prompts.repair("f00d", "verify=false (exit 1)\nboom").unwrap(),
            prompts
                .carried("f00d", "pre-commit refuses the commit\nline 3 is too long")
                .unwrap(),
        ];
        insta::assert_snapshot!(all.join("\n=====\n"));
    }
}
