//! `robot-to clean`: moves runs that are over into the trash, and empties the trash of what is old.

use super::current_dir;
use super::look::{flags, print};
use super::run::state_dir;
use crate::args::CleanArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::surface::shell_word;
use jiff::{SignedDuration, Timestamp};
use robot_lab::counted;
use robot_lab_to::commit_message::one_line;
use robot_lab_to::iteration::{RunState, StopKind};
use robot_lab_to::run::{
    Began, Logged, RunDir, RunId, Standing, StartError, Trash, TrashError, checks, orphans,
};
use robot_lab_to::workspace::{Git, HostEnv, Ledger};
use std::path::{Path, PathBuf};

/// After so many days attempts are pruned, and the trash is emptied.
const DAYS: u32 = 30;
/// A run that has no log so long after its directory was made is not being set up any more.
const SETTING_UP: SignedDuration = SignedDuration::from_secs(60);

/// What the user wants to be cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// This run, whatever became of it.
    Named,
    /// Finished runs, from an age in days on.
    Finished(u32),
    /// What finished runs left besides their records, when they are old.
    Leftovers,
}

/// What becomes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// All of it goes.
    Run,
    /// Its attempts and private copies go.
    Copies,
    /// It stays, for this reason.
    Stays(&'static str),
    /// It stays, and nobody wonders why.
    Untouched,
}

/// Cleans, and says what was done.
pub(crate) async fn run(args: &CleanArgs) -> Result<Exit, CliError> {
    let now = Timestamp::now();
    let cwd = current_dir()?;
    let git = Git::find(&HostEnv::new(std::env::vars_os()))
        .await
        .map_err(StartError::from)?;
    let top = Ledger::find_top(&git, &cwd).await.map_err(StartError::from)?;
    let root = match &args.places.work_dir {
        Some(dir) => cwd.join(dir),
        None => state_dir()?,
    };
    let mut cleaning = Cleaning {
        now,
        dry: args.dry_run,
        run_dir: top.join(&args.places.run_dir),
        trash: Trash::of(&root),
        root,
        flags: flags(&args.places.run_dir, args.places.work_dir.as_deref()),
        said: Vec::new(),
        moved: 0,
    };
    let done = cleaning.clean(args);
    let emptied = match &done {
        Ok(()) => cleaning.empty_trash(),
        Err(_) => Ok(()),
    };
    if !args.dry_run && cleaning.moved > 0 {
        cleaning.tidy_repository(&git, &cwd).await;
    }
    cleaning.conclude(done.is_ok());
    // What was done before something failed is said all the same.
    print(cleaning.said.join("").as_bytes())?;
    done.and(emptied)?;
    Ok(Exit::Done)
}

struct Cleaning {
    now: Timestamp,
    dry: bool,
    run_dir: PathBuf,
    root: PathBuf,
    trash: Trash,
    flags: String,
    said: Vec<String>,
    /// What was moved, or would be.
    moved: usize,
}

impl Cleaning {
    fn clean(&mut self, args: &CleanArgs) -> Result<(), CliError> {
        let wanted = match (&args.run_id, args.older_than, args.all) {
            (Some(_), ..) => Wanted::Named,
            (None, Some(days), _) => Wanted::Finished(days),
            (None, None, true) => Wanted::Finished(0),
            (None, None, false) => Wanted::Leftovers,
        };
        let runs = RunDir::list(&self.run_dir)
            .map_err(|error| CliError::environment(format!("{}: {error}", self.run_dir.display())))?;
        if let Some(id) = &args.run_id {
            let found = runs.into_iter().find(|(known, _)| known.as_str() == id);
            let Some((id, dir)) = found else {
                return Err(no_such(id, &self.run_dir, &self.trash));
            };
            return self.clean_run(&id, &dir, wanted);
        }
        for (id, dir) in runs {
            self.clean_run(&id, &dir, wanted)?;
        }
        self.clean_checks()?;
        if wanted == Wanted::Leftovers {
            self.clean_orphans()?;
        }
        Ok(())
    }

    fn clean_run(&mut self, id: &RunId, dir: &RunDir, wanted: Wanted) -> Result<(), CliError> {
        let logged = Logged::read(&self.run_dir, Some(id.as_str()));
        let (standing, last) = match &logged {
            Ok(run) => (
                Some(Standing::of(&run.records, run.held, self.now)),
                run.records.last().map(|record| record.ts),
            ),
            Err(_) => (None, None),
        };
        let changed = || Timestamp::try_from(std::fs::metadata(dir.path()).ok()?.modified().ok()?).ok();
        let age = self.now.duration_since(last.or_else(changed).unwrap_or(self.now));
        let work = self.root.join("runs").join(id.as_str());
        let record = match fate(standing.as_ref(), age, wanted) {
            Fate::Untouched => return Ok(()),
            Fate::Stays(why) => {
                self.say("Kept", &format!("{id}: {why}: robot-to clean {id}{}", self.flags));
                return Ok(());
            }
            Fate::Copies if !work.exists() => return Ok(()),
            Fate::Copies => false,
            Fate::Run => true,
        };
        if standing.is_some_and(|standing| {
            matches!(
                standing,
                Standing::Running(_) | Standing::Waiting(_) | Standing::Retrying { .. }
            )
        }) {
            return Err(held(id));
        }
        if !self.dry {
            match self.trash.put(id, dir, &work, record, self.now) {
                Ok(_) => {}
                Err(TrashError::Held(id)) if wanted == Wanted::Named => return Err(held(&id)),
                // It began meanwhile.
                Err(TrashError::Held(_)) => return Ok(()),
                Err(error) => return Err(CliError::environment(error.to_string())),
            }
        }
        self.moved += 1;
        let what = if record {
            ""
        } else {
            ": attempts and private copies"
        };
        self.say(
            if self.dry { "To clean" } else { "Cleaned" },
            &format!("{id}{what}"),
        );
        if let Some(branch) = logged.ok().as_ref().and_then(|run| branch(run, record)) {
            self.said.push(format!("{:<11} {branch}\n", ""));
        }
        Ok(())
    }

