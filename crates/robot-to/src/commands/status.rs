//! `robot-to status`: how a run stands.

use super::look::{look, print};
use crate::args::LookArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::{Places, Status};

/// Prints how a run stands, without holding it up.
pub(crate) async fn run(args: &LookArgs) -> Result<Exit, CliError> {
    let looked = look(args.run_id.as_deref(), &args.places).await?;
    let run = &looked.run;
    let archive = looked.archive()?;
    let shown = |path: &std::path::Path| {
        if args.json {
            path.display().to_string()
        } else {
            looked.short(path)
        }
    };
    let status = Status {
        run_id: run.id.as_str(),
        records: &run.records,
        unknown: run.unknown,
        held: run.held,
        complete: run.is_complete(),
        now: jiff::Timestamp::now(),
        places: Places {
            notes: shown(&run.dir.notes()),
            log: shown(&run.dir.log()),
            attempts: archive.map(|archive| shown(archive.dir())),
            flags: looked.flags.clone(),
        },
    };
    let text = if args.json {
        format!("{}\n", status.json())
    } else {
        status.text()
    };
    print(text.as_bytes())?;
    Ok(Exit::Done)
}
