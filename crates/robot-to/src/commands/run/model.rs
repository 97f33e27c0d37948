//! Which model a run uses, and with which key.

use super::{headers, replay};
use crate::args::{DEFAULT_MODEL, DEFAULT_PROVIDER};
use crate::error::CliError;
use crate::key::Keys;
use robot_lab::Model;
use robot_lab_providers::{
    ExchangeObserver, HttpModel, ModelConfig, ScriptModel, host_of_secret, key_variable, known_providers,
};
use robot_lab_to::run::Learnt;
use robot_lab_to::settings::Plan;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The provider that plays a file.
pub(super) const SCRIPT: &str = "script";

/// The provider that plays a recording.
pub(super) const REPLAY: &str = "replay";

/// A model, and what is known of its key.
pub(in crate::commands) struct Chosen {
    pub(in crate::commands) model: Arc<dyn Model>,
    /// The variable that holds the key, where the provider has one.
    pub(in crate::commands) variable: Option<String>,
    /// Whether the user gave one.
    pub(in crate::commands) key: bool,
    /// Why the model cannot be asked: there is no key.
    pub(in crate::commands) missing: Option<CliError>,
}

/// The models of a run.
pub(in crate::commands) struct Models {
    pub(in crate::commands) main: Arc<dyn Model>,
    pub(in crate::commands) fallback: Option<Arc<dyn Model>>,
}

/// How models are asked besides what the plan says.
#[derive(Default)]
pub(in crate::commands) struct Manner {
    /// Whom all is shown to that is said to a provider.
    pub(in crate::commands) observer: Option<Arc<dyn ExchangeObserver>>,
    /// What the run has learnt of the servers before.
    pub(in crate::commands) learnt: Learnt,
}

/// Makes the models that the flags name.
pub(super) fn choose(plan: &Plan, cwd: &Path, keys: &Keys, manner: &Manner) -> Result<Models, CliError> {
    if let Some(file) = recording(plan, cwd) {
        let (main, fallback) = replay::replay(plan, &file)?;
        return Ok(Models {
            main: main.model,
            fallback: fallback.map(|chosen| chosen.model),
        });
    }
    let main = askable(find(plan, cwd, keys, manner)?)?;
    let fallback = fallback(plan, cwd, keys, manner)?.map(askable).transpose()?;
    Ok(Models { main, fallback })
}

/// The recording that is to be played, if one is.
fn recording(plan: &Plan, cwd: &Path) -> Option<PathBuf> {
    let name = plan
        .model
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    is_replay(plan).then(|| cwd.join(name))
}

/// Whether a recording is to be played.
pub(super) fn is_replay(plan: &Plan) -> bool {
    plan.model.get("provider").and_then(Value::as_str) == Some(REPLAY)
}

/// Finds the fallback, if there is to be one.
pub(in crate::commands) fn fallback(
    plan: &Plan,
    cwd: &Path,
    keys: &Keys,
    manner: &Manner,
) -> Result<Option<Chosen>, CliError> {
    let Some(fallback) = of_fallback(plan) else {
        return Ok(None);
    };
    let same = ["provider", "model", "base_url"].iter().all(|key| {
        let of = |plan: &Plan| {
            plan.model
                .get(*key)
                .and_then(Value::as_str)
                .map(str::trim)
                .map(str::to_owned)
        };
        of(&fallback) == of(plan)
    });
    if same {
        return Err(CliError::configuration(
            "--fallback-model is the model itself, which cannot stand in for itself; nothing was changed",
        )
        .hint("name another one, such as --fallback-model PROVIDER/NAME, or leave it out"));
    }
    find(&fallback, cwd, keys, manner).map(Some)
}

fn askable(chosen: Chosen) -> Result<Arc<dyn Model>, CliError> {
    match chosen.missing {
        Some(error) => Err(error),
        None => Ok(chosen.model),
    }
}

/// The plan with its fallback in the place of its model. What comes before a slash counts as a provider when there is
/// one of that name; the address is only for the provider that it was given for.
pub(super) fn of_fallback(plan: &Plan) -> Option<Plan> {
    // A recording has its own.
    let named = plan
        .model
        .get("fallback_model")?
        .as_str()
        .filter(|_| !is_replay(plan))?;
    let of_another = named
        .split_once('/')
        .filter(|(provider, _)| *provider == SCRIPT || known_providers().any(|known| known == *provider));
    let mut plan = plan.clone();
    let model = plan.model.as_object_mut()?;
    let own = model.get("provider").and_then(Value::as_str).unwrap_or_default();
    match of_another {
        Some((provider, name)) if provider != own => {
            model.insert("provider".into(), provider.into());
            model.insert("model".into(), name.into());
            // What was given for the other provider is not for this one.
            for own in ["base_url", "api_key_env", "headers"] {
                model.remove(own);
            }
        }
        Some((_, name)) => {
            model.insert("model".into(), name.into());
        }
        None => {
            model.insert("model".into(), named.into());
        }
    }
    Some(plan)
}

