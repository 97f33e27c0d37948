//! The built program against model servers that others wrote: what we take a protocol for is what they take it for.
//!
//! Behind the feature `peers`, since the servers come from npm and PyPI: `cargo test -p robot-to --features peers`.
//! Where they cannot be installed, these tests fail and say so.

mod aimock;
mod llmock;
mod server;
mod user;

/// The providers that speak different protocols, the model that each is asked for, and where a server that speaks all
/// of them has each.
#[derive(Clone, Copy, Debug)]
struct Peer {
    provider: &'static str,
    model: &'static str,
    path: &'static str,
}

const fn peer(provider: &'static str, model: &'static str, path: &'static str) -> Peer {
    Peer {
        provider,
        model,
        path,
    }
}
