//! `robot-to OBJECTIVE`: from flags to a run, and from its report to a summary.

pub(super) mod facts;
mod headers;
mod instructions;
pub(super) mod model;
pub(super) mod objective;
mod replay;
mod watching;

use super::current_dir;
use super::look::flags;
use crate::args::{RunArgs, StartArgs, written};
use crate::error::CliError;
use crate::exit::Exit;
use crate::key::{self, Keys};
use crate::signal;
use crate::surface::{Jsonl, Plain, Style, summary};
use clap::ArgMatches;
use robot_lab::{Backoff, Model};
use robot_lab_to::log::Observer;
use robot_lab_to::run::{Halt, Past, Run, RunBuilder};
use robot_lab_to::settings::{self, Place, Plan};
use robot_lab_to::workspace::HostEnv;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use watching::Watching;

/// No time between two requests.
const AT_ONCE: Backoff = Backoff {
    first: Duration::ZERO,
    cap: Duration::ZERO,
};

/// Begins a run, or lets one go on when `--resume` is given.
pub(crate) async fn run(
    start_args: StartArgs,
    args: RunArgs,
    matches: &ArgMatches,
    keys: &Keys,
) -> Result<Exit, CliError> {
    if let Some(wanted) = &start_args.resume {
        let wanted = Some(wanted.as_str()).filter(|id| !id.is_empty());
        return Box::pin(resume(wanted, args, matches, keys)).await;
    }
    check_env(&args.env)?;
    claim_for(&args, keys)?;
    let cwd = current_dir()?;
    let mut plan = Plan::new(objective::objective(&start_args)?);
    apply(&args, &mut plan, &|_| true)?;
    instruct(&mut plan, &args, &cwd, &|_| true)?;
    let place = place(&args, &plan, &cwd, keys)?;
    let watching = Watching::new(&args, &plan, &place, &cwd)?;
    let manner = model::Manner {
        observer: watching.observer(),
        ..model::Manner::default()
    };
    let model = model::choose(&plan, &cwd, keys, &manner)?;
    fill_facts(&mut plan, &model, &args, &|_| true);
    say_grading(&plan);
    let run = Run::builder(plan.objective.clone());
    let ended = start(with_models(run, place, plan, model), Shown::of(&args), &cwd).await;
    watching.conclude();
    ended
}

/// Takes what the settings of a new run name for the provider out of the environment: before anything is read that
/// cannot be read twice, as the program may start anew.
pub(super) fn claim_for(args: &RunArgs, keys: &Keys) -> Result<(), CliError> {
    let mut plan = Plan::default();
    args.apply(&mut plan, &|_| true);
    claim(&plan, keys)
}

/// The same of a plan.
pub(super) fn claim(plan: &Plan, keys: &Keys) -> Result<(), CliError> {
    headers::claim(plan, keys)
}

/// Says what takes the time before the first line.
pub(super) fn say_grading(plan: &Plan) {
    if plan.verify_command.is_some() || plan.is_scored() {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let grading = Style::for_stderr(no_colour).dim("grading the commit to start from …");
        drop(writeln!(std::io::stderr().lock(), "{grading}"));
    }
}

/// Lets a run go on by its own plan, with the flags that were written.
pub(crate) async fn resume(
    wanted: Option<&str>,
    args: RunArgs,
    matches: &ArgMatches,
    keys: &Keys,
) -> Result<Exit, CliError> {
    check_env(&args.env)?;
    let cwd = current_dir()?;
    let past = Past::open(&place(&args, &Plan::default(), &cwd, keys)?, wanted).await?;
    let mut plan = past.plan().clone();
    // Not what files and variables say: a run goes on as it was.
    apply(&args, &mut plan, &|flag| written(matches, flag))?;
    instruct(&mut plan, &args, &cwd, &|flag| written(matches, flag))?;
    headers::claim(&plan, keys)?;
    let place = place(&args, &plan, &cwd, keys)?;
    let watching = Watching::new(&args, &plan, &place, &cwd)?;
    let manner = model::Manner {
        observer: watching.observer(),
        learnt: past.learnt(&plan),
    };
    let model = model::choose(&plan, &cwd, keys, &manner)?;
    fill_facts(&mut plan, &model, &args, &|flag| written(matches, flag));
    let run = with_models(Run::resume(past), place, plan, model);
    let ended = start(run, Shown::of(&args), &cwd).await;
    watching.conclude();
    ended
}

fn fill_facts(plan: &mut Plan, models: &model::Models, args: &RunArgs, given: &dyn Fn(&str) -> bool) {
    facts::fill(plan, models.main.id(), args, given);
    if let Some(fallback) = &models.fallback {
        facts::fill_fallback(plan, fallback.id());
    }
}

