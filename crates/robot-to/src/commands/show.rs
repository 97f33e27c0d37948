//! `robot-to show`: an iteration in full.

use super::look::{Looked, kept_of, look, print, style, unreadable};
use crate::args::IterationArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::{Made, Page, shell_word};
use robot_lab_to::event::Event;
use robot_lab_to::run::{LoggedIteration, StartError};
use robot_lab_to::workspace::{Archive, Oid};
use std::io::IsTerminal as _;

/// Bytes of a patch that are shown.
const MAX_PATCH: usize = 200_000;

/// Prints what was said of an iteration, and what it changed.
pub(crate) async fn run(args: &IterationArgs) -> Result<Exit, CliError> {
    let looked = look(args.run_id.as_deref(), &args.places).await?;
    let told = looked.iteration(args.iteration)?;
    let page = Page {
        run_id: looked.run.id.as_str(),
        flags: &looked.flags,
        made: made(&looked, &told).await?,
        told,
    };
    print(&page.render(style(), std::io::stdout().is_terminal()))?;
    Ok(Exit::Done)
}

/// What the iteration made, or why there is nothing to see of it.
async fn made(looked: &Looked, told: &LoggedIteration<'_>) -> Result<Result<Made, String>, CliError> {
    let archive = looked.archive()?;
    if let Some(Event::Committed { commit, .. }) = told.outcome.map(|record| &record.event) {
        // The user's repository has it too, for as long as the branch is there.
        let archive = match archive {
            Some(archive) => archive,
            None => Archive::of_user(&looked.git, &looked.cwd)
                .await
                .map_err(StartError::from)?,
        };
        return read(&archive, told.parent, commit, commit, false).await.map(Ok);
    }
    let Some(archive) = archive else {
        return Ok(Err(looked.gone()));
    };
    match kept_of(&archive, told).await? {
        Some(kept) => read(&archive, &kept.parent, &kept.commit, &kept.tree, true)
            .await
            .map(Ok),
        None => Ok(Err("nothing is kept of it".into())),
    }
}

async fn read(
    archive: &Archive,
    parent: &Oid,
    commit: &Oid,
    tree: &Oid,
    attempt: bool,
) -> Result<Made, CliError> {
    let dir = shell_word(&archive.dir().display().to_string());
    Ok(Made {
        attempt,
        commit: commit.clone(),
        stat: archive.diff_stat(parent, tree).await.map_err(unreadable)?,
        patch: archive.patch(parent, tree, MAX_PATCH).await.map_err(unreadable)?,
        rest: format!("git --git-dir={dir} diff {parent} {commit}"),
    })
}
