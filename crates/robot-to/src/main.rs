//! The `robot-to` command: runs a robot unattended in a git repository, one gated commit per iteration.

mod args;
mod commands;
mod config;
mod error;
mod exit;
mod key;
mod signal;
mod surface;

use args::Command;
use config::Settled;
use std::process::ExitCode;

/// Threads that tasks run on: more than there are retries of a request, so that replies that never pause leave one.
const WORKERS: usize = 4;

fn main() -> ExitCode {
    // Every command that a run starts is this program again, as a helper.
    if let Some(code) = robot_exec::maybe_helper() {
        return code;
    }
    let keys = match key::take() {
        Ok(keys) => keys,
        Err(error) => {
            return error::CliError::internal(format!("keys cannot be kept apart: {error}")).report();
        }
    };
    let matches = match args::command().try_get_matches() {
        Ok(matches) => matches,
        Err(mistake) => return args::report_mistake(&mistake),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return error::CliError::internal(format!("no runtime: {error}")).report(),
    };
    let done = runtime.block_on(async {
        let Settled { cli, sources, layers } = config::settle(&matches).await?;
        match cli.command {
            None => Box::pin(commands::run::run(cli.start, cli.run, &matches, &keys)).await,
            Some(Command::Resume(again)) => {
                let flags = matches.subcommand_matches("resume").unwrap_or(&matches);
                Box::pin(commands::run::resume(
                    again.run_id.as_deref(),
                    again.run,
                    flags,
                    &keys,
                ))
                .await
            }
            Some(Command::Demo(demo)) => commands::demo::run(demo).await,
            Some(Command::Check(check)) => commands::check::run(&check, &keys).await,
            Some(Command::Runs(runs)) => commands::runs::run(&runs).await,
            Some(Command::Status(look)) => commands::status::run(&look).await,
            Some(Command::Attempts(look)) => commands::attempts::run(&look).await,
            Some(Command::Show(which)) => commands::show::run(&which).await,
            Some(Command::Report(report)) => commands::report::run(&report).await,
            Some(Command::Apply(which)) => commands::apply::run(&which).await,
            Some(Command::Config(config)) => {
                let flags = matches.subcommand_matches("config").unwrap_or(&matches);
                commands::config::run(&config, flags, &sources, layers)
            }
            Some(Command::Completions(which)) => commands::completions::run(&which),
            Some(Command::Man(args)) => commands::man::run(&args),
            Some(Command::Clean(clean)) => commands::clean::run(&clean).await,
            Some(Command::Models(models)) => commands::models::run(&models, &keys).await,
            Some(Command::Doctor(doctor)) => commands::doctor::run(&doctor, &keys).await,
        }
    });
    // A worker that is stuck in a system call must not hold the end up.
    runtime.shutdown_background();
    match done {
        Ok(exit) => exit.into(),
        Err(error) => error.report(),
    }
}
