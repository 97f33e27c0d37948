//! A scripted model server over a loopback socket: OpenAI's chat completions and responses, Anthropic's
//! messages, Gemini, Ollama.
//!
//! The server answers from a script, misbehaves where the script says so, and checks every request that it
//! gets, so that a test of a client also fails on a request which a real server would refuse.

mod anthropic;
mod delivery;
mod dialect;
mod gemini;
mod http;
mod ollama;
mod openai;
mod reply;
mod request;
mod responses;
mod transcript;

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::delivery::{After, Delivery};
use self::dialect::Dialect;
use self::http::Unreadable;
pub use self::reply::{Call, Reply};
pub use self::request::Request;

/// How long a connection may be silent before its thread gives it up.
const PATIENCE: Duration = Duration::from_secs(60);

type Answer = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

/// A server on a free port of 127.0.0.1 that answers as its script says, until it is dropped.
///
/// Dropping it fails the test if a request was not valid, see [`ModelServer::assert_valid`].
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server that gives these replies to the chat requests, in this order.
    #[must_use]
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_script(Script::Queue(Mutex::new(replies.into_iter().collect())))
    }

    /// Starts a server that asks `answer` for the reply to each chat request.
    #[must_use]
    pub fn answering(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_script(Script::Dynamic(Box::new(answer)))
    }

    fn with_script(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("the address of the listener");
        let shared = Arc::new(Shared {
            script,
            ..Shared::default()
        });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self {
            address,
            shared,
            accepting: Some(accepting),
        }
    }

    /// Refuses requests whose key is not `key`, as a server with keys does.
    ///
    /// A request without the header for a key is also a violation; one with a wrong key is only refused.
    #[must_use]
    pub fn require_key(self, key: impl Into<String>) -> Self {
        *lock(&self.shared.key) = Some(key.into());
        self
    }

    /// The address to configure a client with, ending in `/v1/`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1/", self.address)
    }

    /// The same without a path: the address of Anthropic's, Google's and Ollama's endpoints.
    #[must_use]
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Appends a reply to the script.
    pub fn push(&self, reply: Reply) {
        match &self.shared.script {
            Script::Queue(queue) => lock(queue).push_back(reply),
            Script::Dynamic(_) => panic!("this server has a closure in place of a script"),
        }
    }

    /// How many replies of the script are not used yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        match &self.shared.script {
            Script::Queue(queue) => lock(queue).len(),
            Script::Dynamic(_) => 0,
        }
    }

    /// The chat requests so far, in the order of their arrival, refused ones included.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.chats).clone()
    }

    /// All requests so far that are not chat requests.
    #[must_use]
    pub fn other_requests(&self) -> Vec<Request> {
        lock(&self.shared.others).clone()
    }

    /// Waits until there are `count` chat requests, each with its reply picked, and fails the test when they take longer than `limit`.
    pub fn wait_for_requests(&self, count: usize, limit: Duration) {
        let picked = lock(&self.shared.picked);
        let (picked, _) = self
            .shared
            .arrival
            .wait_timeout_while(picked, limit, |picked| *picked < count)
            .unwrap_or_else(PoisonError::into_inner);
        let arrived = *picked;
        drop(picked);
        assert!(
            arrived >= count,
            "{arrived} of {count} requests arrived within {limit:?}"
        );
    }

    /// How many chat requests came after the script was used up; each was answered with status 500.
    #[must_use]
    pub fn unexpected(&self) -> usize {
        self.shared.unexpected.load(Ordering::SeqCst)
    }

    /// Fails the test if any request so far was one that a real server would refuse.
    pub fn assert_valid(&self) {
        let violations = lock(&self.shared.violations).clone();
        assert!(
            violations.is_empty(),
            "the model server got invalid requests:\n  {}",
            violations.join("\n  ")
        );
    }

    /// The violations so far, which no longer fail the test: for tests that send bad requests on purpose.
    #[must_use]
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.shared.violations))
    }

    /// Ends all threads and connections of the server.
    fn stop(&mut self) {
        self.shared.stop.raise();
        if let Some(accepting) = self.accepting.take() {
            // A connection is what wakes the listener.
            drop(TcpStream::connect_timeout(&self.address, Duration::from_secs(5)));
            drop(accepting.join());
        }
        let connections = std::mem::take(&mut *lock(&self.shared.connections));
        for (stream, _) in &connections {
            if let Some(stream) = stream.upgrade() {
                drop(stream.shutdown(Shutdown::Both));
            }
        }
        for (_, thread) in connections {
            drop(thread.join());
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stop();
        if !thread::panicking() {
            self.assert_valid();
        }
    }
}

/// Where the replies come from.
enum Script {
    Queue(Mutex<VecDeque<Reply>>),
    Dynamic(Answer),
}

impl Default for Script {
    fn default() -> Self {
        Self::Queue(Mutex::default())
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Queue(queue) => formatter.debug_tuple("Queue").field(queue).finish(),
            Self::Dynamic(_) => formatter.write_str("Dynamic"),
        }
    }
}

