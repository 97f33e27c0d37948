//! Runs one command in one helper process: bounded, contained, ended for good.
//!
//! ```no_run
//! use robot_exec::{Command, Env, Exec};
//! use tokio_util::sync::CancellationToken;
//!
//! # async fn example() -> Result<(), robot_exec::ExecError> {
//! let env = Env::allow_listed(std::env::vars_os(), &[]);
//! let command = Command::shell("cargo test", "/srv/project").env(env);
//! let output = Exec::current_exe().run(&command, &CancellationToken::new()).await?;
//! if !output.status.success() {
//!     let why = format!("{}: {}", output.status, output.stdout.text());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # How a command runs
//!
//! ```text
//! your program ──socket (lifeline)──▶ supervisor ──▶ launcher ──exec──▶ the command
//!       ◀────────── stdout, stderr: pipes ──────────────────────────────┘
//! ```
//!
//! - The **supervisor** is a new process per command. It adopts every orphan the command leaves behind
//!   (a child subreaper), so a double fork or a new session does not get away from it.
//! - The **launcher** gives up the terminal, sets the limits and becomes the command.
//! - The socket is the lifeline: when your program dies or drops the future of [`Exec::run`], the supervisor
//!   sees the end of the stream and ends the command and all its descendants.
//!
//! Both stages are the same program again under a hidden first argument, so its `main` begins with:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     if let Some(code) = robot_exec::maybe_helper() {
//!         return code;
//!     }
//!     // the program itself
//!     std::process::ExitCode::SUCCESS
//! }
//! ```
//!
//! A program that cannot do so ships `robot-exec-helper` and names it in [`Exec::new`].
//!
//! # What is promised
//!
//! - [`Exec::run`] returns within about timeout + grace + 3 s, whatever the command does to itself or its helper.
//! - Nothing the command started is alive when it returns; what could not be ended is counted in
//!   [`Output::survivors`].
//! - Memory is bounded by [`Capture`], whatever is printed. Standard input is empty, or what
//!   [`Command::stdin`] gives; there is no terminal, and only the variables in [`Env`] are seen.
//!
//! # What is not promised
//!
//! This contains accidents, not attacks: the command runs as the same user, reads and writes what that user
//! may, and what it starts as another user cannot be signalled. One that kills its supervisor
//! with SIGKILL is reported as [`Status::HelperLost`]; what it left running is then found by a variable in its
//! environment, so a process that also wiped its environment gets away.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "robot-exec needs Linux 5.3 or newer: child subreapers, pidfds and /proc end a command for good"
);

mod call;
mod captured;
mod command;
mod env;
mod error;
mod exec;
mod helper;
mod output;
mod proc;
mod reader;
mod wire;

pub use captured::Captured;
pub use command::{Capture, Command, Limits, Stderr};
pub use env::Env;
pub use error::ExecError;
pub use exec::Exec;
pub use helper::maybe_helper;
pub use output::{FullText, Output, Status};
