//! Turns what a provider says about a failure into a kind and a short message without secrets.

use crate::protocol::Fault;
use crate::retry_after;
use robot_lab::{ModelError, ModelErrorKind as Kind};
use serde_json::Value;
use std::time::Duration;

/// The longest message, in characters.
const MAX_MESSAGE: usize = 300;
/// By how many minutes the clock of this machine may differ from a server's without being worth a word.
const MAX_SKEW_MINUTES: u64 = 5;
/// Shorter secrets are not worth hiding: they would blank out ordinary words.
const MIN_SECRET: usize = 6;

/// Speaks about the failures of one provider.
#[derive(Clone)]
pub(crate) struct Reporter {
    provider: String,
    secrets: Vec<String>,
    /// What to do when the server is not there.
    when_absent: String,
    /// What to do when it does not know the model.
    when_unknown: String,
}

impl Reporter {
    /// A reporter that never repeats any of these secrets.
    pub(crate) fn new(provider: &str, secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= MIN_SECRET)
            .collect();
        // A secret that holds another one goes first, so that nothing of it remains.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self {
            provider: provider.into(),
            secrets,
            when_absent: "check the address and that the server runs".into(),
            when_unknown: "check its name and the base URL".into(),
        }
    }

    /// With other advice for when the server is not there, and for when it does not know the model.
    pub(crate) fn with_advice(self, advice: Option<(String, String)>) -> Self {
        match advice {
            None => self,
            Some((when_absent, when_unknown)) => Self {
                when_absent,
                when_unknown,
                ..self
            },
        }
    }

    /// What to do when the server is not there.
    pub(crate) fn when_absent(&self) -> &str {
        &self.when_absent
    }

    /// The text without secrets, also as they stand in JSON.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            let quoted = Value::from(secret.as_str()).to_string();
            for form in [secret.as_str(), quoted.trim_matches('"')] {
                if text.contains(form) {
                    text = text.replace(form, "[redacted]");
                }
            }
        }
        text
    }

    /// An answer with a status that is no success.
    pub(crate) fn status<'a>(
        &self,
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &str,
    ) -> ModelError {
        let complaint = Complaint::read(body);
        let kind = kind(Some(status), &complaint);
        let asked = retry_after::asked(&header).or(complaint.retry_after);
        let (kind, asked) = match kind {
            Kind::RateLimited { .. } => {
                let asked = asked
                    .or_else(|| retry_after::limits(&header))
                    .or_else(|| retry_after::said(&header, &complaint.message));
                (Kind::RateLimited { retry_after: asked }, asked)
            }
            other => (other, asked),
        };
        let skewed = match &kind {
            Kind::Auth => retry_after::skew(&header).and_then(skewed).unwrap_or_default(),
            _ => String::new(),
        };
        let said = match (complaint.message.is_empty(), header("location")) {
            (_, Some(location)) if (300..400).contains(&status) => format!("it points to {location}"),
            (true, _) => "no reason was given".into(),
            (false, _) => complaint.message,
        };
        self.error(kind, &format!("({status}{skewed}): {said}"))
            .retry_after(asked)
    }

    /// A reply that came, and is of no use.
    pub(crate) fn fault(&self, fault: Fault) -> ModelError {
        match fault {
            Fault::Reported(body) => {
                let complaint = Complaint::of(&body);
                let said = if complaint.message.is_empty() {
                    "no reason was given"
                } else {
                    &complaint.message
                };
                let kind = match kind(None, &complaint) {
                    Kind::RateLimited { .. } => Kind::RateLimited {
                        retry_after: complaint
                            .retry_after
                            .or_else(|| retry_after::said(|_| None, &complaint.message)),
                    },
                    other => other,
                };
                let asked = match &kind {
                    Kind::RateLimited { retry_after } => *retry_after,
                    _ => complaint.retry_after,
                };
                self.error(kind, &format!("in its reply: {said}"))
                    .retry_after(asked)
            }
            Fault::Overflow(what) => self.error(Kind::ContextLength, &format!("({what})")),
            Fault::Malformed(why) => {
                let message = format!(
                    "{} sent a malformed reply: {why}; nothing of it was used",
                    self.provider
                );
                ModelError::new(Kind::MalformedReply, self.clean(&message))
            }
            Fault::Lost { .. } => self.fault(Fault::Malformed("it announces tool calls and has none".into())),
            Fault::Cut => {
                let message = format!(
                    "the reply of {} broke off before its end; nothing of it was used",
                    self.provider
                );
                ModelError::new(Kind::MalformedReply, self.clean(&message))
            }
        }
    }

    /// A failure that the provider has no part in.
    pub(crate) fn other(&self, kind: Kind, what: &str) -> ModelError {
        ModelError::new(kind, self.clean(&format!("{}: {what}", self.provider)))
    }

    fn error(&self, kind: Kind, said: &str) -> ModelError {
        let (what, next) = match &kind {
            Kind::Auth => ("refused the key", "check the key and what it may use"),
            Kind::Billing => ("wants to be paid", "check the credit of the account"),
            Kind::ModelNotFound => ("does not know the model", self.when_unknown.as_str()),
            Kind::RateLimited { .. } => ("got too many requests", "wait before the next one"),
            Kind::Overloaded => ("has trouble", "try again later"),
            Kind::Timeout => ("gave up waiting", "try again"),
            Kind::ContextLength => ("cannot take a conversation of this length", "shorten it"),
            Kind::ContentFilter => ("withheld the reply", "change the request"),
            _ => (
                "refused the request",
                "check the model, its settings and the base URL",
            ),
        };
        ModelError::new(
            kind,
            self.clean(&format!("{} {what}, {next} {said}", self.provider)),
        )
    }

    /// A text without secrets, on one line, and short.
    fn clean(&self, text: &str) -> String {
        let harmless: String = self.redact(text).chars().filter(|c| !is_invisible(*c)).collect();
        let words: Vec<&str> = harmless.split_whitespace().collect();
        let line = words.join(" ");
        if line.chars().count() <= MAX_MESSAGE {
            return line;
        }
        let mut short: String = line.chars().take(MAX_MESSAGE - 1).collect();
        short.push('…');
        short
    }
}

