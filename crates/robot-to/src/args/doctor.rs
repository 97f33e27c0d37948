//! Flags of `robot-to doctor`.

use super::PlaceArgs;
use clap::Args;

/// Flags of `robot-to doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Ask whether a server answers here too, such as http://localhost:11434/v1; no key is sent
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
    /// Print one JSON object per finding
    #[arg(long)]
    pub(crate) json: bool,
}
