//! Flags of a run. Each is a setting as well, in files and variables: see [`crate::config`].
//!
//! A setting's key is the flag's name with `_` for `-`, or its first alias where the two differ; of `--no-x` it is `x`.
//! What one setting needs of another (`requires`) is no matter of clap, since the two may come from different places:
//! [`RunArgs::lacks`] says it.

use clap::{ArgAction, Args};
use robot_lab::{Cost, Price};
use robot_lab_providers::{Effort, NoEffort};
use robot_lab_to::commit_message::CommitFormat;
use robot_lab_to::eval::MinDelta;
use robot_lab_to::settings::BenchCache;
use std::path::PathBuf;
use std::time::Duration;

/// The provider of a run that names none.
pub(crate) const DEFAULT_PROVIDER: &str = "openai";
/// The model of a run that names none, which only that provider has.
pub(crate) const DEFAULT_MODEL: &str = "gpt-5.5";

/// Flags of a run.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Who serves the model: openai (and whatever speaks its protocol, with --base-url), openai-responses, anthropic,
    /// gemini, ollama, or script, which plays a file; and by its key: aihubmix, aliyun, atlascloud, baidu, bigmodel, cohere, deepseek,
    /// fireworks, groq, kimi, mimo, minimax, mistral, moonshot, nebius, ollama-cloud, openrouter, qwen-cloud,
    /// requesty, together, xai, zai
    #[arg(long, default_value = DEFAULT_PROVIDER, help_heading = "Model")]
    pub(crate) provider: String,
    /// The model's name; with --provider script, the file with the script, and with replay, what --record made
    #[arg(long, default_value = DEFAULT_MODEL, help_heading = "Model")]
    pub(crate) model: String,
    /// Where the model is served, such as http://localhost:8080/v1
    #[arg(long, value_name = "URL", help_heading = "Model")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key, in place of the provider's own. No command sees it
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) api_key_env: Option<String>,
    /// A header to send with each request (repeatable). `$NAME` in its value stands for an environment variable, which
    /// no command sees; a secret must be given so
    #[arg(long, value_name = "NAME:VALUE", action = ArgAction::Append, help_heading = "Model")]
    pub(crate) header: Vec<String>,
    /// How much chance there is in what the model says, from 0 to 2 [default: the model's own]
    #[arg(long, value_name = "T", value_parser = temperature, help_heading = "Model")]
    pub(crate) temperature: Option<f64>,
    /// Most tokens that one reply may have [default: the provider's own, or 32000 for anthropic]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Model")]
    pub(crate) max_output_tokens: Option<u32>,
    /// How much the model thinks: none, minimal, low, medium, high or xhigh [default: the model's own]
    #[arg(long, value_name = "EFFORT", value_parser = effort, help_heading = "Model")]
    pub(crate) reasoning: Option<Effort>,
    /// Length of the context that Ollama is asked for, in tokens [default: 32768]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(256..), help_heading = "Model")]
    pub(crate) num_ctx: Option<u32>,
    /// What the model costs, in US dollars per million tokens: in=2.50,out=10, and cached= and write= where reading from
    /// the provider's cache or writing to it is not as dear as in= A fallback has a price
    /// of its own [default: as in docs/models.md; 0 on this machine]
    #[arg(long, value_name = "PRICE", help_heading = "Model")]
    pub(crate) price: Option<Price>,
    /// Tokens that the model reads and writes at once [default: as known, or as the server says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..), help_heading = "Model")]
    pub(crate) context_window: Option<u64>,
    /// Do not show the model's words as they come; tokens are counted all the same
    #[arg(long, help_heading = "Model")]
    pub(crate) no_stream: bool,
    /// Quick retries of one failed request, before the provider is taken to be out of order
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Model")]
    pub(crate) max_retries: u32,
    /// Time that a provider is waited for that is out of order, or says when its limit is over: seconds, or 90m, 8h; 0
    /// not to wait. No iteration is lost meanwhile, and its time stands still
    #[arg(long, value_name = "TIME", default_value = "21600", value_parser = seconds_or_none, help_heading = "Model")]
    pub(crate) max_wait: Duration,
    /// Time that the model may say nothing, before the first piece of a reply and between two: seconds, or 90m, 8h
    /// [default: 120 between two; before the first 300, or 900 for a model on this machine, which may read a long prompt
    /// slowly]
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Model")]
    pub(crate) model_timeout: Option<Duration>,
    /// A model to ask while the other one is out of order, or its limit lasts for more than a minute: NAME of the same
    /// provider, or PROVIDER/NAME, with the key in that provider's variable
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) fallback_model: Option<String>,

    /// The command that must exit 0 for a change to be committed
    #[arg(
        long,
        visible_alias = "verify-command",
        value_name = "CMD",
        help_heading = "Grading"
    )]
    pub(crate) verify: Option<String>,
    /// Time that the verify command, or the program of --eval, may take: seconds, or 90m, 8h. The commit that a run
    /// starts from is graded first
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = seconds, help_heading = "Grading")]
    pub(crate) verify_timeout: Duration,
    /// What grades: `code`, the verify and measure commands; `null`, the robot's word; or `command:PATH`, a program of
    /// yours that answers with a score as JSON, besides which --verify and --measure hold too [default: `code` with
    /// --verify or --measure, else `null`]
    #[arg(long, value_name = "EVAL", value_parser = eval, help_heading = "Grading")]
    pub(crate) eval: Option<String>,
    /// A command that prints a number which must get better: higher, unless --minimize
    #[arg(long, alias = "eval-measure", value_name = "CMD", help_heading = "Grading")]
    pub(crate) measure: Option<String>,
    /// Time that the measure command may take [default: as --verify-timeout]
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Grading")]
    pub(crate) measure_timeout: Option<Duration>,
    /// Which of several labelled metrics counts
    #[arg(long, value_name = "NAME", help_heading = "Grading")]
    pub(crate) metric: Option<String>,
    /// Lower is better
    #[arg(long, help_heading = "Grading")]
    pub(crate) minimize: bool,
    /// The smallest change that counts, absolute or in percent: 0.5, 2%
    #[arg(long, value_name = "DELTA", value_parser = min_delta, help_heading = "Grading")]
    pub(crate) min_delta: Option<MinDelta>,
    /// Stop once the value reaches this: that of --measure, or of an --eval that gives one
    #[arg(long, value_name = "VALUE", value_parser = finite, allow_negative_numbers = true, alias = "eval-target",
          help_heading = "Grading")]
    pub(crate) target: Option<f64>,
    /// How the first line of a commit looks: `robot-to 3: …`, or `feat(scope): …`
    #[arg(long, value_name = "FORMAT", value_parser = commit_format, default_value = "default", help_heading = "Grading")]
    pub(crate) commit_format: CommitFormat,
    /// Lock files that no robot may change, as a pattern of git from the top of the repository (repeatable)
    #[arg(long, alias = "protect-paths", value_name = "PATHSPEC", action = ArgAction::Append, help_heading = "Grading")]
    pub(crate) protect_path: Vec<String>,
    /// Do not ask the repository's pre-commit and commit-msg hooks before a commit
    #[arg(long, help_heading = "Grading")]
    pub(crate) no_hooks: bool,
    /// Sign each commit as git is configured to: with gpg, ssh or x509, and without asking for a passphrase
    #[arg(long, help_heading = "Grading")]
    pub(crate) sign: bool,
    /// Commit every change that the gate lets through, better or not
    #[arg(long, help_heading = "Grading")]
    pub(crate) no_require_improvement: bool,
    /// How often a robot may repair a change that failed
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Grading")]
    pub(crate) max_verify_repairs: u32,
    /// Largest file that may be committed, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 50, help_heading = "Grading")]
    pub(crate) max_file_mb: u64,

    /// Stop after so many iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "When to stop")]
    pub(crate) max_iterations: Option<u32>,
    /// Stop after so many tokens, read and written; also in the middle of a reply
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "When to stop")]
    pub(crate) max_tokens: Option<u64>,
    /// Stop after so many US dollars, such as 5 or 0.50; also in the middle of a reply
    #[arg(long, value_name = "USD", value_parser = money, help_heading = "When to stop")]
    pub(crate) max_cost: Option<Cost>,
    /// Stop after so much time: seconds, or 90m, 8h
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "When to stop")]
    pub(crate) max_time: Option<Duration>,
    /// Stop after so many failures in a row
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "When to stop")]
    pub(crate) max_consecutive_failures: u32,
    /// Stop after so many iterations in a row without improvement
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "When to stop")]
    pub(crate) stop_on_plateau: Option<u32>,
    /// Stop when the robot judges this true, after a commit
    #[arg(long, value_name = "TEXT", help_heading = "When to stop")]
    pub(crate) stop_when: Option<String>,

    /// A text file that is added to what every robot is told. The repository's AGENTS.md is told anyway
    #[arg(long, value_name = "FILE", help_heading = "The robot")]
    pub(crate) instructions: Option<PathBuf>,
    /// Tool calls that a robot may make in one iteration
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "The robot")]
    pub(crate) max_tool_rounds: u32,
    /// Tokens, read and written, that a robot has for one iteration; then it may only submit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "The robot")]
    pub(crate) max_iteration_tokens: Option<u64>,
    /// Give robots no tools but the one that submits
    #[arg(long, help_heading = "The robot")]
    pub(crate) no_tools: bool,
    /// Guard the robot as weak models need it: files are read before they are edited, changed by edit rather than
    /// written anew, and kept as they were; answers that repeat themselves are cut; the prompt is short, without the
    /// repository's AGENTS.md
    #[arg(long, help_heading = "The robot")]
    pub(crate) local_guards: bool,
    /// Give the robot one rule of the objective at a time, each in a short conversation of its own with the files that it
    /// is about, and check after each: for models that lose the thread. The objective's sentences, or the items of its
    /// list, are the rules. --local-guards goes with it
    #[arg(long, help_heading = "The robot")]
    pub(crate) small_steps: bool,
    /// With --local-guards, let the robot write over files that are there
    #[arg(long, help_heading = "The robot")]
    pub(crate) no_write_guard: bool,
    /// A command that checks each file right after the robot changed it, such as "ruff check {file}"; what it prints
    /// when it fails is told to the robot. At most 60 s
    #[arg(long, value_name = "CMD", help_heading = "The robot")]
    pub(crate) lint: Option<String>,
    /// Time that a robot has for one iteration: seconds, or 90m, 8h
    #[arg(long, value_name = "TIME", default_value = "3600", value_parser = seconds, help_heading = "The robot")]
    pub(crate) iteration_timeout: Duration,
    /// How often a robot that forgets to submit is asked to
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "The robot")]
    pub(crate) max_submit_nudges: u32,
    /// Let commands see this environment variable too (repeatable)
    #[arg(long, value_name = "NAME", action = ArgAction::Append, help_heading = "The robot")]
    pub(crate) env: Vec<String>,

    /// A command that makes a new private copy ready for work, such as "npm ci": run once in each, and again when a lock
    /// file of a package manager changed. What it leaves in ignored files stays
    #[arg(long, value_name = "CMD", help_heading = "Private copies")]
    pub(crate) setup: Option<String>,
    /// Time that the setup command may take: seconds, or 90m, 8h
    #[arg(long, value_name = "TIME", default_value = "1800", value_parser = seconds, help_heading = "Private copies")]
    pub(crate) setup_timeout: Duration,
    /// Copy ignored files of your checkout, such as .env or node_modules, into the private copies: a pattern of git from
    /// the top of the repository (repeatable). Robots can read them; no commit will hold one
    #[arg(long, value_name = "GLOB", action = ArgAction::Append, help_heading = "Private copies")]
    pub(crate) copy: Vec<String>,
    /// Start from your uncommitted changes: they become the first commit of the run's branch, and stay as they are in
    /// your checkout
    #[arg(long, help_heading = "Private copies")]
    pub(crate) include_dirty: bool,
    /// Ignored files that a grade finds: keep has what all earlier grades left, accepted only what accepted ones did
    #[arg(long, value_name = "WHICH", value_parser = bench_cache, default_value = "keep", help_heading = "Private copies")]
    pub(crate) bench_cache: BenchCache,

    /// Where runs are recorded, relative to the top of the repository
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".robot_lab_to",
        help_heading = "Where things go"
    )]
    pub(crate) run_dir: PathBuf,
    /// Where private copies live [default: $XDG_STATE_HOME/robot-to]
    #[arg(long, value_name = "DIR", help_heading = "Where things go")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Keep the private copies at the end
    #[arg(long, help_heading = "Where things go")]
    pub(crate) keep_workspace: bool,
    /// Print every event as a line of JSON on standard output
    #[arg(long, help_heading = "Where things go")]
    pub(crate) json: bool,
    /// Show each request to the provider and its answer on standard error, shortened and without keys
    #[arg(long, help_heading = "Where things go")]
    pub(crate) debug: bool,
    /// Keep each request to the provider and its answer in a new file, without keys, to be played with
    /// --provider replay --model FILE
    #[arg(long, value_name = "FILE", help_heading = "Where things go")]
    pub(crate) record: Option<PathBuf>,
}

