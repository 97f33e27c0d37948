//! Which model a run uses, and with which key.

use crate::args::{DEFAULT_PROVIDER, RunArgs};
use crate::error::CliError;
use crate::key::Keys;
use robot_lab::Model;
use robot_lab_providers::{GenaiModel, ModelConfig, ScriptModel, key_variable};
use std::path::Path;
use std::sync::Arc;

/// The provider that plays a file.
const SCRIPT: &str = "script";

/// Makes the model that the flags name.
pub(super) fn choose(args: &RunArgs, cwd: &Path, keys: &Keys) -> Result<Arc<dyn Model>, CliError> {
    if args.provider == SCRIPT {
        return Ok(Arc::new(script(&cwd.join(&args.model))?));
    }
    let key = keys.of(&args.provider);
    if let (Some(variable), None, None) = (key_variable(&args.provider), key, &args.base_url) {
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
        api_key: key.map(str::to_owned),
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
