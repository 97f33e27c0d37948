//! What the loop adds to one committed iteration, beside the raw git commands that it makes:
//! `cargo bench -p robot-lab-to --bench iteration [-- FILES...]`.
//!
//! The robot writes one file and submits at once, and verify is `true`. Each request of the model first plays the raw
//! commands on a repository of the same shape, so that both see the same machine.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails loudly"
)]

use async_trait::async_trait;
use futures::StreamExt as _;
use robot_lab::ToolCall;
use robot_lab::model::{FinishReason, Model, ModelError, ModelEvent, ModelId, ModelRequest, ModelStream};
use robot_lab_to::Run;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Files of the repositories, and pairs of samples in each.
const SIZES: [(usize, usize); 2] = [(100, 60), (20_000, 25)];
/// Files of a directory.
const PER_DIR: usize = 100;
/// Pairs that fill caches and count for nothing.
const WARM_UP: usize = 3;

fn main() -> ExitCode {
    if let Some(code) = robot_exec::maybe_helper() {
        return code;
    }
    let asked: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    for (files, pairs) in SIZES {
        if asked.is_empty() || asked.contains(&files) {
            measure(files, pairs);
        }
    }
    ExitCode::SUCCESS
}

fn measure(files: usize, pairs: usize) {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    for repo in [&ours, &theirs] {
        make_repository(repo, files);
    }
    let model = Arc::new(Paired {
        id: ModelId {
            provider: "fake".into(),
            name: "paired".into(),
        },
        files,
        seen: Mutex::new(Seen {
            raw: Raw::new(&dir.path().join("raw"), &theirs),
            raws: Vec::new(),
            loops: Vec::new(),
            cpu: Vec::new(),
            since: None,
        }),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    let iterations = u32::try_from(WARM_UP + pairs + 1).unwrap();
    let run = Run::builder("measure the loop")
        .repo(&ours)
        .host(std::env::vars_os())
        .model(Arc::<Paired>::clone(&model))
        .verify("true")
        .max_iterations(iterations)
        .place(|place| place.work_dir = dir.path().join("state"));
    let report = runtime.block_on(run.run()).unwrap();
    assert_eq!(report.state.commits, iterations, "{report:?}");
    let mut seen = model.seen.lock().unwrap();
    let seen = &mut *seen;
    for samples in [&mut seen.raws, &mut seen.loops, &mut seen.cpu] {
        samples.drain(..WARM_UP);
        samples.sort();
    }
    let raw = median(&seen.raws);
    let looped = median(&seen.loops);
    println!(
        "{files} files, median of {} iterations: raw git {raw:.1?}, the loop {looped:.1?}, ratio {:.2}; own CPU {:.1?}; \
         peak memory so far {} MiB",
        seen.loops.len(),
        looped.as_secs_f64() / raw.as_secs_f64(),
        median(&seen.cpu),
        peak_memory() >> 10,
    );
}

fn median(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() / 2]
}

/// CPU time of this process without its children.
fn own_cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(spent.tv_sec).unwrap(),
        u32::try_from(spent.tv_nsec).unwrap(),
    )
}

/// The most memory that this process had so far, in KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let digits = peak.unwrap().trim().trim_end_matches(" kB");
    digits.parse().unwrap()
}

/// A repository with this many small files in one commit.
fn make_repository(dir: &Path, files: usize) {
    fs::create_dir(dir).unwrap();
    git(dir, &["init", "-q", "-b", "main"], None);
    for (key, value) in [("user.name", "A"), ("user.email", "a@example.invalid")] {
        git(dir, &["config", key, value], None);
    }
    let mut import = String::from(
        "commit refs/heads/main\ncommitter A <a@example.invalid> 1700000000 +0000\ndata 4\nbase\n",
    );
    for n in 0..files {
        let text = format!("file {n}\n");
        let path = path_of(n);
        import.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
    }
    git(dir, &["fast-import", "--quiet"], Some(import.as_bytes()));
    git(dir, &["reset", "-q", "--hard"], None);
}

