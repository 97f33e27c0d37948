//! What each command does.

pub(crate) mod demo;
pub(crate) mod run;
pub(crate) mod runs;

use crate::error::CliError;
use std::path::PathBuf;

fn current_dir() -> Result<PathBuf, CliError> {
    std::env::current_dir()
        .map_err(|error| CliError::configuration(format!("the current directory cannot be used: {error}")))
}
