//! What a checkout needs besides its tree: files copied from the user's checkout, and what the setup command makes.
//!
//! Both are done once, again when the directory was lost, and setup also when lock files changed. They make ignored
//! files; whatever they do to the tree is undone by preparing the checkout after them.

use super::{BenchCache, RealWorld, chain, zone};
use crate::event::{Event, MAX_TEXT};
use crate::iteration::StopReason;
use crate::shell::{Shell, head_and_tail};
use crate::workspace::{Carry, CarryError, Checkout, Incarnation, Oid, is_lock_file};
use robot_exec::{Status, Stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copied files that are looked for each time, so that one that a robot deleted comes back.
const MAX_LOOKED_FOR: usize = 1_000;
/// Lock files that a message names.
const MAX_NAMED: usize = 5;

/// Which of the two kinds of checkouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Workspace,
    Bench,
}

/// What is to be done to checkouts, and what was done to them.
pub(crate) struct Furnishing {
    /// Runs setup, as it runs verify.
    pub(crate) shell: Shell,
    /// Files to copy.
    pub(crate) carry: Option<Arc<Carry>>,
    pub(crate) workspace: Furnished,
    pub(crate) bench: Furnished,
}

/// What was done to a checkout.
#[derive(Clone, Debug, Default)]
pub(crate) struct Furnished {
    directory: Option<Incarnation>,
    pub(super) set_up: Option<SetUp>,
}

/// What setup has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetUp {
    /// The tree that it succeeded with last.
    tree: Oid,
    /// Whether it failed with another one since, so that nobody knows what is there.
    spoilt: bool,
}

/// Why a checkout is not furnished.
pub(crate) enum Unfurnished {
    /// The setup command failed. `locks` are the lock files that differ from those of the parent; `changed` says
    /// whether anything does, so that a candidate may be to blame.
    Setup {
        detail: String,
        output: String,
        locks: Vec<PathBuf>,
        changed: bool,
    },
    /// The run ends.
    Stopped(StopReason),
}

impl From<StopReason> for Unfurnished {
    fn from(reason: StopReason) -> Self {
        Self::Stopped(reason)
    }
}

impl Unfurnished {
    /// As the end of a run, or of its start, for which no candidate is to blame.
    pub(crate) fn into_reason(self, make: impl FnOnce(String) -> StopReason) -> StopReason {
        match self {
            Self::Stopped(reason) => reason,
            Self::Setup { detail, output, .. } => make(format!(
                "the setup command failed ({detail}); it printed: {}",
                output.trim()
            )),
        }
    }
}

impl RealWorld {
    /// Furnishes both checkouts at the commit that the run starts or goes on from.
    pub(crate) async fn furnish_all(&mut self, commit: &Oid) -> Result<(), Unfurnished> {
        let plain = self.plan.setup.is_none() && self.plan.copy.is_empty();
        // What a grade leaves is looked for in the bench, which must be there for that.
        if plain && self.plan.bench_cache == BenchCache::Keep {
            return Ok(());
        }
        for which in [Zone::Workspace, Zone::Bench] {
            // A run that goes on finds what an earlier process copied. It could not keep out of a commit what the user
            // has deleted since.
            if self.branch.is_some() && !self.plan.copy.is_empty() {
                self.empty(which).await?;
            }
            self.prepare(which, commit, commit).await?;
            self.furnish(which, commit, commit).await?;
        }
        Ok(())
    }

    /// Brings a checkout to a tree, unless the run ends meanwhile.
    pub(super) async fn prepare(&mut self, which: Zone, tree: &Oid, head: &Oid) -> Result<(), StopReason> {
        let halt = self.halt.clone();
        let checkout = match which {
            Zone::Workspace => &mut self.workspace,
            Zone::Bench => &mut self.bench,
        };
        tokio::select! {
            prepared = checkout.prepare(tree, head) => prepared.map_err(zone),
            () = halt.soft().cancelled() => Err(self.halted()),
        }
    }

    /// Does what is to be done to a checkout that is at `tree`, and leaves it exactly there.
    pub(super) async fn furnish(&mut self, which: Zone, tree: &Oid, head: &Oid) -> Result<(), Unfurnished> {
        let furnished = match which {
            Zone::Workspace => self.furnishing.workspace.clone(),
            Zone::Bench => self.furnishing.bench.clone(),
        };
        let is_lost = |now| furnished.directory.is_none() || furnished.directory != now;
        if let Some(carry) = self.furnishing.carry.clone() {
            let checkout = self.checkout(which);
            if is_lost(checkout.incarnation()) || is_missing(&carry, checkout.path()) {
                self.copy(&carry, which, tree, head).await?;
            }
        }
        let directory = self.checkout(which).incarnation();
        let lost = is_lost(directory);
        let before = furnished.set_up.filter(|_| !lost);
        let spoilt = before.clone().map(|before| SetUp {
            spoilt: true,
            ..before
        });
        let set_up = self.set_up(which, before, tree, head).await;
        let now = Furnished {
            directory,
            set_up: set_up.as_ref().map_or(spoilt, Clone::clone),
        };
        match which {
            Zone::Workspace => self.furnishing.workspace = now,
            Zone::Bench => self.furnishing.bench = now,
        }
        set_up.map(drop)
    }

