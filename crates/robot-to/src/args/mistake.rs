//! A command line that cannot be read: what clap says of it, and what was probably meant.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::num::ParseIntError;
use std::process::ExitCode;

/// Prints what clap says, also when it is help that was asked for, and gives the exit code.
#[expect(clippy::print_stderr, reason = "this is where a mistake is printed")]
pub(crate) fn report(error: &Error) -> ExitCode {
    // Nobody may be reading; the code says it too.
    drop(error.print());
    if let Some(hint) = hint(error) {
        eprintln!("\nhint: {hint}");
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn hint(error: &Error) -> Option<&'static str> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    let objective = said(ContextKind::PriorArg).is_some_and(|prior| prior.contains("OBJECTIVE"));
    let word = said(ContextKind::InvalidArg).is_some_and(|word| !word.starts_with('-'));
    match error.kind() {
        ErrorKind::ArgumentConflict if objective => Some(QUOTES),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand if word => Some(QUOTES),
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(error)?;
            source
                .is::<ParseIntError>()
                .then_some("give a whole number, such as 20")
        }
        _ => None,
    }
}

const QUOTES: &str = "an objective of several words is one argument: robot-to \"make the tests pass\"";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    #[test]
    fn what_was_probably_meant_is_said() {
        for (line, expected) in [
            ("fix the tests", Some(QUOTES)),
            ("fix tests --verify x", Some(QUOTES)),
            ("resume run and more", Some(QUOTES)),
            ("x --max-iterations abc", Some("give a whole number, such as 20")),
            (
                "x --max-tokens 99999999999999999999",
                Some("give a whole number, such as 20"),
            ),
            ("x --no-such-flag", None),
            ("x --commit-format no", None),
            ("--help", None),
        ] {
            let words = std::iter::once("robot-to").chain(line.split(' '));
            let error = command().try_get_matches_from(words).unwrap_err();
            assert_eq!(hint(&error), expected, "{line}: {error}");
        }
    }
}
