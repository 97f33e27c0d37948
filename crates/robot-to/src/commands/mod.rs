//! What each command does.

pub(crate) mod apply;
pub(crate) mod attempts;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
mod look;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod status;

use crate::error::CliError;
use std::path::PathBuf;

pub(crate) fn current_dir() -> Result<PathBuf, CliError> {
    std::env::current_dir()
        .map_err(|error| CliError::configuration(format!("the current directory cannot be used: {error}")))
}
