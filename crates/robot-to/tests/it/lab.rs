//! A user's repository, a model server and an environment, in which the built program runs and is checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use robot_lab_to::event::{Event, Record};
use robot_lab_to::log::read_log;
use robot_lab_to::run::{RunDir, RunFile};
use testkit::{Fingerprint, Finished, ModelServer, Reply, Request, Running, TestEnvironment, TestRepo};

use crate::checks;

/// The key of the provider, which must be nowhere but in the header of requests.
pub(crate) const KEY: &str = "sk-canary-7f3a91c4d2e8b605";

/// What the user wants.
pub(crate) const OBJECTIVE: &str = "make every part hold";

/// How long anything may take that is expected to happen; far more than it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The test suite of the user's repository: every part must say ok, and a file named `slow` takes its time.
const SUITE: &str = r#"#!/bin/sh
if [ -e slow ]; then
    echo "this takes a while"
    sleep 1000
fi
failed=0
for part in parts/*; do
    said=$(cat "$part")
    if [ "$said" != ok ]; then
        echo "$part: expected ok, got $said"
        failed=1
    fi
done
exit $failed
"#;

/// Everything around a run.
pub(crate) struct Lab {
    pub(crate) env: TestEnvironment,
    pub(crate) repo: TestRepo,
    pub(crate) server: ModelServer,
    /// The command that grades, if any.
    pub(crate) verify: Option<String>,
    /// The provider that runs are told, where it is not the usual one.
    pub(crate) provider: Option<&'static str>,
    /// The checkout that runs start in, and where in it.
    pub(crate) top: PathBuf,
    pub(crate) subdir: PathBuf,
}

impl Lab {
    /// A repository with a test suite that passes, and a model that says these things.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::serving(ModelServer::start(replies))
    }

    /// The same with a server of the test's own.
    pub(crate) fn serving(server: ModelServer) -> Self {
        Self::with(TestRepo::new(), server)
    }

    /// The same with an empty repository of the test's own.
    pub(crate) fn with(repo: TestRepo, server: ModelServer) -> Self {
        repo.write("test.sh", SUITE);
        repo.write("parts/base", "ok\n");
        repo.commit_all("a suite that passes");
        Self::bare(repo, server)
    }

    /// The same with another provider, whose key, if it needs one, is in this variable.
    pub(crate) fn speaking_to(
        provider: &'static str,
        variable: Option<&str>,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Self {
        let mut server = ModelServer::start(replies);
        if variable.is_some() {
            server = server.require_key(KEY);
        }
        let repo = TestRepo::new();
        repo.write("test.sh", SUITE);
        repo.write("parts/base", "ok\n");
        repo.commit_all("a suite that passes");
        let mut lab = Self::around(repo, server);
        lab.provider = Some(provider);
        if let Some(variable) = variable {
            lab.env.env(variable, KEY);
        }
        lab
    }

    /// The same with a repository that is left as it is.
    pub(crate) fn bare(repo: TestRepo, server: ModelServer) -> Self {
        let mut lab = Self::around(repo, server.require_key(KEY));
        lab.env.env("OPENAI_API_KEY", KEY);
        lab
    }

    fn around(repo: TestRepo, server: ModelServer) -> Self {
        let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
        env.cwd(repo.path());
        let verify = Some("sh test.sh".to_owned());
        let top = repo.path().to_owned();
        Self {
            env,
            repo,
            server,
            verify,
            provider: None,
            top,
            subdir: PathBuf::new(),
        }
    }

    /// Starts in a directory of the checkout.
    pub(crate) fn start_in(&mut self, subdir: &str) {
        self.subdir = subdir.into();
        self.env.cwd(self.top.join(subdir));
    }

    /// The arguments for a run over HTTP.
    pub(crate) fn arguments(&self, extra: &[&str]) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec![OBJECTIVE.into()];
        all.extend(self.options(extra));
        all
    }

    /// The same without an objective.
    pub(crate) fn options(&self, extra: &[&str]) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        if let Some(verify) = &self.verify {
            all.extend(["--verify".into(), verify.into()]);
        }
        let base_url = match self.provider {
            None => self.server.base_url(),
            Some(provider) => {
                all.extend(["--provider".into(), provider.into()]);
                self.server.root_url()
            }
        };
        all.extend([
            "--base-url".into(),
            base_url.into(),
            "--model".into(),
            "test-model".into(),
        ]);
        all.extend(extra.iter().map(OsString::from));
        all
    }

    /// Runs to the end, and checks what must hold after every run.
    pub(crate) fn run(&self, extra: &[&str]) -> Ran<'_> {
        self.start(extra).end(PATIENCE)
    }

    /// Starts a run.
    pub(crate) fn start(&self, extra: &[&str]) -> Started<'_> {
        self.launch(self.env.command(self.arguments(extra)))
    }

    /// Starts a run with a command of the test's own.
    pub(crate) fn launch(&self, command: Command) -> Started<'_> {
        let before = self.repo.fingerprint();
        Started {
            lab: self,
            before,
            process: Running::start(command),
        }
    }

    /// Expects that nothing begins, with exit code 2, and gives what was said.
    pub(crate) fn refuse(&self, extra: &[&str]) -> Finished {
        self.refuse_command(self.env.command(self.arguments(extra)))
    }

    /// The same with a command of the test's own.
    pub(crate) fn refuse_command(&self, command: Command) -> Finished {
        let before = self.repo.fingerprint();
        let exclude = std::fs::read(self.repo.path().join(".git/info/exclude")).ok();
        let finished = Running::start(command).wait(PATIENCE);
        finished.assert_code(2);
        assert_eq!(finished.stdout, "", "an error is not a result");
        before.assert_same(&self.repo.fingerprint());
        assert_eq!(
            std::fs::read(self.repo.path().join(".git/info/exclude")).ok(),
            exclude
        );
        assert!(
            !self.top.join(".robot_lab_to").exists(),
            "a run directory was made"
        );
        let branches = self
            .repo
            .git(&["for-each-ref", "refs/heads/robot-to*", "refs/heads/robot-to*/**"]);
        assert_eq!(branches, "", "a branch was made");
        let runs = self.env.state().join("robot-to/runs");
        let left = std::fs::read_dir(runs).map(Iterator::count).unwrap_or(0);
        assert_eq!(left, 0, "something was left in the state directory");
        assert_eq!(self.server.requests().len(), 0, "the model was asked");
        checks::no_process_is_left(&self.env);
        checks::the_key_is_nowhere(self, &finished);
        finished
    }
}

