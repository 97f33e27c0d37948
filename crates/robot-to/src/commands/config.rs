//! `robot-to config`: each setting, its value, and where it came from.

use super::look::print;
use crate::args::ConfigArgs;
use crate::config::{Layer, Sources, as_json, as_text, settings};
use crate::error::CliError;
use crate::exit::Exit;
use clap::ArgMatches;

/// Prints the settings, with the flags that were written here as the strongest layer.
pub(crate) fn run(
    args: &ConfigArgs,
    written: &ArgMatches,
    sources: &Sources,
    mut layers: Vec<Layer>,
) -> Result<Exit, CliError> {
    let settings = settings();
    layers.push(Layer::of_flags(&settings, written));
    let text = if args.run.json {
        as_json(&settings, &layers)
    } else {
        as_text(&settings, sources, &layers)
    };
    print(text.as_bytes())?;
    Ok(Exit::Done)
}