fn temperature(text: &str) -> Result<f64, String> {
    match finite(text) {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        _ => Err("give a number from 0 to 2".into()),
    }
}

fn effort(text: &str) -> Result<Effort, String> {
    text.parse().map_err(|error: NoEffort| error.to_string())
}

fn money(text: &str) -> Result<Cost, String> {
    match text.parse() {
        Ok(Cost::ZERO) => Err("give more than nothing".into()),
        Ok(cost) => Ok(cost),
        Err(error) => Err(format!("{error}")),
    }
}

fn commit_format(text: &str) -> Result<CommitFormat, String> {
    match text {
        "default" => Ok(CommitFormat::Default),
        "conventional" => Ok(CommitFormat::Conventional),
        _ => Err("give default or conventional".into()),
    }
}

fn eval(text: &str) -> Result<String, String> {
    match text {
        "null" | "code" => Ok(text.into()),
        _ if text.strip_prefix("command:").is_some_and(|path| !path.is_empty()) => Ok(text.into()),
        _ => Err("give null, code, or command:PATH".into()),
    }
}

fn bench_cache(text: &str) -> Result<BenchCache, String> {
    match text {
        "keep" => Ok(BenchCache::Keep),
        "accepted" => Ok(BenchCache::Accepted),
        _ => Err("give keep or accepted".into()),
    }
}

