//! Keeps providers' keys where no command can read them.
//!
//! A process shows the environment that it was started with in `/proc`, whatever it does to it later. So the program
//! that finds a key there hands it to itself through a pipe, and starts itself again without it.

use robot_lab_providers::{key_variable, known_providers};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Names the descriptor that the keys are read from.
const FROM: &str = "ROBOT_TO_KEYS_FROM";
/// The most that all keys may have together, in bytes: what a pipe holds for sure.
const MAX_KEYS: usize = 4096;

/// The keys that the user gave, by the name of their variable.
#[derive(Default)]
pub(crate) struct Keys(BTreeMap<String, String>);

impl Keys {
    /// What the variable of this name held, if it was taken.
    pub(crate) fn at(&self, variable: &str) -> Option<&str> {
        self.0.get(variable).map(String::as_str)
    }

    /// The names of the variables that hold them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }
}

/// The names of the variables that hold providers' keys.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    known_providers().filter_map(key_variable)
}

/// Takes the keys out of the environment, which means to start anew; with none, or the second time, it returns. From
/// then on no other process of the user can read this one's memory.
pub(crate) fn take() -> std::io::Result<Keys> {
    // A value of somebody else's leads nowhere.
    if let Some(Ok(keys)) = std::env::var_os(FROM).map(|from| read(&from)) {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        return Ok(keys);
    }
    let found: BTreeMap<String, String> = variables()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?.trim().to_owned())))
        .filter(|(_, key)| !key.is_empty())
        .collect();
    if found.is_empty() {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        return Ok(Keys::default());
    }
    Err(start_again(&found))
}

/// Takes further variables out of the environment, which settings name: it starts anew with those that were taken
/// before, or returns when there is nothing more to take.
pub(crate) fn take_more(keys: &Keys, names: &[String]) -> std::io::Result<()> {
    let mut all = keys.0.clone();
    for name in names.iter().filter(|name| !keys.0.contains_key(*name)) {
        let Some(value) = std::env::var(name).ok().map(|value| value.trim().to_owned()) else {
            continue;
        };
        if value.contains(['\n', '\r']) {
            return Err(std::io::Error::other(format!(
                "the variable {name} has several lines"
            )));
        }
        if !value.is_empty() {
            all.insert(name.clone(), value);
        }
    }
    if all.len() == keys.0.len() {
        return Ok(());
    }
    Err(start_again(&all))
}

/// Starts this program again without these variables, and hands them to it. It only returns when that fails.
fn start_again(found: &BTreeMap<String, String>) -> std::io::Error {
    match again(found) {
        // The pipe is open until then.
        Ok((mut again, _pipe)) => again.exec(),
        Err(error) => error,
    }
}

/// This program without these variables, and the end of the pipe that it finds them in.
fn again(found: &BTreeMap<String, String>) -> std::io::Result<(Command, OwnedFd)> {
    let lines: String = found
        .iter()
        .map(|(name, key)| format!("{name}={key}\n"))
        .collect();
    if lines.len() > MAX_KEYS {
        return Err(std::io::Error::other(format!(
            "the providers' keys in the environment have more than {MAX_KEYS} bytes together; unset those that the \
             run does not need"
        )));
    }
    // Without the flag that closes it at the start of a program: it is for the next one.
    let (from, to): (OwnedFd, OwnedFd) = rustix::pipe::pipe()?;
    std::fs::File::from(to).write_all(lines.as_bytes())?;
    let mut again = Command::new("/proc/self/exe");
    let mut arguments = std::env::args_os();
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    again.args(arguments).env(FROM, from.as_raw_fd().to_string());
    for name in found.keys() {
        again.env_remove(name);
    }
    for name in variables() {
        again.env_remove(name);
    }
    Ok((again, from))
}

/// Reads the pipe empty: the next program that opens it finds nothing.
fn read(from: &OsString) -> std::io::Result<Keys> {
    let number = from
        .to_str()
        .filter(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
        .unwrap_or_default();
    let mut lines = String::new();
    std::fs::File::open(format!("/proc/self/fd/{number}"))?
        .take(MAX_KEYS as u64)
        .read_to_string(&mut lines)?;
    let keys = lines
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, key)| (name.to_owned(), key.to_owned()));
    Ok(Keys(keys.collect()))
}
