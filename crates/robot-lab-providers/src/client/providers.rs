//! The table of providers.

use crate::config::ConfigError;
use genai::adapter::AdapterKind;

/// One provider.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: &'static str,
    /// How the library speaks to it.
    pub(super) adapter: AdapterKind,
    /// Its usual address.
    pub(super) endpoint: &'static str,
    /// The variable that usually holds its key.
    pub(super) key_variable: &'static str,
}

/// All of them.
const PROVIDERS: [Provider; 1] = [Provider {
    name: "openai",
    adapter: AdapterKind::OpenAI,
    endpoint: "https://api.openai.com/v1",
    key_variable: "OPENAI_API_KEY",
}];

/// The names of the providers that [`GenaiModel`](crate::GenaiModel) speaks to.
pub fn known_providers() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.name)
}

/// The environment variable that usually holds the key of a provider. It is not read here.
pub fn key_variable(provider: &str) -> Option<&'static str> {
    find(provider).ok().map(|provider| provider.key_variable)
}

pub(super) fn find(name: &str) -> Result<&'static Provider, ConfigError> {
    PROVIDERS
        .iter()
        .find(|provider| provider.name == name)
        .ok_or_else(|| ConfigError::UnknownProvider {
            name: name.into(),
            known: known_providers().collect::<Vec<_>>().join(", "),
        })
}
