//! `robot-to doctor`: looks at everything that a run needs, and says what mends it. It changes nothing.

mod ask;

use super::current_dir;
use super::look::{flags, print, style};
use super::run::{claim, state_dir};
use crate::args::DoctorArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::key::{self, Keys};
use crate::surface::{Finding, Level, shell_word};
use robot_exec::{Command, Exec};
use robot_lab_providers::reach;
use robot_lab_to::run::{Logged, RunDir, Standing, checks};
use robot_lab_to::shell::find_bash;
use robot_lab_to::workspace::{Git, HostEnv, Ledger, StartError};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bytes that must be free, and that should be.
const LEAST: u64 = 100 << 20;
const ENOUGH: u64 = 1 << 30;
/// How long an address is asked, and how long a helper may take.
const REACH_TIME: Duration = Duration::from_secs(3);
const HELPER_TIME: Duration = Duration::from_secs(10);
/// Most dead runs that are named.
const MAX_DEAD: usize = 20;

/// Looks, prints, and fails when no run could begin.
pub(crate) async fn run(args: &DoctorArgs, keys: &Keys) -> Result<Exit, CliError> {
    let cwd = current_dir()?;
    if args.ask {
        claim(&args.plan(), keys)?;
    }
    let host = HostEnv::new(std::env::vars_os());
    let mut findings = Vec::new();
    let mut top = None;
    match Git::find(&host).await {
        Ok(git) => {
            let (major, minor) = git.version();
            let found = format!("{major}.{minor} ({})", git.binary().display());
            findings.push(Finding::ok("git", found));
            top = repository(&git, &cwd, &mut findings).await;
        }
        Err(error) => findings.push(Finding::of_error("git", &error)),
    }
    let root = match &args.places.work_dir {
        Some(dir) => Some(cwd.join(dir)),
        None => match state_dir() {
            Ok(dir) => Some(dir),
            Err(error) => {
                findings.push(Finding::fail(
                    "state",
                    error.message(),
                    "name a directory: --work-dir DIR",
                ));
                None
            }
        },
    };
    if let Some(root) = &root {
        state(root, &mut findings);
    }
    findings.push(known_keys(keys));
    findings.push(bash(&host));
    findings.push(terminal());
    findings.push(helper_works().await);
    if let (Some(top), Some(root)) = (&top, &root) {
        let flags = flags(&args.places.run_dir, args.places.work_dir.as_deref());
        findings.extend(dead_runs(&top.join(&args.places.run_dir), root, &flags));
    }
    if let Some(url) = args.base_url.as_ref().filter(|_| !args.ask) {
        findings.push(match reach(url, REACH_TIME).await {
            Ok(status) => Finding::ok("server", format!("it answers (HTTP {status})")),
            Err(error) => Finding::fail(
                "server",
                error.to_string(),
                "start the server, or correct the address; it usually ends in /v1",
            ),
        });
    }
    if args.ask {
        findings.extend(Box::pin(ask::ask(&args.plan(), &cwd, keys)).await);
    }
    let style = style();
    for finding in &findings {
        let text = if args.json {
            finding.json() + "\n"
        } else {
            finding.line(style)
        };
        print(text.as_bytes())?;
    }
    let worst = findings.iter().map(|finding| finding.level).max();
    Ok(match worst {
        Some(Level::Fail) => Exit::Configuration,
        _ => Exit::Done,
    })
}

/// The repository, its commit and its author; answers its top.
async fn repository(git: &Git, cwd: &Path, findings: &mut Vec<Finding>) -> Option<PathBuf> {
    let top = match Ledger::find_top(git, cwd).await {
        Ok(top) => top,
        Err(error) => {
            findings.push(Finding::of_error("repository", &error));
            return None;
        }
    };
    let found = top.display().to_string();
    match Ledger::discover(git, cwd).await {
        Ok(ledger) => {
            let dirty = match ledger.dirty_paths() {
                0 => String::new(),
                n => format!("; {n} uncommitted changes, which no run touches"),
            };
            let base = ledger.base().short();
            findings.push(Finding::ok("repository", format!("{found} at {base}{dirty}")));
            let author = ledger.identity();
            let author = format!("{} <{}>", author.name, author.email);
            findings.push(Finding::ok("author", author));
        }
        Err(error) => {
            let what = match error {
                StartError::NoIdentity(_) => {
                    findings.push(Finding::ok("repository", found));
                    "author"
                }
                _ => "repository",
            };
            findings.push(Finding::of_error(what, &error));
        }
    }
    Some(top)
}

