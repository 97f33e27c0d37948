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

/// A provider of OpenAI's chat completions.
const fn chat(name: &'static str, endpoint: &'static str, key_variable: &'static str) -> Provider {
    Provider {
        name,
        adapter: AdapterKind::OpenAI,
        endpoint,
        key_variable,
    }
}

/// All of them. Addresses are those of the library's own table and of the providers' documentation.
const PROVIDERS: [Provider; 11] = [
    chat("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    chat("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    chat(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
    ),
    chat("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    chat("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    chat("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    chat("nebius", "https://api.studio.nebius.ai/v1", "NEBIUS_API_KEY"),
    chat("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    chat("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    chat("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    chat("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
];

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_can_be_used() {
        let names: BTreeSet<_> = known_providers().collect();
        assert_eq!(names.len(), PROVIDERS.len(), "names are unique");
        for provider in &PROVIDERS {
            let base = crate::config::base_url(provider.endpoint).unwrap();
            assert_eq!(base.scheme(), "https", "{}: a key is sent there", provider.name);
            assert!(provider.key_variable.ends_with("_API_KEY"), "{}", provider.name);
            let model = crate::ModelConfig {
                api_key: Some("k".into()),
                ..crate::ModelConfig::new(provider.name, "m")
            };
            assert!(crate::GenaiModel::new(model).is_ok(), "{}", provider.name);
        }
        assert_eq!(key_variable("openrouter"), Some("OPENROUTER_API_KEY"));
        assert_eq!(key_variable("nobody"), None);
    }
}
