//! The way to a provider: where requests go, with which headers, and what a refusal says.

use super::exchange::Recorder;
use super::reply::Ended;
use crate::config::ConfigError;
use crate::failure::Reporter;
use crate::protocol::Protocol;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use robot_lab::{ModelError, ModelErrorKind};
use std::time::Duration;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may be silent at least, before the first byte and between two: longer than a local model reads a
/// long prompt for. Robots have shorter deadlines of their own.
const SILENCE: Duration = Duration::from_secs(20 * 60);
/// How long the body of a refusal may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most of a refusal that is read, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;
/// The most of a list of models that is read, in bytes.
const MAX_LIST: usize = 8 * 1024 * 1024;

/// Sends requests to one server.
#[derive(Clone)]
pub(super) struct Connection {
    client: Client,
    headers: HeaderMap,
}

/// An address, without what may be secret in it.
pub(super) fn address(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

impl Connection {
    /// A way with these headers to a server, which may be silent for so long if that is longer than usual.
    pub(super) fn new(
        headers: HeaderMap,
        local: bool,
        silence: Option<Duration>,
    ) -> Result<Self, ConfigError> {
        let mut client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(silence.unwrap_or_default().max(SILENCE))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("robot-lab/", env!("CARGO_PKG_VERSION")))
            .tcp_nodelay(true);
        if local {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| ConfigError::Client(error.to_string()))?;
        Ok(Self { client, headers })
    }

    /// Sends a body and waits for the head of the answer, which is a success.
    pub(super) async fn send(
        &self,
        url: Url,
        body: String,
        reporter: &Reporter,
        recorder: &mut Option<Recorder>,
    ) -> Result<Response, Ended> {
        let request = self.client.post(url).headers(self.headers.clone()).body(body);
        let response = request.send().await.map_err(|error| failure(reporter, &error))?;
        let status = response.status();
        if let Some(recorder) = recorder {
            recorder.status(status.as_u16());
        }
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let body = refusal(response).await;
        if let Some(recorder) = recorder {
            let readable = headers
                .iter()
                .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
            recorder.headers(readable);
            recorder.push(&body);
        }
        let header = |name: &str| headers.get(name)?.to_str().ok();
        let said = String::from_utf8_lossy(&body);
        Err(Ended {
            error: reporter.status(status.as_u16(), header, &said),
            said: Some(said.into_owned()),
            fault: None,
        })
    }
}

/// Reads a text of a provider, such as the list of its models, within this time.
pub(crate) async fn get(
    url: Url,
    protocol: Protocol,
    key: Option<&str>,
    given: &[(String, String)],
    within: Duration,
    reporter: &Reporter,
) -> Result<String, ModelError> {
    let wrong = |error: ConfigError| ModelError::new(ModelErrorKind::BadRequest, error.to_string());
    let local = crate::config::is_local(&url);
    let headers = headers(protocol, key, given).map_err(wrong)?;
    let connection = Connection::new(headers, local, None).map_err(wrong)?;
    let request = connection.client.get(url).headers(connection.headers);
    let read = async {
        let mut response = request.send().await.map_err(|error| failure(reporter, &error))?;
        let status = response.status();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| failure(reporter, &error))?
        {
            let room = MAX_LIST.saturating_sub(body.len());
            body.extend(piece.iter().take(room));
            if body.len() == MAX_LIST {
                break;
            }
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() {
            return Ok(body);
        }
        let header = |name: &str| headers.get(name)?.to_str().ok();
        Err(reporter.status(status.as_u16(), header, &body))
    };
    let late = || {
        reporter.other(
            ModelErrorKind::Timeout,
            &format!("no whole answer within {} s", within.as_secs()),
        )
    };
    tokio::time::timeout(within, read)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// The beginning of a body, as far as it comes in time.
async fn refusal(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let room = MAX_REFUSAL - body.len();
            body.extend(piece.iter().take(room));
            if body.len() == MAX_REFUSAL {
                break;
            }
        }
    };
    // What came until then says enough.
    let _in_time = tokio::time::timeout(REFUSAL_TIMEOUT, read).await;
    body
}

/// All headers of a request. Those of the user replace the others.
pub(super) fn headers(
    protocol: Protocol,
    key: Option<&str>,
    given: &[(String, String)],
) -> Result<HeaderMap, ConfigError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let (name, before) = protocol.key_header();
    let key = key.map(|key| (name.to_owned(), format!("{before}{key}")));
    let fixed = protocol
        .headers()
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    for (name, value) in fixed.chain(key).chain(given.iter().cloned()) {
        let bad = || ConfigError::BadHeader { name: name.clone() };
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(crate::config::is_secret(&name));
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| bad())?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// What went wrong on the way, as an error of ours.
pub(super) fn failure(reporter: &Reporter, error: &reqwest::Error) -> ModelError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let advice = reporter.when_absent();
    let (kind, what) = if error.is_builder() {
        (
            ModelErrorKind::BadRequest,
            "the request cannot be sent".to_owned(),
        )
    } else if error.is_connect() && error.is_timeout() {
        let what = format!("no connection within {} s, {advice}", CONNECT_TIMEOUT.as_secs());
        (ModelErrorKind::Network, what)
    } else if error.is_connect() {
        (ModelErrorKind::Network, format!("no connection, {advice}"))
    } else if error.is_timeout() {
        let what = format!(
            "not a byte in {} s or more, nothing of the reply was used",
            SILENCE.as_secs()
        );
        (ModelErrorKind::Timeout, what)
    } else {
        let what = "the connection broke, nothing of the reply was used";
        (ModelErrorKind::Network, what.to_owned())
    };
    reporter.other(kind, &format!("{what} ({cause})"))
}
