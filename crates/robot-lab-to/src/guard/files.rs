//! What the file guards of one candidate share: which file a call means, and what the robot knows of it. It outlives an
//! invocation, so it holds over nudges and repairs.

use crate::tools::Root;
use robot_lab::ToolCall;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files of one workspace, by the paths that they really have.
pub(crate) struct Files {
    pub(super) root: Arc<Root>,
    /// Files that the robot has read, edited or written.
    known: Mutex<BTreeSet<PathBuf>>,
    /// Files that were not there before the robot wrote them.
    made: Mutex<BTreeSet<PathBuf>>,
}

impl Files {
    pub(crate) fn new(root: Arc<Root>) -> Self {
        Self {
            root,
            known: Mutex::default(),
            made: Mutex::default(),
        }
    }

    /// The file that a call names, whichever way it is spelt; `None` when it names none that can be.
    pub(super) fn named(&self, call: &ToolCall) -> Option<PathBuf> {
        named(&self.root, call).map(|path| self.root.real(&path))
    }

    pub(super) fn know(&self, path: PathBuf) {
        lock(&self.known).insert(path);
    }

    pub(super) fn knows(&self, path: &Path) -> bool {
        lock(&self.known).contains(path)
    }

    /// Bytes of the largest file that it knows.
    pub(super) fn largest_known(&self) -> usize {
        let sizes = lock(&self.known)
            .iter()
            .filter_map(|path| self.root.size(path))
            .max();
        sizes
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or_default()
    }

    pub(super) fn made(&self, path: PathBuf) {
        lock(&self.made).insert(path);
    }

    pub(super) fn has_made(&self, path: &Path) -> bool {
        lock(&self.made).contains(path)
    }
}

/// The path that a call names, relative to the top of the workspace. Links in it are not followed.
pub(super) fn named(root: &Root, call: &ToolCall) -> Option<PathBuf> {
    let named = ["path", "file_path"]
        .iter()
        .find_map(|key| call.arguments.get(*key).and_then(Value::as_str));
    named.and_then(|path| root.resolve(path).ok())
}

fn lock(set: &Mutex<BTreeSet<PathBuf>>) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}
