//! Models for robots: over HTTP ([`HttpModel`]), and played from a script ([`ScriptModel`]).
//!
//! Both implement [`robot_lab::Model`], so a robot cannot tell them apart. Nothing here reads files or the
//! environment: keys, addresses and scripts are handed in. [`key_variable`] says under which name a user
//! usually keeps a provider's key.
//!
//! How the parts fit together:
//!
//! 1. [`ModelConfig`] names a provider, a model, an address and a key; it is checked before anything is sent.
//! 2. `providers` is the table: which protocol a provider speaks, where, and which variable holds its key.
//! 3. `protocol` writes requests and reads the bytes of replies, without any IO: chat completions, OpenAI's
//!    responses, Anthropic's messages, Gemini, Ollama; and it learns what a server does not take.
//! 4. `http` owns the connection. It sends what `protocol` wrote, and hands it the bytes that come.
//! 5. `failure` turns statuses and error bodies into kinds of errors, and keeps secrets out of their messages.
//! 6. `catalog` knows what well-known models cost, and how much they can read.
//! 7. `script` plays a YAML file; `record` keeps exchanges in a file and plays them back.

mod catalog;
mod config;
mod effort;
mod failure;
mod http;
mod offered;
mod protocol;
mod providers;
mod reach;
mod record;
mod retry_after;
pub mod script;

pub use catalog::{Known, known_model};
pub use config::{ConfigError, ModelConfig, host_of_secret, is_secret as names_a_secret};
pub use effort::{Effort, NoEffort};
pub use http::{Exchange, ExchangeObserver, HttpModel};
pub use offered::{OfferedModel, offered};
pub use providers::{key_variable, known_providers, usual_address};
pub use reach::{ReachError, reach};
pub use record::{Playback, Recorder, Recording, RecordingError};
pub use script::{ScriptError, ScriptModel};
