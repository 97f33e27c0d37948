//! One setting: a flag of a run, seen as a key of a file and as a variable.

use crate::args::RunArgs;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args as _, Command};
use std::any::TypeId;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Flags that are about one call of the program alone.
const NO_SETTINGS: [&str; 1] = ["json"];
/// What the names of variables begin with.
pub(super) const PREFIX: &str = "ROBOT_LAB_TO_";
/// How much alike a misspelt key and a key are, from 0 to 1.
const ALIKE: f64 = 0.8;

/// One setting.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    key: String,
    long: String,
    arg: Arg,
}

/// How the value of a setting is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// True or false; `on` is what the flag says by being there.
    Switch { on: bool },
    /// Any number of texts.
    List,
    /// One text.
    One,
}

/// All settings, in the order of the help.
pub(crate) fn settings() -> Vec<Setting> {
    let command = flags();
    let arguments = command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some() && !NO_SETTINGS.contains(&arg.get_id().as_str()));
    arguments.cloned().filter_map(Setting::new).collect()
}

/// Every flag of a run, and nothing else.
fn flags() -> Command {
    RunArgs::augment_args(Command::new("robot-to").no_binary_name(true))
}

impl Setting {
    fn new(arg: Arg) -> Option<Self> {
        let long = arg.get_long()?.to_owned();
        let name = arg
            .get_all_aliases()
            .and_then(|names| names.first().map(|name| (*name).to_owned()));
        let name = name.unwrap_or_else(|| long.clone());
        let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
        let name = name.strip_prefix("no-").filter(|_| is_switch).unwrap_or(&name);
        Some(Self {
            key: name.replace('-', "_"),
            long,
            arg,
        })
    }

    /// Its name in files.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Its name on the command line.
    pub(crate) fn flag(&self) -> String {
        format!("--{}", self.long)
    }

    /// Its name in the environment.
    pub(crate) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.key.to_uppercase())
    }

    /// The name of its flag in clap.
    pub(super) fn id(&self) -> &str {
        self.arg.get_id().as_str()
    }

    /// How its value is written.
    pub(crate) fn kind(&self) -> Kind {
        match self.arg.get_action() {
            ArgAction::SetTrue => Kind::Switch {
                on: !self.long.starts_with("no-"),
            },
            ArgAction::Append => Kind::List,
            _ => Kind::One,
        }
    }

    /// Whether a value is a path.
    pub(super) fn is_path(&self) -> bool {
        self.arg.get_value_parser().type_id() == TypeId::of::<PathBuf>()
    }

    /// Whether a value is a number.
    pub(super) fn is_number(&self) -> bool {
        let id = self.arg.get_value_parser().type_id();
        [TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<f64>()]
            .iter()
            .any(|number| id == *number)
    }

    /// The value of a run that says nothing; `None` when there is none.
    pub(crate) fn default(&self) -> Option<Vec<String>> {
        let defaults = self.arg.get_default_values();
        match self.kind() {
            Kind::Switch { on } => Some(vec![(!on).to_string()]),
            Kind::List => Some(
                defaults
                    .iter()
                    .map(|value| value.to_string_lossy().into())
                    .collect(),
            ),
            Kind::One => {
                let value = defaults.first()?;
                Some(vec![value.to_string_lossy().into()])
            }
        }
    }

    /// The values that are possible, where they are listed.
    #[cfg(test)]
    pub(super) fn possible(&self) -> Vec<String> {
        let possible = self.arg.get_possible_values();
        possible.iter().map(|value| value.get_name().to_owned()).collect()
    }

    /// The flag that says the contrary of a switch, without its dashes.
    fn opposite(&self) -> Option<String> {
        match self.kind() {
            Kind::Switch { on: true } => Some(format!("no-{}", self.long)),
            Kind::Switch { on: false } => self.long.strip_prefix("no-").map(str::to_owned),
            Kind::List | Kind::One => None,
        }
    }

    /// The name of that flag in clap.
    pub(super) fn opposite_id(&self) -> Option<String> {
        self.opposite().map(|name| name.replace('-', "_"))
    }

    /// The flag that was written to say these values.
    pub(super) fn flag_of(&self, words: &[OsString]) -> String {
        match (self.kind(), self.opposite()) {
            (Kind::Switch { on }, Some(opposite)) if words.iter().all(|word| *word != *on.to_string()) => {
                format!("--{opposite}")
            }
            _ => self.flag(),
        }
    }

    /// Whether this is its flag.
    pub(crate) fn is_of(&self, arg: &Arg) -> bool {
        arg.get_id() == self.arg.get_id()
    }

    /// Whether a command has it.
    pub(crate) fn is_in(&self, command: &Command) -> bool {
        command.get_arguments().any(|arg| self.is_of(arg))
    }

    /// The flags that say these values.
    pub(crate) fn arguments(&self, words: &[OsString]) -> Vec<OsString> {
        let flag = self.flag();
        match self.kind() {
            Kind::Switch { on } => {
                let said = words.iter().any(|word| *word == *on.to_string());
                Some(flag.into()).filter(|_| said).into_iter().collect()
            }
            Kind::List | Kind::One => {
                let with_value =
                    |word: &OsString| [flag.as_ref(), OsStr::new("="), word].into_iter().collect();
                words.iter().map(with_value).collect()
            }
        }
    }

    /// Whether the flag accepts this value; if not, why.
    pub(super) fn check(&self, word: &OsStr) -> Result<(), String> {
        let text = word.to_string_lossy();
        if text.contains('\0') {
            return Err("it holds a zero byte".into());
        }
        if let Kind::Switch { .. } = self.kind() {
            return match &*text {
                "true" | "false" => Ok(()),
                _ => Err("give true or false".into()),
            };
        }
        if self.is_path() && (text == "~" || text.starts_with("~/")) {
            return Err("`~` is for shells; write the whole path".into());
        }
        let parsed = flags().try_get_matches_from(self.arguments(&[word.to_owned()]));
        parsed.map(drop).map_err(|error| reason(&error))
    }
}

