//! What the documents claim: the picture of a run, the events, the flags, the providers, the scripted model.

use std::collections::BTreeSet;
use std::path::PathBuf;

use robot_lab_providers::{key_variable, known_providers, usual_address};
use testkit::{ModelServer, Reply, Running, TestEnvironment, TestRepo};

use crate::lab::PATIENCE;
use crate::replies::{give_up, submit, write};

pub(crate) fn document(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", name].iter().collect();
    std::fs::read_to_string(path).unwrap()
}

/// The first fenced block after a mark.
pub(crate) fn block<'a>(text: &'a str, mark: &str) -> &'a str {
    let (_, after) = text.split_once(mark).unwrap();
    let (_, block) = after.split_once("```").unwrap();
    let (_, block) = block.split_once('\n').unwrap();
    block.split_once("```").unwrap().0
}

/// The text without what differs from run to run: times, which also change the width of a column, and ids of commits.
fn stable(text: &str) -> String {
    let is_time = |word: &str| word.contains(':') && word.chars().all(|c| c == ':' || c.is_ascii_digit());
    let is_id = |word: &str| word.len() == 10 && word.chars().all(|c| c.is_ascii_hexdigit());
    let line = |line: &str| {
        let words = line.split_whitespace().filter(|word| !is_time(word));
        words
            .map(|word| if is_id(word) { "[OID]" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_picture_in_the_readme_is_what_the_demo_shows() {
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let dir = env.root().join("demo");
    let finished = env.run([
        "demo".as_ref(),
        "--fast".as_ref(),
        "--dir".as_ref(),
        dir.as_os_str(),
    ]);
    finished.assert_code(0);
    env.placeholder(dir.display().to_string(), "[DEMO]")
        .placeholder("/tmp/robot-to-demo-4711", "[DEMO]");
    let (intro, shown) = finished.stderr.split_once("\n\n").unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = words(block(&document("README.md"), "<!-- command -->"));
    assert!(words(intro).ends_with(&command), "{intro}");
    let (summary, _) = finished.stdout.split_once("\n\nLook at it:").unwrap();
    let shown = stable(&env.normalize(&format!("{shown}{summary}")));
    let readme = document("README.md");
    let picture = stable(&env.normalize(block(&readme, "<!-- demo -->")));
    assert_eq!(
        picture.trim_end(),
        shown.trim_end(),
        "bring the picture in README.md up to date"
    );
}

#[test]
fn every_event_is_documented() {
    let source = document("crates/robot-lab-to/src/event/mod.rs");
    let named = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#[serde(rename = \""));
    let names: Vec<&str> = named.filter_map(|line| line.split('"').next()).collect();
    assert!(names.len() > 20, "{names:?}");
    let page = document("docs/run-log.md");
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "not in docs/run-log.md: {missing:?}");
}

#[test]
fn every_flag_in_the_documents_exists() {
    let env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let commands = [
        "demo", "resume", "check", "runs", "status", "attempts", "show", "report", "apply", "clean",
        "doctor", "man",
    ];
    let help: String = commands
        .iter()
        .map(|command| env.run([*command, "--help"]).stdout)
        .chain([env.run(["--help"]).stdout])
        .collect();
    let flags = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|word| word.len() > 2 && word.starts_with("--") && !word.starts_with("---"))
            .map(str::to_owned)
            .collect()
    };
    let known = flags(&help);
    // Flags of cargo and git, an option of git's that the README shows, and flags of servers.
    let others = [
        "--release",
        "--workspace",
        "--path",
        "--git-dir",
        "--all",
        "--alias",
        "--jinja",
        "--port",
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "--max-model-len",
        "--example",
        "--oneline",
        "--branches",
    ]
    .map(str::to_owned);
    for page in [
        "README.md",
        "docs/models.md",
        "docs/trust.md",
        "docs/run-log.md",
        "docs/workspaces.md",
        "docs/scripted-model.md",
        "docs/configuration.md",
        "docs/evals.md",
        "docs/library.md",
        "docs/getting-started.md",
        "docs/concepts.md",
        "CHANGELOG.md",
    ] {
        let unknown: Vec<String> = flags(&document(page))
            .into_iter()
            .filter(|flag| !known.contains(flag) && !others.contains(flag))
            .collect();
        assert!(
            unknown.is_empty(),
            "{page} names flags that do not exist: {unknown:?}"
        );
    }
}

#[test]
fn the_providers_in_the_documents_are_those_of_the_program() {
    let page = document("docs/models.md");
    let (_, table) = page.split_once("<!-- providers -->").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(3)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect()
        })
        .collect();
    let expected: Vec<Vec<&str>> = known_providers()
        .map(|name| {
            vec![
                name,
                key_variable(name).unwrap_or("none"),
                usual_address(name).unwrap(),
            ]
        })
        .collect();
    assert_eq!(rows, expected, "bring the table in docs/models.md up to date");

    let env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let help = env.run(["--help"]).stdout;
    let words: BTreeSet<&str> = help.split(|c: char| !(c.is_alphanumeric() || c == '-')).collect();
    let missing: Vec<_> = known_providers().filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "not in the help: {missing:?}");
}

