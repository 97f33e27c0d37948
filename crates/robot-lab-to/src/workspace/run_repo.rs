//! The two bare repositories of a run: `run.git` with the refs of everything that was made, and `visible.git` with the
//! history that a robot may read.
//!
//! What the run makes are objects in a directory of their own, which both kinds of checkouts and `run.git` borrow, so
//! that nothing is copied from one to the other. `visible.git` borrows nothing: it holds the latest ancestors of the
//! commit that the run starts from, and no other branch of the user.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::config_text::{Config, alternates_line};
use super::discover::Setting;
use super::git::{Git, GitError};
use super::git_call::{Call, LONG_TIMEOUT};
use super::ignored::Copied;
use super::listing::{Known, Listing};
use super::{Identity, Ledger, Oid, WorkDir, ZoneError};

/// How many commits of history a robot sees.
const VISIBLE_COMMITS: usize = 100;
/// Trees that are remembered.
const KNOWN_TREES: usize = 10_000;
/// How long signing may take.
const SIGNING_TIMEOUT: Duration = Duration::from_secs(30);
/// Where the user's keys and agents are.
const SIGNING_VARIABLES: [&str; 5] = ["HOME", "GNUPGHOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "USER"];
const VISIBLE_REF: &str = "refs/heads/base";

/// The repositories of one run. Cloning is cheap: all clones are the same run.
#[derive(Clone, Debug)]
pub struct RunRepo {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    git: Git,
    work: WorkDir,
    excludes: Vec<u8>,
    settings: Vec<Setting>,
    signing: Vec<Setting>,
    identity: Identity,
    /// The branch of the run at the start has this format of ids: `sha1` or `sha256`.
    format: String,
    /// Trees of commits, and of trees themselves, that were asked for.
    trees: Mutex<HashMap<Oid, Oid>>,
    /// What the latest trees hold.
    listings: Mutex<Known>,
    /// What came from the user's checkout and may enter no commit.
    copied: OnceLock<Copied>,
}

/// A commit to be made. The same specification always gives the same id, unless it is signed.
#[derive(Clone, Debug)]
pub struct CommitSpec {
    /// The graded tree.
    pub tree: Oid,
    /// Its only parent.
    pub parent: Oid,
    /// The whole message; taken as it is.
    pub message: Vec<u8>,
    /// Author and committer.
    pub identity: Identity,
    /// Seconds since 1970, UTC; author and committer date.
    pub at: i64,
    /// Whether it is signed, as the user's git is configured to.
    pub sign: bool,
}

impl RunRepo {
    /// Makes the repositories of a run, or brings those of an earlier process up to date.
    ///
    /// `tip` is the commit that robots start from: the base at first, the tip of the run branch on resume.
    pub async fn create(git: &Git, ledger: &Ledger, work: &WorkDir, tip: &Oid) -> Result<Self, ZoneError> {
        let facts = &ledger.facts;
        let zones = Self::open(git, ledger, work);
        let (run, visible) = (work.run_git(), work.visible_git());
        for dir in [&run, &visible] {
            zones.init(dir).await?;
        }
        let write = |path: &Path, bytes: &[u8]| {
            fs::write(path, bytes).map_err(|source| ZoneError::Io {
                path: path.to_owned(),
                source,
            })
        };
        // For whoever looks into it: what the run made, and what it was made from.
        let mut borrowed = alternates_line(&facts.objects);
        borrowed.extend(alternates_line(&work.made()));
        write(&run.join("objects/info/alternates"), &borrowed)?;
        write(&run.join("config"), &zones.config().bare().text())?;
        write(&run.join("info/exclude"), &facts.excludes)?;
        if let Some(shallow) = &facts.shallow {
            write(&run.join("shallow"), shallow)?;
        }
        write(&visible.join("config"), &zones.config().bare().text())?;
        zones.publish(tip).await?;
        Ok(zones)
    }

    /// Takes the repositories of a run as they are. Another process may be at work in them.
    #[must_use]
    pub fn open(git: &Git, ledger: &Ledger, work: &WorkDir) -> Self {
        let facts = &ledger.facts;
        let shared = Shared {
            git: git.clone(),
            work: work.clone(),
            excludes: facts.excludes.clone(),
            settings: facts.settings.clone(),
            signing: facts.signing.clone(),
            identity: facts.identity.clone(),
            format: facts.format.clone(),
            trees: Mutex::default(),
            listings: Mutex::default(),
            copied: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    async fn init(&self, dir: &Path) -> Result<(), ZoneError> {
        let format = format!("--object-format={}", self.shared.format);
        let args = [
            "init",
            "--quiet",
            "--bare",
            "--template=",
            "--initial-branch=base",
            format.as_str(),
            ".",
        ];
        super::disk::private_dir(dir).map_err(|source| ZoneError::Io {
            path: dir.to_owned(),
            source,
        })?;
        self.shared.git.hardened(dir).args(args).run().await?;
        for part in ["info", "objects/info"] {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(|source| ZoneError::Io { path, source })?;
        }
        Ok(())
    }

    /// The work directory of the run.
    #[must_use]
    pub fn work(&self) -> &WorkDir {
        &self.shared.work
    }

    /// Makes the commit object in the run repository. Nothing points to it yet.
    pub async fn commit_tree(&self, spec: &CommitSpec) -> Result<Oid, GitError> {
        let date = format!("@{} +0000", spec.at);
        let call = if spec.sign {
            self.signing_call()
        } else {
            self.call()
        };
        let call = call.args(["commit-tree", spec.tree.as_str(), "-p", spec.parent.as_str()]);
        let call = if spec.sign { call.args(["-S"]) } else { call };
        let call = call
            .env("GIT_AUTHOR_NAME", &spec.identity.name)
            .env("GIT_AUTHOR_EMAIL", &spec.identity.email);
        let call = call.env("GIT_COMMITTER_NAME", &spec.identity.name);
        let call = call.env("GIT_COMMITTER_EMAIL", &spec.identity.email);
        let commit = call
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_DATE", &date)
            .stdin(spec.message.clone())
            .oid()
            .await?;
        self.know_tree(&commit, &spec.tree);
        Ok(commit)
    }

    /// A call that signs: with the user's programs and keys, and nobody there to ask for a passphrase.
    fn signing_call(&self) -> Call {
        let mut call = self.call().timeout(SIGNING_TIMEOUT);
        for name in SIGNING_VARIABLES {
            if let Some(value) = self.shared.git.host().get(name) {
                call = call.env(name, value);
            }
        }
        for Setting { key, value } in &self.shared.signing {
            call = call.config(&format!("{key}={}", String::from_utf8_lossy(value)));
        }
        call
    }

    /// Whether a commit is what the specification asks for, but for its signature.
    pub(crate) async fn is_commit_of(&self, commit: &Oid, spec: &CommitSpec) -> Result<bool, GitError> {
        let text = self
            .call()
            .args(["cat-file", "commit", commit.as_str()])
            .run()
            .await?;
        let end = text
            .windows(2)
            .position(|pair| pair == b"\n\n")
            .unwrap_or(text.len());
        let (head, message) = text.split_at_checked(end).unwrap_or_default();
        let head = String::from_utf8_lossy(head);
        let named = |name: &'static str| head.lines().filter_map(move |line| line.strip_prefix(name));
        Ok(named("tree ").eq([spec.tree.as_str()])
            && named("parent ").eq([spec.parent.as_str()])
            && message.get(2..).is_some_and(|message| message == spec.message))
    }

    /// Keeps a discarded candidate under `refs/attempts/<iteration>-<candidate>`, with its reason as the message.
    /// Keeping it again replaces it.
    pub async fn keep_attempt(
        &self,
        iteration: u32,
        candidate: u32,
        tree: &Oid,
        parent: &Oid,
        reason: &str,
    ) -> Result<Oid, GitError> {
        let commit = self
            .commit_tree(&CommitSpec {
                tree: tree.clone(),
                parent: parent.clone(),
                message: reason.replace('\0', "").into_bytes(),
                identity: self.shared.identity.clone(),
                at: 0,
                sign: false,
            })
            .await?;
        let reference = format!("refs/attempts/{iteration}-{candidate}");
        self.call()
            .args(["update-ref", reference.as_str(), commit.as_str()])
            .run()
            .await?;
        Ok(commit)
    }

    /// The commit kept for a discarded candidate, if there is one.
    pub async fn attempt(&self, iteration: u32, candidate: u32) -> Result<Option<Oid>, GitError> {
        let reference = format!("refs/attempts/{iteration}-{candidate}");
        self.resolve(&self.shared.work.run_git(), &reference).await
    }

    /// The tree of a commit; a tree is its own.
    pub async fn tree_of(&self, treeish: &Oid) -> Result<Oid, GitError> {
        if let Some(tree) = self.known_trees().get(treeish) {
            return Ok(tree.clone());
        }
        let wanted = format!("{treeish}^{{tree}}");
        let call = self
            .call()
            .args(["rev-parse", "--verify", "--end-of-options", wanted.as_str()]);
        let tree = call.oid().await?;
        self.know_tree(treeish, &tree);
        Ok(tree)
    }

    fn known_trees(&self) -> MutexGuard<'_, HashMap<Oid, Oid>> {
        self.shared.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an id names never changes, so git need not be asked twice.
    pub(super) fn know_tree(&self, treeish: &Oid, tree: &Oid) {
        let mut known = self.known_trees();
        if known.len() >= KNOWN_TREES {
            known.clear();
        }
        known.insert(treeish.clone(), tree.clone());
    }

    /// Packs what `commit` has and `old` has not.
    pub(super) async fn pack(&self, commit: &Oid, old: &Oid) -> Result<File, ZoneError> {
        self.pack_objects(&format!("{commit}\n^{old}\n"), &[]).await
    }

    async fn pack_objects(&self, revisions: &str, options: &[&str]) -> Result<File, ZoneError> {
        let tmp = self.shared.work.tmp();
        let failed = |source| ZoneError::Io {
            path: tmp.clone(),
            source,
        };
        // The end of a run takes it away.
        super::disk::private_dir(&tmp).map_err(failed)?;
        let mut pack = tempfile::tempfile_in(&tmp).map_err(failed)?;
        let out = pack.try_clone().map_err(failed)?;
        let call = self
            .call()
            .args(["pack-objects", "--revs", "--stdout", "-q"])
            .args(options);
        call.stdin(revisions)
            .stdout_file(out)
            .timeout(LONG_TIMEOUT)
            .run()
            .await?;
        pack.rewind().map_err(failed)?;
        Ok(pack)
    }

    /// Lets robots see a commit and its history. What the run makes from then on they see as it is made.
    async fn publish(&self, commit: &Oid) -> Result<(), ZoneError> {
        let visible = self.shared.work.visible_git();
        let seen = self.resolve(&visible, VISIBLE_REF).await?;
        if seen.as_ref() == Some(commit) {
            return Ok(());
        }
        let (pack, boundary) = match &seen {
            Some(seen) => (self.pack(commit, seen).await?, None),
            None => self
                .history(commit)
                .await
                .map(|(pack, boundary)| (pack, Some(boundary)))?,
        };
        let git = &self.shared.git;
        let store = if seen.is_some() {
            vec!["unpack-objects", "-q"]
        } else {
            vec!["index-pack", "--stdin"]
        };
        git.hardened(&visible)
            .args(store)
            .stdin_file(pack)
            .timeout(LONG_TIMEOUT)
            .run()
            .await?;
        if let Some(boundary) = boundary.filter(|lines| !lines.is_empty()) {
            let path = visible.join("shallow");
            fs::write(&path, boundary).map_err(|source| ZoneError::Io { path, source })?;
        }
        git.hardened(&visible)
            .args(["update-ref", VISIBLE_REF, commit.as_str()])
            .run()
            .await?;
        Ok(())
    }

    /// A pack of the latest ancestors, and the lines of the `shallow` file that cuts them off. Where the user's
    /// repository does not hold all of the history (a partial clone), the commit alone.
    async fn history(&self, commit: &Oid) -> Result<(File, String), ZoneError> {
        let mut refused = None;
        for depth in [VISIBLE_COMMITS, 1] {
            let boundary = self.boundary(commit, depth).await?;
            let mut revisions: String = boundary.iter().map(|oid| format!("--shallow {oid}\n")).collect();
            revisions.push_str(&format!("{commit}\n"));
            match self.pack_objects(&revisions, &["--shallow"]).await {
                Ok(pack) => return Ok((pack, boundary.iter().map(|oid| format!("{oid}\n")).collect())),
                Err(ZoneError::Git(error)) if error.is_refusal() => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        let said = refused
            .as_ref()
            .map(GitError::stderr)
            .unwrap_or_default()
            .to_owned();
        Err(ZoneError::MissingObjects {
            commit: commit.clone(),
            said,
        })
    }

    /// The commits at which history of that depth ends.
    async fn boundary(&self, commit: &Oid, depth: usize) -> Result<Vec<Oid>, GitError> {
        let count = format!("--max-count={depth}");
        let args = [
            "rev-list",
            "--topo-order",
            "--parents",
            count.as_str(),
            commit.as_str(),
        ];
        let listed = self.call().args(args).run().await?;
        let listed: Vec<Vec<Oid>> = String::from_utf8_lossy(&listed)
            .lines()
            .map(|line| line.split(' ').filter_map(|oid| oid.parse().ok()).collect())
            .collect();
        let cut = fs::read_to_string(self.shared.work.run_git().join("shallow")).unwrap_or_default();
        let inside: std::collections::HashSet<&Oid> = listed.iter().filter_map(|line| line.first()).collect();
        Ok(listed
            .iter()
            .filter_map(|line| line.split_first())
            .filter(|(oid, parents)| {
                parents.iter().any(|parent| !inside.contains(parent))
                    || cut.lines().any(|line| line == oid.as_str())
            })
            .map(|(oid, _)| oid.clone())
            .collect())
    }

    async fn resolve(&self, git_dir: &Path, reference: &str) -> Result<Option<Oid>, GitError> {
        let call = self.shared.git.hardened(git_dir);
        let found = call
            .args(["rev-parse", "--quiet", "--verify", "--end-of-options", reference])
            .output()
            .await?;
        Ok(if found.code == Some(0) {
            Oid::from_output(&found.stdout)
        } else {
            None
        })
    }

    /// A call in the run repository, which sees the user's objects. What it makes goes to the run's own objects.
    pub(super) fn call(&self) -> Call {
        self.borrowing(&self.shared.work.run_git().join("objects"))
    }

    /// The same without the user's objects: with those that robots see.
    pub(super) fn visible_call(&self) -> Call {
        self.borrowing(&self.shared.work.visible_git().join("objects"))
    }

    fn borrowing(&self, objects: &Path) -> Call {
        let mut borrowed = alternates_line(objects);
        borrowed.pop();
        self.shared
            .git
            .hardened(&self.shared.work.run_git())
            .env("GIT_OBJECT_DIRECTORY", self.shared.work.made())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", OsString::from_vec(borrowed))
    }

    /// Remembers what this tree holds for as long as the run lives, once it is known.
    pub(crate) fn keep_in_mind(&self, tree: &Oid) {
        self.known_listings().keep(tree);
    }

    /// Whether an object is in the run repository.
    pub(crate) async fn has(&self, object: &Oid) -> Result<bool, GitError> {
        let found = self
            .call()
            .args(["cat-file", "-e", object.as_str()])
            .output()
            .await?;
        Ok(found.code == Some(0))
    }

    pub(super) fn known_listing(&self, tree: &Oid) -> Option<Arc<Listing>> {
        self.known_listings().get(tree)
    }

    pub(super) fn know_listing(&self, tree: &Oid, listing: &Arc<Listing>) {
        self.known_listings().put(tree, listing);
    }

    fn known_listings(&self) -> MutexGuard<'_, Known> {
        self.shared
            .listings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What every git directory of the run is configured with.
    pub(super) fn config(&self) -> Config {
        Config::new(&self.shared.format, &self.shared.settings)
    }

    /// True when a setting of the user makes files differ from what the tree holds.
    pub(super) fn converts(&self) -> bool {
        self.shared
            .settings
            .iter()
            .any(|Setting { key, value }| match key.as_str() {
                "core.autocrlf" => value != b"false",
                key => key == "core.eol" || key.starts_with("filter."),
            })
    }

    pub(super) fn excludes(&self) -> &[u8] {
        &self.shared.excludes
    }

    pub(super) fn copied(&self) -> &OnceLock<Copied> {
        &self.shared.copied
    }
}

/// The file of alternates for a git directory of a checkout: the history up to where the run began, and what the run
/// made.
pub(super) fn borrow_visible(work: &WorkDir) -> Vec<u8> {
    let mut lines = alternates_line(&work.visible_git().join("objects"));
    lines.extend(alternates_line(&work.made()));
    lines
}

/// Where the history of `visible.git` ends, if it is cut.
pub(super) fn visible_boundary(work: &WorkDir) -> io::Result<Option<Vec<u8>>> {
    match fs::read(work.visible_git().join("shallow")) {
        Ok(lines) => Ok(Some(lines)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
