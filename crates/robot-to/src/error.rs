//! Errors as users see them: what failed, what caused it, what to do next.

use crate::exit::Exit;
use robot_lab_to::guard::LockError;
use robot_lab_to::run::{LogError, PastError, StartError};
use robot_lab_to::shell::head_and_tail;
use robot_lab_to::workspace::{AdoptError, BranchError, StartError as RepositoryError};
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// Bytes of a message; it may quote what a command printed.
const MAX_MESSAGE: usize = 4_000;

/// An error that ends the program.
#[derive(Debug)]
pub(crate) struct CliError {
    exit: Exit,
    message: String,
    hints: Vec<String>,
}

impl CliError {
    /// A mistake in the command line, the settings or the repository.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Configuration,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Trouble outside.
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Environment,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// A path that cannot be used: a mistake where something else is there or nothing, else trouble outside.
    pub(crate) fn path(error: &io::Error, message: impl Into<String>) -> Self {
        Self {
            exit: exit_of(error),
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Another process has the run.
    pub(crate) fn held(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Held,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// A fault of ours.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Internal,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Adds something that helps.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What failed, without what helps.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the error and gives its code.
    #[expect(clippy::print_stderr, reason = "this is where errors are printed")]
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("{self}");
        self.exit.into()
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        self.hints.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl From<PastError> for CliError {
    fn from(error: PastError) -> Self {
        let exit = match &error {
            PastError::Held { .. } => Exit::Held,
            _ => Exit::Configuration,
        };
        Self {
            exit,
            message: error.to_string(),
            hints: Vec::new(),
        }
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        let exit = match &error {
            StartError::Branch(BranchError::Git(_)) | StartError::Repository(RepositoryError::Git(_)) => {
                Exit::Environment
            }
            StartError::Configuration(_)
            | StartError::Git(_)
            | StartError::Repository(_)
            | StartError::Branch(_) => Exit::Configuration,
            StartError::Halted(reason) => Exit::of(reason, 0),
            StartError::Io { source, .. } => exit_of(source),
            StartError::Zone(_) | StartError::NoSpace { .. } => Exit::Environment,
            StartError::Lock(LockError::MatchesNothing(_) | LockError::Pattern { .. }) => Exit::Configuration,
            StartError::Lock(_) => Exit::Environment,
            StartError::Prompt(_) => Exit::Internal,
        };
        Self {
            exit,
            message: head_and_tail(&with_causes(&error), MAX_MESSAGE),
            hints: Vec::new(),
        }
    }
}

impl From<LogError> for CliError {
    fn from(error: LogError) -> Self {
        Self::configuration(error.to_string())
    }
}

impl From<AdoptError> for CliError {
    fn from(error: AdoptError) -> Self {
        let message = with_causes(&error);
        match error {
            AdoptError::Exists(_) | AdoptError::ParentGone { .. } => Self::configuration(message),
            AdoptError::Branch(BranchError::Invalid(_)) => Self::configuration(message),
            _ => Self::environment(message),
        }
    }
}

fn exit_of(error: &io::Error) -> Exit {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::AlreadyExists
        | ErrorKind::InvalidFilename => Exit::Configuration,
        _ => Exit::Environment,
    }
}

/// The error, and what caused it.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // One that only passes another on says the same.
        if !message.ends_with(&text) {
            message.push_str(&format!("\n  because: {text}"));
        }
        cause = error.source();
    }
    message
}
