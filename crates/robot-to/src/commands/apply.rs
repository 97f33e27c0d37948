//! `robot-to apply`: a branch of an attempt that was not committed.

use super::look::{Looked, kept_of, look, print, unreadable};
use crate::args::IterationArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::extent;
use robot_lab_to::commit_message::not_accepted;
use robot_lab_to::event::{Event, Record};
use robot_lab_to::run::{Began, LoggedIteration, StartError};
use robot_lab_to::workspace::{Archive, CommitSpec, DiffStat, Kept, Ledger, Oid, RunRepo, WorkDir};

/// Makes the branch, and says how to merge it. The checkout stays as it is.
pub(crate) async fn run(args: &IterationArgs) -> Result<Exit, CliError> {
    let looked = look(args.run_id.as_deref(), &args.places).await?;
    let told = looked.iteration(args.iteration)?;
    let (archive, kept, outcome) = find(&looked, &told).await?;
    let stat = archive
        .diff_stat(&kept.parent, &kept.tree)
        .await
        .map_err(unreadable)?;
    let work = WorkDir::existing(&looked.work).ok().flatten();
    let work = work.ok_or_else(|| CliError::configuration(looked.gone()))?;
    let ledger = Ledger::discover(&looked.git, &looked.cwd)
        .await
        .map_err(StartError::from)?;
    let run_id = looked.run.id.as_str();
    let changes = told.submission.map(|said| said.key_changes.as_slice());
    let message = not_accepted(
        told.number,
        run_id,
        told.outcome(),
        &told.summary(),
        changes.unwrap_or_default(),
    );
    let subject = message.lines().next().unwrap_or_default().to_owned();
    let spec = CommitSpec {
        sign: false,
        tree: kept.tree,
        parent: kept.parent,
        message: message.into_bytes(),
        identity: ledger.identity().clone(),
        // Of the attempt, so that the same attempt is always the same commit.
        at: outcome.ts.as_second(),
    };
    let zones = RunRepo::open(&looked.git, &ledger, &work);
    let name = format!("apply-{run_id}-{}", told.number);
    let (branch, commit) = ledger.adopt(&zones, &name, &spec).await?;
    let text = applied(branch.name(), &commit, &spec.parent, &subject, &stat);
    print(text.as_bytes())?;
    Ok(Exit::Done)
}

/// The attempt, and what came of it; or why there is none to apply.
async fn find<'a>(
    looked: &Looked,
    told: &LoggedIteration<'a>,
) -> Result<(Archive, Kept, &'a Record), CliError> {
    let number = told.number;
    let refuse =
        |why: String| CliError::configuration(format!("iteration {number} {why}; nothing was changed"));
    let outcome = match told.outcome {
        Some(outcome) => outcome,
        None if looked.run.held => {
            return Err(
                refuse("is under way".into()).hint("apply it when it is over, should it be discarded")
            );
        }
        None => return Err(refuse("was cut off, and nothing is kept of it".into())),
    };
    if let Event::Committed { commit, .. } = &outcome.event {
        let branch = Began::of(&looked.run.records).map_or("the run branch", |began| began.branch);
        return Err(
            refuse(format!("is committed: it is on {branch} already")).hint(format!(
                "to take this change alone: git cherry-pick {}",
                commit.short()
            )),
        );
    }
    let Some(archive) = looked.archive()? else {
        return Err(CliError::configuration(format!(
            "{}; nothing was changed",
            looked.gone()
        )));
    };
    match kept_of(&archive, told).await? {
        Some(kept) => Ok((archive, kept, outcome)),
        None => Err(
            refuse(format!("has no attempt that is kept: {}", told.outcome())).hint(format!(
                "what is kept: robot-to attempts {}{}",
                looked.run.id, looked.flags
            )),
        ),
    }
}

/// What was made, and what comes next.
fn applied(branch: &str, commit: &Oid, parent: &Oid, subject: &str, stat: &DiffStat) -> String {
    format!(
        "Branch:     {branch}\n\
         Commit:     {} {subject}\n\
         Changes:    {}, on top of {}\n\
         Next:       git merge {branch}          # with the commits that it was made from\n\
         \x20           git cherry-pick {branch}    # this change alone\n",
        commit.short(),
        extent(stat),
        parent.short(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_and_the_commands_are_named() {
        let oid = |digit: &str| digit.repeat(40).parse::<Oid>().unwrap();
        let stat = DiffStat {
            files: 1,
            added: 2,
            removed: 3,
        };
        let subject = "robot-to 2 (not accepted): Break part one";
        insta::assert_snapshot!(applied("robot-to/apply-x-2", &oid("a"), &oid("b"), subject, &stat), @r"
        Branch:     robot-to/apply-x-2
        Commit:     aaaaaaaaaa robot-to 2 (not accepted): Break part one
        Changes:    +2 −3 in 1 file, on top of bbbbbbbbbb
        Next:       git merge robot-to/apply-x-2          # with the commits that it was made from
                    git cherry-pick robot-to/apply-x-2    # this change alone
        ");
    }
}
