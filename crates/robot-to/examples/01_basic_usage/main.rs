//! The loop as a library: a robot implements a small kata until its tests pass, and a hook tells what it does.
//!
//! README.md beside this file says how to run it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints what it does"
)]

use async_trait::async_trait;
use robot_lab::{Abort, Hook, HookCx, Model, ModelError, ModelReply, ModelRequest};
use robot_lab::{NextModel, NextTool, ToolCall, ToolOutcome, ToolPart};
use robot_lab_providers::{HttpModel, ModelConfig, ScriptModel, key_variable};
use robot_lab_to::iteration::StopReason;
use robot_lab_to::{Halt, Run, RunReport};
use std::error::Error;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

const OBJECTIVE: &str = "implement lib/roman_numeral.sh until test/roman_numeral_test.sh passes";
const IMPLEMENTATION: &str = "lib/roman_numeral.sh";
const TEST: &str = "sh test/roman_numeral_test.sh";

/// The kata: what there is when the robot begins.
const KATA: [(&str, &str); 2] = [
    ("README.md", include_str!("kata/README.md")),
    (
        "test/roman_numeral_test.sh",
        include_str!("kata/test/roman_numeral_test.sh"),
    ),
];

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    // Every command of a run has a helper process, which is this program again. This must come first.
    if let Some(code) = robot_exec::maybe_helper() {
        return code;
    }
    let done = tokio::runtime::Runtime::new()
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(example()));
    match done {
        Ok(report) if report.state.commits > 0 => ExitCode::SUCCESS,
        Ok(report) => {
            eprintln!("nothing was committed: {}", report.reason.text);
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn example() -> Result<RunReport, Failure> {
    let chosen = Chosen::from_environment()?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/01_basic_usage");
    let dir = variable("RLTO_DIR").map_or_else(|| here.join("output"), PathBuf::from);
    let (project, logs, copies) = (dir.join("project"), dir.join(".robot_lab_to"), dir.join("copies"));

    for leftover in [&project, &logs, &copies, &dir.join("final")] {
        if leftover.exists() {
            println!("Cleaning leftover: {}", short(leftover));
            std::fs::remove_dir_all(leftover)?;
        }
    }
    make_project(&project)?;
    println!("Project dir:     {}", short(&project));
    println!("Provider/model:  {}", chosen.said);
    println!("Objective:       {OBJECTIVE}\n");

    let halt = Halt::new();
    tokio::spawn({
        let halt = halt.clone();
        async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                halt.stop(StopReason::interrupted());
            }
        }
    });
    let report = Run::builder(OBJECTIVE)
        .repo(&project)
        .host(std::env::vars_os())
        .place(|place| {
            place.run_dir = logs.clone();
            place.work_dir = copies;
            place.secrets = chosen.key.into_iter().collect();
        })
        .model(chosen.model)
        .verify(TEST)
        .max_iterations(6)
        .plan(|plan| {
            plan.protect_paths = vec!["test".into()];
            plan.policy.stop_when = Some("all tests of test/roman_numeral_test.sh pass".into());
        })
        .hooks(|_robot| vec![Arc::new(Feedback)])
        .halt(halt)
        .run()
        .await?;
    show(&report, &project, &dir)?;
    println!("Notes:    {}", short(&report.notes));
    println!("Project:  {}", short(&project));
    println!("Run logs: {}", short(&logs));
    Ok(report)
}

/// Tells what the robot does, as it does it.
struct Feedback;

#[async_trait]
impl Hook for Feedback {
    fn name(&self) -> &'static str {
        "feedback"
    }

    async fn around_model(
        &self,
        _cx: &HookCx<'_>,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelReply, ModelError> {
        eprintln!("      🤔 thinking…");
        next.run(request).await
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        let argument = |name: &str| one_line(call.arguments.get(name).and_then(|value| value.as_str()));
        match call.name.as_str() {
            "read" => eprintln!("      📖 read {}", argument("path")),
            "write" => eprintln!("      📝 write {}", argument("path")),
            "edit" => eprintln!("      ✏️ edit {}", argument("path")),
            "bash" => eprintln!("      💻 bash: {}", argument("command")),
            "submit_iteration_result" => eprintln!("      ✅ submit result: {}", argument("summary")),
            other => eprintln!("      🔧 {other}"),
        }
        let is_bash = call.name == "bash";
        let outcome = next.run(call).await?;
        let said = outcome.clone().into_parts();
        let first = said.first().and_then(|part| match part {
            ToolPart::Text { text } => text.lines().next(),
            ToolPart::Structured { .. } => None,
        });
        let first = one_line(first);
        if !outcome.is_ok() {
            eprintln!("         ↳ {first}");
        } else if is_bash {
            eprintln!("         ↳ {}", first.trim_matches(['[', ']']));
        }
        Ok(outcome)
    }
}

