//! Which eval a run grades with: the one that its plan names, with the plan's commands around it.

use super::StartError;
use crate::eval::{
    CODE, COMMAND, Code, Combined, CommandEval, Eval, EvalRegistry, EvalSetup, Guarded, NULL, Program,
};
use crate::guard::is_whole;
use crate::settings::{Place, Plan};
use crate::shell::Shell;
use crate::workspace::{GitError, Ledger, Oid, RunRepo, ZoneError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Who grades.
pub(super) struct Grader {
    pub(super) eval: Arc<dyn Eval>,
    /// What the robot is told of an eval that is none of ours.
    pub(super) told: Option<String>,
    /// What the user should know of it before it begins.
    pub(super) notice: Option<String>,
}

/// Where a program is looked for.
pub(super) struct Around<'a> {
    pub(super) place: &'a Place,
    pub(super) ledger: &'a Ledger,
    pub(super) zones: &'a RunRepo,
    pub(super) base: &'a Oid,
}

/// Makes the eval that the plan names. The path of a program is made absolute in the plan, so that the run can go on
/// from another directory.
pub(super) async fn choose(
    plan: &mut Plan,
    evals: &EvalRegistry,
    shell: &Shell,
    around: &Around<'_>,
) -> Result<Grader, StartError> {
    let has_commands = plan.verify_command.is_some() || plan.measure.is_some();
    let name = plan.eval.clone();
    let name = name.as_deref().unwrap_or(if has_commands { CODE } else { NULL });
    let own: Arc<dyn Eval>;
    let told;
    let mut notice = None;
    if let Some(path) = name.strip_prefix(COMMAND) {
        let (program, absolute) = find(Path::new(path), around).await?;
        notice = beside(&program, &plan.protect_paths);
        told = match &program {
            Program::InTree(path) => format!("the program `{}` of this repository", path.display()),
            Program::At(_) => "a program outside the repository".into(),
        };
        own = Arc::new(CommandEval::new(program, shell.clone(), plan.verify_timeout));
        plan.eval = Some(format!("{COMMAND}{absolute}"));
    } else {
        let made = evals
            .make(name, &EvalSetup { plan, shell })
            .map_err(|error| StartError::Configuration(error.to_string()))?;
        if matches!(name, NULL | CODE) {
            return Ok(Grader {
                eval: made,
                told: None,
                notice: None,
            });
        }
        told = format!("the eval `{name}`");
        let guarded = Guarded::new(made, plan.verify_timeout).map_err(StartError::Configuration)?;
        own = Arc::new(guarded);
    }
    let eval = if has_commands {
        Arc::new(Combined::new(Code::of(plan, shell), own))
    } else {
        own
    };
    Ok(Grader {
        eval,
        told: Some(told),
        notice,
    })
}

/// Says that the files beside a program of the repository are not locked: what it imports from there, a robot can
/// replace, or put another file before it.
fn beside(program: &Program, protected: &[String]) -> Option<String> {
    let Program::InTree(path) = program else {
        return None;
    };
    let dir = path.parent().unwrap_or(path);
    if protected.iter().any(|pattern| is_whole(pattern, dir)) {
        return None;
    }
    let dir = match dir.to_str() {
        Some("") | None => "DIR",
        Some(dir) => dir,
    };
    Some(format!(
        "the eval {} is locked, but not the files beside it, which it may read or import; lock what it reads: \
         --protect-path {dir}",
        path.display()
    ))
}

/// Finds the program of an eval, from where the user is or from the top of the repository; and its absolute path.
async fn find(path: &Path, around: &Around<'_>) -> Result<(Program, String), StartError> {
    let top = around.ledger.top();
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    let candidates = [around.place.repo.join(path), top.join(path)];
    let found = candidates
        .iter()
        .find_map(|candidate| candidate.canonicalize().ok());
    let exists = found.is_some();
    // One that is in the commit need not be in the checkout.
    let [first, _] = candidates;
    let file = found.unwrap_or(first);
    let Some(absolute) = file.to_str().map(str::to_owned) else {
        return Err(StartError::Configuration(format!(
            "the path of the eval {} is no UTF-8; move it",
            file.display()
        )));
    };
    if let Ok(inside) = file.strip_prefix(&top)
        && is_tracked(inside, around).await.map_err(ZoneError::from)?
    {
        return Ok((Program::InTree(inside.to_owned()), absolute));
    }
    if exists {
        return Ok((Program::At(file), absolute));
    }
    Err(StartError::Configuration(format!(
        "there is no eval {}, neither from the current directory nor from the top of the repository",
        path.display()
    )))
}

/// Whether the commit that the run starts from has this file.
async fn is_tracked(path: &Path, around: &Around<'_>) -> Result<bool, GitError> {
    let pathspec = format!(":(top,literal){}", path.display());
    let files = around
        .zones
        .files_under(around.base, std::slice::from_ref(&pathspec))
        .await?;
    Ok(files.iter().map(PathBuf::as_path).eq([path]))
}