/// A run that is under way.
pub(crate) struct Started<'a> {
    lab: &'a Lab,
    before: Fingerprint,
    pub(crate) process: Running,
}

impl<'a> Started<'a> {
    /// Waits until the run ends, and checks what must hold after every run.
    pub(crate) fn end(self, within: Duration) -> Ran<'a> {
        let finished = self.process.wait(within);
        let lab = self.lab;
        let runs = RunDir::list(&lab.top.join(".robot_lab_to")).unwrap();
        let Some((_, dir)) = runs.last() else {
            panic!("there is no run\n{}\n{}", finished.stdout, finished.stderr)
        };
        let dir = dir.clone();
        let file = dir
            .load()
            .unwrap_or_else(|error| panic!("{error}\n{}", finished.stderr));
        let log = read_log(&dir.log()).unwrap();
        assert!(!log.torn && log.unknown.is_empty(), "{log:?}");
        let ran = Ran {
            lab,
            finished,
            dir,
            file,
            records: log.records,
        };
        checks::after_a_run(&ran, &self.before);
        ran
    }
}

/// A run that ended, and what is known of it.
pub(crate) struct Ran<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) finished: Finished,
    pub(crate) dir: RunDir,
    pub(crate) file: RunFile,
    pub(crate) records: Vec<Record>,
}

/// An accepted commit.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) subject: String,
    pub(crate) author: String,
    pub(crate) committer: String,
    pub(crate) body: String,
}

impl Ran<'_> {
    /// Fails the test, with all that was printed, unless the run ended so.
    #[track_caller]
    pub(crate) fn assert_end(&self, code: i32, reason: &str) -> &Self {
        self.finished.assert_code(code);
        let shown = format!("{}\n{}", self.finished.stderr, self.finished.stdout);
        assert_eq!(self.reason(), reason, "{shown}");
        assert!(shown.contains(&format!("Reason:     {reason}")), "{shown}");
        self
    }

    /// Why it ended.
    pub(crate) fn reason(&self) -> &str {
        self.file
            .reason
            .as_ref()
            .map_or("none", |reason| reason.text.as_str())
    }

    /// The notes.
    pub(crate) fn notes(&self) -> String {
        std::fs::read_to_string(self.dir.notes()).unwrap()
    }

    /// The names of the events, in order.
    pub(crate) fn events(&self) -> Vec<String> {
        self.records.iter().map(|record| record.event.name()).collect()
    }

    /// How often an event is in the log.
    pub(crate) fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|name| *name == event).count()
    }

    /// The outcomes of the iterations, by the names of their events.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        self.records
            .iter()
            .map(|record| &record.event)
            .filter(|event| event.is_outcome())
            .map(Event::name)
            .collect()
    }

    /// The requests that the model got.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lab.server.requests()
    }

    /// The accepted commits, oldest first.
    pub(crate) fn commits(&self) -> Vec<Commit> {
        let range = format!("{}..{}", self.file.base, self.file.branch);
        let format = "--format=%s%x00%an <%ae>%x00%cn <%ce>%x00%b%x01";
        let listed = self.lab.repo.git(&["log", "--reverse", format, &range]);
        let fields = |entry: &str| {
            let fields: Vec<_> = entry.trim_start().split('\0').map(str::to_owned).collect();
            let [subject, author, committer, body] = fields.try_into().expect("four fields");
            Commit {
                subject,
                author,
                committer,
                body,
            }
        };
        listed
            .split('\u{1}')
            .filter(|entry| !entry.trim().is_empty())
            .map(fields)
            .collect()
    }

    /// The subjects of the accepted commits, oldest first.
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.commits().into_iter().map(|commit| commit.subject).collect()
    }

    /// The repository with everything that the run made.
    pub(crate) fn run_git(&self) -> PathBuf {
        self.lab
            .env
            .state()
            .join("robot-to/runs")
            .join(&self.file.run_id)
            .join("run.git")
    }

    /// The refs of the kept attempts.
    pub(crate) fn attempts(&self) -> Vec<String> {
        let listed = self.lab.repo.git_in(
            &self.run_git(),
            &["for-each-ref", "--format=%(refname)", "refs/attempts"],
        );
        listed.lines().map(str::to_owned).collect()
    }

    /// A file as a kept attempt has it.
    pub(crate) fn in_attempt(&self, attempt: &str, path: &str) -> String {
        self.lab.repo.git_in(
            &self.run_git(),
            &["show", &format!("refs/attempts/{attempt}:{path}")],
        )
    }

    /// A file as the run branch has it.
    pub(crate) fn on_branch(&self, path: &str) -> String {
        self.lab
            .repo
            .git(&["show", &format!("{}:{path}", self.file.branch)])
    }

    /// All that people were shown.
    pub(crate) fn shown(&self) -> String {
        format!("{}\n{}", self.finished.stderr, self.finished.stdout)
    }
}

/// The text of a file, or nothing.
pub(crate) fn text_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
