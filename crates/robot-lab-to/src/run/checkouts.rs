//! What is found out at the start about the checkouts of a run: whether there is room for them, and which ignored
//! files of the user's checkout go into them.

use super::StartError;
use crate::event::Event;
use crate::log::Journal;
use crate::settings::{Place, Plan};
use crate::workspace::{Carry, CarryLimits, Fidelity, Ledger, Listed, free_space};
use robot_lab::counted;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Bytes that must be free beyond the two checkouts, and where the run is recorded.
const MIN_WORK: u64 = 100 << 20;
const MIN_RUN_DIR: u64 = 20 << 20;
/// Paths that a message names.
const MAX_NAMED: usize = 3;

/// Looks for room: twice the files of the commit and what is copied, and 100 MiB.
pub(super) fn check_space(
    place: &Place,
    run_dir: &Path,
    files: &Listed,
    carry: Option<&Carry>,
) -> Result<(), StartError> {
    let copied = carry.map_or(0, |carry| carry.bytes);
    let checkouts = files.bytes.saturating_add(copied).saturating_mul(2);
    for (path, flag, needed) in [
        (
            place.work_dir.as_path(),
            "--work-dir",
            checkouts.saturating_add(MIN_WORK),
        ),
        (run_dir, "--run-dir", MIN_RUN_DIR),
    ] {
        match free_space(path) {
            Some(free) if free < needed => {
                return Err(StartError::NoSpace {
                    path: path.to_owned(),
                    flag,
                    free: free >> 20,
                    needed: needed.div_ceil(1 << 20),
                });
            }
            // Where the file system does not say, the run tries.
            _ => {}
        }
    }
    Ok(())
}

/// Finds the ignored files that match the patterns of `--copy`. A pattern that matches none is an error when a run
/// begins (`new`); when it goes on, the user may have deleted them since, and is told.
pub(super) async fn choose(
    plan: &Plan,
    new: bool,
    ledger: &Ledger,
    run_dir: &Path,
    files: &Listed,
    journal: &Journal,
    cancel: &CancellationToken,
) -> Result<Option<Arc<Carry>>, StartError> {
    if plan.copy.is_empty() {
        return Ok(None);
    }
    let configuration = |text: String| StartError::Configuration(text);
    let own = run_dir.strip_prefix(ledger.top()).ok().map(Path::to_owned);
    let tracked: BTreeSet<&Path> = files.paths.iter().map(PathBuf::as_path).collect();
    let mut chosen = BTreeSet::new();
    for pattern in &plan.copy {
        let found = ledger.ignored(pattern).await.map_err(|error| {
            configuration(format!(
                "--copy {pattern:?} cannot be resolved: {}",
                crate::world::chain(&error)
            ))
        })?;
        let mut any = false;
        for path in found {
            let ours = own.as_ref().is_some_and(|own| path.starts_with(own));
            if !ours && !tracked.contains(path.as_path()) {
                any |= !path.as_os_str().as_bytes().ends_with(b"/");
                chosen.insert(path);
            }
        }
        if any {
            continue;
        }
        let none = format!(
            "--copy {pattern:?} matches no ignored file of {}",
            ledger.top().display()
        );
        if new {
            return Err(configuration(format!(
                "{none}; mend the pattern, which is one of git from the top of the repository (`**/` for any depth)"
            )));
        }
        journal.note(Event::Notice {
            message: format!("{none} any more, so that robots and grades go without"),
        });
    }
    if chosen.is_empty() {
        return Ok(None);
    }
    let (top, cancel) = (ledger.top().to_owned(), cancel.clone());
    let survey = move || Carry::survey(&top, chosen, Fidelity::Careful, CarryLimits::default(), &cancel);
    let carry = tokio::task::spawn_blocking(survey).await;
    let carry = match carry {
        Ok(Ok(carry)) => carry,
        Ok(Err(error)) => return Err(configuration(format!("--copy: {error}"))),
        Err(error) => return Err(configuration(format!("--copy: {error}"))),
    };
    journal.note(Event::Notice {
        message: told(&carry),
    });
    Ok(Some(Arc::new(carry)))
}

fn told(carry: &Carry) -> String {
    let count = carry.paths().count();
    let are = if count == 1 { "is" } else { "are" };
    let mut text = format!(
        "{} of your checkout ({}) {are} copied, for robots to read",
        counted(count, "ignored file"),
        counted(carry.bytes, "byte")
    );
    if !carry.left_out.is_empty() {
        let named = carry.left_out.iter().take(MAX_NAMED);
        let named: Vec<String> = named.map(|path| path.display().to_string()).collect();
        let more = match carry.left_out.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        text.push_str(&format!("; left out: {}{more}", named.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::HostEnv;

    #[test]
    fn a_run_needs_room_for_two_checkouts_and_says_how_much() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place {
            repo: dir.path().to_owned(),
            run_dir: dir.path().to_owned(),
            work_dir: dir.path().join("not there yet"),
            host: HostEnv::default(),
            secrets: Vec::new(),
            helper: PathBuf::new(),
        };
        let files = |bytes| Listed {
            bytes,
            ..Listed::default()
        };
        check_space(&place, dir.path(), &files(0), None).unwrap();
        let error = check_space(&place, dir.path(), &files(1 << 60), None).unwrap_err();
        let needed = (2_u64 << 40) + 100;
        let text = error.to_string();
        for part in [
            &format!("needs {needed} MiB"),
            "MiB free",
            "--work-dir",
            "nothing of it is left",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // More than can be counted is too much as well.
        assert!(check_space(&place, dir.path(), &files(u64::MAX), None).is_err());
    }
}
