//! Which model a run uses, and with which key.

use crate::args::{DEFAULT_PROVIDER, RunArgs};
use crate::error::CliError;
use robot_lab::Model;
use robot_lab_providers::{GenaiModel, ModelConfig, ScriptModel, key_variable};
use std::path::Path;
use std::sync::Arc;

/// The provider that plays a file.
const SCRIPT: &str = "script";

/// A model, and the secrets that it was made with.
pub(super) struct Chosen {
    pub(super) model: Arc<dyn Model>,
    pub(super) secrets: Vec<String>,
}

/// Makes the model that the flags name.
pub(super) fn choose(args: &RunArgs, cwd: &Path) -> Result<Chosen, CliError> {
    if args.provider == SCRIPT {
        return Ok(Chosen {
            model: Arc::new(script(&cwd.join(&args.model))?),
            secrets: Vec::new(),
        });
    }
    let variable = key_variable(&args.provider);
    let key = variable
        .and_then(|name| std::env::var(name).ok())
        .filter(|key| !key.trim().is_empty());
    if let (Some(variable), None, None) = (variable, &key, &args.base_url) {
        return Err(CliError::configuration(format!(
            "there is no key for {}: the variable {variable} is not set; nothing was changed",
            args.provider
        ))
        .hint(format!("export {variable}=…"))
        .hint("without a key, see a whole run with a scripted model: robot-to demo")
        .hint("a model on this machine needs none: --base-url http://localhost:11434/v1 --model NAME"));
    }
    let config = ModelConfig {
        base_url: args.base_url.clone(),
        api_key: key.clone(),
        ..ModelConfig::new(&args.provider, &args.model)
    };
    let model = GenaiModel::new(config).map_err(|error| {
        let error = CliError::configuration(format!("{error}; nothing was changed"));
        if args.provider == DEFAULT_PROVIDER {
            error
        } else {
            error.hint("a file can be played too: --provider script")
        }
    })?;
    Ok(Chosen {
        model: Arc::new(model),
        secrets: key.into_iter().collect(),
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
