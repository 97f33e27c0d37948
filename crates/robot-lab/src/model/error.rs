//! Why a model did not answer. Only the kind decides what follows; the message is for people.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ModelErrorKind,
    /// What happened, in lower case, without secrets.
    pub message: String,
    /// How long the provider asked to wait before the next request, whatever the kind.
    pub retry_after: Option<Duration>,
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or may not use this model.
    Auth,
    /// The account has no credit.
    Billing,
    /// The provider does not know this model.
    ModelNotFound,
    /// Too many requests.
    RateLimited {
        /// How long the provider asked to wait.
        retry_after: Option<Duration>,
    },
    /// The provider has trouble of its own (5xx, overloaded).
    Overloaded,
    /// Nothing came in time.
    Timeout,
    /// The conversation does not fit the model.
    ContextLength,
    /// The provider withheld the reply.
    ContentFilter,
    /// The provider refuses the request as it is.
    BadRequest,
    /// The reply could not be understood, or broke off.
    MalformedReply,
    /// The reply was cut, because it repeated itself or the prompt.
    Repetition,
    /// The connection failed.
    Network,
    /// The caller cancelled the request.
    Cancelled,
    /// The request was not sent, or was cut, because the token budget is spent.
    OverBudget,
    /// A model that plays what was written down has no answer to this request.
    OffScript,
}

impl ModelError {
    /// An error of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        let retry_after = match &kind {
            ModelErrorKind::RateLimited { retry_after } => *retry_after,
            _ => None,
        };
        Self {
            kind,
            message: message.into(),
            retry_after,
        }
    }

    /// The same, from a provider that asked to wait so long.
    #[must_use]
    pub fn retry_after(self, asked: Option<Duration>) -> Self {
        Self {
            retry_after: asked,
            ..self
        }
    }
}

impl ModelErrorKind {
    /// The kind in one word, as logs and scripts write it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Billing => "billing",
            Self::ModelNotFound => "model_not_found",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::ContextLength => "context_length",
            Self::ContentFilter => "content_filter",
            Self::BadRequest => "bad_request",
            Self::MalformedReply => "malformed_reply",
            Self::Repetition => "repetition",
            Self::Network => "network",
            Self::Cancelled => "cancelled",
            Self::OverBudget => "over_budget",
            Self::OffScript => "off_script",
        }
    }

    /// Whether asking again cannot help until a person changes something.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Auth | Self::Billing | Self::ModelNotFound | Self::BadRequest | Self::OffScript => true,
            Self::RateLimited { .. }
            | Self::Overloaded
            | Self::Timeout
            | Self::ContextLength
            | Self::ContentFilter
            | Self::MalformedReply
            | Self::Repetition
            | Self::Network
            | Self::Cancelled
            | Self::OverBudget => false,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded
            | Self::Timeout
            | Self::MalformedReply
            | Self::Network => true,
            Self::Auth
            | Self::Billing
            | Self::ModelNotFound
            | Self::BadRequest
            | Self::ContextLength
            | Self::ContentFilter
            | Self::Repetition
            | Self::Cancelled
            | Self::OverBudget
            | Self::OffScript => false,
        }
    }
}
