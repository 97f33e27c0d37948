//! Lets a run of an earlier process go on: the half-done commit is finished, the half-done iteration is given up, and
//! the counters that end a run begin anew.

use super::assemble::{Parts, WORKSPACE, With, assemble, work_dir};
use super::price::check_price;
use super::setup::{at, check, not_begun, not_ready, try_to_sign};
use super::{Halt, Past, Run, RunId, StartError};
use crate::driver::World as _;
use crate::event::{Event, Record, Redactor};
use crate::iteration::{Phase, Policy, RunState, StopKind, StopReason, decide, effect_of};
use crate::log::Journal;
use crate::settings::{Place, Plan};
use crate::workspace::{self, Branch, Git, Ledger, Oid, RunRepo, WorkDir};
use crate::world::RealWorld;
use robot_lab::{ModelId, counted};
use std::sync::Arc;
use std::time::Duration;

impl Run {
    /// Sets a run up that goes on by `plan`. An error leaves the run as it was.
    pub(super) async fn set_up_again(
        place: Place,
        plan: Plan,
        past: Past,
        with: With,
        halt: &Halt,
    ) -> Result<(RealWorld, RunId), StartError> {
        check(&plan)?;
        check_price(&plan, with.model.id())?;
        if let Some(fallback) = &with.fallback {
            check_price(&plan, fallback.id())?;
        }
        let state = past.state();
        let learnt = past.learnt(&plan);
        let models = [Some(&with.model), with.fallback.as_ref()].into_iter().flatten();
        let models: Vec<ModelId> = models.map(|model| model.id().clone()).collect();
        if let Some((what, flag)) = spent(&state, &plan.policy) {
            return Err(StartError::Configuration(format!(
                "the run {} has reached its limit: {what}; raise it with {flag}",
                past.id()
            )));
        }
        let git = Git::find(&place.host).await?;
        let mut ledger = Ledger::discover(&git, &place.repo).await?;
        if let Some(subdir) = &plan.subdir {
            ledger.work_in(subdir);
        }
        let branch = Branch::of_run(&past.branch);
        let tip = tip(&ledger, &branch, &state).await?;
        let Past {
            id,
            dir,
            file,
            log,
            base,
            started,
            ..
        } = past;
        let is_commit = |record: &&Record| matches!(record.event, Event::CommitStarted { .. });
        let announced = log.records.iter().rev().find(is_commit).cloned();
        let (worked, interrupted) = (had_worked(&log.records), interruption(&log.records));
        let redactor = Redactor::new(place.secrets.iter().cloned());
        let (clock, observers) = (Arc::clone(&with.clock), with.observers.clone());
        let work = WorkDir::create(&work_dir(&place.work_dir, &id)).map_err(at(&place.work_dir))?;
        let worked = worked && work.checkout(WORKSPACE).is_dir();
        let zones = RunRepo::create(&git, &ledger, &work, &tip).await?;
        if plan.sign {
            let tree = zones.tree_of(&tip).await.map_err(workspace::ZoneError::from)?;
            try_to_sign(&zones, &ledger, &tip, &tree).await?;
        }
        let journal =
            Journal::go_on(file, log, clock, redactor, observers, halt.clone()).map_err(at(&dir.log()))?;
        let mut world = assemble(Parts {
            place,
            plan,
            with,
            halt: halt.clone(),
            journal: Arc::new(journal),
            dir,
            id: id.clone(),
            base,
            branch: Some(branch),
            started,
            ledger,
            zones,
        })
        .await?;
        for model in &models {
            if let Some(tokens) = learnt.window(&model.to_string()) {
                world.budget.meter().learn_window(model, tokens);
            }
        }
        world.worked = worked;
        if let Some(record) = &interrupted {
            keep_unfinished(&mut world, record, &state).await;
        }
        settle(&mut world, &state, announced).await?;
        // Nothing that is in the workspace now is to stay there.
        world.holds_work = false;
        world.restore_cache(&tip).await.map_err(not_begun)?;
        let ready = world.furnish_all(&tip).await;
        ready.map_err(not_ready)?;
        world.save_cache().await;
        // It is in the private copies, which may be elsewhere now.
        let carried = world.journal.state().carried.and_then(|carried| carried.tree);
        let lost = match carried {
            Some(tree) => !world.zones.has(&tree).await.map_err(workspace::ZoneError::from)?,
            None => false,
        };
        if lost {
            world.journal.note(Event::Notice {
                message:
                    "the change that hooks refused is not kept here any more; the run goes on without it"
                        .into(),
            });
        }
        let resumed = Event::RunResumed {
            carried_lost: lost,
            run_id: id.to_string(),
            branch: world.file.branch.clone(),
            model: world.file.model.clone(),
            hooks: world.hooks.names(),
            plan: Box::new(world.plan.clone()),
        };
        world.journal.append(resumed).map_err(at(&world.dir.log()))?;
        Ok((world, id))
    }
}