#[test]
fn the_script_in_the_documents_plays() {
    let repo = TestRepo::new();
    repo.write("README.md", b"hello\n");
    repo.commit_all("start");
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let script = env.root().join("script.yaml");
    std::fs::write(&script, block(&document("docs/scripted-model.md"), "key.")).unwrap();
    let finished = env.cwd(repo.path()).run([
        "greet the reader".as_ref(),
        "--provider".as_ref(),
        "script".as_ref(),
        "--model".as_ref(),
        script.as_os_str(),
        "--max-iterations".as_ref(),
        "1".as_ref(),
    ]);
    finished.assert_code(0);
    assert!(
        finished
            .stdout
            .contains("Iterations: 1 (1 committed, 0 discarded)"),
        "{}",
        finished.stdout
    );
}

#[test]
fn the_eval_in_the_documents_decides() {
    let repo = TestRepo::new();
    repo.write("tools/score", block(&document("docs/evals.md"), "<!-- eval -->"));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(repo.path().join("tools/score"), executable).unwrap();
    repo.write("README.md", "# Notes\n\nTODO: one\nTODO: two\n");
    repo.commit_all("start");
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let script = env.root().join("script.yaml");
    let turn = |content: &str, summary: &str| {
        format!(
            "  - calls:\n      - {{ tool: write, args: {{ path: README.md, content: \"{content}\" }} }}\n      \
             - {{ tool: submit_iteration_result, args: {{ success: true, summary: {summary} }} }}\n"
        )
    };
    let turns = [
        turn("# Notes\\n\\nTODO: one and two\\n", "Join them"),
        turn("Notes\\n", "Drop them"),
        turn("# Notes\\n\\nOne and two.\\n", "Do them"),
    ];
    std::fs::write(&script, format!("turns:\n{}", turns.concat())).unwrap();
    let finished = env.cwd(repo.path()).run([
        "finish the pages".as_ref(),
        "--eval".as_ref(),
        "command:tools/score".as_ref(),
        "--minimize".as_ref(),
        "--target".as_ref(),
        "0".as_ref(),
        "--provider".as_ref(),
        "script".as_ref(),
        "--model".as_ref(),
        script.as_os_str(),
    ]);
    finished.assert_code(0);
    for said in [
        "Reason:     target met: 0 TODOs left",
        "Iterations: 2 (2 committed, 0 discarded)",
    ] {
        assert!(finished.stdout.contains(said), "{}", finished.stdout);
    }
    assert!(finished.stderr.contains("repair 1"), "{}", finished.stderr);
}

#[test]
fn every_key_of_what_produced_a_score_is_documented() {
    let known = serde_json::to_value(robot_lab_to::eval::Provenance::default()).unwrap();
    let page = document("docs/run-log.md");
    for key in known.as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
}

/// The blocks of shell commands of a page, but for those that say why they are not run.
fn shell_blocks(page: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("```sh\n") {
        let (block, after) = after.split_once("```").unwrap();
        if !before
            .trim_end()
            .lines()
            .last()
            .unwrap_or_default()
            .starts_with("<!-- not run: ")
        {
            blocks.push(block);
        }
        rest = after;
    }
    blocks
}

#[test]
fn the_commands_of_getting_started_work() {
    let page = document("docs/getting-started.md");
    let blocks = shell_blocks(&page);
    assert_eq!(blocks.len(), 9, "{blocks:#?}");
    let mend = Reply::calls([write("greet.sh", "echo \"hello $1\"\n"), submit("Greet by name")]);
    let server = ModelServer::start([mend, Reply::calls([give_up("Nothing is left to do")])]);
    let mut env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    env.cwd(env.work());
    let script = format!("set -e\n{}", blocks.join("echo '--- next ---'\n"));
    let url = "http://localhost:11434/v1";
    assert!(script.matches(url).count() >= 2);
    let script = script.replace(url, &server.base_url());
    let finished = Running::start(env.shell(&script)).wait(PATIENCE);
    finished.assert_code(0);
    let said: Vec<&str> = finished.stdout.split("--- next ---\n").collect();
    let [demo, _, check, run, report, review, resume, take, clean] = said.as_slice() else {
        panic!("{said:#?}")
    };
    for (said, parts) in [
        (demo, &["Reason:     target met: "][..]),
        (
            check,
            &["Baseline:   verify=false (exit 1)", "Ready: a run would begin."],
        ),
        (
            run,
            &[
                "Reason:     max iterations reached (1)",
                "(1 committed, 0 discarded)",
            ],
        ),
        (report, &["# robot-to ", "**Reason:** max iterations reached (1)"]),
        (
            review,
            &[
                "robot-to 1: Greet by name",
                "no attempts are kept",
                "iteration 1 of ",
            ],
        ),
        (
            resume,
            &[
                "Reason:     max iterations reached (2)",
                "(1 committed, 1 discarded)",
            ],
        ),
        (take, &[]),
        (
            clean,
            &[
                "2 iterations,    1 commit  max iterations reached (2)",
                "Cleaned:    ",
            ],
        ),
    ] {
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in:\n{said}");
        }
    }
    server.assert_valid();
    assert_eq!(server.unexpected(), 0);
}
