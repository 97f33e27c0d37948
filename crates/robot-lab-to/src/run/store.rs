//! The directory of a run: `run.log`, `run.json`, `notes.md`.

use super::RunId;
use crate::iteration::{RunState, StopReason};
use crate::workspace::Oid;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of `run.json`.
pub const STATE_VERSION: u32 = 1;

/// How often a lock is tried, and how long it is waited in between.
const ASKERS: u32 = 20;
const ASKING: Duration = Duration::from_millis(10);

/// `run.json`: what lists and resumes a run. It is made from the log and can be made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// The version of the format.
    pub version: u32,
    /// The run.
    pub run_id: String,
    /// What the user wants.
    pub objective: String,
    /// The run branch.
    pub branch: String,
    /// Where it began.
    pub base: Oid,
    /// The model, as `provider/name`.
    pub model: String,
    /// The command that grades.
    pub verify_command: Option<String>,
    /// When the run began.
    pub started: Timestamp,
    /// When this was written.
    pub updated: Timestamp,
    /// Why the run ended; `None` while it goes on.
    pub reason: Option<StopReason>,
    /// The fold of the log.
    pub state: RunState,
}

/// A run that is held: no other process works on it meanwhile.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "its lock is what counts")] Option<File>);

/// The directory of one run.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes the directory of a new run under `run_dir`. Fails when it is there already.
    pub fn create(run_dir: &Path, id: &RunId) -> io::Result<Self> {
        let runs = run_dir.join("runs");
        DirBuilder::new().recursive(true).mode(0o700).create(&runs)?;
        let path = runs.join(id.as_str());
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    /// The runs under `run_dir`, oldest first.
    pub fn list(run_dir: &Path) -> io::Result<Vec<(RunId, Self)>> {
        let entries = match fs::read_dir(run_dir.join("runs")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry?;
            if let Some(id) = entry.file_name().to_str().and_then(RunId::parse) {
                runs.push((id, Self { path: entry.path() }));
            }
        }
        runs.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(runs)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.path.join("run.log")
    }

    /// The notes.
    pub fn notes(&self) -> PathBuf {
        self.path.join("notes.md")
    }

    fn state(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// Creates the log and holds the run by a lock on it, until the file is closed.
    pub fn create_log(&self) -> io::Result<File> {
        let log = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(self.log())?;
        lock(&log).map_err(io::Error::from)?;
        Ok(log)
    }

    /// Opens the log of an earlier process and holds the run; `None` when another process does.
    pub(super) fn hold_log(&self) -> io::Result<Option<File>> {
        let log = OpenOptions::new().append(true).open(self.log())?;
        match lock(&log) {
            Ok(()) => Ok(Some(log)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Holds the run for as long as the answer lives; `None` when another process does. A run that has no log yet is
    /// held by nobody.
    pub fn hold(&self) -> io::Result<Option<Hold>> {
        match self.hold_log() {
            Ok(log) => Ok(log.map(|log| Hold(Some(log)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Hold(None))),
            Err(error) => Err(error),
        }
    }

    /// Whether a process holds the run.
    pub fn is_held(&self) -> io::Result<bool> {
        match File::open(self.log())?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes `run.json` whole or not at all.
    pub fn save(&self, file: &RunFile) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(file).map_err(io::Error::other)?;
        let mut new = tempfile::NamedTempFile::new_in(&self.path)?;
        new.write_all(&json)?;
        new.as_file().sync_all()?;
        new.persist(self.state()).map_err(|error| error.error)?;
        File::open(&self.path)?.sync_all()
    }

    /// Reads `run.json`. A newer version is refused by name.
    pub fn load(&self) -> io::Result<RunFile> {
        let json: serde_json::Value = serde_json::from_slice(&fs::read(self.state())?)
            .map_err(|error| self.invalid(&error.to_string()))?;
        match json.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version > u64::from(STATE_VERSION) => return Err(self.newer(version)),
            Some(_) => {}
            None => return Err(self.invalid("it has no version; it is not of this robot-to")),
        }
        serde_json::from_value(json).map_err(|error| self.invalid(&error.to_string()))
    }

    /// Refuses a `run.json` of a newer version, which must not be written over. One that is torn or missing is none.
    pub(super) fn check_version(&self) -> io::Result<()> {
        let written = fs::read(self.state()).ok();
        let version = written.and_then(|bytes| {
            let json: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
            json.get("version")?.as_u64()
        });
        match version {
            Some(version) if version > u64::from(STATE_VERSION) => Err(self.newer(version)),
            _ => Ok(()),
        }
    }

    fn invalid(&self, why: &str) -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {why}; it was left as it is", self.state().display()),
        )
    }

    fn newer(&self, version: u64) -> io::Error {
        self.invalid(&format!(
            "version {version} is newer than {STATE_VERSION}; use a newer robot-to"
        ))
    }

    /// Removes the directory of a run that never began.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

/// Holds a run. Somebody who only asks whether it is held does so for an instant, and is no other process at work.
fn lock(log: &File) -> Result<(), TryLockError> {
    for _ in 0..ASKERS {
        match log.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(ASKING),
            done => return done,
        }
    }
    log.try_lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_whether_a_run_is_held_does_not_hold_it() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path(), &id()).unwrap();
        drop(run.create_log().unwrap());
        let asker = File::open(run.log()).unwrap();
        asker.lock_shared().unwrap();
        let asking = std::thread::spawn(move || {
            std::thread::sleep(ASKING * 3);
            drop(asker);
        });
        let held = run.hold_log().unwrap();
        assert!(held.is_some());
        asking.join().unwrap();
        assert!(
            run.hold_log().unwrap().is_none(),
            "a process that holds it is not waited for"
        );
    }

    fn id() -> RunId {
        RunId::parse("20261130-010203-abcdef").unwrap()
    }

    #[test]
    fn case_169_a_run_is_listed_held_and_saved_whole() {
        let dir = tempfile::tempdir().unwrap();
        assert!(RunDir::list(dir.path()).unwrap().is_empty());
        let run = RunDir::create(dir.path(), &id()).unwrap();
        assert!(RunDir::create(dir.path(), &id()).is_err(), "an id is used once");
        let log = run.create_log().unwrap();
        assert!(run.is_held().unwrap());
        drop(log);
        assert!(!run.is_held().unwrap());
        let now = "2026-11-30T01:02:03Z".parse().unwrap();
        let file = RunFile {
            version: STATE_VERSION,
            run_id: id().to_string(),
            objective: "x".into(),
            branch: "robot-to/x".into(),
            base: "1".repeat(40).parse().unwrap(),
            model: "script/a".into(),
            verify_command: None,
            started: now,
            updated: now,
            reason: Some(StopReason::interrupted()),
            state: RunState::default(),
        };
        run.save(&file).unwrap();
        assert_eq!(run.load().unwrap(), file);
        assert_eq!(RunDir::list(dir.path()).unwrap().len(), 1);
        run.save(&RunFile { version: 99, ..file }).unwrap();
        let error = run.load().unwrap_err().to_string();
        assert!(error.contains("version 99 is newer than 1"), "{error}");
        std::fs::write(run.path().join("run.json"), "{\"iteration\": 3}").unwrap();
        assert!(
            run.load()
                .unwrap_err()
                .to_string()
                .contains("not of this robot-to")
        );
    }
}
