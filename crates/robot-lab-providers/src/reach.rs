//! Asks whether anything answers at an address, without a key and without a token.

use crate::config::{ConfigError, base_url, is_local};
use crate::protocol::Protocol;
use std::time::Duration;

/// Why nothing answers.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// The address is none.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No connection, or no answer in time.
    #[error("nothing answers there: {0}")]
    Silent(String),
}

/// Asks the server at a base URL for its models, and answers the HTTP status; any is a sign of life. `within` bounds the
/// whole exchange, of which no body is read.
pub async fn reach(url: &str, within: Duration) -> Result<u16, ReachError> {
    let mut url = base_url(Protocol::Chat, url)?;
    let mut http = reqwest::Client::builder()
        .timeout(within)
        .redirect(reqwest::redirect::Policy::none());
    if is_local(&url) {
        http = http.no_proxy();
    }
    let path = format!("{}models", url.path());
    url.set_path(&path);
    let silent = |error: reqwest::Error| {
        // The innermost cause says most, and has no address with a password in it.
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let why = if error.is_timeout() {
            format!("no answer within {} s", within.as_secs())
        } else {
            cause.to_string()
        };
        ReachError::Silent(why)
    };
    let answer = http
        .build()
        .map_err(|error| ConfigError::Client(error.to_string()))?
        .get(url)
        .send()
        .await
        .map_err(silent)?;
    Ok(answer.status().as_u16())
}
