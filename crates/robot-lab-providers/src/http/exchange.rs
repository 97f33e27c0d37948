//! Shows to an observer what goes over the wire: each request, and its answer as far as it came.

use crate::failure::Reporter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most of an answer that is kept to be shown, in bytes.
const KEPT: usize = 64 * 1024;
/// What the names of headers hold that say how long to wait.
const WAITS: [&str; 3] = ["retry-after", "ratelimit", "date"];

/// One half of an exchange with a provider. Keys are in none: they go in headers, which are not shown, and are taken
/// out of bodies that repeat them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// A request goes out.
    Request {
        /// The model, as `provider/name`.
        model: String,
        /// Counts the requests of the model, from 1.
        number: u64,
        /// Where it goes, without a query.
        address: String,
        /// Its body.
        body: String,
    },
    /// Its answer ended, broke off, or is not waited for any more.
    Answer {
        /// The model, as `provider/name`.
        model: String,
        /// The number of the request.
        number: u64,
        /// Where it went.
        address: String,
        /// The status; `None` when there was none.
        status: Option<u16>,
        /// The headers of a refusal that say how long to wait.
        headers: Vec<(String, String)>,
        /// The beginning of the body, as much as the observer keeps.
        body: String,
        /// How many bytes the body had.
        bytes: usize,
    },
}

/// Something that looks at exchanges. It is called where replies are read, so it must be quick.
pub trait ExchangeObserver: Send + Sync {
    /// Takes one half of an exchange.
    fn exchange(&self, exchange: Exchange);

    /// The most of an answer that it wants to see, in bytes.
    fn keeps(&self) -> usize {
        KEPT
    }
}

/// Several observers, each of which sees all that it keeps.
impl ExchangeObserver for Vec<Arc<dyn ExchangeObserver>> {
    fn exchange(&self, exchange: Exchange) {
        for observer in self {
            observer.exchange(exchange.clone());
        }
    }

    fn keeps(&self) -> usize {
        self.iter().map(|observer| observer.keeps()).max().unwrap_or(KEPT)
    }
}

/// An observer, if there is one, and how many requests it has seen.
#[derive(Default)]
pub(super) struct Watched {
    observer: Option<Arc<dyn ExchangeObserver>>,
    requests: AtomicU64,
}

impl Watched {
    pub(super) fn by(observer: Arc<dyn ExchangeObserver>) -> Self {
        Self {
            observer: Some(observer),
            requests: AtomicU64::new(0),
        }
    }

    /// The same observer, for another model.
    pub(super) fn again(&self) -> Self {
        Self {
            observer: self.observer.clone(),
            requests: AtomicU64::new(0),
        }
    }

    /// Shows a request, and gives what records its answer.
    pub(super) fn begin(
        &self,
        model: &str,
        address: &str,
        body: &str,
        reporter: &Arc<Reporter>,
    ) -> Option<Recorder> {
        let observer = self.observer.clone()?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        observer.exchange(Exchange::Request {
            model: model.to_owned(),
            number,
            address: address.to_owned(),
            body: reporter.redact(body),
        });
        Some(Recorder {
            keeps: observer.keeps(),
            observer,
            reporter: Arc::clone(reporter),
            model: model.to_owned(),
            number,
            address: address.to_owned(),
            status: None,
            headers: Vec::new(),
            kept: Vec::new(),
            bytes: 0,
        })
    }
}

/// An answer on its way. It is shown when this is dropped, however it ended.
pub(super) struct Recorder {
    observer: Arc<dyn ExchangeObserver>,
    reporter: Arc<Reporter>,
    keeps: usize,
    model: String,
    number: u64,
    address: String,
    status: Option<u16>,
    headers: Vec<(String, String)>,
    kept: Vec<u8>,
    bytes: usize,
}

impl Recorder {
    pub(super) fn status(&mut self, status: u16) {
        self.status = Some(status);
    }

    /// Takes those headers that say how long to wait.
    pub(super) fn headers<'a>(&mut self, headers: impl Iterator<Item = (&'a str, &'a str)>) {
        let waits = headers.filter(|(name, _)| WAITS.iter().any(|word| name.contains(word)));
        self.headers = waits
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let room = self.keeps.saturating_sub(self.kept.len());
        self.kept.extend(bytes.iter().take(room));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.observer.exchange(Exchange::Answer {
            model: std::mem::take(&mut self.model),
            number: self.number,
            address: std::mem::take(&mut self.address),
            status: self.status,
            headers: std::mem::take(&mut self.headers),
            body: self.reporter.redact(&String::from_utf8_lossy(&self.kept)),
            bytes: self.bytes,
        });
    }
}