    /// What checks left that were killed.
    fn clean_checks(&mut self) -> Result<(), CliError> {
        let run_dir = checks(&self.root);
        let listed = RunDir::list(&run_dir)
            .map_err(|error| CliError::environment(format!("{}: {error}", run_dir.display())))?;
        for (id, dir) in listed {
            // One that is setting up has no log to be held by, for a moment.
            if !matches!(dir.is_held(), Ok(false)) {
                continue;
            }
            if !self.dry {
                let work = self.root.join("runs").join(id.as_str());
                match self.trash.put(&id, &dir, &work, true, self.now) {
                    Ok(_) => {}
                    Err(TrashError::Held(_)) => continue,
                    Err(error) => return Err(CliError::environment(error.to_string())),
                }
            }
            self.moved += 1;
            let verb = if self.dry { "To clean" } else { "Cleaned" };
            self.say(verb, &format!("{id}: a check that was killed"));
        }
        if !self.dry {
            // They go only when they are empty.
            drop(std::fs::remove_dir(run_dir.join("runs")));
            drop(std::fs::remove_dir(&run_dir));
        }
        Ok(())
    }

    /// Private copies of repositories that are gone.
    fn clean_orphans(&mut self) -> Result<(), CliError> {
        let failed = |error: &dyn std::fmt::Display| {
            CliError::environment(format!("{}: {error}", self.root.display()))
        };
        let orphans = orphans(&self.root).map_err(|error| failed(&error))?;
        for (id, work, changed) in orphans {
            if self.now.duration_since(changed) < days(DAYS) {
                continue;
            }
            if !self.dry {
                self.trash
                    .put_orphan(&id, &work, self.now)
                    .map_err(|error| CliError::environment(error.to_string()))?;
            }
            self.moved += 1;
            let verb = if self.dry { "To clean" } else { "Cleaned" };
            self.say(
                verb,
                &format!("{id}: private copies of a repository that is gone"),
            );
        }
        Ok(())
    }

    /// Removes for good what lies in the trash for long.
    fn empty_trash(&mut self) -> Result<(), CliError> {
        let failed = |error: std::io::Error| {
            CliError::environment(format!(
                "the trash {} cannot be emptied: {error}",
                self.trash.path().display()
            ))
        };
        let before = self.now.checked_sub(days(DAYS)).unwrap_or(self.now);
        let old = self.trash.older(before).map_err(failed)?;
        if !self.dry {
            for entry in &old {
                Trash::delete(entry).map_err(failed)?;
            }
        }
        if !old.is_empty() {
            let verb = if self.dry { "To empty" } else { "Emptied" };
            self.say(
                verb,
                &format!(
                    "the trash of {} that lay there for more than {DAYS} days",
                    counted(old.len(), "thing")
                ),
            );
        }
        Ok(())
    }

    /// Takes the run directory and its line in `info/exclude` away when there is no run any more.
    async fn tidy_repository(&mut self, git: &Git, cwd: &Path) {
        let gone = |dir: &Path| std::fs::remove_dir(dir).is_ok() || !dir.exists();
        if !(gone(&self.run_dir.join("runs")) && gone(&self.run_dir)) {
            return;
        }
        // Without an author or a commit there was no run.
        if let Ok(ledger) = Ledger::discover(git, cwd).await
            && let Err(error) = ledger.remove_exclude_line(&self.run_dir)
        {
            self.say("Note", &format!("the line in info/exclude stays: {error}"));
        } else if self.run_dir.exists()
            && let Ok(mut ledger) = Ledger::discover(git, cwd).await
        {
            // A run began meanwhile, and found the line there.
            drop(ledger.exclude_line(&self.run_dir));
        }
    }

    fn conclude(&mut self, done: bool) {
        if done && self.said.is_empty() {
            self.said.push("nothing to clean\n".into());
        }
        if self.moved > 0 {
            let trash = self.trash.path();
            let trash = trash.canonicalize().unwrap_or_else(|_| trash.to_owned());
            self.say("Trash", &shell_word(&trash.display().to_string()));
            self.said.push(format!(
                "{:<11} a later clean deletes what has been there for {DAYS} days\n",
                ""
            ));
            self.say("Repository", "branches and commits are never cleaned");
        }
    }

