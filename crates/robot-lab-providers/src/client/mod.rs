//! The client: a model behind HTTP, and the only place that knows the library that speaks it.
//!
//! The library writes no part of a request but the stream options and the output limit, and reads no part of a
//! reply: both are done in `chat`. Its own reading of a stream cannot tell a reply that broke off from one that
//! ended, drops calls that come without an index and invents calls where an index is left out, copies the arguments
//! of a call anew with each of their pieces, and sends arguments that are no JSON encoded twice.

mod providers;
mod stream;
mod task;

pub use providers::{key_variable, known_providers};

use crate::config::{self, ConfigError, ModelConfig};
use crate::{chat, failure::Reporter};
use async_trait::async_trait;
use genai::chat::{ChatOptions, ChatRequest, ReasoningEffort};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use reqwest::header::{HeaderName, HeaderValue};
use robot_lab::{Model, ModelError, ModelId, ModelRequest, ModelStream};
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take. All other waiting is watched by the robot.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The key for servers that need none: the protocol has no form without one.
const NO_KEY: &str = "none";

/// A model behind HTTP, through the `genai` library.
///
/// Each reply is streamed. A tool call is handed on only when the provider has ended its reply: one that breaks off
/// ends in an error, and nothing of its calls is seen. Redirects are not followed, so that a key goes nowhere else.
pub struct GenaiModel {
    id: ModelId,
    client: Client,
    target: ServiceTarget,
    options: ChatOptions,
    reporter: Arc<Reporter>,
}

impl GenaiModel {
    /// A model with this configuration. Nothing is sent yet.
    pub fn new(config: ModelConfig) -> Result<Self, ConfigError> {
        let provider = providers::find(&config.provider)?;
        let model = config.model.trim();
        if model.is_empty() {
            return Err(ConfigError::NoModel);
        }
        let key = config::key(&config)?;
        if key.is_none() && config.base_url.is_none() {
            return Err(ConfigError::NoKey {
                provider: config.provider,
                variable: provider.key_variable,
            });
        }
        let base = config::base_url(config.base_url.as_deref().unwrap_or(provider.endpoint))?;
        let headers = config.headers.iter().map(header).collect::<Result<Vec<_>, _>>()?;
        let secret = |(name, value): &(String, String)| config::is_secret(name).then(|| value.clone());
        let reporter = Reporter::new(
            provider.name,
            key.iter().cloned().chain(headers.iter().filter_map(secret)),
        );
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(base.as_str()),
            auth: AuthData::from_single(key.unwrap_or_else(|| NO_KEY.into())),
            // The adapter is said, never guessed from the name of a model.
            model: ModelIden::new(provider.adapter, model),
        };
        let options = ChatOptions::default()
            .with_capture_usage(true)
            .with_extra_headers(headers)
            // Says nothing to the provider; without it, a name like `m-high` would lose its end to a setting.
            .with_reasoning_effort(ReasoningEffort::Budget(0));
        Ok(Self {
            id: ModelId {
                provider: provider.name.into(),
                name: model.into(),
            },
            client: client(config::is_local(&base))?,
            target,
            options,
            reporter: Arc::new(reporter),
        })
    }
}

/// Says everything but the secrets.
impl std::fmt::Debug for GenaiModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoint = self.target.endpoint.base_url();
        f.debug_struct("GenaiModel")
            .field("id", &self.id)
            .field("endpoint", &endpoint)
            .finish_non_exhaustive()
    }
}

fn client(local: bool) -> Result<Client, ConfigError> {
    let mut http = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("robot-lab/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true);
    if local {
        http = http.no_proxy();
    }
    let http = http
        .build()
        .map_err(|error| ConfigError::Client(error.to_string()))?;
    Client::builder()
        .with_reqwest(http)
        .build()
        .map_err(|error| ConfigError::Client(error.to_string()))
}

/// A header that can be sent. Names are compared without case; the library compares with it, and has one of its own.
fn header((name, value): &(String, String)) -> Result<(String, String), ConfigError> {
    let bad = || ConfigError::BadHeader { name: name.clone() };
    HeaderValue::from_str(value).map_err(|_| bad())?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| bad())?;
    let name = if name == reqwest::header::AUTHORIZATION {
        "Authorization".into()
    } else {
        name.to_string()
    };
    Ok((name, value.clone()))
}

#[async_trait]
impl Model for GenaiModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let frames = Arc::new(stream::Frames::default());
        let mut options = self
            .options
            .clone()
            .with_raw_frame_sink_arc(frames.clone())
            .with_extra_body(chat::body(&self.id.name, &request));
        if let Some(limit) = request.max_output_tokens {
            options = options.with_max_tokens(limit);
        }
        let (client, target, reporter) = (self.client.clone(), self.target.clone(), self.reporter.clone());
        let reply = async move {
            let opened = client
                .exec_chat_stream(target, ChatRequest::default(), Some(&options))
                .await;
            let response = opened.map_err(|error| stream::failure(&reporter, &error))?;
            stream::open(response.stream, frames, reporter).await
        };
        // The library reads on without a pause while bytes are there. In a task of its own it cannot keep whoever
        // waits from looking at the clock.
        task::apart(reply).await
    }
}
