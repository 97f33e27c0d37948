//! `robot-to check`: everything up to the first token of a run, and nothing of it stays.

use super::current_dir;
use super::look::print;
use super::run::{
    apply, check_env, claim_for, facts, instruct, model, objective, place, say_grading, set_up,
};
use crate::args::CheckArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::key::Keys;
use crate::signal;
use crate::surface::Ready;
use robot_lab_to::run::{Halt, Run};
use robot_lab_to::settings::Plan;
use std::sync::Arc;

/// Sets a run up, shows how it would begin, and takes all of it back.
pub(crate) async fn run(args: &CheckArgs, keys: &Keys) -> Result<Exit, CliError> {
    check_env(&args.run.env)?;
    claim_for(&args.run, keys)?;
    let cwd = current_dir()?;
    let mut plan = Plan::new(objective::objective(&args.start())?);
    apply(&args.run, &mut plan, &|_| true)?;
    instruct(&mut plan, &args.run, &cwd, &|_| true)?;
    let chosen = model::find(&plan, &cwd, keys, &model::Manner::default())?;
    let fallback = model::fallback(&plan, &cwd, keys, &model::Manner::default())?;
    let as_of = facts::fill(&mut plan, chosen.model.id(), &args.run, &|_| true);
    if let Some(fallback) = &fallback {
        facts::fill_fallback(&mut plan, fallback.model.id());
    }
    let place = place(&args.run, &plan, &cwd, keys)?;
    let halt = Halt::new();
    signal::watch(halt.clone())
        .map_err(|error| CliError::internal(format!("signals cannot be watched: {error}")))?;
    say_grading(&plan);
    let run = set_up(Run::builder(plan.objective.clone()), place, plan, chosen.model);
    let run = match &fallback {
        Some(fallback) => run.fallback_model(Arc::clone(&fallback.model)),
        None => run,
    };
    let checked = Box::pin(run.halt(halt).build()?.check()).await?;
    let ready = Ready {
        checked: &checked,
        as_of,
        variable: chosen.variable.as_deref(),
        key: chosen.key,
        missing: chosen.missing.as_ref().map(CliError::message),
    };
    let text = if args.run.json {
        format!("{}\n", ready.json())
    } else {
        ready.text()
    };
    print(text.as_bytes())?;
    // As a run would end without a key.
    match chosen.missing.or(fallback.and_then(|fallback| fallback.missing)) {
        Some(error) => Err(error),
        None => Ok(Exit::Done),
    }
}