/// What the threads of one server share.
#[derive(Debug, Default)]
struct Shared {
    script: Script,
    key: Mutex<Option<String>>,
    chats: Mutex<Vec<Request>>,
    /// How many of them have their reply.
    picked: Mutex<usize>,
    arrival: Condvar,
    others: Mutex<Vec<Request>>,
    violations: Mutex<Vec<String>>,
    unexpected: AtomicUsize,
    ids: AtomicU64,
    connections: Mutex<Vec<(Weak<TcpStream>, JoinHandle<()>)>>,
    stop: Stop,
}

impl Shared {
    fn violation(&self, text: impl Into<String>) {
        lock(&self.violations).push(text.into());
    }

    /// Notes a request and picks the reply to it.
    fn reply_to(&self, request: &Request) -> Reply {
        let chat = Dialect::of(request);
        let reply = self.pick(request, chat);
        if chat.is_some() {
            *lock(&self.picked) += 1;
            self.arrival.notify_all();
        }
        reply
    }

    fn pick(&self, request: &Request, chat: Option<Dialect>) -> Reply {
        let label = if chat.is_some() {
            let mut chats = lock(&self.chats);
            chats.push(request.clone());
            format!("request {}", chats.len())
        } else {
            lock(&self.others).push(request.clone());
            format!("{} {}", request.method, request.path)
        };
        let dialect = chat.unwrap_or(Dialect::OpenAi);
        if let Some(key) = lock(&self.key).as_deref() {
            let (header, before) = dialect.key_header();
            let given = request.header(header);
            if given.is_none() {
                self.violation(format!("{label}: no {header} header"));
            }
            if given.and_then(|value| value.strip_prefix(before)) != Some(key) {
                return match dialect {
                    Dialect::OpenAi | Dialect::Responses => openai::wrong_key(),
                    other => other.error(401, "authentication_error", "unauthorized", "The key is wrong."),
                };
            }
        }
        if chat.is_none() {
            if request.method == "GET" && request.path == "/v1/models" {
                return openai::models();
            }
            self.violation(format!("{label}: no such endpoint"));
            return openai::error(
                404,
                "invalid_request_error",
                "unknown_url",
                "There is no such endpoint.",
            );
        }
        for violation in dialect.violations(request) {
            self.violation(format!("{label}: {violation}"));
        }
        if request.body.is_null() {
            return dialect.error(
                400,
                "invalid_request_error",
                "invalid_json",
                "The body is not valid JSON.",
            );
        }
        match &self.script {
            Script::Queue(queue) => lock(queue).pop_front().unwrap_or_else(|| {
                self.unexpected.fetch_add(1, Ordering::SeqCst);
                dialect.error(
                    500,
                    "server_error",
                    "script_used_up",
                    "The script of the test server is used up.",
                )
            }),
            Script::Dynamic(answer) => {
                catch_unwind(AssertUnwindSafe(|| answer(request))).unwrap_or_else(|_| {
                    self.violation(format!("{label}: the closure that answers requests panicked"));
                    dialect.error(
                        500,
                        "server_error",
                        "closure_panicked",
                        "The closure of the test server panicked.",
                    )
                })
            }
        }
    }
}

/// A flag that threads can sleep on.
#[derive(Debug, Default)]
struct Stop {
    raised: Mutex<bool>,
    change: Condvar,
}

impl Stop {
    fn raise(&self) {
        *lock(&self.raised) = true;
        self.change.notify_all();
    }

    fn is_raised(&self) -> bool {
        *lock(&self.raised)
    }

    /// Sleeps, and fails once the server stops.
    fn sleep(&self, duration: Duration) -> io::Result<()> {
        let raised = lock(&self.raised);
        let (raised, _) = self
            .change
            .wait_timeout_while(raised, duration, |raised| !*raised)
            .unwrap_or_else(PoisonError::into_inner);
        if *raised {
            Err(io::ErrorKind::Interrupted.into())
        } else {
            Ok(())
        }
    }
}

/// Takes connections until the server stops, each into a thread of its own.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.is_raised() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let stream = Arc::new(stream);
        let connection = Arc::downgrade(&stream);
        let thread = thread::spawn({
            let shared = Arc::clone(shared);
            // An error here is a client that went away or the end of the server.
            move || drop(serve(&stream, &shared))
        });
        lock(&shared.connections).push((connection, thread));
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let request = match http::read_request(&mut reader, stream) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(Unreadable::Lost(error)) => return Err(error),
            Err(Unreadable::Refused(status, why)) => {
                shared.violation(format!("unreadable request: {why}"));
                let refusal = openai::error(status, "invalid_request_error", "unreadable", why);
                let nothing = Request::nothing();
                Delivery {
                    stream,
                    stop: &shared.stop,
                }
                .deliver(refusal, &nothing, 0)?;
                return stream.shutdown(Shutdown::Write);
            }
        };
        let reply = shared.reply_to(&request);
        let serial = shared.ids.fetch_add(1, Ordering::SeqCst) + 1;
        match (Delivery {
            stream,
            stop: &shared.stop,
        })
        .deliver(reply, &request, serial)?
        {
            After::Reset => return http::reset_on_close(stream),
            After::KeepOpen if !request.asks_to_close() => {}
            After::KeepOpen | After::Close => return stream.shutdown(Shutdown::Write),
        }
    }
}

/// Locks even after a panic in another thread, which must not hide what the test is about.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
