//! `robot-to man`: the manual, for `man`.

use super::look::print;
use crate::args::{self, ManArgs};
use crate::error::CliError;
use crate::exit::Exit;
use clap_mangen::Man;

/// Prints the main page, or writes all pages into a directory.
pub(crate) fn run(args: &ManArgs) -> Result<Exit, CliError> {
    let command = args::command();
    match &args.out {
        Some(dir) => std::fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(command, dir))
            .map_err(|error| {
                CliError::environment(format!(
                    "the pages cannot be written to {}: {error}",
                    dir.display()
                ))
            })?,
        None => {
            let mut page = Vec::new();
            Man::new(command)
                .render(&mut page)
                .map_err(|error| CliError::internal(format!("the page cannot be made: {error}")))?;
            print(&page)?;
        }
    }
    Ok(Exit::Done)
}
