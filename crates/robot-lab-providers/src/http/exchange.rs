//! Shows to an observer what goes over the wire: each request, and its answer as far as it came.

use crate::failure::Reporter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most of an answer that is kept to be shown, in bytes.
const KEPT: usize = 64 * 1024;

/// One half of an exchange with a provider. Keys are in none: they go in headers, which are not shown, and are taken
/// out of bodies that repeat them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// A request goes out.
    Request {
        /// Counts the requests of the model, from 1.
        number: u64,
        /// Where it goes, without a query.
        address: String,
        /// Its body.
        body: String,
    },
    /// Its answer ended, broke off, or is not waited for any more.
    Answer {
        /// The number of the request.
        number: u64,
        /// The status; `None` when there was none.
        status: Option<u16>,
        /// The beginning of the body, up to 64 KiB.
        body: String,
        /// How many bytes the body had.
        bytes: usize,
    },
}

/// Something that looks at exchanges. It is called where replies are read, so it must be quick.
pub trait ExchangeObserver: Send + Sync {
    /// Takes one half of an exchange.
    fn exchange(&self, exchange: Exchange);
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

    /// Shows a request, and gives what records its answer.
    pub(super) fn begin(&self, address: &str, body: &str, reporter: &Arc<Reporter>) -> Option<Recorder> {
        let observer = self.observer.clone()?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        observer.exchange(Exchange::Request {
            number,
            address: address.to_owned(),
            body: reporter.redact(body),
        });
        Some(Recorder {
            observer,
            reporter: Arc::clone(reporter),
            number,
            status: None,
            kept: Vec::new(),
            bytes: 0,
        })
    }
}

/// An answer on its way. It is shown when this is dropped, however it ended.
pub(super) struct Recorder {
    observer: Arc<dyn ExchangeObserver>,
    reporter: Arc<Reporter>,
    number: u64,
    status: Option<u16>,
    kept: Vec<u8>,
    bytes: usize,
}

impl Recorder {
    pub(super) fn status(&mut self, status: u16) {
        self.status = Some(status);
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let room = KEPT.saturating_sub(self.kept.len());
        self.kept.extend(bytes.iter().take(room));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.observer.exchange(Exchange::Answer {
            number: self.number,
            status: self.status,
            body: self.reporter.redact(&String::from_utf8_lossy(&self.kept)),
            bytes: self.bytes,
        });
    }
}
