//! Models that play a recording: nothing is sent, and no key is needed.

use super::model::{Chosen, connection, of_fallback};
use crate::error::CliError;
use robot_lab_providers::{HttpModel, Playback, Recording, known_providers};
use robot_lab_to::settings::Plan;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The model of a recording, and its fallback where it had one.
pub(super) fn replay(plan: &Plan, path: &Path) -> Result<(Chosen, Option<Chosen>), CliError> {
    let failed = |why: String| {
        CliError::configuration(format!("{}: {why}; nothing was changed", path.display()))
            .hint("with --provider replay, --model names a file that --record made")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let recording = Recording::parse(&text).map_err(|error| failed(error.to_string()))?;
    let mut then = plan.clone();
    then.model = recording.model().clone();
    let playback = Playback::new(recording);
    let played = |plan: &Plan| {
        let provider = plan.model.get("provider").and_then(Value::as_str);
        if !provider.is_some_and(|name| known_providers().any(|known| known == name)) {
            return Err(failed("it does not name a provider that there is".into()));
        }
        let mut config = connection(plan);
        // There must be one, and none is sent.
        config.api_key = Some("none".into());
        let model = HttpModel::new(config).map_err(|error| failed(error.to_string()))?;
        Ok(Chosen {
            model: Arc::new(model.replaying(playback.clone())),
            variable: None,
            key: false,
            missing: None,
        })
    };
    let fallback = of_fallback(&then).map(|then| played(&then)).transpose()?;
    Ok((played(&then)?, fallback))
}
