//! Puts the parts of a run together: the same for a new run and for one that goes on.

use super::grader::{Around, Grader, choose};
use super::{Halt, RunDir, RunFile, RunId, STATE_VERSION, StartError, checkouts};
use crate::clock::Clock;
use crate::commit_message::CommitFormat;
use crate::eval::EvalRegistry;
use crate::event::Event;
use crate::git_hooks::GitHooks;
use crate::guard::{Early, Guards, Locked};
use crate::log::{Journal, Observer};
use crate::prompt::{Facts, Project, Prompts};
use crate::settings::{Place, Plan};
use crate::shell::{Shell, find_bash};
use crate::worker::{Extras, RobotWorker, Steps, Worker};
use crate::workspace::{Branch, Checkout, Ledger, Oid, RunRepo, UserHooks, ZoneError};
use crate::world::{CacheState, Furnished, Furnishing, RealWorld, Waits};
use jiff::Timestamp;
use robot_exec::{Env, Exec};
use robot_lab::{Budget, Limiter, Limits, Model, Patience, Spent};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most locked files that a prompt names.
const MAX_NAMED: usize = 30;

/// The checkout that robots work in.
pub(super) const WORKSPACE: &str = "robot-0";

/// What a run works with that is no setting.
pub(super) struct With {
    pub(super) model: Arc<dyn Model>,
    pub(super) fallback: Option<Arc<dyn Model>>,
    /// The waits between requests; their number and their sum are settings.
    pub(super) pace: Patience,
    pub(super) evals: EvalRegistry,
    pub(super) extras: Extras,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    pub(super) clock: Arc<dyn Clock>,
}

/// The parts.
pub(super) struct Parts {
    pub(super) place: Place,
    pub(super) plan: Plan,
    pub(super) with: With,
    pub(super) halt: Halt,
    pub(super) journal: Arc<Journal>,
    pub(super) dir: RunDir,
    pub(super) id: RunId,
    pub(super) base: Oid,
    pub(super) branch: Option<Branch>,
    pub(super) started: Timestamp,
    pub(super) ledger: Ledger,
    pub(super) zones: RunRepo,
}

/// Where the private copies of a run are.
pub(super) fn work_dir(root: &Path, id: &RunId) -> PathBuf {
    root.join("runs").join(id.as_str())
}