fn with_models(run: RunBuilder, place: Place, plan: Plan, models: model::Models) -> RunBuilder {
    let run = match model::is_replay(&plan) {
        // Nothing is sent, so there is nobody to wait for.
        true => run.pace(AT_ONCE, AT_ONCE),
        false => run,
    };
    let run = set_up(run, place, plan, models.main);
    match models.fallback {
        Some(model) => run.fallback_model(model),
        None => run,
    }
}

pub(super) fn set_up(run: RunBuilder, place: Place, plan: Plan, model: Arc<dyn Model>) -> RunBuilder {
    run.place(|own| *own = place).plan(|own| *own = plan).model(model)
}

/// Writes the settings that count into a plan, if they go together.
pub(super) fn apply(args: &RunArgs, plan: &mut Plan, given: &dyn Fn(&str) -> bool) -> Result<(), CliError> {
    args.apply(plan, given);
    match args.lacks(plan, given) {
        Some((flag, needed)) => Err(CliError::configuration(format!(
            "{flag} needs {needed}, and there is none; nothing was changed"
        ))
        .hint("what is set, and where: robot-to config")),
        None => Ok(()),
    }
}

/// Reads the instructions, when a file of them is named, into the plan.
pub(super) fn instruct(
    plan: &mut Plan,
    args: &RunArgs,
    cwd: &Path,
    given: &dyn Fn(&str) -> bool,
) -> Result<(), CliError> {
    if let Some(file) = args.instructions.as_ref().filter(|_| given("instructions")) {
        plan.instructions = Some(instructions::read(file, cwd)?);
    }
    Ok(())
}

pub(super) fn place(args: &RunArgs, plan: &Plan, cwd: &Path, keys: &Keys) -> Result<Place, CliError> {
    let work_dir = match &args.work_dir {
        Some(dir) => cwd.join(dir),
        None => state_dir()?,
    };
    // What commands are given on purpose is still nothing to write down.
    let given = plan.env.iter().filter_map(|name| std::env::var(name).ok());
    Ok(Place {
        repo: cwd.to_owned(),
        run_dir: args.run_dir.clone(),
        work_dir,
        host: HostEnv::new(std::env::vars_os()),
        secrets: keys.values().map(str::to_owned).chain(given).collect(),
        ..Place::default()
    })
}

/// A provider's key reaches no command, not even when asked to.
pub(super) fn check_env(names: &[String]) -> Result<(), CliError> {
    if let Some(name) = names.iter().find(|name| name.is_empty() || name.contains('=')) {
        return Err(CliError::configuration(format!(
            "--env {name:?} is no name of a variable; nothing was changed"
        ))
        .hint("give the name alone; its value is that of your environment"));
    }
    match names.iter().find(|name| key::variables().any(|key| key == *name)) {
        Some(name) => Err(CliError::configuration(format!(
            "--env {name} would show the provider's key to every command; nothing was changed"
        ))
        .hint("give the command a key of its own, under another name")),
        None => Ok(()),
    }
}

/// How a run is shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// Events on standard output, in place of the summary, which then goes to standard error.
    pub(super) json: bool,
    /// How much the model has written of a reply on its way.
    pub(super) words: bool,
    /// The flags that lead another command to the run, with a space before each.
    pub(super) flags: String,
}

impl Shown {
    fn of(args: &RunArgs) -> Self {
        Self {
            json: args.json,
            words: !args.no_stream,
            flags: flags(&args.run_dir, args.work_dir.as_deref()),
        }
    }
}

/// Runs, shows what happens, and prints the summary.
pub(super) async fn start(run: RunBuilder, shown: Shown, cwd: &Path) -> Result<Exit, CliError> {
    let halt = Halt::new();
    signal::watch(halt.clone())
        .map_err(|error| CliError::internal(format!("signals cannot be watched: {error}")))?;
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let plain = Arc::new(Plain::new(Style::for_stderr(no_colour), shown.words));
    let mut run = run.halt(halt).observer(Arc::clone(&plain) as Arc<dyn Observer>);
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
    let report = Box::pin(run.run()).await;
    ticker.abort();
    plain.finish();
    let report = report?;
    let text = summary(&report, cwd, &shown.flags);
    // Nobody may be reading any more; the run is over all the same.
    if shown.json {
        drop(write!(std::io::stderr().lock(), "{text}"));
    } else {
        drop(write!(std::io::stdout().lock(), "{text}"));
    }
    Ok(Exit::of(&report.reason, report.state.commits))
}

/// Where private copies live unless a flag says otherwise.
pub(super) fn state_dir() -> Result<PathBuf, CliError> {
    settings::state_dir(&HostEnv::new(std::env::vars_os())).ok_or_else(|| {
        CliError::configuration("neither XDG_STATE_HOME nor HOME is set; nothing was changed")
            .hint("say where private copies may live: --work-dir DIR")
    })
}
