//! The texts of every error, the whole way from files and variables to a command line, and every key.

use super::error::Place;
use super::*;
use insta::assert_snapshot;
use std::path::{Path, PathBuf};

const USER: &str = "/home/u/.config/robot_lab/to.yml";
const REPOSITORY: &str = "/repo/robot-to.yml";

fn user(text: &str) -> Result<Layer, ConfigError> {
    Layer::of_file(&settings(), Source::User(PathBuf::from(USER)), text)
}

fn repository(text: &str) -> Result<Layer, ConfigError> {
    Layer::of_file(&settings(), Source::Repository(PathBuf::from(REPOSITORY)), text)
}

fn variables(pairs: &[(&str, &str)]) -> Result<Layer, ConfigError> {
    let pairs: Vec<(OsString, OsString)> = pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Layer::of_variables(&settings(), &pairs)
}

/// What a user reads of an error.
fn said(layer: Result<Layer, ConfigError>) -> String {
    CliError::from(layer.unwrap_err()).to_string()
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place_and_a_way_out() {
    let cases = [
        "max_iteratons: 3",
        "model: a\n\n# a comment\nverify: make test\n",
        "no_stream: true",
        "colour: red",
        "api_key: sk-0123456789",
        "openai-api-key: sk-0123456789",
        "token: 0123456789",
        "max_iterations: many",
        "max_iterations: 0",
        "max_iterations: 3.5",
        "max_iterations: true",
        "max_iterations: [3]",
        "max_iterations: {a: 3}",
        "max_time: 9d",
        "commit_format: pretty",
        "min_delta: -1",
        "eval_target: .nan",
        "stream: sometimes",
        "stream: [true]",
        "verify_command:",
        "verify_command: ~",
        "verify_command: \"a\\0b\"",
        "protect_paths: tests",
        "protect_paths:",
        "protect_paths: [a, ]\nenv: [[a]]",
        "env: [a, ~]",
        "work_dir: ~/robots",
        "work_dir: ''",
        "max_tokens: 1\nmodel: a\nmax_tokens: 2",
        "- max_tokens",
        "just a text",
        "max_tokens: 1\n---\nmodel: a",
        "max_tokens: [1",
        "max_tokens: 1\n\tmodel: a",
        "a: &a {b: 1}\n<<: *a",
        "? [a]\n: 1",
        "~: 1",
        "json: true",
    ];
    let texts: Vec<String> = cases
        .iter()
        .map(|text| format!("{text}\n---> {}", said(user(text))))
        .collect();
    assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn what_a_repository_may_not_set_is_said_with_the_reason_and_where_it_may_be_set() {
    let cases = [
        "base_url: http://localhost/v1",
        "work_dir: /tmp/elsewhere",
        "env: [HOME]",
        "run_dir: /etc",
        "run_dir: ../other",
    ];
    let texts: Vec<String> = cases
        .iter()
        .map(|text| format!("{text}\n---> {}", said(repository(text))))
        .collect();
    assert_snapshot!(texts.join("\n\n"));
    let layer = repository("run_dir: .robots\nverify_command: make test\n").unwrap();
    assert_eq!(
        layer.given["run_dir"].words,
        ["/repo/.robots"],
        "a path is relative to the file"
    );
}

#[test]
fn the_keys_that_only_the_user_may_set_are_those_of_the_documents() {
    let path = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "configuration.md"];
    let page = std::fs::read_to_string(path.iter().collect::<PathBuf>()).unwrap();
    let (_, table) = page.split_once("<!-- only the user -->").unwrap();
    let rows = table
        .trim_start()
        .lines()
        .take_while(|line| line.starts_with('|'));
    let documented: Vec<&str> = rows.skip(2).filter_map(|row| row.split('`').nth(1)).collect();
    let settings = settings();
    let mut refused: Vec<&str> = settings
        .iter()
        .map(Setting::key)
        .filter(|key| only_the_user(key).is_some())
        .collect();
    refused.sort_unstable();
    assert_eq!(documented, refused);
}

#[test]
fn what_is_wrong_with_a_variable_is_said_with_its_name() {
    let cases = [
        ("ROBOT_LAB_TO_MAX_ITERATONS", "3"),
        ("ROBOT_LAB_TO_max_iterations", "3"),
        ("ROBOT_LAB_TO_VERIFY", "make test"),
        ("ROBOT_LAB_TO_COLOUR", "red"),
        ("ROBOT_LAB_TO_API_KEY", "sk-0123456789"),
        ("ROBOT_LAB_TO_", "x"),
        ("ROBOT_LAB_TO_MAX_ITERATIONS", "many"),
        ("ROBOT_LAB_TO_VERIFY_COMMAND", ""),
        ("ROBOT_LAB_TO_STREAM", "yes"),
        ("ROBOT_LAB_TO_PROTECT_PATHS", "[a"),
        ("ROBOT_LAB_TO_PROTECT_PATHS", "[a, [b]]"),
    ];
    let texts: Vec<String> = cases
        .iter()
        .map(|(name, value)| format!("{name}={value}\n---> {}", said(variables(&[(name, value)]))))
        .collect();
    assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn a_variable_that_is_no_text_is_refused_unless_it_is_a_path() {
    use std::os::unix::ffi::OsStringExt as _;
    let bytes = OsString::from_vec(vec![b'/', 0xff]);
    let layer = |name: &str| Layer::of_variables(&settings(), &[(name.into(), bytes.clone())]);
    assert!(matches!(
        layer("ROBOT_LAB_TO_MODEL"),
        Err(ConfigError::NotText(Place::Variable(_)))
    ));
    assert_eq!(
        layer("ROBOT_LAB_TO_WORK_DIR").unwrap().given["work_dir"].words,
        std::slice::from_ref(&bytes)
    );
}

#[test]
fn a_secret_is_refused_without_repeating_it() {
    for text in [
        "api_key: sk-0123456789",
        "my_secret: [sk-0123456789]",
        "password: {a: sk-0123456789}",
    ] {
        let said = said(user(text));
        assert!(said.contains("secret") && !said.contains("0123456789"), "{said}");
    }
}

/// A value that a setting takes: its default, or one that stands for any.
fn sample(setting: &Setting) -> String {
    let default = setting.default().and_then(|words| words.first().cloned());
    let possible = setting.possible().first().cloned();
    let fits = |value: &String| variables(&[(&setting.variable(), value)]).is_ok();
    let any = ["2000", "code", "1", "low", "in=1,out=2"]
        .map(str::to_owned)
        .into_iter()
        .find(fits);
    default.or(possible).or(any).unwrap()
}

#[test]
fn every_key_takes_its_default_in_a_file_and_in_a_variable() {
    for setting in settings() {
        let (key, value) = (setting.key(), sample(&setting));
        for spelt in [value.clone(), format!("{value:?}")] {
            let spelt = if setting.kind() == Kind::List {
                format!("[{spelt}]")
            } else {
                spelt
            };
            let from_file = user(&format!("# {key}\n{key}: {spelt}\n")).unwrap();
            assert_eq!(from_file.given[key].words, [OsString::from(&value)], "{key}");
            assert_eq!(from_file.given[key].line, Some(2), "{key}");
        }
        let from_variable = variables(&[(&setting.variable(), &value)]).unwrap();
        assert_eq!(from_variable.given[key].words, [OsString::from(&value)], "{key}");
    }
}

#[test]
fn every_key_reaches_the_flag_that_it_is_named_after() {
    let command = args::command();
    for setting in settings() {
        // A switch is turned from its default; of the others any value does.
        let value = match setting.kind() {
            Kind::Switch { on } => on.to_string(),
            Kind::List | Kind::One => sample(&setting),
        };
        let layer = variables(&[(&setting.variable(), &value)]).unwrap();
        let line = ["robot-to", "do it well"].map(OsString::from);
        let matches = command.clone().try_get_matches_from(&line).unwrap();
        let completed = complete(&command, &matches, &line, &[layer]);
        assert_eq!(completed.len(), 3, "{completed:?}");
        let matches = command.clone().try_get_matches_from(&completed).unwrap();
        let flags = Layer::of_flags(&settings(), &matches);
        assert_eq!(
            flags.given[setting.key()].words,
            [OsString::from(value)],
            "{}",
            setting.key()
        );
    }
}

/// The line that is read in the end, without the name of the program.
fn completed(line: &[&str], layers: &[Layer]) -> Vec<String> {
    let command = args::command();
    let line: Vec<OsString> = [&["robot-to"], line]
        .concat()
        .iter()
        .map(OsString::from)
        .collect();
    let matches = command.clone().try_get_matches_from(&line).unwrap();
    let completed = complete(&command, &matches, &line, layers);
    let words = completed
        .into_iter()
        .skip(1)
        .map(|word| word.into_string().unwrap());
    words.collect()
}

#[test]
fn what_is_not_on_the_command_line_is_put_before_it() {
    let layers = [
        user("max_tokens: 1\nmax_iterations: 1\nstream: false\nrun_dir: a\nprotect_paths: [a, b]").unwrap(),
        repository("max_tokens: 2\nmax_iterations: 2\nprotect_paths: [c]").unwrap(),
        variables(&[("ROBOT_LAB_TO_MAX_TOKENS", "3"), ("ROBOT_LAB_TO_STREAM", "true")]).unwrap(),
    ];
    assert_eq!(
        completed(&["--max-iterations", "9", "--", "--odd"], &layers),
        [
            "--protect-path=c",
            "--max-tokens=3",
            "--run-dir=a",
            "--max-iterations",
            "9",
            "--",
            "--odd"
        ]
    );
    // A list of flags replaces the list of a file, and a switch its opposite.
    assert_eq!(
        completed(&["x", "--protect-path", "d", "--no-stream"], &layers)[2..],
        ["--run-dir=a", "x", "--protect-path", "d", "--no-stream"]
    );
    let quiet = [user("stream: false").unwrap()];
    assert_eq!(completed(&["x"], &quiet), ["--no-stream", "x"]);
    assert_eq!(completed(&["x", "--stream"], &quiet), ["x", "--stream"]);
    // Other commands take what they know.
    assert_eq!(
        completed(&["status", "--json"], &layers),
        ["status", "--run-dir=a", "--json"]
    );
    assert_eq!(completed(&["demo"], &layers), ["demo"]);
    assert_eq!(
        completed(&["resume", "x"], &layers)[..2],
        ["resume", "--protect-path=c"]
    );
}

#[test]
fn each_setting_is_shown_with_its_value_and_its_place() {
    let sources = Sources {
        user: Some(PathBuf::from(USER)),
        repository: Err("\"/tmp\" is not in a git repository".into()),
        variables: Vec::new(),
    };
    let command = args::command();
    let matches = command
        .try_get_matches_from(["robot-to", "config", "--max-tokens=9"])
        .unwrap();
    let layers = [
        user("\nverify_command: |\n  make\n  make test\nstream: false\neval_target: 0.50\nprotect_paths: [a, b c]").unwrap(),
        variables(&[("ROBOT_LAB_TO_MAX_TOKENS", "3"), ("ROBOT_LAB_TO_MAX_ITERATIONS", "4")]).unwrap(),
        Layer::of_flags(&settings(), matches.subcommand_matches("config").unwrap()),
    ];
    // One of each kind and source, so that a new flag is no news here.
    let keys = [
        "model",
        "base_url",
        "stream",
        "max_retries",
        "verify_command",
        "eval_target",
        "protect_paths",
        "require_improvement",
        "max_iterations",
        "max_tokens",
        "env",
        "run_dir",
    ];
    let mut some = settings();
    some.retain(|setting| keys.contains(&setting.key()));
    let trimmed: Vec<String> = as_text(&some, &sources, &layers)
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    assert_snapshot!(trimmed.join("\n"));
    assert_snapshot!(as_json(&some, &layers));
}

#[test]
fn what_cannot_be_read_as_a_file_of_settings_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let said = |name: &str| {
        let error = source::read(&path(name)).unwrap_err();
        CliError::from(error)
            .to_string()
            .replace(&dir.path().display().to_string(), "[DIR]")
    };
    std::fs::create_dir(path("directory.yml")).unwrap();
    std::os::unix::fs::symlink(path("nowhere"), path("link.yml")).unwrap();
    std::fs::write(path("bytes.yml"), b"model: a\nmodel: \xff\n").unwrap();
    std::fs::write(path("large.yml"), vec![b'#'; 256 * 1024 + 1]).unwrap();
    std::fs::write(path("other.yaml"), "model: a\n").unwrap();
    let names = ["directory.yml", "link.yml", "bytes.yml", "large.yml", "other.yml"];
    assert_snapshot!(names.map(said).join("\n\n"));
    assert!(source::read(&path("none.yml")).unwrap().is_none());
    assert!(source::read(Path::new("/dev/null/x")).is_err());
    std::fs::write(path("largest.yml"), vec![b'#'; 256 * 1024]).unwrap();
    assert!(source::read(&path("largest.yml")).unwrap().is_some());
}

#[test]
fn a_subcommand_is_the_first_argument_or_none() {
    for line in [
        &["--max-iterations", "3", "status"][..],
        &["--json", "config"],
        &["--", "status"],
    ] {
        let line = [&["robot-to"], line].concat();
        let matches = args::command().try_get_matches_from(line);
        let subcommand = matches
            .ok()
            .and_then(|matches| matches.subcommand_name().map(str::to_owned));
        assert_eq!(subcommand, None);
    }
}