/// Makes workspace and bench, and the world of the run.
pub(super) async fn assemble(parts: Parts) -> Result<RealWorld, StartError> {
    let Parts {
        place,
        mut plan,
        with,
        halt,
        journal,
        dir,
        id,
        base,
        branch,
        started,
        ledger,
        zones,
    } = parts;
    let files = zones.list(&base).await.map_err(ZoneError::from)?;
    let run_dir = ledger.top().join(&place.run_dir);
    let cancel = halt.soft().child_token();
    let new = branch.is_none();
    let carry = checkouts::choose(&plan, new, &ledger, &run_dir, &files, &journal, &cancel).await?;
    if let Some(carry) = &carry {
        // No commit may hold one.
        zones.keep_out(carry.paths());
    }
    checkouts::check_space(&place, &run_dir, &files, carry.as_deref())?;
    let furnishing = Furnishing {
        shell: shell(&place, &plan.env, "/bin/sh".into()),
        carry,
        workspace: Furnished::default(),
        bench: Furnished::default(),
    };
    // What an earlier process graded in the bench is not known.
    let cache = if branch.is_some() {
        CacheState::unknown()
    } else {
        CacheState::default()
    };
    let workspace = Checkout::create(&zones, WORKSPACE).await?;
    let bench = Checkout::create(&zones, "bench").await?;
    let around = Around {
        place: &place,
        ledger: &ledger,
        zones: &zones,
        base: &base,
    };
    let grading = shell(&place, &plan.env, "/bin/sh".into());
    let Grader { eval, told, notice } = choose(&mut plan, &with.evals, &grading, &around).await?;
    if branch.is_none()
        && let Some(message) = notice
    {
        journal.note(Event::Notice { message });
    }
    let prompts = Arc::new(Prompts::new()?);
    let bash = find_bash(&place.host).map_or_else(|| "/bin/sh".into(), PathBuf::into_os_string);
    let worker: Arc<dyn Worker> = Arc::new(RobotWorker {
        model: with.model,
        shell: shell(&place, &plan.env, bash),
        max_tool_calls: plan.max_tool_calls,
        limiter: Arc::new(Limiter::new()),
        fallback: with.fallback.map(|model| (model, Arc::new(Limiter::new()))),
        patience: Patience {
            max_retries: plan.max_retries,
            max_wait: plan.max_wait,
            ..with.pace
        },
        clock: with.clock,
        conventional: plan.policy.commit_format == CommitFormat::Conventional,
        builtin: plan.tools,
        guards: Guards {
            local: plan.is_guarded(),
            write: plan.write_guard,
            lint: plan.lint.clone(),
            early: plan
                .verify_command
                .clone()
                .filter(|_| plan.is_guarded())
                .map(|command| Early {
                    command,
                    objective: plan.objective.clone(),
                }),
        },
        steps: if plan.small_steps {
            Some(Steps {
                objective: plan.objective.clone(),
                system: prompts.steps(plan.instructions.as_deref())?,
                prompts: Arc::clone(&prompts),
            })
        } else {
            None
        },
        extras: with.extras,
    });
    let hooks = GitHooks {
        hooks: if plan.hooks {
            UserHooks::find(&ledger, &zones, &base).await?
        } else {
            UserHooks::default()
        },
        shell: shell(&place, &plan.env, "/bin/sh".into()),
        timeout: plan.verify_timeout,
        identity: ledger.identity().clone(),
    };
    if let Some(hook) = hooks.hooks.dangling.first() {
        return Err(StartError::Configuration(format!(
            "the hook {} is a link that leads nowhere in the commit that the run starts from; mend it, or pass hooks over \
             with --no-hooks",
            hook.display()
        )));
    }
    zones.keep_in_mind(&zones.tree_of(&base).await.map_err(ZoneError::from)?);
    let mut protect = plan.protect_paths.clone();
    protect.extend(eval.protected_paths());
    let locked = Locked::resolve(&zones, &base, &protect).await?;
    let protected: Vec<String> = locked
        .files()
        .take(MAX_NAMED)
        .map(|path| path.display().to_string())
        .collect();
    let project = Project::read(&zones, &base, &files, plan.instructions.as_deref(), id.as_str())
        .await
        .map_err(ZoneError::from)?;
    let system = prompts.system(&Facts {
        objective: &plan.objective,
        verify_command: plan.verify_command.as_deref(),
        measure: plan
            .measure
            .as_ref()
            .map(|measure| (measure.command.as_str(), plan.goal.minimize)),
        eval: told.as_deref(),
        stop_when: plan.policy.stop_when.as_deref(),
        locked: &protected,
        conventional: plan.policy.commit_format == CommitFormat::Conventional,
        project: &project,
        small: plan.is_guarded(),
    })?;
    let state = journal.state();
    let file = RunFile {
        version: STATE_VERSION,
        run_id: id.to_string(),
        objective: plan.objective.clone(),
        branch: branch
            .as_ref()
            .map(|branch| branch.name().to_owned())
            .unwrap_or_default(),
        base,
        model: worker.name(),
        verify_command: plan.verify_command.clone(),
        started,
        updated: journal.now(),
        reason: None,
        state: state.clone(),
    };
    let waits = Arc::new(Waits::default());
    let limits = Limits {
        tokens: plan.policy.max_tokens,
        cost: plan.policy.max_cost,
    };
    let spent = Spent {
        tokens: state.usage.total(),
        cost: state.cost,
    };
    let budget = Arc::new(Budget::new(limits, spent, plan.models.clone()));
    Ok(RealWorld {
        plan,
        journal,
        halt,
        started: Instant::now(),
        before: Duration::from_millis(state.elapsed_ms),
        deadline: waits.deadline(Duration::ZERO),
        waits,
        dir,
        file,
        ledger,
        zones,
        branch,
        workspace,
        bench,
        furnishing,
        cache,
        worker,
        eval,
        budget,
        prompts,
        system,
        locked: Arc::new(locked),
        hooks,
        session: None,
        worked: false,
        kept: false,
        holds_work: false,
    })
}

fn shell(place: &Place, env: &[String], program: OsString) -> Shell {
    let host = place
        .host
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    Shell::new(Exec::new(&place.helper), Env::allow_listed(host, env), program)
}