fn path_of(n: usize) -> String {
    format!("d{}/f{}.txt", n / PER_DIR, n % PER_DIR)
}

/// The file that turn `turn` changes, and its new content.
fn change(turn: usize, files: usize) -> (String, String) {
    // Another directory each time.
    (
        path_of(turn * 7 * PER_DIR % files + turn % PER_DIR),
        format!("turn {turn}\n"),
    )
}

/// Answers every request with a change and a submission, after playing the raw commands.
struct Paired {
    id: ModelId,
    files: usize,
    seen: Mutex<Seen>,
}

struct Seen {
    raw: Raw,
    raws: Vec<Duration>,
    loops: Vec<Duration>,
    cpu: Vec<Duration>,
    /// When the latest reply was given, and the CPU time by then.
    since: Option<(Instant, Duration)>,
}

#[async_trait]
impl Model for Paired {
    fn id(&self) -> &ModelId {
        &self.id
    }

    async fn stream(&self, _request: ModelRequest) -> Result<ModelStream, ModelError> {
        let mut seen = self.seen.lock().unwrap();
        if let Some((since, cpu)) = seen.since.take() {
            seen.loops.push(since.elapsed());
            seen.cpu.push(own_cpu() - cpu);
            let began = Instant::now();
            let (path, content) = change(seen.loops.len(), self.files);
            seen.raw.iteration(&path, &content);
            seen.raws.push(began.elapsed());
        }
        let (path, content) = change(seen.loops.len(), self.files);
        let call = |name: &str, arguments: Value| {
            Ok(ModelEvent::Call(ToolCall {
                id: String::new(),
                name: name.into(),
                arguments,
            }))
        };
        let events = vec![
            call("write", json!({ "path": path, "content": content })),
            call(
                "submit_iteration_result",
                json!({ "success": true, "summary": format!("Change {path}") }),
            ),
            Ok(ModelEvent::Finished(FinishReason::ToolCalls)),
        ];
        seen.since = Some((Instant::now(), own_cpu()));
        Ok(futures::stream::iter(events).boxed())
    }
}

/// The git commands of one committed iteration, in directories like those of a run.
struct Raw {
    ledger: PathBuf,
    run: PathBuf,
    made: PathBuf,
    visible: PathBuf,
    workspace: PathBuf,
    bench: PathBuf,
    parent: String,
}

impl Raw {
    fn new(dir: &Path, repo: &Path) -> Self {
        for part in ["made", "workspace", "bench", "run.git", "visible.git"] {
            fs::create_dir_all(dir.join(part)).unwrap();
        }
        for bare in ["run.git", "visible.git"] {
            git(&dir.join(bare), &["init", "-q", "--bare", "."], None);
        }
        let objects = repo.join(".git/objects").display().to_string();
        fs::write(
            dir.join("run.git/objects/info/alternates"),
            format!("{objects}\n"),
        )
        .unwrap();
        git(
            &dir.join("visible.git"),
            &["fetch", "-q", repo.to_str().unwrap(), "main"],
            None,
        );
        let mut raw = Self {
            ledger: repo.join(".git"),
            run: dir.join("run.git"),
            made: dir.join("made"),
            visible: dir.join("visible.git/objects"),
            workspace: dir.join("workspace"),
            bench: dir.join("bench"),
            parent: String::new(),
        };
        raw.parent = raw.in_ledger(&["rev-parse", "main"]);
        raw.in_ledger(&["update-ref", "refs/heads/run", &raw.parent]);
        for checkout in [&raw.workspace, &raw.bench] {
            raw.bring(checkout, &raw.parent);
        }
        raw
    }

