//! `robot-to demo`: a whole run in a throw-away repository, with a scripted model.

use super::current_dir;
use super::run::{Shown, start};
use crate::args::DemoArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::shell_word;
use robot_lab_providers::ScriptModel;
use robot_lab_to::run::Run;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const SCRIPT: &str = include_str!("../demo/script.yaml");
const KATA: [(&str, &str); 2] = [
    ("README.md", include_str!("../demo/kata/README.md")),
    ("test.sh", include_str!("../demo/kata/test.sh")),
];
const OBJECTIVE: &str = "implement roman.sh until test.sh passes";

/// Makes the repository, runs, and says what there is to look at.
pub(crate) async fn run(args: DemoArgs) -> Result<Exit, CliError> {
    let dir = match args.dir {
        Some(dir) => current_dir()?.join(dir),
        None => std::env::temp_dir().join(format!("robot-to-demo-{}", std::process::id())),
    };
    let failed = |what: &str, why: String| {
        CliError::environment(format!("the demo cannot {what} in {}: {why}", dir.display()))
    };
    std::fs::create_dir_all(dir.parent().unwrap_or(&dir)).map_err(|e| failed("begin", e.to_string()))?;
    std::fs::create_dir(&dir).map_err(|e| failed("begin", e.to_string()))?;
    let kata = dir.join("kata");
    make_repository(&kata).map_err(|why| failed("make a repository", why))?;
    drop(writeln!(
        std::io::stderr().lock(),
        "demo: a small kata with a failing test suite, in {}\n",
        shell_word(&kata.display().to_string())
    ));

    let script = if args.fast {
        without_delays(SCRIPT)
    } else {
        SCRIPT.to_owned()
    };
    let model = ScriptModel::from_yaml(&script).map_err(|error| CliError::internal(error.to_string()))?;
    let run = Run::builder(OBJECTIVE)
        .repo(&kata)
        .host(std::env::vars_os())
        .place(|place| place.work_dir = dir.join("state"))
        .model(Arc::new(model))
        .verify("sh test.sh")
        .max_iterations(3);
    let shown = Shown {
        json: false,
        words: true,
    };
    let exit = start(run, shown, &kata).await?;
    drop(write!(
        std::io::stdout().lock(),
        "\nLook at it:\n  cd {}\n  git log --oneline --all\n  cat .robot_lab_to/runs/*/notes.md\n\
         The checkout itself is as it was: git status shows nothing.\n",
        shell_word(&kata.display().to_string())
    ));
    Ok(exit)
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
    fn the_script_is_one_with_and_without_delays() {
        ScriptModel::from_yaml(SCRIPT).unwrap();
        let fast = without_delays(SCRIPT);
        ScriptModel::from_yaml(&fast).unwrap();
        assert!(!fast.contains("delay_ms") && SCRIPT.contains("delay_ms"));
    }
}