/// The same where a missing key is no error: that model must not be asked.
pub(in crate::commands) fn find(
    plan: &Plan,
    cwd: &Path,
    keys: &Keys,
    manner: &Manner,
) -> Result<Chosen, CliError> {
    let text = |name: &str| plan.model.get(name).and_then(Value::as_str).map(str::to_owned);
    let (provider, name) = (
        text("provider").unwrap_or_default(),
        text("model").unwrap_or_default(),
    );
    let base_url = text("base_url");
    if provider == SCRIPT {
        return Ok(Chosen {
            model: Arc::new(script(&cwd.join(&name))?),
            variable: None,
            key: false,
            missing: None,
        });
    }
    if let Some(file) = recording(plan, cwd) {
        return Ok(replay::replay(plan, &file)?.0);
    }
    let known = known_providers().any(|known| known == provider);
    let has_default = provider == DEFAULT_PROVIDER || provider == "openai-responses";
    if name == DEFAULT_MODEL && !has_default && known {
        return Err(CliError::configuration(format!(
            "no model is named, and {provider} does not have the default one; nothing was changed"
        ))
        .hint("name one that it has: --model NAME"));
    }
    if let Some(host) = base_url.as_deref().and_then(host_of_secret) {
        return Err(CliError::configuration(format!(
            "the base URL of {host} has a user, a password or a key in it, and settings are written into the log; nothing \
             was changed"
        ))
        .hint("give the key in the provider's variable"));
    }
    let named = text("api_key_env");
    let variable = named.clone().or(key_variable(&provider).map(str::to_owned));
    let key = variable.as_deref().and_then(|name| keys.at(name));
    // One that is named must be there, also for a server of one's own.
    let missing = match (&variable, key) {
        (Some(variable), None) if base_url.is_none() || named.is_some() => Some(
            CliError::configuration(format!(
                "there is no key for {provider}: the variable {variable} is not set; nothing was changed"
            ))
            .hint(format!("export {variable}=…"))
            .hint("without a key, see a whole run with a scripted model: robot-to demo")
            .hint("a model on this machine needs none: --provider ollama --model NAME, or --base-url URL"),
        ),
        _ => None,
    };
    // Only a model that may be asked has a true key.
    let api_key = key.or(missing.as_ref().map(|_| "none"));
    let config = ModelConfig {
        api_key: api_key.map(str::to_owned),
        headers: headers::resolved(plan, keys)?,
        ..connection(plan)
    };
    let model = HttpModel::new(config).map_err(|error| {
        let error = CliError::configuration(format!("{error}; nothing was changed"));
        if provider == DEFAULT_PROVIDER {
            error
        } else {
            error.hint("a file can be played too: --provider script")
        }
    })?;
    let id = model.id().to_string();
    let model = model.having_learnt(manner.learnt.changes(&id));
    let model: Arc<dyn Model> = match &manner.observer {
        Some(observer) => Arc::new(model.observed_by(Arc::clone(observer))),
        None => Arc::new(model),
    };
    Ok(Chosen {
        model,
        variable,
        key: key.is_some(),
        missing,
    })
}

/// How a plan wants its model to be asked, but for what is secret.
pub(super) fn connection(plan: &Plan) -> ModelConfig {
    let text = |name: &str| plan.model.get(name).and_then(Value::as_str);
    let number = |name: &str| {
        let number = plan.model.get(name).and_then(Value::as_u64);
        number.and_then(|number| u32::try_from(number).ok())
    };
    ModelConfig {
        base_url: text("base_url").map(str::to_owned),
        num_ctx: number("num_ctx"),
        temperature: plan.model.get("temperature").and_then(Value::as_f64),
        max_output_tokens: number("max_output_tokens"),
        reasoning: text("reasoning").and_then(|effort| effort.parse().ok()),
        silence: plan
            .model
            .get("model_timeout")
            .and_then(Value::as_u64)
            .map(Duration::from_secs),
        ..ModelConfig::new(
            text("provider").unwrap_or_default(),
            text("model").unwrap_or_default(),
        )
    }
}

fn script(path: &Path) -> Result<ScriptModel, CliError> {
    let failed = |why: String| {
        CliError::configuration(format!("{}: {why}; nothing was changed", path.display()))
            .hint("with --provider script, --model names a file of turns")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    ScriptModel::from_yaml(&text).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fallback_is_of_the_same_provider_unless_it_names_another() {
        for (own, named, provider, model, keeps_the_address) in [
            ("openai", "gpt-5-mini", "openai", "gpt-5-mini", true),
            ("openai", "openai/gpt-5-mini", "openai", "gpt-5-mini", true),
            (
                "openai",
                "anthropic/claude-sonnet-4-5",
                "anthropic",
                "claude-sonnet-4-5",
                false,
            ),
            (
                "openrouter",
                "qwen/qwen3-coder",
                "openrouter",
                "qwen/qwen3-coder",
                true,
            ),
            (
                "anthropic",
                "openrouter/openai/gpt-5",
                "openrouter",
                "openai/gpt-5",
                false,
            ),
            ("openai", "script/night.yaml", "script", "night.yaml", false),
        ] {
            let model_of_plan = json!({
                "provider": own, "model": "m", "base_url": "http://127.0.0.1:1", "fallback_model": named,
                "api_key_env": "KEY", "headers": ["x: y"],
            });
            let plan = Plan {
                model: model_of_plan,
                ..Plan::default()
            };
            let made = of_fallback(&plan).unwrap().model;
            assert_eq!(
                (&made["provider"], &made["model"]),
                (&json!(provider), &json!(model)),
                "{named}"
            );
            for own in ["base_url", "api_key_env", "headers"] {
                assert_eq!(made.get(own).is_some(), keeps_the_address, "{named}: {own}");
            }
        }
        assert_eq!(of_fallback(&Plan::default()), None);
    }
}
