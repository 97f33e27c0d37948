//! An eval that is a program of the user's: it reads what it is told as JSON, and answers with a score as JSON.

use super::answer::{Answer, question};
use super::commands::{ended, invalid, printed, without_place};
use super::score::{MAX_OUTPUT, Part};
use super::{Eval, EvalContext, Score};
use crate::iteration::StopReason;
use crate::shell::{Shell, head_and_tail};
use async_trait::async_trait;
use robot_exec::Output;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A file of the repository, by its path from the top. It is locked, so each candidate has the version of the
    /// commit that the run started from, and that one runs.
    InTree(PathBuf),
    /// A file that is no part of the repository. No robot works where it is.
    At(PathBuf),
}

/// Grades by a program.
#[derive(Clone, Debug)]
pub struct CommandEval {
    name: String,
    program: Program,
    shell: Shell,
    timeout: Duration,
}

impl CommandEval {
    /// An eval by this program, which has `timeout` to answer.
    pub fn new(program: Program, shell: Shell, timeout: Duration) -> Self {
        let (Program::InTree(path) | Program::At(path)) = &program;
        Self {
            name: format!("command:{}", path.display()),
            program,
            shell,
            timeout,
        }
    }
}

#[async_trait]
impl Eval for CommandEval {
    fn name(&self) -> &str {
        &self.name
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        if let Some(gone) = without_place(cx) {
            return Ok(gone);
        }
        let what = (Part::Eval.name(), "eval");
        let program = match &self.program {
            Program::At(path) => path.clone(),
            Program::InTree(path) => cx.bench.join(path),
        };
        if matches!(self.program, Program::InTree(_)) && !is_plain_file(&program) {
            // What a link leads to would not be locked.
            let why = "it is no plain file in the commit that the run starts from; name the file itself";
            return invalid(Score::default(), cx, what, why, "");
        }
        let question = question(cx).map_err(StopReason::environment)?;
        let output = self
            .shell
            .run_program(&program, question, &cx.work_dir, self.timeout, &cx.cancel)
            .await;
        let output = ended(output, Part::Eval, cx)?;
        match read(&output) {
            Ok(answer) => {
                let mut score = answer.score(&cx.goal, cx.previous_value);
                score.ran(Part::Eval, &output);
                score.provenance.samples.extend(score.value);
                if !score.gate_ok && score.output.is_none() {
                    let said = output.stderr.text();
                    score.output = Some(match said.trim() {
                        "" => score.detail.clone(),
                        _ => head_and_tail(&said, MAX_OUTPUT),
                    });
                }
                Ok(score)
            }
            Err(why) => {
                let mut score = Score::default();
                score.ran(Part::Eval, &output);
                invalid(score, cx, what, &why, &printed(&output))
            }
        }
    }

    fn protected_paths(&self) -> Vec<String> {
        match &self.program {
            Program::InTree(path) => vec![format!(":(top,literal){}", path.display())],
            Program::At(_) => Vec::new(),
        }
    }
}

fn is_plain_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|file| file.is_file())
}

fn read(output: &Output) -> Result<Answer, String> {
    if !output.status.success() {
        return Err(format!(
            "it must exit 0, also for a score that fails the gate, but: {}",
            output.status
        ));
    }
    match output.stdout.complete() {
        Some(printed) => Answer::read(printed),
        None => Err(format!(
            "it printed {} bytes on standard output, too many for a score",
            output.stdout.total()
        )),
    }
}
