//! `robot-to models`: lists what a provider offers, without a token.

use super::look::print;
use crate::args::ModelsArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::key::Keys;
use crate::surface::printable;
use robot_lab::{ModelErrorKind, counted};
use robot_lab_providers::{ModelConfig, OfferedModel, key_variable, known_providers, offered};
use serde_json::json;
use std::time::Duration;

/// How long a provider may take to list its models.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks, and prints a line for each.
pub(crate) async fn run(args: &ModelsArgs, keys: &Keys) -> Result<Exit, CliError> {
    if !known_providers().any(|known| known == args.provider) {
        let known: Vec<&str> = known_providers().collect();
        return Err(CliError::configuration(format!(
            "{:?} has no list of models; use one of: {}",
            args.provider,
            known.join(", ")
        )));
    }
    let key = key_variable(&args.provider).and_then(|variable| keys.at(variable));
    if let (Some(variable), None, None) = (key_variable(&args.provider), key, &args.base_url) {
        return Err(CliError::configuration(format!(
            "there is no key for {}: the variable {variable} is not set",
            args.provider
        ))
        .hint(format!("export {variable}=…")));
    }
    let config = ModelConfig {
        base_url: args.base_url.clone(),
        api_key: key.map(str::to_owned),
        ..ModelConfig::new(&args.provider, "any")
    };
    let models = offered(&config, PATIENCE)
        .await
        .map_err(|error| match error.kind {
            ModelErrorKind::BadRequest => CliError::configuration(error.to_string()),
            _ => CliError::environment(error.to_string()),
        })?;
    let part = args.part.as_deref().unwrap_or_default().to_lowercase();
    let found: Vec<&OfferedModel> = models
        .iter()
        .filter(|model| model.name.to_lowercase().contains(&part))
        .collect();
    if found.is_empty() {
        let what = if models.is_empty() {
            format!("{} lists no model", args.provider)
        } else {
            format!(
                "none of the {} of {} has {part:?} in its name",
                counted(models.len(), "model"),
                args.provider
            )
        };
        return Err(CliError::configuration(what));
    }
    let widest = found
        .iter()
        .map(|model| model.name.chars().count())
        .max()
        .unwrap_or(0);
    for model in found {
        let line = if args.json {
            json!({ "name": model.name, "context_window": model.context_window }).to_string()
        } else {
            let name = printable(&model.name);
            match model.context_window {
                Some(tokens) => format!("{name:widest$}  {tokens} tokens"),
                None => name,
            }
        };
        print(format!("{line}\n").as_bytes())?;
    }
    Ok(Exit::Done)
}
