//! Models for robots: over HTTP ([`GenaiModel`]), and played from a script ([`ScriptModel`]).
//!
//! Both implement [`robot_lab::Model`], so a robot cannot tell them apart. Nothing here reads files or the
//! environment: keys, addresses and scripts are handed in. [`key_variable`] says under which name a user
//! usually keeps a provider's key.
//!
//! How the parts fit together:
//!
//! 1. [`ModelConfig`] names a provider, a model, an address and a key; it is checked before anything is sent.
//! 2. `client` owns the connection and is the only place that knows the library that speaks HTTP. It hands on the
//!    raw events of a stream.
//! 3. `chat` is the chat completions format, without any IO: it writes requests and reads events.
//! 4. `failure` turns statuses and error bodies into kinds of errors, and keeps secrets out of their messages.
//! 5. `script` plays a YAML file.

mod chat;
mod client;
mod config;
mod failure;
mod retry_after;
pub mod script;

pub use client::{GenaiModel, key_variable, known_providers};
pub use config::{ConfigError, ModelConfig};
pub use script::{ScriptError, ScriptModel};