    /// Copies into a checkout; once more into an empty one where something in it stands in the way.
    async fn copy(
        &mut self,
        carry: &Arc<Carry>,
        which: Zone,
        tree: &Oid,
        head: &Oid,
    ) -> Result<(), StopReason> {
        let mut again = false;
        loop {
            let (carry, to) = (Arc::clone(carry), self.checkout(which).path().to_owned());
            let cancel = self.halt.soft().child_token();
            let copied = tokio::task::spawn_blocking(move || carry.copy_to(&to, &cancel)).await;
            match copied {
                Ok(Ok(())) => break,
                Ok(Err(CarryError::Cancelled)) => return Err(self.halted()),
                Ok(Err(CarryError::Io { .. })) if !again => {
                    again = true;
                    self.empty(which).await?;
                    self.prepare(which, tree, head).await?;
                }
                Ok(Err(error)) => return Err(StopReason::environment(chain(&error))),
                Err(error) => return Err(super::internal(error)),
            }
        }
        // What it did to files of the tree is undone.
        self.prepare(which, tree, head).await
    }

    fn checkout(&self, which: Zone) -> &Checkout {
        match which {
            Zone::Workspace => &self.workspace,
            Zone::Bench => &self.bench,
        }
    }

    async fn empty(&mut self, which: Zone) -> Result<(), StopReason> {
        let checkout = match which {
            Zone::Workspace => &mut self.workspace,
            Zone::Bench => &mut self.bench,
        };
        checkout.empty().await.map_err(zone)
    }

    /// Runs setup where that is due. Answers what the checkout is set up with.
    async fn set_up(
        &mut self,
        which: Zone,
        before: Option<SetUp>,
        treeish: &Oid,
        head: &Oid,
    ) -> Result<Option<SetUp>, Unfurnished> {
        let Some(command) = self.plan.setup.clone() else {
            return Ok(None);
        };
        let tree = self.zones.tree_of(treeish).await;
        let tree = tree.map_err(|error| StopReason::environment(chain(&error)))?;
        let mut locks = Vec::new();
        if let Some(before) = before {
            if before.tree != tree {
                locks = self.changed_locks(&before.tree, &tree).await?;
            }
            if locks.is_empty() && !before.spoilt {
                return Ok(Some(before));
            }
        }
        let parent = self.zones.tree_of(head).await;
        let changed = parent.map_err(|error| StopReason::environment(chain(&error)))? != tree;
        let place = match which {
            Zone::Workspace => "workspace",
            Zone::Bench => "bench",
        };
        let dir = self.checkout(which).path().join(self.ledger.subdir());
        if changed && !dir.is_dir() {
            return Err(Unfurnished::Setup {
                detail: "not run".to_owned(),
                output: "the directory that it runs in is gone".to_owned(),
                locks,
                changed,
            });
        }
        let append = |event| {
            self.journal
                .append(event)
                .map(drop)
                .map_err(StopReason::environment)
        };
        append(Event::SetupStarted {
            place: place.to_owned(),
            locks: locks
                .iter()
                .take(MAX_NAMED)
                .map(|path| path.display().to_string())
                .collect(),
        })?;
        let cancel = self.halt.soft().child_token();
        let timeout = self.plan.setup_timeout;
        let ran = self
            .furnishing
            .shell
            .run(&command, &dir, timeout, Stderr::Merged, &cancel)
            .await;
        let output = ran.map_err(|error| {
            StopReason::environment(format!("the setup command could not be started: {error}"))
        })?;
        if output.status == Status::Cancelled {
            return Err(self.halted().into());
        }
        let (ok, detail) = (output.status.success(), output.status.to_string());
        let printed = head_and_tail(&output.stdout.text(), MAX_TEXT);
        append(Event::SetupFinished {
            place: place.to_owned(),
            ok,
            detail: detail.clone(),
            output: printed.clone(),
            elapsed_ms: u64::try_from(output.elapsed.as_millis()).unwrap_or(u64::MAX),
        })?;
        // What it did to files of the tree is undone.
        self.prepare(which, treeish, head).await?;
        if ok {
            return Ok(Some(SetUp { tree, spoilt: false }));
        }
        let blamed = self.changed_locks(head, &tree).await?;
        Err(Unfurnished::Setup {
            detail,
            output: printed,
            locks: blamed,
            changed,
        })
    }

    /// The lock files in which two trees differ.
    async fn changed_locks(&self, before: &Oid, tree: &Oid) -> Result<Vec<PathBuf>, StopReason> {
        let changed = self.zones.changed_under(before, tree, &[]).await;
        let mut changed = changed.map_err(|error| StopReason::environment(chain(&error)))?;
        changed.retain(|path| is_lock_file(path));
        Ok(changed)
    }
}

fn is_missing(carry: &Carry, dir: &Path) -> bool {
    carry
        .paths()
        .take(MAX_LOOKED_FOR)
        .any(|path| !is_there(path, dir))
}

/// Whether something is there, and not by way of a link.
fn is_there(path: &Path, dir: &Path) -> bool {
    let look = |path: &Path| dir.join(path).symlink_metadata();
    let mut above = path
        .ancestors()
        .skip(1)
        .filter(|above| !above.as_os_str().is_empty());
    above.all(|above| look(above).is_ok_and(|meta| meta.is_dir())) && look(path).is_ok()
}

/// What the robot is told of a setup that its change broke, by lock files where it changed any.
pub(super) fn broken_setup(detail: &str, output: &str, locks: &[PathBuf]) -> String {
    let named: Vec<String> = locks
        .iter()
        .take(MAX_NAMED)
        .map(|path| path.display().to_string())
        .collect();
    let of = if named.is_empty() {
        String::new()
    } else {
        format!(" of {}", named.join(", "))
    };
    format!("the setup command failed ({detail}) with your change{of}:\n{output}")
}