    fn say(&mut self, name: &str, text: &str) {
        self.said.push(format!("{:<11} {text}\n", format!("{name}:")));
    }
}

/// Decides over a run; `None` for one that cannot be read.
fn fate(standing: Option<&Standing>, age: SignedDuration, wanted: Wanted) -> Fate {
    if wanted == Wanted::Named {
        return Fate::Run;
    }
    let (least, fate) = match wanted {
        Wanted::Finished(least) => (least, Fate::Run),
        _ => (DAYS, Fate::Copies),
    };
    let old = age >= days(least);
    match standing {
        Some(Standing::Running(_) | Standing::Waiting(_) | Standing::Retrying { .. }) => Fate::Untouched,
        Some(Standing::NeverBegan) if age >= days(least).max(SETTING_UP) => Fate::Run,
        Some(Standing::Ended { kind: Some(kind), .. }) if is_finished(*kind) && old => fate,
        Some(Standing::Ended { .. } | Standing::CutOff) if old => {
            Fate::Stays("it can be resumed; to clean it all the same")
        }
        None if old => Fate::Stays("it cannot be read; to clean it all the same"),
        _ => Fate::Untouched,
    }
}

/// Whether a run that ended so has come to an end of its own.
fn is_finished(kind: StopKind) -> bool {
    match kind {
        StopKind::TargetMet
        | StopKind::StopCondition
        | StopKind::NothingToDo
        | StopKind::MaxIterations
        | StopKind::MaxTokens
        | StopKind::MaxCost
        | StopKind::MaxTime
        | StopKind::Plateau
        | StopKind::Failures
        | StopKind::CommitRejected => true,
        StopKind::Configuration
        | StopKind::BranchMoved
        | StopKind::Permanent
        | StopKind::Environment
        | StopKind::Internal
        | StopKind::Interrupted => false,
    }
}

/// What stays of it.
fn branch(run: &Logged, record: bool) -> Option<String> {
    let began = Began::of(&run.records)?;
    let commits = RunState::fold(&run.records).commits;
    let branch = format!("{} ({})", one_line(began.branch), counted(commits, "commit"));
    Some(if record {
        format!("{branch} stays")
    } else {
        format!("its log and notes stay, and {branch}")
    })
}

fn held(id: &RunId) -> CliError {
    CliError::held(format!(
        "the run {id} is held by another process; nothing was changed"
    ))
}

/// Says that there is no such run, and where it is when it was cleaned away.
pub(super) fn no_such(wanted: &str, run_dir: &Path, trash: &Trash) -> CliError {
    let wanted = one_line(wanted);
    let run_dir = run_dir.display();
    match trash.find(&wanted) {
        Some(entry) => CliError::configuration(format!(
            "the run {wanted} was cleaned away; what it left is in {}",
            entry.display()
        ))
        .hint(format!(
            "its branch is where it was: git branch --list '*{wanted}'"
        )),
        None => CliError::configuration(format!(
            "there is no run {wanted} in {run_dir}; `robot-to runs` lists them"
        )),
    }
}

fn days(n: u32) -> SignedDuration {
    SignedDuration::from_hours(i64::from(n) * 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_a_run() {
        let ended = |kind| Standing::Ended {
            reason: String::new(),
            kind: Some(kind),
        };
        let (met, limit, stopped) = (
            ended(StopKind::TargetMet),
            ended(StopKind::MaxTokens),
            ended(StopKind::Interrupted),
        );
        let (all, month, bare) = (Wanted::Finished(0), Wanted::Finished(30), Wanted::Leftovers);
        let stays = |fate: Fate| matches!(fate, Fate::Stays(_));
        let (young, old) = (days(29), days(30));
        assert_eq!(fate(Some(&met), young, all), Fate::Run);
        assert_eq!(fate(Some(&limit), old, month), Fate::Run);
        assert_eq!(fate(Some(&limit), young, month), Fate::Untouched);
        assert_eq!(fate(Some(&met), old, bare), Fate::Copies);
        assert_eq!(fate(Some(&met), young, bare), Fate::Untouched);
        for unfinished in [Some(&stopped), Some(&Standing::CutOff), None] {
            assert!(stays(fate(unfinished, young, all)));
            assert!(stays(fate(unfinished, old, bare)));
            assert_eq!(fate(unfinished, young, bare), Fate::Untouched);
            assert_eq!(fate(unfinished, young, Wanted::Named), Fate::Run);
        }
        let running = Standing::Running("working");
        for wanted in [all, month, bare] {
            assert_eq!(fate(Some(&running), old, wanted), Fate::Untouched);
        }
        let never = Standing::NeverBegan;
        assert_eq!(
            fate(Some(&never), SignedDuration::from_secs(5), all),
            Fate::Untouched
        );
        assert_eq!(fate(Some(&never), SETTING_UP, all), Fate::Run);
        assert_eq!(fate(Some(&never), old, bare), Fate::Run);
    }
}
