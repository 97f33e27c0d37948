//! Which model a run uses, and with which key.

use crate::args::DEFAULT_PROVIDER;
use crate::error::CliError;
use crate::key::Keys;
use robot_lab::Model;
use robot_lab_providers::{ExchangeObserver, HttpModel, ModelConfig, ScriptModel, key_variable};
use robot_lab_to::settings::Plan;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The provider that plays a file.
const SCRIPT: &str = "script";

/// Makes the model that the flags name. What is said to a provider is shown to `observer`.
pub(super) fn choose(
    plan: &Plan,
    cwd: &Path,
    keys: &Keys,
    observer: Option<Arc<dyn ExchangeObserver>>,
) -> Result<Arc<dyn Model>, CliError> {
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
        .hint("a model on this machine needs none: --provider ollama --model NAME, or --base-url URL"));
    }
    let config = ModelConfig {
        base_url: base_url.clone(),
        api_key: key.map(str::to_owned),
        num_ctx: plan
            .model
            .get("num_ctx")
            .and_then(Value::as_u64)
            .and_then(|tokens| u32::try_from(tokens).ok()),
        ..ModelConfig::new(&provider, &name)
    };
    let model = HttpModel::new(config).map_err(|error| {
        let error = CliError::configuration(format!("{error}; nothing was changed"));
        if provider == DEFAULT_PROVIDER {
            error
        } else {
            error.hint("a file can be played too: --provider script")
        }
    })?;
    Ok(match observer {
        Some(observer) => Arc::new(model.observed_by(observer)),
        None => Arc::new(model),
    })
}

fn script(path: &Path) -> Result<ScriptModel, CliError> {
    let failed = |why: String| {
        CliError::configuration(format!("{}: {why}; nothing was changed", path.display()))
            .hint("with --provider script, --model names a file of turns")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    ScriptModel::from_yaml(&text).map_err(|error| failed(error.to_string()))
}
