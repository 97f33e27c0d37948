//! A server of others, installed once, started for one test on a port of its own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a server may take to listen, on a busy machine.
const START: Duration = Duration::from_secs(60);

/// Where the servers are, installed if they are not there yet.
pub(super) fn installed() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/peers");
        let status = Command::new(script).arg(&place).status().unwrap();
        assert!(
            status.success(),
            "the servers of others cannot be installed; npm, python3 with venv, and both registries are needed"
        );
        place
    })
}

/// A server that ends with its test.
pub(super) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts a command that listens on the port that it is given.
    pub(super) fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut command = command(port);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Self { child, port };
        let deadline = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("{command:?} ended: {status}");
            }
            assert!(Instant::now() < deadline, "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Its address.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Asks it something, and gives the body of a good answer.
    pub(super) fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(START)).unwrap();
        // Of the older version, so that the answer ends with the connection and comes in one piece.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let good = head
            .split(' ')
            .nth(1)
            .is_some_and(|status| status.starts_with('2'));
        assert!(good, "{method} {path}: {answer}");
        body.to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
