//! What a user says about a model: which one, where, and with which key.

use crate::effort::Effort;
use crate::protocol::Protocol;
use reqwest::Url;
use std::time::Duration;

/// Which model to use, and how to reach it.
///
/// ```
/// use robot_lab_providers::{HttpModel, ModelConfig};
///
/// let config = ModelConfig {
///     base_url: Some("http://127.0.0.1:8080".into()),
///     ..ModelConfig::new("openai", "qwen2.5-coder")
/// };
/// let model = HttpModel::new(config)?;
/// # Ok::<(), robot_lab_providers::ConfigError>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct ModelConfig {
    /// The provider, one of [`known_providers`](crate::known_providers): it decides which protocol is spoken.
    /// `openai` is also every server that is compatible with it, at a `base_url`.
    pub provider: String,
    /// The model's name, exactly as the provider knows it.
    pub model: String,
    /// Where the provider is, if not at its usual address.
    ///
    /// A URL of `http` or `https`, with or without a slash at its end. The path of the endpoint itself is understood
    /// too, and a version that the protocol needs is added where it is missing: for `openai`,
    /// `http://localhost:8080`, `http://localhost:8080/v1` and `http://localhost:8080/v1/chat/completions` are the
    /// same, and one that ends in `/responses` is spoken to in responses; for `anthropic`, so are `http://h/x` and `http://h/x/v1`; for `gemini`, `http://h` and `http://h/v1beta`;
    /// for `ollama`, `http://h`, `http://h/api` and `http://h/v1`. Any other path, and a query, is kept as it is.
    pub base_url: Option<String>,
    /// The key. It is required at the usual address, but for `ollama`; a server of one's own often needs none.
    pub api_key: Option<String>,
    /// More headers, sent with each request. They replace the client's own of the same name.
    pub headers: Vec<(String, String)>,
    /// The length of the context to ask for, in tokens, where the protocol lets a client choose: only Ollama's does.
    /// 32 768 when left out.
    pub num_ctx: Option<u32>,
    /// How much chance there is in what the model says, mostly from 0 to 2; the model's own choice when left out. A
    /// model that thinks may take none.
    pub temperature: Option<f64>,
    /// The most tokens of a reply, for requests that say nothing of it; the provider's own limit when left out.
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks; its own choice when left out.
    pub reasoning: Option<Effort>,
    /// How long the model may say nothing, before the first piece of a reply and between two. When left out it is 120 s
    /// between two, and 300 s before the first; or 900 s at an address on this machine, where a long prompt is read
    /// slowly.
    pub silence: Option<Duration>,
}

impl ModelConfig {
    /// A model at the usual address of its provider, as yet without a key.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            ..Self::default()
        }
    }
}

/// Says everything but the secrets.
impl std::fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ModelConfig")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "[redacted]"))
            .field("headers", &headers)
            .field("num_ctx", &self.num_ctx)
            .field("temperature", &self.temperature)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("reasoning", &self.reasoning)
            .field("silence", &self.silence)
            .finish()
    }
}

/// A [`ModelConfig`] that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The provider has no entry in the table.
    #[error("there is no provider {name:?}; use one of: {known}")]
    UnknownProvider {
        /// What was asked for.
        name: String,
        /// The providers there are.
        known: String,
    },
    /// The name of the model is empty.
    #[error("no model is named; name one that the provider has")]
    NoModel,
    /// The base URL is none.
    #[error("the base URL {url:?} cannot be used: {why}; write it like http://localhost:8080/v1")]
    BaseUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no key, and the provider wants one.
    #[error("there is no key for {provider}; set {variable}, or a base URL of a server that needs none")]
    NoKey {
        /// The provider.
        provider: String,
        /// The variable that usually holds its key.
        variable: &'static str,
    },
    /// The key has characters that no key has.
    #[error("the key for {provider} has spaces or other characters that no key has; copy it again")]
    BadKey {
        /// The provider.
        provider: String,
    },
    /// A header cannot be sent.
    #[error("the header {name:?} cannot be sent; correct its name or its value")]
    BadHeader {
        /// Its name.
        name: String,
    },
    /// No client could be made.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// The address that requests are resolved against: it ends in a slash.
