//! The unattended loop: one gated commit per iteration.
//!
//! In the order of the data: an objective and [`Settings`](settings::Settings) become a [`run::Run`]; its
//! [`iteration`] machine decides, the `driver` does what was decided; a [`worker`] makes a candidate with the
//! [`tools`]; the [`workspace`] turns it into a tree; an [`eval`] scores it; a verdict commits or discards it; the
//! [`log`] and the [`notes`] keep what happened; a typed reason ends the run.
//!
//! The log is the truth: the state of a run is the fold of its [`event`]s, and a record is written before the effect
//! that it announces.

pub mod clock;
pub mod commit_message;
mod driver;
pub mod eval;
pub mod event;
pub mod git_hooks;
pub mod guard;
pub mod iteration;
pub mod log;
pub mod notes;
pub mod prompt;
mod random;
pub mod run;
pub mod settings;
pub mod shell;
pub mod tools;
pub mod view;
pub mod worker;
pub mod workspace;
mod world;

pub use run::{Halt, Run, RunBuilder, RunReport};