/// What a refused key may come from, when the clock of this machine is wrong: some keys are signed with the time.
fn skewed(ahead: i64) -> Option<String> {
    let (minutes, way) = (
        ahead.unsigned_abs() / 60,
        if ahead > 0 { "ahead of" } else { "behind" },
    );
    (minutes >= MAX_SKEW_MINUTES).then(|| {
        format!(", and the clock of this machine is {minutes} min {way} the server's: set it right first")
    })
}

/// Whether a character only changes how others look: escapes and reversals of direction.
fn is_invisible(c: char) -> bool {
    (c.is_control() && !c.is_whitespace())
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// What an error body says.
#[derive(Debug, Default)]
struct Complaint {
    message: String,
    /// Codes and types, in lower case.
    codes: Vec<String>,
    /// A code that is an HTTP status, for errors that come without one.
    status: Option<u16>,
    /// How long to wait, where the body says it.
    retry_after: Option<Duration>,
}

impl Complaint {
    fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(body) => Self::of(&body),
            Err(_) if body.trim_start().starts_with('<') => Self {
                message: "a page of HTML".into(),
                ..Self::default()
            },
            Err(_) => Self {
                message: body.chars().take(4 * MAX_MESSAGE).collect(),
                ..Self::default()
            },
        }
    }

    /// Reads the common shapes: the error in an envelope, bare, as a text, or as the first of a list.
    fn of(body: &Value) -> Self {
        let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
        let error = body
            .get("error")
            .filter(|error| error.is_object())
            .unwrap_or(body);
        let text = |key: &str| {
            error
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let message = text("message")
            .or_else(|| text("detail"))
            .or_else(|| text("error"))
            .or_else(|| body.as_str());
        let message = match message {
            Some(message) => message.to_owned(),
            None if error.as_object().is_none_or(serde_json::Map::is_empty) => String::new(),
            None => error.to_string(),
        };
        let codes = ["code", "type", "status"]
            .into_iter()
            .filter_map(text)
            .map(str::to_ascii_lowercase)
            .collect();
        let number = |key: &str| match error.get(key)? {
            Value::String(text) => text.parse().ok(),
            other => u16::try_from(other.as_u64()?).ok(),
        };
        let status = number("code")
            .or_else(|| number("status"))
            .filter(|status| (400..600).contains(status));
        // As Google says it: {"details": [{"retryDelay": "27s"}]}.
        let details = error.get("details").and_then(Value::as_array);
        let delay = details.into_iter().flatten().find_map(|detail| {
            let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?;
            Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
        });
        // As gateways hand it on: {"metadata": {"headers": {"X-RateLimit-Reset": "1764554400000"}}}.
        let handed_on = error.pointer("/metadata/headers").and_then(Value::as_object);
        let delay = delay.or_else(|| {
            let handed_on = handed_on?;
            let header = |name: &str| {
                let (_, value) = handed_on.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
                value.as_str()
            };
            retry_after::asked(header).or_else(|| retry_after::limits(header))
        });
        Self {
            message,
            codes,
            status,
            retry_after: delay,
        }
    }

    fn has(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }
}