/// The limit that is spent, and the flag that raises it.
fn spent(state: &RunState, policy: &Policy) -> Option<(String, &'static str)> {
    let elapsed = Duration::from_millis(state.elapsed_ms);
    if let Some(n) = policy.max_iterations.filter(|n| state.finished() >= *n) {
        return Some((counted(n, "iteration"), "--max-iterations"));
    }
    if let Some(n) = policy.max_tokens.filter(|n| state.usage.total() >= *n) {
        return Some((counted(n, "token"), "--max-tokens"));
    }
    if let Some(limit) = policy.max_cost.filter(|limit| state.cost >= *limit) {
        return Some((limit.to_string(), "--max-cost"));
    }
    let limit = policy.max_time.filter(|limit| elapsed >= *limit)?;
    Some((format!("{} s", limit.as_secs()), "--max-time"))
}

/// Where the branch is: where the log left it, or, when a commit was under way, one commit further.
async fn tip(ledger: &Ledger, branch: &Branch, state: &RunState) -> Result<Oid, StartError> {
    let missing = |expected: &Oid| {
        StartError::Configuration(format!(
            "the branch {} is gone; bring it back with `git branch {0} {expected}` and resume",
            branch.name()
        ))
    };
    let Some(parent) = &state.parent else {
        return Err(StartError::Configuration(
            "the log does not say where the branch is".into(),
        ));
    };
    let stands = ledger.stands_at(branch).await;
    let (tip, worktree) = stands.map_err(|error| StartError::Branch(error.into()))?;
    if let Some(worktree) = worktree {
        return Err(StartError::Configuration(format!(
            "the branch {} is checked out in {}, and a run may not move it there; switch to another branch (`git switch -`) \
             and resume",
            branch.name(),
            worktree.display()
        )));
    }
    let tip = tip.ok_or_else(|| missing(parent))?;
    let committing = matches!(state.phase, Phase::Committing { .. });
    if tip == *parent || committing {
        return Ok(tip);
    }
    Err(StartError::Configuration(format!(
        "the branch {} was moved: it is at {}, and the run left it at {}; put it back with `git branch -f {0} {parent}` \
         to go on, or start a new run from where it is",
        branch.name(),
        tip.short(),
        parent.short(),
    )))
}

/// Whether a robot was at work in the workspace when the log ended; before that, what is there is only half prepared.
fn had_worked(records: &[Record]) -> bool {
    let latest = records.iter().rev();
    latest
        .take_while(|record| !matches!(record.event, Event::IterationStarted { .. }))
        .any(|record| matches!(record.event, Event::AgentStarted { .. }))
}

/// The interruption of the last iteration, if it had one.
fn interruption(records: &[Record]) -> Option<Record> {
    let latest = records.iter().rev();
    latest
        .take_while(|record| !matches!(record.event, Event::IterationStarted { .. }))
        .find(|record| matches!(record.event, Event::Interrupted { .. }))
        .cloned()
}

/// Keeps what an earlier process left in the workspace, where it had no time to: the next iteration begins there.
async fn keep_unfinished(world: &mut RealWorld, record: &Record, state: &RunState) {
    let Event::Interrupted { candidate, .. } = record.event else {
        return;
    };
    if let Ok(Some(_)) = world.zones.attempt(record.iteration, candidate).await {
        return;
    }
    if let Err(message) = world.keep(record, state).await {
        world.journal.note(Event::Notice { message });
    }
}

/// Ends what the earlier process was doing: a commit that it had begun is made, anything else is given up, and what was
/// made by then is kept.
async fn settle(
    world: &mut RealWorld,
    state: &RunState,
    announced: Option<Record>,
) -> Result<(), StartError> {
    let log = world.dir.log();
    match &state.phase {
        Phase::Ready | Phase::Stopped { .. } => Ok(()),
        Phase::Attempting { candidates } => {
            for candidate in candidates {
                let cut_off = Event::Interrupted {
                    candidate: candidate.key.candidate,
                    kind: StopKind::Interrupted,
                    reason: "the process ended in the middle of the iteration".into(),
                };
                let record = world.journal.append(cut_off).map_err(at(&log))?;
                keep_unfinished(world, &record, state).await;
            }
            Ok(())
        }
        Phase::Committing { .. } => {
            let Some(record) = announced else {
                return Ok(());
            };
            let Some(effect) = effect_of(&record) else {
                return Ok(());
            };
            let Some(input) = world.perform(&record, effect, state).await else {
                return Ok(());
            };
            let policy = world.plan.deciding();
            let events = decide(state, input, &policy).map_err(|illegal| {
                StartError::Halted(StopReason::new(StopKind::Internal, illegal.to_string()))
            })?;
            for event in events {
                if let Event::Aborted { kind, reason } = event {
                    return Err(StartError::Halted(StopReason::new(kind, reason)));
                }
                let record = world.journal.append(event).map_err(at(&log))?;
                if let Some(effect) = effect_of(&record) {
                    let state = world.journal.state();
                    world.perform(&record, effect, &state).await;
                }
            }
            Ok(())
        }
    }
}
