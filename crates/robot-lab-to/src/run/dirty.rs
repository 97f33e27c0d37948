//! Makes the user's uncommitted changes the commit that a run starts from. They are laid over a workspace of the run
//! and become a tree there, by the rules for everything that enters a commit; the user's checkout is only read.

use super::{RunId, StartError};
use crate::settings::Plan;
use crate::workspace::{
    Carry, CarryLimits, Checkout, CommitSpec, DirtyPath, Fidelity, Ledger, Oid, Rejection, RejectionKind,
    RunRepo, Snapshot, SnapshotRules, ZoneError,
};
use crate::world::chain;
use std::collections::HashSet;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Paths that an error names.
const MAX_NAMED: usize = 10;

/// The commit of the uncommitted changes, on top of the one that is checked out, and how many paths they are; `None`
/// when there are none. It is in the run repository only. The checkout `name` is used on the way.
pub(super) async fn commit_dirty(
    plan: &Plan,
    ledger: &Ledger,
    zones: &RunRepo,
    name: &str,
    id: &RunId,
    at: i64,
    cancel: &CancellationToken,
) -> Result<Option<(Oid, usize)>, StartError> {
    let zone = |error: ZoneError| StartError::Zone(error);
    let dirty = ledger.dirty().await.map_err(|error| zone(error.into()))?;
    if dirty.is_empty() {
        return Ok(None);
    }
    if let Some(entry) = dirty.iter().find(|entry| entry.unmerged) {
        return Err(refused(&format!(
            "{} is in the middle of a merge; finish it first",
            entry.path.display()
        )));
    }
    let head = ledger.base().clone();
    let sorted = sort(ledger.top().to_owned(), dirty.clone(), plan.max_file_bytes).await?;
    let mut workspace = Checkout::create(zones, name).await.map_err(zone)?;
    workspace.prepare(&head, &head).await.map_err(zone)?;
    workspace.discard(sorted.gone).await.map_err(zone)?;
    let (top, to, there, cancel) = (
        ledger.top().to_owned(),
        workspace.path().to_owned(),
        sorted.there,
        cancel.clone(),
    );
    let laid = tokio::task::spawn_blocking(move || {
        Carry::survey(&top, there, Fidelity::Exact, CarryLimits::default(), &cancel)?.copy_to(&to, &cancel)
    });
    laid.await
        .map_err(|error| refused(&error.to_string()))?
        .map_err(|error| refused(&chain(&error)))?;
    let rules = SnapshotRules {
        max_file_bytes: plan.max_file_bytes,
    };
    let tree = match workspace.snapshot(&head, &rules).await.map_err(zone)? {
        Snapshot::Tree(tree) => tree,
        Snapshot::Rejected(reasons) => return Err(rejected(&reasons)),
    };
    let changed = zones.changed_paths(&head, &tree).await;
    let changed: HashSet<PathBuf> = changed
        .map_err(|error| zone(error.into()))?
        .into_iter()
        .map(|change| change.path)
        .collect();
    let left_out = |entry: &&DirtyPath| {
        entry.staged
            && !changed.contains(&entry.path)
            && ledger.top().join(&entry.path).symlink_metadata().is_ok()
    };
    if let Some(entry) = dirty.iter().find(left_out) {
        return Err(refused(&format!(
            "{} is added although it is ignored; commit it, or take it back with `git restore --staged`",
            entry.path.display()
        )));
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let spec = CommitSpec {
        sign: plan.sign,
        tree,
        parent: head,
        message: format!(
            "robot-to: the uncommitted changes that the run starts from\n\nRobot-To-Run: {id}\n"
        )
        .into_bytes(),
        identity: ledger.identity().clone(),
        at,
    };
    let commit = zones
        .commit_tree(&spec)
        .await
        .map_err(|error| zone(error.into()))?;
    Ok(Some((commit, changed.len())))
}

/// The changes by what is to be done for them.
#[derive(Default)]
struct Sorted {
    there: Vec<PathBuf>,
    gone: Vec<PathBuf>,
}

/// Tells from `lstat` alone what is there, what is gone, and what can enter no commit.
async fn sort(top: PathBuf, dirty: Vec<DirtyPath>, max_file_bytes: u64) -> Result<Sorted, StartError> {
    let work = move || {
        let (mut sorted, mut reasons) = (Sorted::default(), Vec::new());
        for DirtyPath { path, .. } in dirty {
            match unfit(&top, &path, max_file_bytes) {
                Ok(()) => sorted.there.push(path),
                Err(None) => sorted.gone.push(path),
                Err(Some(kind)) => reasons.push(Rejection { path, kind }),
            }
        }
        if reasons.is_empty() {
            Ok(sorted)
        } else {
            Err(rejected(&reasons))
        }
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| refused(&error.to_string()))?
}

/// `Err(None)`: it is not there.
fn unfit(top: &Path, path: &Path, limit: u64) -> Result<(), Option<RejectionKind>> {
    let meta = top.join(path).symlink_metadata().map_err(|_| None)?;
    let kind = meta.file_type();
    let special = kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device();
    match meta.len() {
        _ if special => Err(Some(RejectionKind::Special)),
        _ if kind.is_dir() => Err(Some(RejectionKind::NestedRepository)),
        bytes if kind.is_file() && bytes > limit => Err(Some(RejectionKind::TooLarge { bytes, limit })),
        _ => Ok(()),
    }
}

fn rejected(reasons: &[Rejection]) -> StartError {
    let named: Vec<String> = reasons.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = match reasons.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    refused(&format!("{}{more}", named.join("; ")))
}

fn refused(why: &str) -> StartError {
    StartError::Configuration(format!("the uncommitted changes cannot be a commit: {why}"))
}
