//! What a checkout needs besides its tree: files copied from the user's checkout, and what the setup command makes.
//!
//! Both are done once, again when the directory was lost, and setup also when lock files changed. They make ignored
//! files; whatever they do to the tree is undone by preparing the checkout after them.

use super::{RealWorld, chain, zone};
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
    /// The setup command failed. `locks` are the lock files that differ from those of the parent.
    Setup {
        detail: String,
        output: String,
        locks: Vec<PathBuf>,
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
        if self.plan.setup.is_none() && self.furnishing.carry.is_none() {
            return Ok(());
        }
        for which in [Zone::Workspace, Zone::Bench] {
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
        let (checkout, furnished) = match which {
            Zone::Workspace => (&self.workspace, self.furnishing.workspace.clone()),
            Zone::Bench => (&self.bench, self.furnishing.bench.clone()),
        };
        let directory = checkout.incarnation();
        let lost = furnished.directory.is_none() || furnished.directory != directory;
        if let Some(carry) = self.furnishing.carry.clone()
            && (lost || is_missing(&carry, checkout.path()))
        {
            self.copy(&carry, checkout).await?;
        }
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

    async fn copy(&self, carry: &Arc<Carry>, checkout: &Checkout) -> Result<(), StopReason> {
        let (carry, to) = (Arc::clone(carry), checkout.path().to_owned());
        let cancel = self.halt.soft().child_token();
        let copied = tokio::task::spawn_blocking(move || carry.copy_to(&to, &cancel)).await;
        match copied {
            Ok(Ok(())) => Ok(()),
            Ok(Err(CarryError::Cancelled)) => Err(self.halted()),
            Ok(Err(error)) => Err(StopReason::environment(chain(&error))),
            Err(error) => Err(super::internal(error)),
        }
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
        let (place, dir) = match which {
            Zone::Workspace => ("workspace", self.workspace.path()),
            Zone::Bench => ("bench", self.bench.path()),
        };
        let dir = dir.join(self.ledger.subdir());
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
        .any(|path| dir.join(path).symlink_metadata().is_err())
}

/// What the robot is told of a setup that its lock files broke.
pub(super) fn broken_setup(detail: &str, output: &str, locks: &[PathBuf]) -> String {
    let named: Vec<String> = locks
        .iter()
        .take(MAX_NAMED)
        .map(|path| path.display().to_string())
        .collect();
    format!(
        "the setup command failed ({detail}) with your change of {}:\n{output}",
        named.join(", ")
    )
}
