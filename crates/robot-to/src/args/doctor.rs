//! Flags of `robot-to doctor`.

use super::{DEFAULT_MODEL, DEFAULT_PROVIDER, PlaceArgs};
use clap::{ArgAction, Args};
use robot_lab_to::settings::Plan;
use serde_json::json;

/// Flags of `robot-to doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Ask the model too, for one small call of a tool: whether it answers, calls tools, streams, and how much it can
    /// read. It costs a few hundred tokens
    #[arg(long)]
    pub(crate) ask: bool,
    /// Who serves the model that is asked
    #[arg(long, default_value = DEFAULT_PROVIDER)]
    provider: String,
    /// The model that is asked
    #[arg(long, default_value = DEFAULT_MODEL)]
    model: String,
    /// The variable that holds its key, where it is not the provider's usual one
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// A header for it; $NAME stands for a variable (repeatable)
    #[arg(long, value_name = "NAME:VALUE", action = ArgAction::Append)]
    header: Vec<String>,
    /// Length of the context that Ollama is asked for, in tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(256..))]
    num_ctx: Option<u32>,
    /// Ask whether a server answers here too, such as http://localhost:11434/v1; no key is sent but with --ask
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
    /// Print one JSON object per finding
    #[arg(long)]
    pub(crate) json: bool,
}

impl DoctorArgs {
    /// The plan of a run that would ask this model.
    pub(crate) fn plan(&self) -> Plan {
        let model = json!({
            "provider": self.provider,
            "model": self.model,
            "base_url": self.base_url,
            "api_key_env": self.api_key_env,
            "headers": self.header,
            "num_ctx": self.num_ctx,
        });
        Plan {
            model,
            ..Plan::default()
        }
    }
}