/// Where private copies live: whether it can be written to, and what is free there.
fn state(root: &Path, findings: &mut Vec<Finding>) {
    let shown = root.display();
    let known = root.ancestors().find(|dir| dir.exists()).unwrap_or(root);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    findings.push(match rustix::fs::access(known, access) {
        _ if !known.is_dir() => Finding::fail(
            "state",
            format!("{} is no directory", known.display()),
            "name another place: --work-dir DIR",
        ),
        Ok(()) => Finding::ok("state", shown.to_string()),
        Err(error) => Finding::fail(
            "state",
            format!("{} cannot be written to: {error}", known.display()),
            format!(
                "mend its rights, or name another place: --work-dir DIR ({} is where private copies go)",
                shell_word(&shown.to_string())
            ),
        ),
    });
    findings.push(match rustix::fs::statvfs(known) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let found = format!(
                "{:.1} GiB free in {}",
                free as f64 / ENOUGH as f64,
                known.display()
            );
            let fix = "free some, or name another place: --work-dir DIR";
            match free {
                0..LEAST => Finding::fail("space", found, fix),
                LEAST..ENOUGH => Finding::warn("space", found, fix),
                _ => Finding::ok("space", found),
            }
        }
        Err(error) => Finding::warn("space", format!("unknown: {error}"), "see what df says"),
    });
}

/// Which keys there are: their names, never their values.
fn known_keys(keys: &Keys) -> Finding {
    let names: Vec<&str> = keys.names().collect();
    if names.is_empty() {
        let variable = key::variables().next().unwrap_or("OPENAI_API_KEY");
        let found = "none is set; a server of your own needs none";
        Finding::warn(
            "keys",
            found,
            format!("export {variable}=…, or the key of another provider"),
        )
    } else {
        Finding::ok("keys", names.join(", "))
    }
}

fn bash(host: &HostEnv) -> Finding {
    match find_bash(host) {
        Some(bash) => Finding::ok("bash", bash.display().to_string()),
        None => Finding::warn(
            "bash",
            "not on PATH; robots get /bin/sh",
            "install bash: models write for it",
        ),
    }
}

fn terminal() -> Finding {
    let found = match (std::io::stdout().is_terminal(), std::io::stderr().is_terminal()) {
        (_, true) => "progress is shown as it comes",
        _ => "none; progress is a line per event",
    };
    Finding::ok("terminal", found)
}

/// Whether commands can be run as a run runs them.
async fn helper_works() -> Finding {
    let command = Command::new("true", "/").timeout(HELPER_TIME);
    let found = match Exec::new(robot_lab_to::settings::Place::default().helper)
        .run(&command, &CancellationToken::new())
        .await
    {
        Ok(output) if output.status.success() => return Finding::ok("helper", "runs a command and ends it"),
        Ok(output) => format!("`true` ended with {}", output.status),
        Err(error) => error.to_string(),
    };
    Finding::fail(
        "helper",
        found,
        "Linux 5.3 or newer and a mounted /proc are needed",
    )
}

/// Runs whose process is dead and that left something, with what goes on with them or takes them away.
fn dead_runs(run_dir: &Path, root: &Path, flags: &str) -> Vec<Finding> {
    let Ok(runs) = RunDir::list(run_dir) else {
        return vec![Finding::warn(
            "runs",
            format!("{} cannot be read", run_dir.display()),
            "mend its rights",
        )];
    };
    let total = runs.len();
    let mut findings = Vec::new();
    for (id, _) in runs.into_iter().rev() {
        let Ok(run) = Logged::read(run_dir, Some(id.as_str())) else {
            let fix = format!("look at its log; to give it up: robot-to clean {id}{flags}");
            findings.push(Finding::warn("runs", format!("{id} cannot be read"), fix));
            continue;
        };
        let clean = format!("robot-to clean {id}{flags}");
        let left = run.work_dir(root).join("checkouts");
        let left = std::fs::read_dir(left).is_ok_and(|mut left| left.next().is_some());
        match Standing::of(&run.records, run.held, jiff::Timestamp::now()) {
            Standing::CutOff => findings.push(Finding::warn(
                "runs",
                format!("{id} was cut off"),
                format!("robot-to resume {id}{flags}, or to give it up: {clean}"),
            )),
            Standing::NeverBegan => {
                findings.push(Finding::warn("runs", format!("{id} never began"), clean));
            }
            Standing::Ended { .. } if left => findings.push(Finding::warn(
                "runs",
                format!("{id} is over, and its workspace is left"),
                format!("when you need it no more: {clean}"),
            )),
            _ => {}
        }
    }
    let killed = RunDir::list(&checks(root)).unwrap_or_default();
    let killed = killed
        .iter()
        .filter(|(_, dir)| matches!(dir.is_held(), Ok(false)));
    findings.extend(killed.map(|(id, _)| {
        let fix = format!("robot-to clean{flags}");
        Finding::warn("runs", format!("{id}, a check, was killed"), fix)
    }));
    if let Some(more @ 1..) = findings.len().checked_sub(MAX_DEAD) {
        findings.truncate(MAX_DEAD);
        findings.push(Finding::warn(
            "runs",
            format!("{more} more"),
            format!("robot-to runs{flags} lists all"),
        ));
    }
    if findings.is_empty() {
        let found = match total {
            0 => "none yet".to_owned(),
            1 => "one, with nothing left over".to_owned(),
            n => format!("{n}, with nothing left over"),
        };
        findings.push(Finding::ok("runs", found));
    }
    findings
}
