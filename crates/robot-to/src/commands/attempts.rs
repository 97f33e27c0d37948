//! `robot-to attempts`: what a run made, did not commit, and kept.

use super::look::{look, print, unreadable};
use crate::args::LookArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::Row;
use robot_lab_to::run::LoggedIteration;
use serde_json::json;

/// Lists what is kept, newest last.
pub(crate) async fn run(args: &LookArgs) -> Result<Exit, CliError> {
    let looked = look(args.run_id.as_deref(), &args.places).await?;
    let run = &looked.run;
    let Some(archive) = looked.archive()? else {
        let gone = looked.gone();
        let text = if args.json {
            json!({ "run_id": run.id.as_str(), "error": gone }).to_string()
        } else {
            gone
        };
        print(format!("{text}\n").as_bytes())?;
        return Ok(Exit::Done);
    };
    let mut text = String::new();
    for kept in archive.kept().await.map_err(unreadable)? {
        // Where objects are missing, the rest of the list is still of use.
        let stat = archive.diff_stat(&kept.parent, &kept.tree).await.ok();
        let told = LoggedIteration::of(&run.records, kept.iteration);
        let row = Row { kept, stat, told };
        let line = if args.json {
            row.json(run.id.as_str())
        } else {
            row.line()
        };
        text.push_str(&line);
        text.push('\n');
    }
    if !args.json {
        text.push_str(&if text.is_empty() {
            format!("no attempts are kept of {}\n", run.id)
        } else {
            format!(
                "\nNext:  robot-to show {id} ITER{flags}\n       robot-to apply {id} ITER{flags}\n",
                id = run.id,
                flags = looked.flags
            )
        });
    }
    print(text.as_bytes())?;
    Ok(Exit::Done)
}
