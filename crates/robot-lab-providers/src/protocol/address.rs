//! Where each protocol is spoken, and in which header it wants the key.

use super::Protocol;
use reqwest::Url;

impl Protocol {
    /// The path that requests are resolved against, from the path as a user wrote it. It ends in a slash.
    pub(crate) fn base_path(self, given: &str) -> String {
        let path = given.trim_end_matches('/');
        let path = match self {
            Self::Chat => without(path, &["/chat/completions"]),
            Self::Responses => without(path, &["/responses"]),
            Self::Messages => without(path, &["/messages"]),
            Self::Gemini => without(path, &["/models"]),
            // Many keep the address of the part that speaks OpenAI's protocol.
            Self::Ollama => without(path, &["/api/chat", "/api", "/v1"]),
        };
        match self {
            Self::Chat | Self::Responses if path.is_empty() => "/v1/".into(),
            Self::Messages if !ends_in_version(path) => format!("{path}/v1/"),
            Self::Gemini if !ends_in_version(path) => format!("{path}/v1beta/"),
            _ => format!("{path}/"),
        }
    }

    /// Where a request goes. A query of the base stays.
    pub(crate) fn endpoint(self, base: &Url, model: &str, stream: bool) -> Url {
        let mut url = base.clone();
        let path = base.path();
        match self {
            Self::Chat => url.set_path(&format!("{path}chat/completions")),
            Self::Responses => url.set_path(&format!("{path}responses")),
            Self::Messages => url.set_path(&format!("{path}messages")),
            Self::Ollama => url.set_path(&format!("{path}api/chat")),
            Self::Gemini => {
                // A name with a slash says itself what it is, such as `models/` or `tunedModels/`.
                let kind = if model.contains('/') { "" } else { "models/" };
                let verb = if stream {
                    "streamGenerateContent"
                } else {
                    "generateContent"
                };
                let name = format!("{kind}{model}:{verb}");
                if let Ok(mut segments) = url.path_segments_mut() {
                    segments.pop_if_empty().extend(name.split('/'));
                }
                if stream {
                    url.query_pairs_mut().append_pair("alt", "sse");
                }
            }
        }
        url
    }

    /// The name of the header with the key, and what stands before the key in it.
    pub(crate) fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat | Self::Responses | Self::Ollama => ("authorization", "Bearer "),
            Self::Messages => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }

    /// Headers that every request needs.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Messages => &[("anthropic-version", "2023-06-01")],
            Self::Chat | Self::Responses | Self::Gemini | Self::Ollama => &[],
        }
    }
}

/// The path without the first of these ends that it has.
fn without<'a>(path: &'a str, ends: &[&str]) -> &'a str {
    let found = ends.iter().find_map(|end| path.strip_suffix(end));
    found.unwrap_or(path).trim_end_matches('/')
}

/// Whether the last part of a path names a version, such as `v1` or `v1beta`.
fn ends_in_version(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(protocol: Protocol, base: &str, model: &str) -> String {
        let base = crate::config::base_url(protocol, base).unwrap();
        protocol.endpoint(&base, model, true).to_string()
    }

    #[test]
    fn each_way_to_write_an_address_leads_to_the_same_place() {
        use Protocol::{Chat, Gemini, Messages, Ollama, Responses};
        for (protocol, bases, expected) in [
            (
                Chat,
                &[
                    "http://h",
                    "http://h/",
                    "http://h/v1",
                    "http://h/v1/chat/completions/",
                ][..],
                "http://h/v1/chat/completions",
            ),
            (
                Responses,
                &["http://h", "http://h/", "http://h/v1", "http://h/v1/responses/"],
                "http://h/v1/responses",
            ),
            (
                Messages,
                &[
                    "http://h",
                    "http://h/",
                    "http://h/v1",
                    "http://h/v1/",
                    "http://h/v1/messages",
                ],
                "http://h/v1/messages",
            ),
            (
                Messages,
                &[
                    "http://h/anthropic",
                    "http://h/anthropic/v1/",
                    "http://h/anthropic/v1/messages",
                ],
                "http://h/anthropic/v1/messages",
            ),
            (
                Gemini,
                &[
                    "http://h",
                    "http://h/",
                    "http://h/v1beta",
                    "http://h/v1beta/models/",
                ],
                "http://h/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            (
                Gemini,
                &["http://h/v1?region=eu"],
                "http://h/v1/models/m:streamGenerateContent?region=eu&alt=sse",
            ),
            (
                Ollama,
                &[
                    "http://h:1",
                    "http://h:1/",
                    "http://h:1/v1",
                    "http://h:1/v1/",
                    "http://h:1/api",
                    "http://h:1/api/chat",
                ],
                "http://h:1/api/chat",
            ),
            (
                Ollama,
                &["http://h/ollama", "http://h/ollama/v1/"],
                "http://h/ollama/api/chat",
            ),
        ] {
            for base in bases {
                assert_eq!(endpoint(protocol, base, "m"), expected, "{base}");
            }
        }
    }

    #[test]
    fn a_name_of_a_model_is_no_path_out_of_the_address() {
        let name = |model: &str| endpoint(Protocol::Gemini, "http://h", model);
        assert_eq!(
            name("models/m"),
            "http://h/v1beta/models/m:streamGenerateContent?alt=sse"
        );
        assert_eq!(
            name("tunedModels/m"),
            "http://h/v1beta/tunedModels/m:streamGenerateContent?alt=sse"
        );
        for model in ["m?x#y", "../../m", "a b"] {
            let url = name(model);
            assert!(
                url.starts_with("http://h/v1beta/") && url.ends_with(":streamGenerateContent?alt=sse"),
                "{url}"
            );
        }
    }
}