/// The kind of a failure, by its status and its body; without a status (a failure in a reply that began well), by
/// its body alone.
fn kind(status: Option<u16>, complaint: &Complaint) -> Kind {
    const BILLING: [&str; 5] = [
        "insufficient_quota",
        "insufficient_balance",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
    ];
    const CONTEXT: [&str; 4] = [
        "context_length_exceeded",
        "request_too_large",
        "exceed_context_size_error",
        "context_window_exceeded",
    ];
    let status = status.or(complaint.status);
    let of_the_request = matches!(status, None | Some(400 | 413 | 422));
    let says = |words: &str| of_the_request && complaint.message.to_lowercase().contains(words);
    if status == Some(402) || complaint.has(&BILLING) || says("credit balance is too low") {
        return Kind::Billing;
    }
    if says("api key not valid") || says("api key expired") {
        return Kind::Auth;
    }
    if of_the_request && (complaint.has(&CONTEXT) || speaks_of_context(&complaint.message)) {
        return Kind::ContextLength;
    }
    if matches!(status, None | Some(400 | 403))
        && complaint.has(&["content_filter", "content_policy_violation"])
    {
        return Kind::ContentFilter;
    }
    if matches!(status, None | Some(400 | 403 | 404)) && complaint.has(&["model_not_found"]) {
        return Kind::ModelNotFound;
    }
    match status {
        Some(401 | 403) => Kind::Auth,
        Some(404) => Kind::ModelNotFound,
        Some(408) => Kind::Timeout,
        Some(429) => Kind::RateLimited {
            retry_after: complaint.retry_after,
        },
        Some(500..) => Kind::Overloaded,
        Some(_) => Kind::BadRequest,
        None if complaint.has(&["rate_limit_exceeded", "rate_limit_error", "resource_exhausted"]) => {
            Kind::RateLimited {
                retry_after: complaint.retry_after,
            }
        }
        None if complaint.has(&["timeout_error"]) => Kind::Timeout,
        None if complaint.has(&["authentication_error", "invalid_api_key", "permission_error"]) => Kind::Auth,
        None if complaint.has(&["not_found_error"]) => Kind::ModelNotFound,
        None if complaint.has(&["invalid_request_error", "bad_request"]) => Kind::BadRequest,
        None => Kind::Overloaded,
    }
}

