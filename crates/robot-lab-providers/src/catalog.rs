//! What is known of models before they are asked: their prices, and how much they can read and write. The figures are
//! in `models.yaml`, with their dates.

use crate::config::{self, ModelConfig};
use crate::http::NUM_CTX;
use crate::protocol::Protocol;
use crate::providers::{self, Provider};
use reqwest::Url;
use robot_lab::{ModelFacts, Price};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const MODELS: &str = include_str!("models.yaml");

/// A provider in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    /// Where the provider has its own figures, for whoever brings the file up to date.
    #[cfg_attr(not(test), expect(dead_code, reason = "for people, and for the test"))]
    page: String,
    as_of: String,
    models: BTreeMap<String, Model>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    price: String,
    window: u64,
    max_output: Option<u64>,
    long: Option<Long>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    above: u64,
    price: String,
}

/// Empty should the file be broken, which a test forbids.
static LISTED: LazyLock<BTreeMap<String, Listed>> =
    LazyLock::new(|| serde_saphyr::from_str(MODELS).unwrap_or_default());

impl Model {
    fn price(&self) -> Option<Price> {
        let long = match &self.long {
            Some(long) => Some((long.above, long.price.parse::<Price>().ok()?.rates)),
            None => None,
        };
        Some(Price {
            long,
            ..self.price.parse().ok()?
        })
    }
}

/// What is known of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its price and its context.
    pub facts: ModelFacts,
    /// The month that the price was stated for, such as `2026-05`; `None` where it is not from the table.
    pub as_of: Option<&'static str>,
}

/// What is known of the model that a configuration names. One that is served on this machine is free; at an address
/// that is not its provider's own, nobody knows what it costs.
#[must_use]
pub fn known_model(config: &ModelConfig) -> Known {
    let Ok(provider) = providers::find(&config.provider) else {
        return Known::default();
    };
    let base = config.base_url.as_deref();
    let base = base.and_then(|given| config::base_url(provider.protocol, given).ok());
    let mut known = Known::default();
    match &base {
        Some(base) if config::is_local(base) => known.facts.price = Some(Price::FREE),
        Some(base) if !is_usual(base, provider) => {}
        _ if provider.key_variable.is_none() => known.facts.price = Some(Price::FREE),
        _ => {
            if let Some((listed, model)) = find(provider.name, config.model.trim()) {
                known.as_of = Some(&listed.as_of);
                known.facts = ModelFacts {
                    price: model.price(),
                    context_window: Some(model.window),
                    max_output: model.max_output,
                };
            }
        }
    }
    if provider.protocol == Protocol::Ollama {
        known.facts.context_window = Some(config.num_ctx.unwrap_or(NUM_CTX).into());
    }
    known
}

fn is_usual(base: &Url, provider: &Provider) -> bool {
    config::base_url(provider.protocol, provider.endpoint).is_ok_and(|usual| usual.host() == base.host())
}

fn find(provider: &str, name: &str) -> Option<(&'static Listed, &'static Model)> {
    // The same models by another protocol.
    let provider = match provider {
        "openai-responses" => "openai",
        other => other,
    };
    let listed = LISTED.get(provider)?;
    let models = listed.models.iter();
    let found = models.filter(|(known, _)| stands_for(known, name));
    let (_, model) = found.max_by_key(|(known, _)| known.len())?;
    Some((listed, model))
}