    fn iteration(&mut self, path: &str, content: &str) {
        let parent = self.in_ledger(&["rev-parse", "--verify", "refs/heads/run^{commit}"]);
        self.bring(&self.workspace, &parent);
        fs::write(self.workspace.join(path), content).unwrap();
        let workspace = |args: &[&str]| self.in_checkout(&self.workspace, args);
        workspace(&["ls-files", "-z", "--modified", "--others", "--exclude-standard"]);
        workspace(&["add", "--all"]);
        let tree = workspace(&["write-tree"]);
        self.in_run(
            &["diff-tree", "-r", "--raw", "-z", "--abbrev=64", &parent, &tree],
            None,
        );
        self.bring(&self.bench, &tree);
        let verified = Command::new("/bin/sh")
            .args(["-c", "true"])
            .current_dir(&self.bench)
            .status();
        assert!(verified.unwrap().success());
        let commit = self.in_run(&["commit-tree", &tree, "-p", &parent], Some(b"a change\n"));
        self.in_ledger(&[
            "for-each-ref",
            "--format=%(objectname) %(worktreepath)",
            "refs/heads/run",
        ]);
        let wanted = format!("{commit}\n^{parent}\n");
        let mut pack = self.run_call(&["pack-objects", "--revs", "--stdout", "-q"]);
        let pack = output(&mut pack, Some(wanted.as_bytes()));
        let mut unpack = self.ledger_call(&["unpack-objects", "-q", "--strict"]);
        output(&mut unpack, Some(&pack));
        self.in_ledger(&["update-ref", "-m", "accepted", "refs/heads/run", &commit, &parent]);
        self.parent = commit;
    }

    fn bring(&self, checkout: &Path, treeish: &str) {
        self.in_checkout(checkout, &["read-tree", "--reset", "-u", treeish]);
        self.in_checkout(checkout, &["clean", "-ffdq"]);
    }

    fn in_checkout(&self, dir: &Path, args: &[&str]) -> String {
        let mut call = hardened(&self.run, args);
        call.current_dir(dir)
            .env("GIT_WORK_TREE", dir)
            .env("GIT_INDEX_FILE", dir.with_extension("index"))
            .env("GIT_OBJECT_DIRECTORY", &self.made)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.visible);
        text(&output(&mut call, None))
    }

    fn run_call(&self, args: &[&str]) -> Command {
        let mut call = hardened(&self.run, args);
        call.env("GIT_OBJECT_DIRECTORY", &self.made)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.run.join("objects"));
        call
    }

    fn in_run(&self, args: &[&str], input: Option<&[u8]>) -> String {
        text(&output(&mut self.run_call(args), input))
    }

    fn ledger_call(&self, args: &[&str]) -> Command {
        hardened(&self.ledger, args)
    }

    fn in_ledger(&self, args: &[&str]) -> String {
        text(&output(&mut self.ledger_call(args), None))
    }
}

/// A call with the settings that decide what it costs: how durable objects are, and what runs besides.
fn hardened(git_dir: &Path, args: &[&str]) -> Command {
    let mut call = Command::new("git");
    for setting in [
        "core.fsync=all",
        "core.fsyncMethod=batch",
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.untrackedCache=false",
        "core.splitIndex=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "checkout.workers=0",
    ] {
        call.args(["-c", setting]);
    }
    call.args(args)
        .current_dir(git_dir)
        .env("GIT_DIR", git_dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0");
    for role in ["AUTHOR", "COMMITTER"] {
        call.env(format!("GIT_{role}_NAME"), "A")
            .env(format!("GIT_{role}_EMAIL"), "a@example.invalid");
    }
    call
}

fn git(dir: &Path, args: &[&str], input: Option<&[u8]>) {
    let mut call = Command::new("git");
    call.args(args).current_dir(dir);
    output(&mut call, input);
}

fn output(call: &mut Command, input: Option<&[u8]>) -> Vec<u8> {
    let stdin = if input.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    let mut child = call.stdin(stdin).stdout(Stdio::piped()).spawn().unwrap();
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        pipe.write_all(input).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let args: Vec<&OsStr> = call.get_args().collect();
    assert!(output.status.success(), "{args:?}");
    output.stdout
}

fn text(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).trim().to_owned()
}
