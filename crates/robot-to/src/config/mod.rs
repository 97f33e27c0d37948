//! The settings of a run, from the weakest source to the strongest: defaults, the user's file, the repository's file,
//! environment variables, flags.
//!
//! A setting is defined once, as a flag in [`RunArgs`](crate::args::RunArgs). Its key, its variable and what it accepts
//! follow from what clap knows of the flag. A [`Layer`] is what one source says, checked value by value by the flag's
//! own parser. [`combine`] takes, for each key, what the last layer says. What did not come from a flag is then put
//! before the user's own arguments, as flags, and clap reads the whole line again: so a run knows nothing of where its
//! settings came from.

mod combine;
mod error;
mod explain;
mod layer;
mod setting;
mod source;
mod trust;
mod yaml;

use combine::{Chosen, combine};
use error::ConfigError;
pub(crate) use explain::{as_json, as_text};
use layer::Given;
pub(crate) use layer::{Layer, Source};
pub(crate) use setting::{Kind, Setting, settings, with_opposites};
pub(crate) use source::Sources;
use source::gather;
#[cfg(test)]
pub(crate) use trust::only_the_user;

use crate::args::{self, Cli};
use crate::commands::current_dir;
use crate::error::CliError;
use clap::{ArgMatches, Command, FromArgMatches as _};
use std::ffi::OsString;

/// The command line, with everything that files and variables say of it.
pub(crate) struct Settled {
    pub(crate) cli: Cli,
    pub(crate) sources: Sources,
    /// What files and variables say, without the flags.
    pub(crate) layers: Vec<Layer>,
}

/// Completes what was written on the command line. A command without settings reads nothing.
pub(crate) async fn settle(matches: &ArgMatches) -> Result<Settled, CliError> {
    let command = args::command();
    let (sources, layers) = if has_settings(chosen(&command, matches).0) {
        let sources = gather(&current_dir()?).await;
        let layers = layers(&sources)?;
        let flags = Layer::of_flags(&settings(), chosen(&command, matches).1);
        let all: Vec<Layer> = layers.iter().cloned().chain([flags]).collect();
        trust::check_leads(&all)?;
        (sources, layers)
    } else {
        (Sources::default(), Vec::new())
    };
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let line = complete(&command, matches, &arguments, &layers);
    let cli = command
        .try_get_matches_from(line)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .unwrap_or_else(|error| error.exit());
    Ok(Settled { cli, sources, layers })
}

/// What files and variables say, in the order of their strength.
fn layers(sources: &Sources) -> Result<Vec<Layer>, ConfigError> {
    let settings = settings();
    let mut layers = Vec::new();
    if let Some(path) = &sources.user
        && let Some(text) = source::read(path)?
    {
        layers.push(Layer::of_file(&settings, Source::User(path.clone()), &text)?);
    }
    if let Ok(path) = &sources.repository
        && let Some(text) = source::read(path)?
    {
        layers.push(Layer::of_file(
            &settings,
            Source::Repository(path.clone()),
            &text,
        )?);
    }
    layers.push(Layer::of_variables(&settings, &sources.variables)?);
    Ok(layers)
}

/// Whether a command has a flag that is a setting.
fn has_settings(command: &Command) -> bool {
    settings().iter().any(|setting| setting.is_in(command))
}

/// The command that was called, what was written for it, and the place of its first argument.
fn chosen<'a>(command: &'a Command, matches: &'a ArgMatches) -> (&'a Command, &'a ArgMatches, usize) {
    match matches.subcommand() {
        // A subcommand is the first argument, or none at all.
        Some((name, inner)) => (command.find_subcommand(name).unwrap_or(command), inner, 2),
        None => (command, matches, 1),
    }
}

/// The user's arguments, with what the layers say of the command's other settings before them, as flags.
fn complete(
    command: &Command,
    matches: &ArgMatches,
    arguments: &[OsString],
    layers: &[Layer],
) -> Vec<OsString> {
    let (command, matches, first) = chosen(command, matches);
    let settings = settings();
    let flags = Layer::of_flags(&settings, matches);
    let mut combined = combine(layers);
    let added = settings
        .iter()
        .filter(|setting| setting.is_in(command) && !flags.holds(setting.key()))
        .filter_map(|setting| Some((setting, combined.remove(setting.key())?)))
        .flat_map(|(setting, chosen)| setting.arguments(&chosen.given.words));
    let (before, after) = arguments.split_at(first.min(arguments.len()));
    before
        .iter()
        .cloned()
        .chain(added)
        .chain(after.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests;
