//! What a tree holds: read from an index once, and from then on worked out from what changed, without asking git again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diff::{Change, Entry, Mode};
use super::{Oid, git::GitError};

/// Listings that are remembered, and the longest of them: a larger tree is listed by git each time.
const KNOWN: usize = 6;
const MAX_KNOWN: usize = 200_000;

/// The entries of a tree, in the order of their paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing(Vec<(Arc<Path>, Entry)>);

impl Listing {
    /// Reads what `git ls-files --stage -z` prints.
    pub(super) fn parse(listed: &[u8]) -> Result<Self, GitError> {
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let (head, path) = line.split_at_checked(tab)?;
            let mut words = head.split(|byte| *byte == b' ');
            let entry = Entry {
                mode: Mode::parse(words.next()?)?,
                oid: Oid::from_output(words.next()?)?,
            };
            let path = Path::new(OsStr::from_bytes(path.get(1..)?));
            Some((Arc::from(path), entry))
        };
        let lines = listed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let read = lines.map(|line| {
            entry(line).ok_or_else(|| GitError::Output {
                command: "git ls-files --stage".to_owned(),
            })
        });
        let mut entries = read.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by(|(a, _), (b, _)| order(a, b));
        Ok(Self(entries))
    }

    /// The listing after these changes.
    pub(super) fn with(&self, changes: &[Change]) -> Self {
        let changed: HashSet<&Path> = changes.iter().map(|change| change.path.as_path()).collect();
        let kept = self
            .0
            .iter()
            .filter(|(path, _)| !changed.contains(&**path))
            .cloned();
        let mut entries: Vec<_> = kept.collect();
        for change in changes {
            if let Some(new) = &change.new {
                entries.push((change.path.as_path().into(), new.clone()));
            }
        }
        entries.sort_by(|(a, _), (b, _)| order(a, b));
        Self(entries)
    }

    /// The paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(path, _)| &**path)
    }

    /// Whether it holds this path.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.0.binary_search_by(|(other, _)| order(other, path)).is_ok()
    }

    /// The entries with this file name.
    pub(super) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a (Arc<Path>, Entry)> {
        // By the bytes, since there are many: taking a path apart costs more than all the rest.
        self.0.iter().filter(move |(path, _)| {
            let dir = path.as_os_str().as_bytes().strip_suffix(name.as_bytes());
            dir.is_some_and(|dir| dir.is_empty() || dir.ends_with(b"/"))
        })
    }

    /// The directories that hold entries, the root among them.
    pub(super) fn dirs(&self) -> HashSet<&Path> {
        let mut seen = HashSet::from([Path::new("")]);
        for path in self.paths() {
            for dir in path.ancestors().skip(1) {
                if !seen.insert(dir) {
                    break;
                }
            }
        }
        seen
    }

    /// The paths at or below `dirs` in which the two differ.
    pub(super) fn differences(&self, other: &Self, dirs: &[PathBuf]) -> Vec<PathBuf> {
        let below = |listing: &'_ Self| -> BTreeMap<Arc<Path>, Entry> {
            let inside = |path: &Path| dirs.iter().any(|dir| path.starts_with(dir));
            listing
                .0
                .iter()
                .filter(|(path, _)| inside(path))
                .cloned()
                .collect()
        };
        let (ours, theirs) = (below(self), below(other));
        let paths: BTreeSet<&Arc<Path>> = ours.keys().chain(theirs.keys()).collect();
        let differ = paths
            .into_iter()
            .filter(|path| ours.get(*path) != theirs.get(*path));
        differ.map(|path| path.to_path_buf()).collect()
    }

    /// The directories of submodules.
    pub(super) fn gitlinks(&self) -> impl Iterator<Item = &Path> {
        let links = self.0.iter().filter(|(_, entry)| entry.mode == Mode::Gitlink);
        links.map(|(path, _)| &**path)
    }
}

