//! `robot-to OBJECTIVE`: from flags to a run, and from its report to a summary.

mod model;
mod objective;

use super::current_dir;
use crate::args::RunArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::key::{self, Keys};
use crate::signal;
use crate::surface::{Jsonl, Plain, Style, summary};
use robot_lab::Model;
use robot_lab_to::eval::{Measure, MinDelta};
use robot_lab_to::iteration::Policy;
use robot_lab_to::log::Observer;
use robot_lab_to::run::{Halt, Run};
use robot_lab_to::settings::Settings;
use robot_lab_to::workspace::HostEnv;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Runs.
pub(crate) async fn run(args: RunArgs, keys: &Keys) -> Result<Exit, CliError> {
    check_env(&args.env)?;
    let objective = objective::objective(&args)?;
    let cwd = current_dir()?;
    let model = model::choose(&args, &cwd, keys)?;
    let work_dir = match &args.work_dir {
        Some(dir) => cwd.join(dir),
        None => state_dir()?,
    };
    let host = HostEnv::new(std::env::vars_os());
    // What commands are given on purpose is still nothing to write down.
    let given = args.env.iter().filter_map(|name| std::env::var(name).ok());
    let secrets = keys.values().map(str::to_owned).chain(given).collect();
    let settings = Settings {
        run_dir: args.run_dir,
        env: args.env,
        secrets,
        policy: Policy {
            max_verify_repairs: args.max_verify_repairs,
            max_submit_nudges: args.max_submit_nudges,
            max_consecutive_failures: args.max_consecutive_failures,
            max_iterations: args.max_iterations,
            max_tokens: args.max_tokens,
            max_time: args.max_time,
            stop_when: args.stop_when,
            stop_on_plateau: args.stop_on_plateau,
            require_improvement: !args.no_require_improvement,
        },
        verify_command: args.verify,
        verify_timeout: args.verify_timeout,
        measure: args.measure.map(|command| Measure {
            command,
            timeout: args.measure_timeout.unwrap_or(args.verify_timeout),
            metric: args.metric,
            minimize: args.minimize,
            min_delta: args.min_delta.unwrap_or(MinDelta::Absolute(0.0)),
            target: args.target,
        }),
        iteration_timeout: args.iteration_timeout,
        max_tool_calls: args.max_tool_rounds,
        max_retries: args.max_retries,
        max_file_bytes: args.max_file_mb.saturating_mul(1024 * 1024),
        keep_workspace: args.keep_workspace,
        ..Settings::new(objective, cwd.clone(), work_dir, host, helper())
    };
    let how = Shown {
        json: args.json,
        words: !args.no_stream,
    };
    start(settings, model, how, &cwd).await
}

/// A provider's key reaches no command, not even when asked to.
fn check_env(names: &[String]) -> Result<(), CliError> {
    match names.iter().find(|name| key::variables().any(|key| key == *name)) {
        Some(name) => Err(CliError::configuration(format!(
            "--env {name} would show the provider's key to every command; nothing was changed"
        ))
        .hint("give the command a key of its own, under another name")),
        None => Ok(()),
    }
}

/// How a run is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// Events on standard output, in place of the summary, which then goes to standard error.
    pub(super) json: bool,
    /// How much the model has written of a reply on its way.
    pub(super) words: bool,
}

/// Runs, shows what happens, and prints the summary.
pub(super) async fn start(
    settings: Settings,
    model: Arc<dyn Model>,
    shown: Shown,
    cwd: &Path,
) -> Result<Exit, CliError> {
    let halt = Halt::new();
    signal::watch(halt.clone())
        .map_err(|error| CliError::internal(format!("signals cannot be watched: {error}")))?;
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let plain = Arc::new(Plain::new(Style::for_stderr(no_colour), shown.words));
    let mut run = Run::new(settings, model).observer(Arc::clone(&plain) as Arc<dyn Observer>);
    if shown.json {
        run = run.observer(Arc::new(Jsonl));
    }
    let ticker = tokio::spawn({
        let plain = Arc::clone(&plain);
        async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                plain.tick();
            }
        }
    });
    let report = run.run(&halt).await;
    ticker.abort();
    plain.finish();
    let report = report?;
    let text = summary(&report, cwd);
    // Nobody may be reading any more; the run is over all the same.
    if shown.json {
        drop(write!(std::io::stderr().lock(), "{text}"));
    } else {
        drop(write!(std::io::stdout().lock(), "{text}"));
    }
    Ok(Exit::of(&report.reason, report.state.commits))
}

/// This program, which is also the helper that commands run in: the very one that runs, should its file be replaced
/// during the night.
pub(super) fn helper() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// `$XDG_STATE_HOME/robot-to`, or its usual place.
fn state_dir() -> Result<PathBuf, CliError> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("robot-to")).ok_or_else(|| {
        CliError::configuration("neither XDG_STATE_HOME nor HOME is set; nothing was changed")
            .hint("say where private copies may live: --work-dir DIR")
    })
}
