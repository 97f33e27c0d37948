//! The unattended loop: one gated commit per iteration.
//!
//! In the order of the data: an objective, a [`settings::Plan`] and a [`settings::Place`] become a [`run::Run`]; its
//! [`iteration`] machine decides, the `driver` does what was decided; a [`worker`] makes a candidate with the
//! [`tools`]; the [`workspace`] turns it into a tree; an [`eval`] scores it; a verdict commits or discards it; the
//! [`log`] and the [`notes`] keep what happened; a typed reason ends the run.
//!
//! The log is the truth: the state of a run is the fold of its [`event`]s, and a record is written before the effect
//! that it announces.
//!
//! # A run in a program
//!
//! Every command has a helper process, which is the program itself again, so `main` begins with
//! [`robot_exec::maybe_helper`]:
//!
//! ```no_run
//! use robot_lab::Model;
//! use robot_lab_to::Run;
//! use std::sync::Arc;
//!
//! # fn choose_a_model() -> Arc<dyn Model> { Arc::new(robot_lab::testing::FakeModel::script([])) }
//! #[tokio::main]
//! async fn run() -> Result<(), robot_lab_to::run::StartError> {
//!     let report = Run::builder("make the tests of the parser pass")
//!         .repo("/srv/project")
//!         .host(std::env::vars_os())
//!         .model(choose_a_model())
//!         .verify("make test")
//!         .max_iterations(20)
//!         .run()
//!         .await?;
//!     assert!(report.branch.starts_with("robot-to"));
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     if let Some(code) = robot_exec::maybe_helper() {
//!         return code;
//!     }
//!     match run() {
//!         Ok(()) => std::process::ExitCode::SUCCESS,
//!         Err(_) => std::process::ExitCode::FAILURE,
//!     }
//! }
//! ```

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
pub mod report;
pub mod run;
pub mod settings;
pub mod shell;
pub mod tools;
pub mod view;
pub mod worker;
pub mod workspace;
mod world;

pub use run::{Halt, Run, RunBuilder, RunReport};

/// The pages that show code, so that it is compiled.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/evals.md")]
    struct Evals;
    #[doc = include_str!("../../../docs/library.md")]
    struct Library;
}