fn order(a: &Path, b: &Path) -> std::cmp::Ordering {
    a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes())
}

/// The listings of the trees that were seen last.
#[derive(Debug, Default)]
pub(super) struct Known {
    listings: Vec<(Oid, Arc<Listing>)>,
    /// The tree that is not forgotten: that of the base commit.
    kept: Option<Oid>,
}

impl Known {
    pub(super) fn get(&self, tree: &Oid) -> Option<Arc<Listing>> {
        let found = self.listings.iter().find(|(known, _)| known == tree);
        found.map(|(_, listing)| Arc::clone(listing))
    }

    /// Does not forget this tree.
    pub(super) fn keep(&mut self, tree: &Oid) {
        self.kept = Some(tree.clone());
    }

    /// Remembers a listing, and forgets the oldest of the others.
    pub(super) fn put(&mut self, tree: &Oid, listing: &Arc<Listing>) {
        if listing.0.len() > MAX_KNOWN || self.get(tree).is_some() {
            return;
        }
        if self.listings.len() >= KNOWN
            && let Some(oldest) = self
                .listings
                .iter()
                .position(|(known, _)| self.kept.as_ref() != Some(known))
        {
            self.listings.remove(oldest);
        }
        self.listings.push((tree.clone(), Arc::clone(listing)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn oid(n: u8) -> Oid {
        format!("{n:040x}").parse().unwrap()
    }

    fn listed(entries: &BTreeMap<String, u8>) -> Listing {
        let lines: String = entries
            .iter()
            .map(|(path, n)| format!("100644 {} 0\t{path}\0", oid(*n)))
            .collect();
        Listing::parse(lines.as_bytes()).unwrap()
    }

    fn trees() -> impl Strategy<Value = BTreeMap<String, u8>> {
        prop::collection::btree_map("[ab](/[ab-]){0,2}", 0u8..4, 0..8)
    }

    proptest! {
        #[test]
        fn what_is_worked_out_is_what_git_would_list(before in trees(), after in trees()) {
            let entry = |n: &u8| Entry { mode: Mode::File, oid: oid(*n) };
            let paths: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            let changes: Vec<Change> = paths
                .into_iter()
                .filter(|path| before.get(*path) != after.get(*path))
                .map(|path| Change {
                    path: path.into(),
                    old: before.get(path).map(entry),
                    new: after.get(path).map(entry),
                })
                .collect();
            let worked_out = listed(&before).with(&changes);
            prop_assert_eq!(&worked_out, &listed(&after));
            let differ: Vec<PathBuf> = changes.iter().map(|change| change.path.clone()).collect();
            prop_assert_eq!(listed(&before).differences(&worked_out, &[PathBuf::new()]), differ.clone());
            let below: Vec<PathBuf> = differ.into_iter().filter(|path| path.starts_with("a")).collect();
            prop_assert_eq!(worked_out.differences(&listed(&before), &["a".into()]), below);
            for path in before.keys().chain(after.keys()) {
                prop_assert_eq!(worked_out.holds(Path::new(path)), after.contains_key(path));
            }
        }
    }

    #[test]
    fn entries_are_found_by_their_whole_name() {
        let paths = ["x", "a/x", "ax", "a/bx", "x/a", "a/b/x"].map(|path| (path.to_owned(), 1));
        let listing = listed(&BTreeMap::from(paths));
        let found: Vec<&Path> = listing.named("x").map(|(path, _)| &**path).collect();
        assert_eq!(found, ["a/b/x", "a/x", "x"].map(Path::new));
    }

    #[test]
    fn directories_are_those_of_entries_and_the_root() {
        let listing = listed(&BTreeMap::from([("a/b/c".to_owned(), 1), ("d".to_owned(), 2)]));
        let dirs = ["", "a", "a/b"].map(Path::new);
        assert_eq!(listing.dirs(), HashSet::from(dirs));
    }
}
