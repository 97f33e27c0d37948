//! `robot-to runs`: what was run in this repository.

use super::current_dir;
use crate::args::RunsArgs;
use crate::error::CliError;
use crate::exit::Exit;
use robot_lab_to::commit_message::{clip, one_line};
use robot_lab_to::run::{RunDir, RunId};
use robot_lab_to::workspace::{Git, HostEnv, Ledger};
use serde_json::json;
use std::io::Write as _;

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
        drop(writeln!(
            out,
            "{}",
            if args.json {
                as_json(&id, &dir)
            } else {
                as_line(&id, &dir)
            }
        ));
    }
    Ok(Exit::Done)
}

/// How a run stands, in words.
fn standing(dir: &RunDir, reason: Option<&str>) -> String {
    match (dir.is_held(), reason) {
        (Ok(true), _) => "running".into(),
        (_, Some(reason)) => reason.to_owned(),
        // It has no end and no process: it was killed.
        (_, None) => "cut off".into(),
    }
}

fn as_line(id: &RunId, dir: &RunDir) -> String {
    match dir.load() {
        Err(error) => format!("{id}  cannot be read: {}", one_line(&error.to_string())),
        Ok(file) => {
            let standing = standing(dir, file.reason.as_ref().map(|reason| reason.text.as_str()));
            let (iterations, commits) = (file.state.iteration, file.state.commits);
            let objective = clip(&one_line(&file.objective), 60);
            format!(
                "{id}  {iterations:>3} iterations, {commits:>3} commits  {}  {objective}",
                one_line(&standing)
            )
        }
    }
}

fn as_json(id: &RunId, dir: &RunDir) -> String {
    match dir.load() {
        Err(error) => json!({ "run_id": id.as_str(), "error": error.to_string() }).to_string(),
        Ok(file) => json!({
            "run_id": id.as_str(),
            "standing": standing(dir, file.reason.as_ref().map(|reason| reason.text.as_str())),
            "objective": file.objective,
            "branch": file.branch,
            "model": file.model,
            "iterations": file.state.iteration,
            "commits": file.state.commits,
            "discarded": file.state.discarded,
            "tokens": file.state.usage.total(),
            "started": file.started,
            "updated": file.updated,
            "notes": dir.notes(),
            "log": dir.log(),
        })
        .to_string(),
    }
}
