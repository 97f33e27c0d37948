//! Which models a provider offers: one question, without a token.

use crate::config::{self, ModelConfig};
use crate::failure::Reporter;
use crate::http::get;
use crate::protocol::Protocol;
use crate::providers;
use reqwest::Url;
use robot_lab::{ModelError, ModelErrorKind};
use serde_json::Value;
use std::time::Duration;

/// Most models that are listed: more than any provider has.
const MAX_MODELS: usize = 10_000;
/// Keys that name a model, in the order in which they are looked for.
const NAMES: [&str; 3] = ["id", "name", "model"];
/// Keys that say what a model can read at once, from servers of several makes.
const WINDOWS: [&str; 6] = [
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "inputTokenLimit",
    "meta.n_ctx_train",
];

/// A model that a provider offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedModel {
    /// Its name, as a request has to say it.
    pub name: String,
    /// What it can read at once, in tokens, where the provider says it.
    pub context_window: Option<u64>,
}

/// Asks the provider of this configuration for its models; the model that is named there does not matter.
///
/// They come in the order of the provider. `within` bounds the whole exchange.
pub async fn offered(model: &ModelConfig, within: Duration) -> Result<Vec<OfferedModel>, ModelError> {
    let wrong = |error: config::ConfigError| ModelError::new(ModelErrorKind::BadRequest, error.to_string());
    let provider = providers::find(&model.provider).map_err(wrong)?;
    let key = config::key(model).map_err(wrong)?;
    let base = model.base_url.as_deref().unwrap_or(provider.endpoint);
    let base = config::base_url(provider.protocol, base).map_err(wrong)?;
    let secrets = key.clone().into_iter();
    let secrets = secrets.chain(model.headers.iter().map(|(_, value)| value.clone()));
    let reporter = Reporter::new(provider.name, secrets);
    let url = list(provider.protocol, base);
    let listed = get(
        url,
        provider.protocol,
        key.as_deref(),
        &model.headers,
        within,
        &reporter,
    )
    .await?;
    let body = serde_json::from_str(&listed).map_err(|_| {
        let message = format!(
            "{} does not list its models there; check the base URL",
            provider.name
        );
        ModelError::new(ModelErrorKind::MalformedReply, message)
    })?;
    Ok(read(&body))
}

/// Where the list is.
fn list(protocol: Protocol, mut base: Url) -> Url {
    let path = base.path().to_owned();
    match protocol {
        Protocol::Ollama => base.set_path(&format!("{path}api/tags")),
        Protocol::Gemini => {
            base.set_path(&format!("{path}models"));
            base.query_pairs_mut().append_pair("pageSize", "1000");
        }
        Protocol::Messages => {
            base.set_path(&format!("{path}models"));
            base.query_pairs_mut().append_pair("limit", "1000");
        }
        _ => base.set_path(&format!("{path}models")),
    }
    base
}

/// Reads a list in any of the forms that there are: entries under `data` or `models`, or a bare list.
fn read(body: &Value) -> Vec<OfferedModel> {
    let entries = ["data", "models"]
        .iter()
        .find_map(|key| body.get(key)?.as_array());
    let entries = entries
        .or_else(|| body.as_array())
        .map(Vec::as_slice)
        .unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| {
            let name = entry
                .as_str()
                .or_else(|| NAMES.iter().find_map(|key| entry.get(key)?.as_str()))?;
            let window = WINDOWS.iter().find_map(|path| {
                path.split('.')
                    .try_fold(entry, |value, key| value.get(key))?
                    .as_u64()
            });
            Some(OfferedModel {
                // Google puts the kind before the name, and takes both.
                name: name.strip_prefix("models/").unwrap_or(name).to_owned(),
                context_window: window.filter(|tokens| *tokens > 0),
            })
        })
        .take(MAX_MODELS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_every_make_are_read() {
        let model = |name: &str, context_window| OfferedModel {
            name: name.into(),
            context_window,
        };
        for (body, expected) in [
            (
                json!({ "object": "list", "data": [{ "id": "a", "object": "model" }] }),
                vec![model("a", None)],
            ),
            (
                json!({ "data": [{ "id": "x/y", "context_length": 128_000 }, { "id": "z", "max_model_len": 4096 }] }),
                vec![model("x/y", Some(128_000)), model("z", Some(4096))],
            ),
            (
                json!({ "models": [{ "name": "models/gemini-x", "inputTokenLimit": 1_000_000 }] }),
                vec![model("gemini-x", Some(1_000_000))],
            ),
            (
                json!({ "models": [{ "name": "qwen3:4b", "model": "qwen3:4b" }] }),
                vec![model("qwen3:4b", None)],
            ),
            (
                json!({ "models": [{ "name": "l" }], "data": [{ "id": "l", "meta": { "n_ctx_train": 32768 } }] }),
                vec![model("l", Some(32_768))],
            ),
            (
                json!([{ "id": "t", "context_length": 0 }]),
                vec![model("t", None)],
            ),
            (json!({ "data": [1, null, {}] }), vec![]),
            (json!("nothing"), vec![]),
        ] {
            assert_eq!(read(&body), expected, "{body}");
        }
    }
}
