//! `robot-to demo`: a whole run in a throw-away repository, with a scripted model.

use super::current_dir;
use super::run::{Shown, start};
use crate::args::{Cli, DemoArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::shell_word;
use clap::Parser as _;
use robot_lab::{Model as _, ModelFacts, Price};
use robot_lab_providers::ScriptModel;
use robot_lab_to::run::Run;
use robot_lab_to::settings::Plan;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const SCRIPT: &str = include_str!("../demo/script.yaml");
const KATA: [(&str, &str); 2] = [
    ("README.md", include_str!("../demo/kata/README.md")),
    ("test.sh", include_str!("../demo/kata/test.sh")),
];
/// The command that the demo stands for, and by which it goes.
const COMMAND: [&str; 13] = [
    "robot-to",
    "write roman.sh",
    "--verify",
    "sh test.sh",
    "--protect-path",
    "test.sh",
    "--measure",
    "wc -l < roman.sh",
    "--minimize",
    "--target",
    "12",
    "--max-iterations",
    "5",
];
/// The same as people type it.
const TYPED: &str = "  robot-to \"write roman.sh\" --verify \"sh test.sh\" --protect-path test.sh \\
    --measure \"wc -l < roman.sh\" --minimize --target 12 --max-iterations 5";

/// Makes the repository, runs, and says what there is to look at.
pub(crate) async fn run(args: DemoArgs) -> Result<Exit, CliError> {
    let dir = match args.dir {
        Some(dir) => current_dir()?.join(dir),
        None => std::env::temp_dir().join(format!("robot-to-demo-{}", std::process::id())),
    };
    let failed = |what: &str, why: String| {
        CliError::environment(format!("the demo cannot {what} in {}: {why}", dir.display()))
    };
    std::fs::create_dir_all(dir.parent().unwrap_or(&dir))
        .and_then(|()| std::fs::create_dir(&dir))
        .map_err(|error| {
            let message = format!("the demo cannot begin in {}: {error}", dir.display());
            CliError::path(&error, message).hint("name a directory that is not there yet")
        })?;
    let kata = dir.join("kata");
    make_repository(&kata).map_err(|why| failed("make a repository", why))?;
    drop(writeln!(
        std::io::stderr().lock(),
        "demo: a small kata with a failing test suite, in {}\n\
         Only the model is a script. With a model of yours, this would be\n{TYPED}\n",
        shell_word(&kata.display().to_string())
    ));

    let script = if args.fast {
        without_delays(SCRIPT)
    } else {
        SCRIPT.to_owned()
    };
    let model = ScriptModel::from_yaml(&script).map_err(|error| CliError::internal(error.to_string()))?;
    let mut plan = plan()?;
    let free = ModelFacts {
        price: Some(Price::FREE),
        ..ModelFacts::default()
    };
    plan.models.insert(model.id().to_string(), free);
    let run = Run::builder(plan.objective.clone())
        .repo(&kata)
        .host(std::env::vars_os())
        .place(|place| place.work_dir = dir.join("state"))
        .model(Arc::new(model))
        .plan(|own| *own = plan);
    let shown = Shown {
        json: false,
        words: true,
        // From the repository, to which the last lines lead.
        flags: " --work-dir ../state".into(),
    };
    let exit = start(run, shown, &kata).await?;
    drop(write!(
        std::io::stdout().lock(),
        "\nLook at it:\n  cd {}\n  git log --oneline --all\n  cat .robot_lab_to/runs/*/notes.md\n\
         Your checkout is never written: git status shows nothing.\n",
        shell_word(&kata.display().to_string())
    ));
    Ok(exit)
}

/// The plan that the command makes, but for the model.
fn plan() -> Result<Plan, CliError> {
    let cli = Cli::try_parse_from(COMMAND).map_err(|error| CliError::internal(error.to_string()))?;
    let mut plan = Plan::new(cli.start.objective.unwrap_or_default());
    cli.run.apply(&mut plan, &|_| true);
    plan.model = serde_json::Value::Null;
    Ok(plan)
}

fn without_delays(script: &str) -> String {
    script
        .lines()
        .filter(|line| !line.trim_start().starts_with("delay_ms:"))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn make_repository(kata: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    std::fs::create_dir(kata).map_err(failed)?;
    for (name, text) in KATA {
        std::fs::write(kata.join(name), text).map_err(failed)?;
    }
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["config", "user.name", "Demo"],
        &["config", "user.email", "demo@example.invalid"],
        &["config", "commit.gpgsign", "false"],
        &["add", "."],
        &[
            "commit",
            "--quiet",
            "--no-verify",
            "-m",
            "a kata with a failing test suite",
        ],
    ] {
        git(kata, arguments)?;
    }
    Ok(())
}

fn git(kata: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("git");
    command
        .current_dir(kata)
        .args(arguments)
        .stdin(std::process::Stdio::null());
    // Started from a hook, these would lead into another repository.
    let located = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.to_string_lossy().starts_with("GIT_"));
    for name in located {
        command.env_remove(name);
    }
    let output = command.output().map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "git {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_run() {
        let words = TYPED.replace("\\\n", " ").replace('"', "");
        let words: Vec<_> = words.split_whitespace().collect();
        let command = COMMAND.join(" ");
        assert_eq!(words, command.split_whitespace().collect::<Vec<_>>());
        assert!(plan().is_ok());
    }

    #[test]
    fn the_script_is_one_with_and_without_delays() {
        ScriptModel::from_yaml(SCRIPT).unwrap();
        let fast = without_delays(SCRIPT);
        ScriptModel::from_yaml(&fast).unwrap();
        assert!(!fast.contains("delay_ms") && SCRIPT.contains("delay_ms"));
    }
}