/// Servers without a code for it say in these words that a conversation is too long.
fn speaks_of_context(message: &str) -> bool {
    const WORDS: [&str; 9] = [
        "context length",
        "context_length",
        "context window",
        "context size",
        "maximum context",
        "prompt is too long",
        "input is too long",
        "exceeds the maximum number of tokens",
        "too many tokens",
    ];
    let message = message.to_lowercase();
    WORDS.iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of_status(status: u16, body: Value) -> ModelError {
        Reporter::new("openai", []).status(status, |_| None, &body.to_string())
    }

    #[test]
    fn the_status_and_the_codes_decide_the_kind() {
        let coded = |code: &str| json!({ "error": { "message": "m", "code": code } });
        let worded =
            |message: &str| json!({ "error": { "message": message, "type": "invalid_request_error" } });
        for (status, body, kind) in [
            (301, json!({}), Kind::BadRequest),
            (400, coded("invalid_value"), Kind::BadRequest),
            (400, coded("context_length_exceeded"), Kind::ContextLength),
            (
                400,
                worded("This model's maximum context length is 8192 tokens."),
                Kind::ContextLength,
            ),
            (
                400,
                json!({ "error": { "code": 400, "type": "exceed_context_size_error" } }),
                Kind::ContextLength,
            ),
            (400, coded("content_filter"), Kind::ContentFilter),
            (401, coded("invalid_api_key"), Kind::Auth),
            (402, json!({}), Kind::Billing),
            (403, json!({}), Kind::Auth),
            (403, coded("model_not_found"), Kind::ModelNotFound),
            (404, json!({}), Kind::ModelNotFound),
            (407, json!({}), Kind::BadRequest),
            (408, json!({}), Kind::Timeout),
            (413, json!({}), Kind::BadRequest),
            (413, worded("the prompt is too long"), Kind::ContextLength),
            (422, json!({}), Kind::BadRequest),
            (429, coded("insufficient_quota"), Kind::Billing),
            (429, json!({}), Kind::RateLimited { retry_after: None }),
            (
                429,
                worded("context length: slow down"),
                Kind::RateLimited { retry_after: None },
            ),
            (
                400,
                json!({ "type": "error", "error": { "type": "invalid_request_error",
                        "message": "Your credit balance is too low to use this." } }),
                Kind::Billing,
            ),
            (
                400,
                json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT",
                        "message": "API key not valid. Please pass one." } }),
                Kind::Auth,
            ),
            (
                400,
                worded("The input token count (9) exceeds the maximum number of tokens allowed (8)."),
                Kind::ContextLength,
            ),
            (
                413,
                json!({ "type": "error", "error": { "type": "request_too_large", "message": "m" } }),
                Kind::ContextLength,
            ),
            (
                429,
                json!({ "error": { "status": "RESOURCE_EXHAUSTED", "details": [{}, { "retryDelay": "1.5s" }] } }),
                Kind::RateLimited {
                    retry_after: Some(Duration::from_millis(1_500)),
                },
            ),
            (
                404,
                json!({ "error": "model 'm' not found" }),
                Kind::ModelNotFound,
            ),
            (500, json!({}), Kind::Overloaded),
            (
                503,
                json!({ "error": { "message": "Loading model", "code": 503 } }),
                Kind::Overloaded,
            ),
            (529, json!({}), Kind::Overloaded),
        ] {
            assert_eq!(of_status(status, body.clone()).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn a_report_in_a_reply_is_classified_by_its_body() {
        for (body, kind) in [
            (
                json!({ "error": { "code": 502, "message": "m" } }),
                Kind::Overloaded,
            ),
            (
                json!({ "error": { "code": "429" } }),
                Kind::RateLimited { retry_after: None },
            ),
            (json!({ "error": { "type": "server_error" } }), Kind::Overloaded),
            (
                json!({ "error": { "type": "rate_limit_error" } }),
                Kind::RateLimited { retry_after: None },
            ),
            (
                json!({ "error": { "code": "insufficient_quota" } }),
                Kind::Billing,
            ),
            (json!({ "error": { "code": "invalid_api_key" } }), Kind::Auth),
            (
                json!({ "error": { "message": "the context window is full" } }),
                Kind::ContextLength,
            ),
            (json!({ "error": "something" }), Kind::Overloaded),
            (
                json!({ "type": "error", "error": { "type": "overloaded_error", "message": "m" } }),
                Kind::Overloaded,
            ),
            (
                json!({ "type": "error", "error": { "type": "timeout_error", "message": "m" } }),
                Kind::Timeout,
            ),
            (
                json!({ "error": { "code": 429, "details": [{ "retryDelay": "3s" }] } }),
                Kind::RateLimited {
                    retry_after: Some(Duration::from_secs(3)),
                },
            ),
            (
                json!({ "object": "error", "message": "m", "code": 400 }),
                Kind::BadRequest,
            ),
        ] {
            let error = Reporter::new("openai", []).fault(Fault::Reported(body.clone()));
            assert_eq!(error.kind, kind, "{body}");
        }
    }

    #[test]
    fn messages_say_what_failed_what_to_do_and_what_the_provider_said() {
        let envelope = json!({ "error": { "message": "Slow down.", "type": "x" } });
        for (body, said) in [
            (envelope.to_string(), "Slow down."),
            (json!([envelope]).to_string(), "Slow down."),
            (json!({ "detail": "Slow down." }).to_string(), "Slow down."),
            (json!({ "error": "Slow\n\tdown." }).to_string(), "Slow down."),
            (json!({ "odd": 1 }).to_string(), "{\"odd\":1}"),
            ("Slow \u{1b}[31mdown\u{202e}.".into(), "Slow [31mdown."),
            (" <html>Slow down.</html>".into(), "a page of HTML"),
            (String::new(), "no reason was given"),
        ] {
            let error = Reporter::new("openai", []).status(429, |_| None, &body);
            let expected = format!("openai got too many requests, wait before the next one (429): {said}");
            assert_eq!(error.message, expected, "{body}");
        }
    }

    #[test]
    fn secrets_are_gone_and_long_messages_are_cut() {
        let reporter = Reporter::new(
            "openai",
            ["sk-12345678".into(), "sk-12345678-more".into(), "ok".into()],
        );
        let body = format!("ok sk-12345678-more and sk-12345678, {}", "é".repeat(1000));
        let error = reporter.status(401, |_| None, &body);
        assert!(
            error.message.contains("ok [redacted] and [redacted], éé"),
            "{}",
            error.message
        );
        assert_eq!(error.message.chars().count(), MAX_MESSAGE);
        for text in [
            reporter.other(Kind::Network, &body),
            reporter.fault(Fault::Reported(json!({ "error": body }))),
        ] {
            assert!(!text.message.contains("sk-1234"), "{}", text.message);
        }
    }
}