fn finite(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| "give a number, such as 90 or -1.5".into())
}

fn min_delta(text: &str) -> Result<MinDelta, String> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number, true),
        None => (text, false),
    };
    match finite(number) {
        Ok(value) if value >= 0.0 && percent => Ok(MinDelta::Percent(value)),
        Ok(value) if value >= 0.0 => Ok(MinDelta::Absolute(value)),
        _ => Err("give a number that is not negative, such as 0.5, or percent, such as 2%".into()),
    }
}

/// Reads `90`, `90s`, `90m` or `8h`; at least a second, at most a year.
fn seconds(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) if text.ends_with('h') => (number, 3_600),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    match seconds {
        Some(seconds @ 1..=31_536_000) => Ok(Duration::from_secs(seconds)),
        _ => Err(
            "give whole seconds, or minutes as 90m, or hours as 8h; at least 1 s and at most a year".into(),
        ),
    }
}

/// The same, or 0.
fn seconds_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" {
        Ok(Duration::ZERO)
    } else {
        seconds(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas() {
        assert_eq!(min_delta("0.5"), Ok(MinDelta::Absolute(0.5)));
        assert_eq!(min_delta("2%"), Ok(MinDelta::Percent(2.0)));
        for text in ["", "%", "-1", "nan", "inf", "1e999"] {
            assert!(min_delta(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, expected) in [("1", 1), ("90s", 90), ("90m", 5_400), ("8h", 28_800)] {
            assert_eq!(seconds(text), Ok(Duration::from_secs(expected)), "{text}");
            assert_eq!(seconds_or_none(text), seconds(text), "{text}");
        }
        assert_eq!(seconds_or_none("0"), Ok(Duration::ZERO));
        for text in [
            "",
            "0",
            "-1",
            "h",
            "1.5h",
            "9d",
            "99999999999999999999",
            "9999999h",
            "é",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