/// Whether a name is the known one, or a version of it: with a date, or as a preview.
fn stands_for(known: &str, name: &str) -> bool {
    let Some(version) = name.strip_prefix(known) else {
        return false;
    };
    let Some(version) = version.strip_prefix('-') else {
        return version.is_empty();
    };
    let dated = |text: &str| {
        let mut groups = text.split('-');
        let first = groups.next().unwrap_or_default();
        let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
        first.len() >= 4 && digits(first) && groups.all(|group| group.len() == 2 && digits(group))
    };
    matches!(version, "preview" | "latest") || dated(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab::{Cost, Usage};

    fn known(provider: &str, model: &str, base_url: Option<&str>) -> Known {
        known_model(&ModelConfig {
            base_url: base_url.map(str::to_owned),
            ..ModelConfig::new(provider, model)
        })
    }

    #[test]
    fn a_model_costs_the_same_by_either_protocol_of_its_provider() {
        let by_responses = known("openai-responses", "gpt-5.5", None);
        assert_eq!(by_responses, known("openai", "gpt-5.5", None));
        assert!(by_responses.facts.price.is_some());
    }

    #[test]
    fn every_entry_of_the_file_can_be_used() {
        let listed: BTreeMap<String, Listed> = serde_saphyr::from_str(MODELS).unwrap();
        assert!(listed.len() >= 7);
        for (provider, listed) in &listed {
            assert!(providers::find(provider).is_ok(), "{provider}");
            assert!(listed.page.starts_with("https://"), "{provider}");
            let (year, month) = listed.as_of.split_once('-').unwrap();
            let month: u8 = month.parse().unwrap();
            assert!(
                year.parse::<u16>().unwrap() >= 2025 && (1..=12).contains(&month),
                "{provider}"
            );
            for (name, model) in &listed.models {
                let price = model
                    .price()
                    .unwrap_or_else(|| panic!("{provider}/{name}: {model:?}"));
                let rates = [Some(price.rates), price.long.map(|(_, rates)| rates)];
                for rates in rates.into_iter().flatten() {
                    let in_order = Cost::ZERO < rates.cached
                        && rates.cached <= rates.input
                        && rates.input <= rates.write
                        && rates.input < rates.output;
                    assert!(in_order, "{provider}/{name}: {rates:?}");
                }
                let dearer = price.long.is_none_or(|(above, long)| {
                    above < model.window && long.input > price.rates.input && long.output > price.rates.output
                });
                assert!(
                    dearer && model.max_output.is_none_or(|most| most < model.window),
                    "{name}"
                );
                assert_eq!(
                    known(provider, name, None).facts.price,
                    Some(price),
                    "{provider}/{name}"
                );
            }
        }
    }

    #[test]
    fn a_name_stands_for_its_versions_and_for_no_other_model() {
        let price = |name| known("openai", name, None).facts.price;
        assert!(price("gpt-5").is_some());
        assert_eq!(price("gpt-5-2025-08-07"), price("gpt-5"));
        assert_ne!(price("gpt-5-mini-2025-08-07"), price("gpt-5"));
        for name in [
            "gpt-5-turbo",
            "gpt-5-9",
            "gpt-5.9",
            "gpt-55",
            "xgpt-5",
            "GPT-5",
            "",
            "gpt-5-",
        ] {
            assert_eq!(price(name), None, "{name}");
        }
        let claude = known("anthropic", "claude-haiku-4-5-20251001", None);
        assert_eq!(
            (claude.as_of, claude.facts.context_window),
            (Some("2026-10"), Some(200_000))
        );
        let usage = Usage {
            input: 100_000,
            cached_input: 90_000,
            output: 1_000,
            ..Usage::default()
        };
        assert_eq!(claude.facts.price.unwrap().of(usage), "0.024".parse().unwrap());
    }

    #[test]
    fn where_it_is_served_says_whether_it_costs() {
        let price = |provider, base_url| known(provider, "gpt-5", base_url).facts.price;
        for local in [
            "http://localhost:8080",
            "http://127.0.0.1:1/v1",
            "http://[::1]:8080",
        ] {
            assert_eq!(price("openai", Some(local)), Some(Price::FREE), "{local}");
        }
        assert_eq!(price("ollama", None), Some(Price::FREE));
        assert_eq!(price("ollama", Some("http://box.example:11434")), None);
        assert_eq!(price("openai", Some("https://gateway.example/v1")), None);
        assert_eq!(
            price("openai", Some("https://api.openai.com")),
            price("openai", None)
        );
        assert_eq!((price("openrouter", None), price("nobody", None)), (None, None));
        let ctx = known_model(&ModelConfig {
            num_ctx: Some(8_192),
            ..ModelConfig::new("ollama", "qwen3.6")
        });
        assert_eq!(ctx.facts.context_window, Some(8_192));
        assert_eq!(
            known("ollama", "qwen3.6", None).facts.context_window,
            Some(32_768)
        );
    }
}
