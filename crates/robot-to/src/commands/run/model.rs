//! Which model a run uses, and with which key.

use crate::args::DEFAULT_PROVIDER;
use crate::error::CliError;
use crate::key::Keys;
use robot_lab::Model;
use robot_lab_providers::{GenaiModel, ModelConfig, ScriptModel, key_variable};
use robot_lab_to::settings::Plan;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The provider that plays a file.
const SCRIPT: &str = "script";

/// Makes the model that the flags name.
pub(super) fn choose(plan: &Plan, cwd: &Path, keys: &Keys) -> Result<Arc<dyn Model>, CliError> {
    let text = |name: &str| plan.model.get(name).and_then(Value::as_str).map(str::to_owned);
    let (provider, name) = (
        text("provider").unwrap_or_default(),
        text("model").unwrap_or_default(),
    );
    let base_url = text("base_url");
    if provider == SCRIPT {
        return Ok(Arc::new(script(&cwd.join(&name))?));
    }
    let key = keys.of(&provider);
    if let (Some(variable), None, None) = (key_variable(&provider), key, &base_url) {
        return Err(CliError::configuration(format!(
            "there is no key for {}: the variable {variable} is not set; nothing was changed",
            provider
        ))
        .hint(format!("export {variable}=…"))
        .hint("without a key, see a whole run with a scripted model: robot-to demo")
        .hint("a model on this machine needs none: --base-url http://localhost:11434/v1 --model NAME"));
    }
    let config = ModelConfig {
        base_url: base_url.clone(),
        api_key: key.map(str::to_owned),
        ..ModelConfig::new(&provider, &name)
    };
    let model = GenaiModel::new(config).map_err(|error| {
        let error = CliError::configuration(format!("{error}; nothing was changed"));
        if provider == DEFAULT_PROVIDER {
            error
        } else {
            error.hint("a file can be played too: --provider script")
        }
    })?;
    Ok(Arc::new(model))
}

fn script(path: &Path) -> Result<ScriptModel, CliError> {
    let failed = |why: String| {
        CliError::configuration(format!("{}: {why}; nothing was changed", path.display()))
            .hint("with --provider script, --model names a file of turns")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    ScriptModel::from_yaml(&text).map_err(|error| failed(error.to_string()))
}