pub(crate) fn base_url(protocol: Protocol, given: &str) -> Result<Url, ConfigError> {
    let bad = |why: String| ConfigError::BaseUrl {
        url: given.into(),
        why,
    };
    let mut url = Url::parse(given.trim()).map_err(|error| bad(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it does not begin with http:// or https://".into()));
    }
    url.set_path(&protocol.base_path(url.path()));
    url.set_fragment(None);
    Ok(url)
}

/// Whether an address is that of responses, written out.
pub(crate) fn leads_to_responses(given: &str) -> bool {
    let path = given.trim().split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').ends_with("/responses")
}

/// The host of a base URL that holds a user, a password, or a parameter that is named like a secret: nothing to write
/// down.
#[must_use]
pub fn host_of_secret(base_url: &str) -> Option<String> {
    let url = Url::parse(base_url.trim()).ok()?;
    let named = url.query_pairs().any(|(name, _)| is_secret(&name));
    let holds = named || !url.username().is_empty() || url.password().is_some();
    holds.then(|| url.host_str().unwrap_or_default().to_owned())
}

/// Whether an address is on this machine, where no proxy belongs in between.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<std::net::IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|ip| ip.is_loopback())
}

/// The key as it can be sent: `None` where there is none.
pub(crate) fn key(config: &ModelConfig) -> Result<Option<String>, ConfigError> {
    match config.api_key.as_deref().map(str::trim) {
        None | Some("") => Ok(None),
        Some(key) if key.chars().all(|c| c.is_ascii_graphic()) => Ok(Some(key.into())),
        Some(_) => Err(ConfigError::BadKey {
            provider: config.provider.clone(),
        }),
    }
}

/// Whether a header or a parameter of this name is likely to hold a secret.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_as_users_write_them() {
        for (given, expected) in [
            ("http://localhost:8080", "http://localhost:8080/v1/"),
            (" http://localhost:8080/ ", "http://localhost:8080/v1/"),
            ("http://localhost:8080/v1", "http://localhost:8080/v1/"),
            ("http://localhost:8080/v1//", "http://localhost:8080/v1/"),
            (
                "http://localhost:8080/v1/chat/completions",
                "http://localhost:8080/v1/",
            ),
            (
                "http://localhost:8080/chat/completions/",
                "http://localhost:8080/v1/",
            ),
            ("https://host/api/v1", "https://host/api/v1/"),
            ("https://host/v1beta/openai/", "https://host/v1beta/openai/"),
            (
                "https://host/deployment?api-version=1#x",
                "https://host/deployment/?api-version=1",
            ),
        ] {
            assert_eq!(
                base_url(Protocol::Chat, given).unwrap().as_str(),
                expected,
                "{given}"
            );
        }
        for wrong in ["", "localhost:8080", "host/v1", "/v1", "ftp://host", "http://"] {
            assert!(
                matches!(base_url(Protocol::Chat, wrong), Err(ConfigError::BaseUrl { .. })),
                "{wrong}"
            );
        }
    }

    #[test]
    fn this_machine_is_known() {
        for (url, local) in [
            ("http://localhost:1", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://192.168.0.1", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(is_local(&base_url(Protocol::Chat, url).unwrap()), local, "{url}");
        }
    }

    #[test]
    fn keys_are_trimmed_and_checked_and_never_shown() {
        let with = |key: &str| ModelConfig {
            api_key: Some(key.into()),
            ..ModelConfig::new("openai", "m")
        };
        assert_eq!(key(&with(" sk-1\n")), Ok(Some("sk-1".into())));
        assert_eq!(key(&with(" ")), Ok(None));
        assert!(key(&with("sk 1")).is_err());
        let config = ModelConfig {
            headers: vec![("x-key".into(), "hush".into())],
            ..with("sk-1")
        };
        let shown = format!("{config:?}");
        assert!(
            !shown.contains("sk-1") && !shown.contains("hush") && shown.contains("x-key"),
            "{shown}"
        );
    }
}
