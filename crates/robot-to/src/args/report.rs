//! Flags of `robot-to report`.

use super::PlaceArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags of `robot-to report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run [default: the latest of this repository]
    #[arg(value_name = "RUN")]
    pub(crate) run_id: Option<String>,
    /// Write the report into this file, in place of what is there [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A page to read, or all of it for programs
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Markdown)]
    pub(crate) format: ReportFormat,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Markdown,
    Json,
}
