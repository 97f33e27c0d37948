//! Flags of `robot-to models`.

use super::DEFAULT_PROVIDER;
use clap::Args;

/// Flags of `robot-to models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Only those with this in their name
    pub(crate) part: Option<String>,
    /// Who serves the models
    #[arg(long, default_value = DEFAULT_PROVIDER)]
    pub(crate) provider: String,
    /// Where they are served, such as http://localhost:8080/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Print one JSON object per model
    #[arg(long)]
    pub(crate) json: bool,
}
