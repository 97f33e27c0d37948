//! Where the objective comes from: the command line, a file, or standard input.

use crate::args::{Cli, StartArgs};
use crate::error::CliError;
use clap::CommandFactory as _;
use std::io::{IsTerminal as _, Read as _};

/// Longest objective that is read, in bytes.
const MAX: u64 = 64 * 1024;

/// The objective, not empty.
pub(in crate::commands) fn objective(args: &StartArgs) -> Result<String, CliError> {
    let text = match (&args.objective, &args.objective_file) {
        (Some(text), _) => {
            if let Some(command) = mistyped(text) {
                return Err(CliError::configuration(format!(
                    "`{text}` looks like the command `{command}`; nothing was changed"
                ))
                .hint(format!("for the command: robot-to {command}"))
                .hint("for an objective, say it in more words"));
            }
            text.clone()
        }
        (None, Some(path)) => {
            let error = |error| CliError::configuration(format!("{}: {error}", path.display()));
            read(std::fs::File::open(path).map_err(error)?).map_err(error)?
        }
        (None, None) if std::io::stdin().is_terminal() => return Err(missing()),
        (None, None) => read(std::io::stdin().lock())
            .map_err(|error| CliError::configuration(format!("the objective cannot be read: {error}")))?,
    };
    let text = text.trim();
    if text.is_empty() {
        Err(missing())
    } else {
        Ok(text.to_owned())
    }
}

fn missing() -> CliError {
    CliError::configuration("there is no objective")
        .hint("say what should be better: robot-to \"make the tests pass\" --verify \"make test\"")
        .hint("to see a whole run without a key: robot-to demo")
        .hint("for everything else: robot-to --help")
}

fn read(source: impl std::io::Read) -> std::io::Result<String> {
    let mut text = String::new();
    source.take(MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The command that a single word was probably meant to be.
fn mistyped(text: &str) -> Option<String> {
    if text.contains(char::is_whitespace) {
        return None;
    }
    let commands: Vec<String> = Cli::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let near = |command: &&String| {
        // Of a short name, two letters are most of it: `plan` is not `man`.
        let slips = if command.len() > 5 { 2 } else { 1 };
        strsim::damerau_levenshtein(&text.to_lowercase(), command) <= slips
    };
    commands
        .iter()
        .filter(|command| command.len() > 2)
        .find(near)
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_near_a_command_is_not_an_objective() {
        assert_eq!(mistyped("dmeo").as_deref(), Some("demo"));
        assert_eq!(mistyped("Run").as_deref(), Some("runs"));
        assert_eq!(mistyped("statsu").as_deref(), Some("status"));
        for objective in ["refactor", "plan", "tests", "demo the parser", "日本語"] {
            assert_eq!(mistyped(objective), None, "{objective}");
        }
    }
}