/// A text without what could steer the terminal, and short.
fn one_line(text: Option<&str>) -> String {
    let text = text.unwrap_or_default().chars();
    text.map(|c| if c.is_control() { ' ' } else { c })
        .take(100)
        .collect()
}

/// The model that the environment asks for.
struct Chosen {
    model: Arc<dyn Model>,
    said: String,
    key: Option<String>,
}

impl Chosen {
    fn from_environment() -> Result<Self, Failure> {
        let local = variable("RLTO_LOCAL").is_none_or(|local| local != "false");
        let default = if local {
            ("openai", "qwen3.6:latest")
        } else {
            ("anthropic", "claude-sonnet-4-6")
        };
        let provider = variable("RLTO_PROVIDER").unwrap_or_else(|| default.0.into());
        if provider == "script" {
            return Self::script();
        }
        let name = variable("RLTO_MODEL").unwrap_or_else(|| default.1.into());
        let mut config = ModelConfig::new(&provider, &name);
        let mut said = format!("{provider}/{name}");
        if local {
            let base = variable("OLLAMA_BASE").unwrap_or_else(|| "http://localhost:11434/v1".into());
            if !is_served(&base) {
                return Err(format!(
                    "nobody serves a model at {base}; start `ollama serve`, set OLLAMA_BASE, or take a provider with \
                     RLTO_LOCAL=false and its key; RLTO_PROVIDER=script needs neither"
                )
                .into());
            }
            config.base_url = Some(base);
            said.push_str(" (local Ollama)");
        } else {
            config.api_key = key_variable(&provider).and_then(variable);
        }
        let key = config.api_key.clone();
        Ok(Self {
            model: Arc::new(HttpModel::new(config)?),
            said,
            key,
        })
    }

    fn script() -> Result<Self, Failure> {
        let shipped = || concat!(env!("CARGO_MANIFEST_DIR"), "/examples/01_basic_usage/script.yaml").into();
        let path = variable("RLTO_MODEL").unwrap_or_else(shipped);
        let script = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self {
            model: Arc::new(ScriptModel::from_yaml(&script)?),
            said: format!("script/{}", short(Path::new(&path))),
            key: None,
        })
    }
}

/// Whether anybody listens at an address.
fn is_served(base: &str) -> bool {
    let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if scheme == "https" { 443 } else { 80 };
    let address = if has_port {
        host.into()
    } else {
        format!("{host}:{port}")
    };
    let Ok(mut addresses) = address.to_socket_addrs() else {
        return false;
    };
    addresses.any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(3)).is_ok())
}

/// Makes the repository that the robot gets a copy of.
fn make_project(project: &Path) -> Result<(), Failure> {
    for (name, text) in KATA {
        let path = project.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(project))?;
        std::fs::write(path, text)?;
    }
    git(project, &["init", "--quiet", "--initial-branch=main"])?;
    git(project, &["config", "user.name", "Example"])?;
    git(project, &["config", "user.email", "example@example.invalid"])?;
    git(project, &["add", "."])?;
    let message = "a roman numeral kata with a failing test suite";
    git(
        project,
        &[
            "-c",
            "commit.gpgsign=false",
            "commit",
            "--quiet",
            "--no-verify",
            "-m",
            message,
        ],
    )?;
    Ok(())
}

/// Shows what came of it, as the run branch has it. The checkout of the project is left alone.
fn show(report: &RunReport, project: &Path, dir: &Path) -> Result<(), Failure> {
    let branch = &report.branch;
    println!("\n=== Result ===");
    println!("Branch:  {branch}\n");
    println!("Commits:\n{}", git(project, &["log", "--format=%h %s", branch])?);
    if report.state.commits == 0 {
        return Ok(());
    }
    println!(
        "{IMPLEMENTATION}:\n{}",
        git(project, &["show", &format!("{branch}:{IMPLEMENTATION}")])?
    );
    let clone = dir.join("final");
    let place = clone.display().to_string();
    git(
        project,
        &["clone", "--quiet", "--branch", branch, ".", place.as_str()],
    )?;
    let tested = Command::new("sh")
        .args(["-c", TEST])
        .current_dir(&clone)
        .stdin(Stdio::null())
        // A robot wrote what runs here, and the environment may hold a key.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output();
    std::fs::remove_dir_all(&clone)?;
    println!("Final test run:\n{}", String::from_utf8_lossy(&tested?.stdout));
    Ok(())
}

fn git(dir: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.current_dir(dir).args(arguments).stdin(Stdio::null());
    // Started from a hook of git, these would lead into another repository.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git {}: {}", arguments.join(" "), said.trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A path as it is shown: relative to where the user is, when it is below.
fn short(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
