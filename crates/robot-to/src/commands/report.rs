//! `robot-to report`: a run to read in the morning.

use super::look::{Looked, look, print, unreadable};
use crate::args::{ReportArgs, ReportFormat};
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::markdown;
use robot_lab_to::report::ReportData;
use robot_lab_to::run::StartError;
use robot_lab_to::workspace::{Archive, Oid};
use std::collections::HashMap;

/// Prints the report, or writes it into a file.
pub(crate) async fn run(args: &ReportArgs) -> Result<Exit, CliError> {
    let looked = look(args.run_id.as_deref(), &args.places).await?;
    let report = report(&looked).await?;
    let text = match args.format {
        ReportFormat::Markdown => markdown(&report, &looked.flags),
        ReportFormat::Json => {
            let json = serde_json::to_string_pretty(&report);
            json.map_err(|error| CliError::internal(error.to_string()))? + "\n"
        }
    };
    let Some(file) = &args.output else {
        print(text.as_bytes())?;
        return Ok(Exit::Done);
    };
    let file = looked.cwd.join(file);
    std::fs::write(&file, text).map_err(|error| {
        CliError::path(
            &error,
            format!("the report cannot be written to {}: {error}", file.display()),
        )
    })?;
    print(format!("Report:     {}\n", looked.short(&file)).as_bytes())?;
    Ok(Exit::Done)
}

async fn report(looked: &Looked) -> Result<ReportData, CliError> {
    let run = &looked.run;
    let now = jiff::Timestamp::now();
    let complete = run.is_complete();
    let mut report = ReportData::of(
        run.id.as_str(),
        &run.records,
        run.held,
        complete,
        run.unknown,
        now,
    );
    let user = Archive::of_user(&looked.git, &looked.cwd).await;
    let user = user.map_err(StartError::from)?;
    // The log says where the branch was; a run at work is about to move it.
    if let Some(branch) = report.branch.as_deref().filter(|_| !run.held) {
        let tip = user.tip(branch).await.map_err(unreadable)?;
        report.branch_is_at(tip);
    }
    // Without its own repository, what a run committed is still in the user's.
    let (archive, kept) = match looked.archive()? {
        Some(archive) => {
            let kept = archive.kept().await.map_err(unreadable)?;
            (archive, kept)
        }
        None => (user, Vec::new()),
    };
    let kept: HashMap<(u32, u32), Oid> = kept
        .into_iter()
        .map(|kept| ((kept.iteration, kept.candidate), kept.tree))
        .collect();
    let tree_of = |iteration, candidate| kept.get(&(iteration, candidate)).cloned();
    let pairs = report.pairs(tree_of);
    if !pairs.is_empty() {
        // A report without line counts is better than none.
        let stats = archive.diff_stats(&pairs).await.unwrap_or_default();
        report.changed(tree_of, &stats);
    }
    Ok(report)
}
