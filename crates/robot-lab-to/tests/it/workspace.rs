//! The workspace against real git: what a run may change, and what a robot can not.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod accept;
mod ignored;
mod kinds;
mod prepare;
mod snapshot;
mod start;

use std::path::{Path, PathBuf};
use std::process::Command;

use robot_lab_to::workspace::{
    Branch, Checkout, CommitSpec, Git, HostEnv, Ledger, Oid, Rejection, RejectionKind, RunRepo, Snapshot,
    SnapshotRules, WorkDir,
};
use testkit::TestRepo;

/// A repository with a run in it.
struct World {
    repo: TestRepo,
    git: Git,
    ledger: Ledger,
    zones: RunRepo,
    base: Oid,
}

impl World {
    async fn of(repo: TestRepo) -> Self {
        let cwd = repo.path().to_owned();
        Self::at(repo, &cwd).await
    }

    async fn at(repo: TestRepo, cwd: &Path) -> Self {
        let git = Git::find(&HostEnv::new(repo.env())).await.unwrap();
        let ledger = Ledger::discover(&git, cwd).await.unwrap();
        let work = WorkDir::create(&repo.beside("state of run")).unwrap();
        let base = ledger.base().clone();
        let zones = RunRepo::create(&git, &ledger, &work, &base).await.unwrap();
        Self {
            repo,
            git,
            ledger,
            zones,
            base,
        }
    }

    /// A repository with some files of all kinds.
    async fn usual() -> Self {
        Self::of(usual_repo()).await
    }

    async fn robot(&self) -> Checkout {
        let mut robot = Checkout::create(&self.zones, "robot-0").await.unwrap();
        robot.prepare(&self.base, &self.base).await.unwrap();
        robot
    }

    async fn tree(&self, treeish: &Oid) -> Oid {
        self.zones.tree_of(treeish).await.unwrap()
    }

    async fn commit(&self, tree: &Oid, parent: &Oid) -> Oid {
        let spec = CommitSpec {
            sign: false,
            tree: tree.clone(),
            parent: parent.clone(),
            message: b"robot-to 1: better\n\nRobot-To-Iteration: 1\n".to_vec(),
            identity: self.ledger.identity().clone(),
            at: 1_800_000_000,
        };
        self.zones.commit_tree(&spec).await.unwrap()
    }

    /// Makes a change, commits and accepts it on a new branch.
    async fn accept_something(&self) -> (Branch, Oid) {
        let mut robot = self.robot().await;
        std::fs::write(robot.path().join("new file"), "new").unwrap();
        let tree = tree_of(&mut robot, &self.base).await;
        let commit = self.commit(&tree, &self.base).await;
        let branch = self.ledger.create_branch("slug-id").await.unwrap();
        self.ledger
            .accept(&self.zones, &branch, &commit, &self.base)
            .await
            .unwrap();
        (branch, commit)
    }

    /// Runs a shell script as a robot does.
    #[track_caller]
    fn sh(&self, robot: &Checkout, script: &str) -> String {
        let mut command = Command::new("sh");
        command
            .args(["-ec", script])
            .current_dir(robot.path())
            .env_clear()
            .envs(self.repo.env());
        let output = command.env("CANARY", self.canary()).output().unwrap();
        assert!(
            output.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A directory outside of everything that must survive; planted programs leave a file `pwned` in it.
    fn canary(&self) -> PathBuf {
        let canary = self.repo.beside("canary");
        if !canary.exists() {
            std::fs::create_dir(&canary).unwrap();
            std::fs::write(canary.join("alive"), "alive").unwrap();
            std::fs::write(canary.join("a.txt"), "outside").unwrap();
        }
        canary
    }

    #[track_caller]
    fn assert_canary(&self) {
        let mut names: Vec<_> = std::fs::read_dir(self.canary())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["a.txt", "alive"]);
        assert_eq!(
            std::fs::read_to_string(self.canary().join("a.txt")).unwrap(),
            "outside"
        );
    }
}

fn usual_repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.write("a.txt", "one\n");
    repo.write("src/main.rs", "fn main() {}\n");
    repo.write("run.sh", "#!/bin/sh\n");
    repo.write(".gitignore", "target/\n*.log\n");
    std::os::unix::fs::symlink("a.txt", repo.path().join("link")).unwrap();
    Command::new("chmod")
        .args(["+x", "run.sh"])
        .current_dir(repo.path())
        .status()
        .unwrap();
    repo.commit_all("base");
    repo
}

async fn tree_of(checkout: &mut Checkout, parent: &Oid) -> Oid {
    match checkout
        .snapshot(parent, &SnapshotRules::default())
        .await
        .unwrap()
    {
        Snapshot::Tree(tree) => tree,
        Snapshot::Rejected(reasons) => panic!("rejected: {reasons:?}"),
    }
}

async fn reasons_of(checkout: &mut Checkout, parent: &Oid) -> Vec<Rejection> {
    let limits = SnapshotRules { max_file_bytes: 1000 };
    match checkout.snapshot(parent, &limits).await.unwrap() {
        Snapshot::Tree(tree) => panic!("accepted: {tree}"),
        Snapshot::Rejected(reasons) => reasons,
    }
}

/// The single reason of a rejection.
async fn reason_of(checkout: &mut Checkout, parent: &Oid) -> (String, RejectionKind) {
    let mut reasons = reasons_of(checkout, parent).await;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let Rejection { path, kind } = reasons.remove(0);
    (path.to_string_lossy().into_owned(), kind)
}
