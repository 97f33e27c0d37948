//! `robot-to runs`: what was run in this repository.

use super::current_dir;
use crate::args::RunsArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::money;
use jiff::Timestamp;
use robot_lab::{Cost, counted};
use robot_lab_to::commit_message::{clip, one_line};
use robot_lab_to::iteration::RunState;
use robot_lab_to::run::{Began, Logged, RunDir, RunId, Standing};
use robot_lab_to::workspace::{Git, HostEnv, Ledger};
use serde_json::json;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// Lists the runs of the repository around the current directory, newest last.
pub(crate) async fn run(args: &RunsArgs) -> Result<Exit, CliError> {
    let cwd = current_dir()?;
    let git = Git::find(&HostEnv::new(std::env::vars_os()))
        .await
        .map_err(|error| CliError::configuration(error.to_string()))?;
    let top = Ledger::find_top(&git, &cwd)
        .await
        .map_err(|error| CliError::configuration(error.to_string()))?;
    let run_dir = top.join(&args.run_dir);
    let runs = RunDir::list(&run_dir)
        .map_err(|error| CliError::environment(format!("{}: {error}", run_dir.display())))?;
    let mut out = std::io::stdout().lock();
    if runs.is_empty() && !args.json {
        drop(writeln!(out, "no runs in {}", run_dir.display()));
    }
    for (id, dir) in runs {
        let listed = Listed::read(&run_dir, &id, &dir);
        let line = if args.json {
            as_json(&id, &dir, listed)
        } else {
            as_line(&id, listed)
        };
        drop(writeln!(out, "{line}"));
    }
    Ok(Exit::Done)
}

/// What is listed of a run.
struct Listed {
    standing: String,
    objective: String,
    branch: Option<String>,
    model: Option<String>,
    state: RunState,
    started: Option<Timestamp>,
    updated: Option<Timestamp>,
}

impl Listed {
    /// From `run.json`; or from the log of a run that was cut off before it had one.
    fn read(run_dir: &Path, id: &RunId, dir: &RunDir) -> Result<Self, String> {
        match dir.load() {
            Ok(file) => Ok(Self {
                standing: match (dir.is_held(), file.reason) {
                    (Ok(true), _) => at_work(run_dir, id).into(),
                    (_, Some(reason)) => reason.text,
                    // It has no end and no process: it was killed.
                    (_, None) => "cut off".into(),
                },
                objective: file.objective,
                branch: Some(file.branch),
                model: Some(file.model),
                state: file.state,
                started: Some(file.started),
                updated: Some(file.updated),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let run = Logged::read(run_dir, Some(id.as_str())).map_err(|error| error.to_string())?;
                Ok(Self::of(&run))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn of(run: &Logged) -> Self {
        let standing = Standing::of(&run.records, run.held, Timestamp::now());
        let began = Began::of(&run.records);
        Self {
            standing: match &standing {
                Standing::Running(doing) => (*doing).to_owned(),
                Standing::NeverBegan => "never began: its process ended while it was set up".into(),
                other => other.word().to_owned(),
            },
            objective: began.map(|began| began.objective.to_owned()).unwrap_or_default(),
            branch: began.map(|began| began.branch.to_owned()),
            model: began.map(|began| began.model.to_owned()),
            state: RunState::fold(&run.records),
            started: began.map(|began| began.started),
            updated: run.records.last().map(|record| record.ts),
        }
    }
}

/// What a run does that a process has: only its log knows of a wait.
fn at_work(run_dir: &Path, id: &RunId) -> &'static str {
    match Logged::read(run_dir, Some(id.as_str())) {
        Ok(run) => Standing::of(&run.records, true, Timestamp::now()).word(),
        Err(_) => "running",
    }
}

fn as_line(id: &RunId, listed: Result<Listed, String>) -> String {
    match listed {
        Err(error) => format!("{id}  cannot be read: {}", one_line(&error)),
        Ok(run) => {
            let (iterations, commits) = (run.state.iteration, run.state.commits);
            let objective = clip(&one_line(&run.objective), 60);
            let cost = match run.state.known_cost() {
                Some(cost) if cost > Cost::ZERO => format!("  {}", money(cost, run.state.usage.estimated)),
                _ => String::new(),
            };
            let line = format!(
                "{id}  {:>14}, {:>11}{cost}  {}  {objective}",
                counted(iterations, "iteration"),
                counted(commits, "commit"),
                one_line(&run.standing)
            );
            line.trim_end().to_owned()
        }
    }
}

fn as_json(id: &RunId, dir: &RunDir, listed: Result<Listed, String>) -> String {
    match listed {
        Err(error) => json!({ "run_id": id.as_str(), "error": error }).to_string(),
        Ok(run) => json!({
            "run_id": id.as_str(),
            "standing": run.standing,
            "objective": run.objective,
            "branch": run.branch,
            "model": run.model,
            "iterations": run.state.iteration,
            "commits": run.state.commits,
            "discarded": run.state.discarded,
            "tokens": run.state.usage.total(),
            "estimated": run.state.usage.estimated,
            "cost": run.state.known_cost(),
            "started": run.started,
            "updated": run.updated,
            "notes": dir.notes(),
            "log": dir.log(),
        })
        .to_string(),
    }
}
