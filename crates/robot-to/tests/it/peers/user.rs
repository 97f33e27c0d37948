//! A user with a small repository, who lets a run make one iteration against a server.

use super::Peer;
use testkit::{Finished, TestEnvironment, TestRepo};

/// The user's environment and repository: a greeting with a mistake in it.
pub(super) struct User {
    env: TestEnvironment,
    repo: TestRepo,
}

/// What the model makes of the greeting, in the fixtures of both servers.
pub(super) const WRITTEN: &str = "echo hello\n";

impl User {
    pub(super) fn new() -> Self {
        let repo = TestRepo::new();
        repo.write("greet.sh", "echo helo\n");
        repo.commit_all("a greeting");
        let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
        env.cwd(repo.path());
        Self { env, repo }
    }

    /// One iteration with the model of a peer at this address.
    pub(super) fn run(&self, peer: Peer, url: &str, more: &[&str]) -> Finished {
        let base = format!("{url}{}", peer.path);
        let mut line = vec!["fix the greeting", "--verify", "test \"$(sh greet.sh)\" = hello"];
        line.extend([
            "--provider",
            peer.provider,
            "--model",
            peer.model,
            "--base-url",
            &base,
        ]);
        line.extend(["--max-iterations", "1"]);
        line.extend(more);
        self.env.run(&line)
    }

    /// What a peer is said to offer at this address.
    pub(super) fn models(&self, peer: Peer, url: &str) -> String {
        let base = format!("{url}{}", peer.path);
        let line = ["models", "--provider", peer.provider, "--base-url", &base];
        let finished = self.env.run(line);
        finished.assert_code(0);
        finished.stdout
    }

    /// How many commits the run's branch has that the user's has not, and the greeting there.
    pub(super) fn branch(&self) -> (usize, String) {
        let branch = self
            .repo
            .git(&["for-each-ref", "--format=%(refname)", "refs/heads/robot-to"]);
        let branch = branch.trim();
        let made = self
            .repo
            .git(&["rev-list", "--count", &format!("main..{branch}")]);
        let greeting = self.repo.git(&["show", &format!("{branch}:greet.sh")]);
        (made.trim().parse().unwrap(), greeting + "\n")
    }
}
