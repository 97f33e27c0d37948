//! A model behind HTTP: it sends a request, and reads the reply in a task of its own.

mod connection;
mod exchange;
mod reply;
mod task;

pub(crate) use connection::get;
pub use exchange::{Exchange, ExchangeObserver};

use crate::config::{self, ConfigError, ModelConfig};
use crate::failure::Reporter;
use crate::protocol::{Options, Protocol};
use crate::providers::{self, Provider};
use crate::record::{Playback, Recording};
use async_trait::async_trait;
use connection::Connection;
use exchange::Watched;
use reqwest::Url;
use robot_lab::{Model, ModelError, ModelId, ModelRequest, ModelStream};
use std::sync::Arc;

/// The context that Ollama is asked for when nobody says how long it should be. By itself it takes 4096 tokens on many
/// machines, which the tools and the first files fill; this is what most models can do and most machines can hold.
const NUM_CTX: u32 = 32_768;

/// A model behind HTTP.
///
/// Each reply is streamed. A tool call is handed on only when the provider has ended its reply: one that breaks off
/// ends in an error, and nothing of its calls is seen. Redirects are not followed, so that a key goes nowhere else.
///
/// A connection is given up after 10 seconds, and an answer after 15 minutes without a byte. Whoever wants to wait
/// less drops the stream, which ends the request.
pub struct HttpModel {
    id: ModelId,
    protocol: Protocol,
    options: Options,
    connection: Connection,
    reporter: Arc<Reporter>,
    watched: Watched,
    /// A recording that answers in place of the provider.
    playback: Option<Playback>,
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
        let base = config::base_url(
            provider.protocol,
            config.base_url.as_deref().unwrap_or(provider.endpoint),
        )?;
        let headers = connection::headers(provider.protocol, key.as_deref(), &config.headers)?;
        let secret = |(name, value): &(String, String)| config::is_secret(name).then(|| value.clone());
        let secrets = key.into_iter().chain(config.headers.iter().filter_map(secret));
        let reporter = Reporter::new(provider.name, secrets).with_advice(advice(provider, &base, model));
        Ok(Self {
            id: ModelId {
                provider: provider.name.into(),
                name: model.into(),
            },
            protocol: provider.protocol,
            options: Options {
                num_ctx: config.num_ctx.unwrap_or(NUM_CTX),
                echo_reasoning: provider.wants_reasoning,
            },
            connection: Connection::new(
                provider.protocol.endpoint(&base, model),
                headers,
                config::is_local(&base),
            )?,
            reporter: Arc::new(reporter),
            watched: Watched::default(),
            playback: None,
        })
    }

    /// Shows every request and its answer to `observer`.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn ExchangeObserver>) -> Self {
        Self {
            watched: Watched::by(observer),
            ..self
        }
    }
}

impl HttpModel {
    /// Plays a recording: nothing is sent.
    #[must_use]
    pub fn replaying(self, recording: Recording) -> Self {
        Self {
            playback: Some(Playback::new(recording)),
            ..self
        }
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
            .field("endpoint", &self.connection.address())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Model for HttpModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let body = self
            .protocol
            .body(&self.id.name, &request, self.options)
            .to_string();
        let decoder = self.protocol.decoder(&request, self.options);
        if let Some(playback) = &self.playback {
            return playback.answer(&body, decoder, &self.reporter);
        }
        let recorder = self
            .watched
            .begin(&self.connection.address(), &body, &self.reporter);
        let (connection, reporter) = (self.connection.clone(), self.reporter.clone());
        // A reply may have as many bytes as come without a pause. In a task of its own, reading them cannot keep
        // whoever waits from looking at the clock.
        task::apart(async move {
            let mut recorder = recorder;
            let response = connection.send(body, &reporter, &mut recorder).await?;
            reply::open(response, decoder, reporter, recorder).await
        })
        .await
    }
}
