//! A model behind HTTP: it sends a request, and reads the reply in a task of its own.

mod connection;
mod exchange;
mod reply;
mod speaker;
mod task;

pub(crate) use connection::get;
pub use exchange::{Exchange, ExchangeObserver};
pub(crate) use reply::Ended;

use crate::config::{self, ConfigError, ModelConfig};
use crate::failure::Reporter;
use crate::protocol::{Learnt, Options, Protocol};
use crate::providers::{self, Provider};
use crate::record::Playback;
use async_trait::async_trait;
use connection::Connection;
use exchange::Watched;
use reqwest::Url;
use robot_lab::model::ModelTimeouts;
use robot_lab::{Model, ModelError, ModelId, ModelRequest, ModelStream};
use speaker::Speaker;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The context that Ollama is asked for when nobody says how long it should be. By itself it takes 4096 tokens on many
/// machines, which the tools and the first files fill; this is what most models can do and most machines can hold.
pub(crate) const NUM_CTX: u32 = 32_768;

/// How long a model on this machine may take until its first content: a long prompt is read at some 20 tokens a second
/// where there is no graphics card.
const LOCAL_FIRST: Duration = Duration::from_secs(15 * 60);

/// A model behind HTTP.
///
/// Each reply is streamed. A tool call is handed on only when the provider has ended its reply: one that breaks off
/// ends in an error, and nothing of its calls is seen. Redirects are not followed, so that a key goes nowhere else.
///
/// What a server does not take is left out or put otherwise, once, and the request is sent again at once: a parameter
/// that it refuses, reasoning that it wants back or does not want, a stream that loses tool calls. The model remembers
/// what helped.
///
/// A connection is given up after 10 seconds, and an answer after 20 minutes without a byte, or after
/// [`silence`](ModelConfig::silence) if that is longer. Whoever wants to wait
/// less drops the stream, which ends the request.
pub struct HttpModel {
    id: ModelId,
    timeouts: Option<ModelTimeouts>,
    speaker: Arc<Speaker>,
}

impl HttpModel {
    /// A model with this configuration. Nothing is sent yet.
    pub fn new(config: ModelConfig) -> Result<Self, ConfigError> {
        let provider = providers::find(&config.provider)?;
        let model = config.model.trim();
        if model.is_empty() {
            return Err(ConfigError::NoModel);
        }
        let key = config::key(&config)?;
        if let (Some(variable), None, None) = (provider.key_variable, &key, &config.base_url) {
            return Err(ConfigError::NoKey {
                provider: config.provider,
                variable,
            });
        }
        let given = config.base_url.as_deref().unwrap_or(provider.endpoint);
        let protocol = match provider.protocol {
            Protocol::Chat if config::leads_to_responses(given) => Protocol::Responses,
            usual => usual,
        };
        let base = config::base_url(protocol, given)?;
        let headers = connection::headers(protocol, key.as_deref(), &config.headers)?;
        let secret = |(name, value): &(String, String)| config::is_secret(name).then(|| value.clone());
        let secrets = key.into_iter().chain(config.headers.iter().filter_map(secret));
        let reporter = Reporter::new(provider.name, secrets).with_advice(advice(provider, &base, model));
        let options = Options {
            num_ctx: config.num_ctx.unwrap_or(NUM_CTX),
            temperature: config.temperature,
            max_output_tokens: config.max_output_tokens,
            effort: config.reasoning,
            other_thinking: false,
            echo: protocol != Protocol::Chat || provider.wants_reasoning,
            stream: true,
            ceiling: None,
            is_openrouter: provider.name == providers::OPENROUTER,
        };
        let id = ModelId {
            provider: provider.name.into(),
            name: model.into(),
        };
        let local = config::is_local(&base);
        let speaker = Speaker {
            model: model.into(),
            id: id.to_string(),
            protocol,
            options,
            connection: Connection::new(headers, local, config.silence)?,
            base,
            reporter: Arc::new(reporter),
            watched: Watched::default(),
            learnt: Mutex::default(),
            playback: None,
        };
        let slow = ModelTimeouts {
            first_content: LOCAL_FIRST,
            ..ModelTimeouts::default()
        };
        let timeouts = config.silence.map(ModelTimeouts::silent_for);
        Ok(Self {
            id,
            timeouts: timeouts.or(local.then_some(slow)),
            speaker: Arc::new(speaker),
        })
    }

    /// Shows every request and its answer to `observer`.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn ExchangeObserver>) -> Self {
        self.with(|speaker| speaker.watched = Watched::by(observer))
    }

    /// Knows from the beginning what an earlier model of this configuration found that its server does not take: each
    /// `change` of [`ModelEvent::Adapted`](robot_lab::ModelEvent::Adapted). One that nobody understands is passed over.
    #[must_use]
    pub fn having_learnt<'a>(self, changes: impl IntoIterator<Item = &'a str>) -> Self {
        let learnt = Learnt::read(changes);
        self.with(|speaker| speaker.learnt = Mutex::new(learnt))
    }

    /// Plays a recording: nothing is sent. Where several models were recorded, all of them are given the same one.
    #[must_use]
    pub fn replaying(self, playback: Playback) -> Self {
        self.with(|speaker| speaker.playback = Some(playback))
    }

    /// Requests that are under way stay as they are.
    fn with(mut self, change: impl FnOnce(&mut Speaker)) -> Self {
        change(Arc::make_mut(&mut self.speaker));
        self
    }
}

/// What to do when a server on this machine is not there, or has not got the model.
fn advice(provider: &Provider, base: &Url, model: &str) -> Option<(String, String)> {
    (provider.protocol == Protocol::Ollama && config::is_local(base)).then(|| {
        (
            "start it with `ollama serve`, or say where it is with the base URL".into(),
            format!("get it with `ollama pull {model}`"),
        )
    })
}

/// Says everything but the secrets.
impl std::fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpModel")
            .field("id", &self.id)
            .field("endpoint", &self.speaker.address())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Model for HttpModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        // A reply may have as many bytes as come without a pause. In a task of its own, reading them cannot keep
        // whoever waits from looking at the clock.
        task::apart(Arc::clone(&self.speaker).speak(request)).await
    }

    fn timeouts(&self) -> Option<ModelTimeouts> {
        self.timeouts
    }

    fn is_next(&self) -> bool {
        let playback = self.speaker.playback.as_ref();
        playback.is_none_or(|playback| playback.is_next(&self.speaker.id))
    }
}
