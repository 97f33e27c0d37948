//! What the commands that look at a run have in common: the run, and the repository with what it made.

use super::clean::no_such;
use super::current_dir;
use super::run::state_dir;
use crate::args::PlaceArgs;
use crate::error::{CliError, with_causes};
use crate::surface::{Style, shell_word};
use robot_lab_to::run::{LogError, Logged, LoggedIteration, StartError, Trash};
use robot_lab_to::workspace::{Archive, Git, GitError, HostEnv, Kept, Ledger};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The default of `--run-dir`.
const RUN_DIR: &str = ".robot_lab_to";

/// A run that is looked at, and where.
pub(super) struct Looked {
    pub(super) cwd: PathBuf,
    pub(super) git: Git,
    pub(super) run: Logged,
    /// The directory with the run's repositories, which may be gone.
    pub(super) work: PathBuf,
    trash: Trash,
    /// The flags that lead another command to the same run, with a space before each.
    pub(super) flags: String,
}

/// Finds and reads the run of this id, or the latest. Changes nothing and holds nothing.
pub(super) async fn look(run_id: Option<&str>, places: &PlaceArgs) -> Result<Looked, CliError> {
    let cwd = current_dir()?;
    let git = Git::find(&HostEnv::new(std::env::vars_os()))
        .await
        .map_err(StartError::from)?;
    let top = Ledger::find_top(&git, &cwd).await.map_err(StartError::from)?;
    let root = match &places.work_dir {
        Some(dir) => cwd.join(dir),
        None => state_dir()?,
    };
    let trash = Trash::of(&root);
    let run = Logged::read(&top.join(&places.run_dir), run_id).map_err(|error| match error {
        LogError::NoSuchRun { wanted, run_dir } => no_such(&wanted, &run_dir, &trash),
        error => error.into(),
    })?;
    Ok(Looked {
        cwd,
        work: run.work_dir(&root),
        trash,
        git,
        run,
        flags: flags(&places.run_dir, places.work_dir.as_deref()),
    })
}

/// The flags that lead another command to these places, with a space before each.
pub(super) fn flags(run_dir: &Path, work_dir: Option<&Path>) -> String {
    let mut flags = String::new();
    let mut flag = |name: &str, dir: &Path| {
        flags.push_str(&format!(" {name} {}", shell_word(&dir.display().to_string())));
    };
    if run_dir != Path::new(RUN_DIR) {
        flag("--run-dir", run_dir);
    }
    if let Some(dir) = work_dir {
        flag("--work-dir", dir);
    }
    flags
}

impl Looked {
    /// The run repository; `None` when it is gone.
    pub(super) fn archive(&self) -> Result<Option<Archive>, CliError> {
        Archive::of_run(&self.git, &self.work).map_err(|error| {
            CliError::environment(format!(
                "{} cannot be read: {error}; nothing was changed",
                self.work.display()
            ))
        })
    }

    /// Says that the run repository is gone, and what that may come from.
    pub(super) fn gone(&self) -> String {
        if let Some(entry) = self.trash.find(self.run.id.as_str()) {
            return format!(
                "what the run {} made and did not commit was cleaned away; it is in {}",
                self.run.id,
                entry.display()
            );
        }
        format!(
            "the run repository of {} is gone: there is no {}; if the run had a --work-dir of its own, name it",
            self.run.id,
            self.work.join("run.git").display()
        )
    }

    /// The iteration of this number.
    pub(super) fn iteration(&self, number: u32) -> Result<LoggedIteration<'_>, CliError> {
        LoggedIteration::of(&self.run.records, number).ok_or_else(|| {
            let begun = self.run.records.iter().map(|record| record.iteration);
            let begun = begun.max().unwrap_or_default();
            CliError::configuration(format!(
                "the run {} has no iteration {number}; {begun} began so far; nothing was changed",
                self.run.id
            ))
            .hint(format!(
                "what is kept of it: robot-to attempts {}{}",
                self.run.id, self.flags
            ))
        })
    }

    /// A path as it is shown: relative to where the user is, when it is below.
    pub(super) fn short(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }
}

/// What is kept of an iteration.
pub(super) async fn kept_of(archive: &Archive, told: &LoggedIteration<'_>) -> Result<Option<Kept>, CliError> {
    let kept = archive.kept().await.map_err(unreadable)?;
    Ok(kept
        .into_iter()
        .find(|kept| (kept.iteration, kept.candidate) == (told.number, told.candidate)))
}

/// An error of git while something was read.
#[expect(clippy::needless_pass_by_value, reason = "it is the end of an error")]
pub(super) fn unreadable(error: GitError) -> CliError {
    CliError::environment(format!(
        "what the run made cannot be read; nothing was changed\n  because: {}",
        with_causes(&error)
    ))
    .hint("when the repository was moved or its objects were pruned, `robot-to resume` mends what can be mended")
}

/// Writes a result. Nobody may be reading any more, and that is no error.
pub(super) fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(CliError::environment(format!(
            "the result cannot be written: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Colours, where they are wanted.
pub(super) fn style() -> Style {
    Style::for_stdout(std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()))
}