/// Why clap refuses a value.
fn reason(error: &clap::Error) -> String {
    if let Some(cause) = error.source() {
        return cause.to_string();
    }
    if let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue)
        && !valid.is_empty()
    {
        return format!("give one of {}", valid.join(", "));
    }
    let said = error.to_string();
    let line = said.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// The key that an unknown one was probably meant to be.
pub(super) fn nearest<'a>(settings: &'a [Setting], unknown: &str) -> Option<&'a str> {
    let unknown = unknown.to_lowercase().replace('-', "_");
    let by_flag = settings
        .iter()
        .find(|setting| unknown == setting.key || unknown == setting.long.replace('-', "_"));
    if let Some(setting) = by_flag {
        return Some(&setting.key);
    }
    let alike = settings
        .iter()
        .map(|setting| (strsim::jaro_winkler(&unknown, &setting.key), setting));
    let (how, setting) = alike.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (how >= ALIKE).then_some(setting.key.as_str())
}

/// Gives every switch its opposite, so that a flag can say either against a file.
pub(crate) fn with_opposites(command: Command) -> Command {
    let settings = settings();
    add_opposites(command, &settings).mut_subcommands(|command| add_opposites(command, &settings))
}

fn add_opposites(command: Command, settings: &[Setting]) -> Command {
    let new = |(setting, _, id): &(&Setting, String, String)| {
        setting.is_in(&command) && !command.get_arguments().any(|arg| arg.get_id() == id.as_str())
    };
    let switches: Vec<_> = settings
        .iter()
        .filter_map(|setting| Some((setting, setting.opposite()?, setting.opposite_id()?)))
        .filter(new)
        .collect();
    if switches.is_empty() {
        return command;
    }
    let opposites = switches.iter().map(|(setting, long, id)| {
        Arg::new(id.clone())
            .long(long.clone())
            .action(ArgAction::SetTrue)
            .overrides_with(setting.id().to_owned())
            .help(format!("The opposite of {}", setting.flag()))
            .hide(true)
    });
    // Not `mut_arg`, which would put the flag behind all others.
    let command = command.mut_args(|arg| {
        let Some((_, long, id)) = switches.iter().find(|(setting, ..)| setting.is_of(&arg)) else {
            return arg;
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.overrides_with(id.clone())
            .help(format!("{help} [opposite: --{long}]"))
    });
    command.args(opposites)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_flag_of_a_run_is_a_setting_with_a_key_of_its_own() {
        let settings = settings();
        let keys: BTreeSet<&str> = settings.iter().map(Setting::key).collect();
        assert_eq!(keys.len(), settings.len(), "two flags have the same key");
        assert_eq!(
            settings.len() + NO_SETTINGS.len(),
            flags().get_arguments().count()
        );
        for (key, flag) in [
            ("verify_command", "--verify"),
            ("eval_measure", "--measure"),
            ("eval_target", "--target"),
            ("protect_paths", "--protect-path"),
            ("stream", "--no-stream"),
            ("require_improvement", "--no-require-improvement"),
            ("max_iterations", "--max-iterations"),
        ] {
            let setting = settings.iter().find(|setting| setting.key() == key).unwrap();
            assert_eq!(setting.flag(), flag);
        }
    }

    #[test]
    fn no_flag_of_a_run_needs_another_in_clap_since_a_file_may_hold_the_other() {
        for arg in flags().get_arguments() {
            let known = format!("{arg:?}");
            for relation in ["requires: []", "conflicts: []"] {
                let id = arg.get_id();
                assert!(
                    known.contains(relation),
                    "{id} has relations in clap: say them in `RunArgs::lacks`"
                );
            }
        }
    }

    #[test]
    fn the_nearest_key_is_found_by_key_flag_and_likeness() {
        let settings = settings();
        for (unknown, expected) in [
            ("max_iteratons", Some("max_iterations")),
            ("max-iterations", Some("max_iterations")),
            ("verify", Some("verify_command")),
            ("no_stream", Some("stream")),
            ("Protect_Path", Some("protect_paths")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(&settings, unknown), expected, "{unknown}");
        }
    }

    #[test]
    fn of_a_switch_and_its_opposite_the_last_one_counts() {
        let command = with_opposites(Command::new("x").no_binary_name(true));
        assert_eq!(command.get_arguments().count(), 0, "only where the switch is");
        for (line, expected) in [
            (&["--no-stream", "--stream"][..], false),
            (&["--stream", "--no-stream"], true),
            (&["--stream"], false),
        ] {
            let matches = with_opposites(flags()).try_get_matches_from(line).unwrap();
            assert_eq!(matches.get_flag("no_stream"), expected, "{line:?}");
        }
    }
}
