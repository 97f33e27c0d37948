//! The table of providers.

use crate::config::ConfigError;
use crate::protocol::Protocol;

/// One provider.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    /// Its usual address.
    pub(crate) endpoint: &'static str,
    /// The variable that usually holds its key; none where no key is needed.
    pub(crate) key_variable: Option<&'static str>,
    /// Whether the reasoning of earlier replies has to go back as it came.
    pub(crate) wants_reasoning: bool,
}

impl Provider {
    const fn new(
        name: &'static str,
        protocol: Protocol,
        endpoint: &'static str,
        key_variable: &'static str,
    ) -> Self {
        Self {
            name,
            protocol,
            endpoint,
            key_variable: Some(key_variable),
            wants_reasoning: false,
        }
    }

    /// A provider of OpenAI's chat completions.
    const fn chat(name: &'static str, endpoint: &'static str, key_variable: &'static str) -> Self {
        Self::new(name, Protocol::Chat, endpoint, key_variable)
    }

    const fn without_key(self) -> Self {
        Self {
            key_variable: None,
            ..self
        }
    }

    /// It refuses a conversation in which a reply that reasoned and called tools comes back without its reasoning.
    const fn wanting_reasoning(self) -> Self {
        Self {
            wants_reasoning: true,
            ..self
        }
    }
}

/// It serves the models of others, in chat completions with additions of its own.
pub(crate) const OPENROUTER: &str = "openrouter";

/// All of them: the default first, then by name. Each needs no more than a key in a variable.
const PROVIDERS: [Provider; 27] = [
    Provider::chat("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Provider::chat("aihubmix", "https://aihubmix.com/v1", "AIHUBMIX_API_KEY"),
    Provider::chat(
        "aliyun",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "ALIYUN_API_KEY",
    ),
    Provider::new(
        "anthropic",
        Protocol::Messages,
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
    ),
    Provider::chat("atlascloud", "https://api.atlascloud.ai/v1", "ATLASCLOUD_API_KEY"),
    Provider::chat("baidu", "https://qianfan.baidubce.com/v2", "BAIDU_API_KEY"),
    Provider::chat(
        "bigmodel",
        "https://open.bigmodel.cn/api/paas/v4",
        "BIGMODEL_API_KEY",
    ),
    Provider::chat(
        "cohere",
        "https://api.cohere.ai/compatibility/v1",
        "COHERE_API_KEY",
    ),
    Provider::chat("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY").wanting_reasoning(),
    Provider::chat(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
    ),
    Provider::new(
        "gemini",
        Protocol::Gemini,
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
    ),
    Provider::chat("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Provider::chat("kimi", "https://api.moonshot.ai/v1", "KIMI_API_KEY").wanting_reasoning(),
    Provider::chat("mimo", "https://api.xiaomimimo.com/v1", "MIMO_API_KEY").wanting_reasoning(),
    Provider::new(
        "minimax",
        Protocol::Messages,
        "https://api.minimax.io/anthropic/v1",
        "MINIMAX_API_KEY",
    ),
    Provider::chat("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    Provider::chat("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY").wanting_reasoning(),
    Provider::chat("nebius", "https://api.studio.nebius.ai/v1", "NEBIUS_API_KEY"),
    Provider::new("ollama", Protocol::Ollama, "http://localhost:11434", "").without_key(),
    Provider::new(
        "ollama-cloud",
        Protocol::Ollama,
        "https://ollama.com",
        "OLLAMA_API_KEY",
    ),
    Provider::new(
        "openai-responses",
        Protocol::Responses,
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
    ),
    Provider::chat("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Provider::chat(
        "qwen-cloud",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "QWEN_CLOUD_API_KEY",
    ),
    Provider::chat("requesty", "https://router.requesty.ai/v1", "REQUESTY_API_KEY"),
    Provider::chat("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    Provider::chat("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    Provider::chat("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
];

/// The names of the providers that [`HttpModel`](crate::HttpModel) speaks to. The first is the usual one.
pub fn known_providers() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.name)
}

/// The environment variable that usually holds the key of a provider. It is not read here. `None` for a provider that
/// needs no key, and for one that is not known.
pub fn key_variable(provider: &str) -> Option<&'static str> {
    find(provider).ok()?.key_variable
}

/// Where a provider usually is.
pub fn usual_address(provider: &str) -> Option<&'static str> {
    find(provider).ok().map(|provider| provider.endpoint)
}

pub(crate) fn find(name: &str) -> Result<&'static Provider, ConfigError> {
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

    #[test]
    fn every_row_can_be_used() {
        let names: Vec<_> = known_providers().skip(1).collect();
        assert!(
            names.is_sorted() && !names.contains(&"openai"),
            "unique and in order"
        );
        for provider in &PROVIDERS {
            let base = crate::config::base_url(provider.protocol, provider.endpoint).unwrap();
            assert_eq!(
                base.as_str().trim_end_matches('/'),
                provider.endpoint,
                "an address is written as it is used"
            );
            let local = crate::config::is_local(&base);
            assert!(
                local || base.scheme() == "https",
                "{}: a key is sent there",
                provider.name
            );
            assert_eq!(local, provider.key_variable.is_none(), "{}", provider.name);
            let named_so = provider
                .key_variable
                .is_none_or(|name| name.ends_with("_API_KEY"));
            assert!(named_so, "{}", provider.name);
            let model = crate::ModelConfig {
                api_key: Some("k".into()),
                ..crate::ModelConfig::new(provider.name, "m")
            };
            assert!(crate::HttpModel::new(model).is_ok(), "{}", provider.name);
        }
        assert_eq!(key_variable("openrouter"), Some("OPENROUTER_API_KEY"));
        assert_eq!((key_variable("ollama"), key_variable("nobody")), (None, None));
    }
}
