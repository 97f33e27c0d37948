//! Settings from files and variables, and the commands around them: `config`, `completions`, `man`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use robot_lab_to::event::Event;
use robot_lab_to::settings::Plan;
use serde_json::Value;
use testkit::{Finished, Reply, TestEnvironment};

use crate::docs::{block, document};
use crate::lab::{Lab, OBJECTIVE, PATIENCE, Ran};
use crate::replies::{good, submit, write};

/// Writes the user's file.
fn user_file(env: &TestEnvironment, text: &str) -> PathBuf {
    let path = env.config().join("robot_lab/to.yml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// The plan that a run went by last.
fn plan(ran: &Ran<'_>) -> Plan {
    let plan = ran.records.iter().rev().find_map(|record| match &record.event {
        Event::RunStarted { plan, .. } | Event::RunResumed { plan, .. } => Some(plan),
        _ => None,
    });
    (**plan.unwrap()).clone()
}

fn says(finished: &Finished, parts: &[&str]) {
    for part in parts {
        assert!(
            finished.stderr.contains(part),
            "{part:?} is not in:\n{}",
            finished.stderr
        );
    }
}

#[test]
fn user_repository_variable_and_flag_each_win_where_they_are_the_strongest() {
    let mut lab = Lab::new([good("one")]);
    let all = |n: u32| format!("max_tool_rounds: {n}\nmax_submit_nudges: {n}\nmax_verify_repairs: {n}\n");
    user_file(
        &lab.env,
        &format!("{}max_retries: 1\nbase_url: {}\n", all(11), lab.server.base_url()),
    );
    lab.repo.write(
        "robot-to.yml",
        "verify_command: sh test.sh\nmax_submit_nudges: 12\nmax_verify_repairs: 12\nmodel: test-model\n",
    );
    lab.repo.commit_all("settings");
    lab.env
        .env("ROBOT_LAB_TO_MAX_VERIFY_REPAIRS", "13")
        .env("ROBOT_LAB_TO_MAX_ITERATIONS", "13")
        .env("ROBOT_LAB_TO_PROTECT_PATHS", "[test.sh, parts/base]");
    let ran = lab
        .launch(lab.env.command([OBJECTIVE, "--max-iterations", "1"]))
        .end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    let plan = plan(&ran);
    assert_eq!(plan.max_tool_calls, 11, "the user's file");
    assert_eq!(
        plan.policy.max_submit_nudges, 12,
        "the repository's over the user's"
    );
    assert_eq!(plan.policy.max_verify_repairs, 13, "a variable over both");
    assert_eq!(plan.policy.max_iterations, Some(1), "a flag over all");
    assert_eq!(plan.verify_command.as_deref(), Some("sh test.sh"));
    assert_eq!(plan.protect_paths, ["test.sh", "parts/base"]);
    assert_eq!(plan.max_retries, 1);
}

#[test]
fn what_one_setting_needs_may_come_from_another_place() {
    let lab = Lab::new([good("one")]);
    lab.repo.write("robot-to.yml", "eval_measure: ls parts | wc -l\n");
    lab.repo.commit_all("settings");
    let ran = lab.run(&["--target", "2"]);
    ran.assert_end(0, "target met: verify=true, measure=2 (before 1)");
    // Without it, the flag means nothing.
    let lab = Lab::new([]);
    says(
        &lab.refuse(&["--target", "2"]),
        &["--target needs --measure", "nothing was changed"],
    );
}

#[test]
fn case_170_a_resumed_run_goes_by_its_plan_and_not_by_files_and_variables() {
    let mut lab = Lab::new([good("one"), good("two")]);
    lab.run(&["--max-iterations", "1", "--max-tool-rounds", "7"]);
    lab.repo.write(
        "robot-to.yml",
        "max_tool_rounds: 3\nmax_iterations: 5\neval_target: 1\nminimize: true\n",
    );
    lab.env
        .env("ROBOT_LAB_TO_MAX_TOKENS", "1")
        .env("ROBOT_LAB_TO_REQUIRE_IMPROVEMENT", "false");
    let refused = lab.env.run(["resume"]);
    refused.assert_code(2);
    says(&refused, &["1 iteration; raise it with --max-iterations"]);
    let ran = lab
        .launch(lab.env.command(["resume", "--max-iterations", "2"]))
        .end(PATIENCE);
    ran.assert_end(0, "max iterations reached (2)");
    let plan = plan(&ran);
    assert_eq!(plan.max_tool_calls, 7);
    assert_eq!(plan.policy.max_tokens, None);
    assert!(plan.policy.require_improvement);
    assert_eq!(plan.measure, None);
}

#[test]
fn a_resumed_run_with_a_measure_takes_a_target_alone() {
    let lab = Lab::new([good("one"), good("two")]);
    lab.run(&["--max-iterations", "1", "--measure", "ls parts | wc -l"]);
    let resumed = ["resume", "--target", "3", "--max-iterations", "5"];
    let ran = lab.launch(lab.env.command(resumed)).end(PATIENCE);
    ran.assert_end(0, "target met: verify=true, measure=3 (before 2)");
}

#[test]
fn every_command_looks_where_the_users_file_puts_runs() {
    let lab = Lab::new([good("one")]);
    let work = lab.env.root().join("elsewhere");
    user_file(
        &lab.env,
        &format!("run_dir: .robots\nwork_dir: {}\n", work.display()),
    );
    let finished = lab.env.run(lab.arguments(&["--max-iterations", "1"]));
    finished.assert_code(0);
    assert!(lab.top.join(".robots/runs").is_dir());
    assert!(work.join("runs").is_dir());
    let status = lab.env.run(["status"]);
    status.assert_code(0);
    let runs = lab.env.run(["runs"]);
    assert!(runs.stdout.contains("1 iteration,"), "{}", runs.stdout);
    let attempts = lab.env.run(["attempts"]);
    attempts.assert_code(0);
    let resumed = lab.env.run(["resume"]);
    says(&resumed, &["raise it with --max-iterations"]);
}

#[test]
fn a_mistake_in_a_file_or_a_variable_ends_everything_before_it_begins() {
    let mut lab = Lab::new([]);
    let path = user_file(&lab.env, "model: a\nmax_iteratons: 3\n");
    let named = format!("{}, line 2", path.display());
    says(
        &lab.refuse(&[]),
        &[&named, "did you mean max_iterations?", "nothing was changed"],
    );
    let looked = lab.env.run(["status"]);
    looked.assert_code(2);
    std::fs::write(&path, "").unwrap();
    lab.repo
        .write("robot-to.yml", "base_url: http://127.0.0.1:1/v1\n");
    says(
        &lab.refuse(&[]),
        &["robot-to.yml, line 1", "base_url", "ROBOT_LAB_TO_BASE_URL"],
    );
    lab.repo.write("robot-to.yml", "{}\n");
    lab.env.env("ROBOT_LAB_TO_MODLE", "a");
    says(
        &lab.refuse(&[]),
        &["ROBOT_LAB_TO_MODLE", "did you mean ROBOT_LAB_TO_MODEL?"],
    );
    // What has nothing to do with runs goes on.
    lab.env.run(["completions", "bash"]).assert_code(0);
}

#[test]
fn a_path_of_the_repositorys_file_that_leads_out_over_a_link_is_refused() {
    let lab = Lab::new([]);
    let outside = lab.env.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("key"), "the-text-of-a-key").unwrap();
    std::os::unix::fs::symlink(outside.join("key"), lab.top.join("notes")).unwrap();
    std::os::unix::fs::symlink(&outside, lab.top.join("out")).unwrap();
    for (key, value) in [
        ("instructions", "notes"),
        ("instructions", "out/key"),
        ("run_dir", "out"),
        ("run_dir", "out/runs"),
    ] {
        lab.repo.write("robot-to.yml", format!("{key}: {value}\n"));
        lab.repo.commit_all("settings");
        let refused = lab.refuse(&[]);
        says(
            &refused,
            &[
                &format!("{key} cannot be \"{value}\""),
                "also where it leads over links",
            ],
        );
        assert!(!refused.stderr.contains("the-text-of-a-key"));
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "{key}");
    }
}

#[test]
fn the_settings_of_the_repository_are_locked_even_when_there_are_none() {
    let lab = Lab::new([Reply::calls([
        write("parts/one", "ok\n"),
        crate::replies::bash("echo 'verify_command: true' > robot-to.yml"),
        submit("Ease the gate"),
    ])]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.outcomes(), ["iteration:tampered"], "one that is new");
    assert!(ran.notes().contains("robot-to.yml"), "{}", ran.notes());

    let lab = Lab::new([Reply::calls([
        write("robot-to.yml", "verify_command: true\n"),
        crate::replies::bash("rm robot-to.yml"),
        write("parts/one", "ok\n"),
        submit("Ease the gate"),
    ])]);
    lab.repo.write("robot-to.yml", "max_tool_rounds: 9\n");
    lab.repo.commit_all("settings");
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.outcomes(), ["iteration:tampered"], "one that is gone");
}

/// The objects that `robot-to config --json` prints, by key.
fn settings(finished: &Finished) -> Vec<Value> {
    finished.assert_code(0);
    assert_eq!(finished.stderr, "");
    finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn config_shows_values_and_places_in_and_outside_of_a_repository() {
    let mut lab = Lab::new([]);
    user_file(&lab.env, "model: from-the-user\nstream: false\n");
    lab.repo
        .write("robot-to.yml", "\nverify_command: make test\nrun_dir: .robots\n");
    lab.repo.write("sub/x", "");
    lab.start_in("sub");
    lab.env.env("ROBOT_LAB_TO_MAX_TOKENS", "5");
    let inside = lab.env.run(["config", "--max-iterations", "3", "--stream"]);
    inside.assert_code(0);
    let squeezed: Vec<String> = inside
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let repository = lab.top.join("robot-to.yml").display().to_string();
    let user = lab.env.config().join("robot_lab/to.yml").display().to_string();
    for line in [
        format!("{user} (2 settings)"),
        format!("{repository} (2 settings)"),
        "variables (1 setting)".into(),
        "flags (2 settings)".into(),
        "max_iterations 3 --max-iterations".into(),
        "stream true --stream".into(),
        "max_tokens 5 ROBOT_LAB_TO_MAX_TOKENS".into(),
        format!("verify_command make test {repository}, line 2"),
        format!("model from-the-user {user}, line 1"),
        "provider openai default".into(),
    ] {
        assert!(squeezed.contains(&line), "{line:?} is not in:\n{}", inside.stdout);
    }
    let work = lab.env.work();
    lab.env.cwd(work);
    let outside = lab.env.run(["config"]);
    outside.assert_code(0);
    assert!(outside.stdout.contains("no repository"), "{}", outside.stdout);
    assert!(
        outside.stdout.contains("not in a git repository"),
        "{}",
        outside.stdout
    );
    let objects = settings(&lab.env.run(["config", "--json"]));
    let model = objects.iter().find(|object| object["key"] == "model").unwrap();
    assert_eq!(
        (&model["value"], &model["from"]),
        (&"from-the-user".into(), &"user".into())
    );
}

#[test]
fn every_key_can_be_written_to_a_file_with_its_default() {
    let env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let defaults = settings(&env.run(["config", "--json"]));
    assert!(defaults.len() > 25, "{defaults:?}");
    let text: String = defaults
        .iter()
        .filter(|setting| !setting["value"].is_null())
        .map(|setting| format!("{}: {}\n", setting["key"].as_str().unwrap(), setting["value"]))
        .collect();
    user_file(&env, &text);
    let from_file = settings(&env.run(["config", "--json"]));
    for (default, written) in defaults.iter().zip(&from_file) {
        assert_eq!(default["key"], written["key"]);
        assert_eq!(default["value"], written["value"], "{}", default["key"]);
        let from = if default["value"].is_null() {
            "default"
        } else {
            "user"
        };
        assert_eq!(written["from"], from, "{}", default["key"]);
    }
}

#[test]
fn the_example_in_the_documents_gives_what_they_say() {
    let mut lab = Lab::new([good("one")]);
    let page = document("docs/configuration.md");
    let user = user_file(&lab.env, block(&page, "<!-- user -->"));
    lab.repo
        .write("robot-to.yml", block(&page, "<!-- repository -->"));
    let command = block(&page, "<!-- command -->").trim();
    let words: Vec<&str> = command.split_whitespace().collect();
    let split = words.iter().position(|word| *word == "robot-to").unwrap();
    let (variables, arguments) = words.split_at(split);
    for variable in variables {
        let (name, value) = variable.split_once('=').unwrap();
        lab.env.env(name, value);
    }
    let shown = lab.env.run(&arguments[1..]);
    shown.assert_code(0);
    let shown = shown
        .stdout
        .replace(&user.display().to_string(), "/home/you/.config/robot_lab/to.yml")
        .replace(&lab.top.display().to_string(), "/home/you/project");
    let squeezed = |text: &str| -> Vec<String> {
        let words = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        words.filter(|line| !line.is_empty()).collect()
    };
    let known: BTreeSet<String> = squeezed(&shown).into_iter().collect();
    for line in squeezed(block(&page, "<!-- shown -->")) {
        assert!(
            line == "…" || known.contains(&line),
            "{line:?} is not in:\n{shown}"
        );
    }
    // And a run goes by it.
    let mut line: Vec<OsString> = lab.arguments(&["--max-iterations", "1"]);
    line.push("--no-keep-workspace".into());
    lab.launch(lab.env.command(line))
        .end(PATIENCE)
        .assert_end(0, "max iterations reached (1)");
}

#[test]
fn the_completions_for_bash_are_a_script_that_bash_reads() {
    let env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let finished = env.run(["completions", shell]);
        finished.assert_code(0);
        assert!(finished.stdout.contains("max-iterations"), "{shell}");
        assert!(finished.stdout.contains("completions"), "{shell}");
    }
    let script = env.root().join("completion");
    std::fs::write(&script, env.run(["completions", "bash"]).stdout).unwrap();
    let read = Command::new("bash").arg("-n").arg(&script).output().unwrap();
    assert!(read.status.success() && read.stderr.is_empty(), "{read:?}");
    env.run(["completions", "tcsh"]).assert_code(2);
}

/// Requests of roff that a page may have; anything else at the beginning of a line is a mistake.
const REQUESTS: [&str; 14] = [
    "ie", "el", "TH", "SH", "SS", "TP", "PP", "RS", "RE", "br", "nf", "fi", "IP", "sp",
];

fn check_page(page: &str, name: &str) {
    assert!(page.contains(&format!(".TH {name} 1")), "{page}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
        assert!(page.contains(&format!(".SH {section}")), "{name}: no {section}");
    }
    for line in page.lines() {
        if let Some(request) = line.strip_prefix('.') {
            let request = request.split_whitespace().next().unwrap_or_default();
            assert!(REQUESTS.contains(&request), "{name}: {line}");
        }
        assert!(!line.starts_with('\'') || line == "'", "{name}: {line}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let env = TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to"));
    let main = env.run(["man"]);
    main.assert_code(0);
    check_page(&main.stdout, "robot-to");
    let dir = env.root().join("man/man1");
    let out = [Path::new("man"), Path::new("--out"), &dir];
    let finished = env.run(out);
    finished.assert_code(0);
    assert_eq!(finished.stdout, "");
    let help = env.run(["--help"]).stdout;
    let (_, commands) = help.split_once("\nCommands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names: Vec<String> = commands
        // What is further in goes on with the line above.
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .map(|name| format!("robot-to-{name}"))
        .collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names.iter().map(String::as_str).chain(["robot-to"]) {
        check_page(
            &std::fs::read_to_string(dir.join(format!("{name}.1"))).unwrap(),
            name,
        );
    }
    let file = env.root().join("man/file");
    std::fs::write(&file, "").unwrap();
    let finished = env.run([Path::new("man"), Path::new("--out"), &file]);
    finished.assert_code(5);
    says(&finished, &["cannot be written"]);
}

#[test]
fn a_repository_leads_no_key_of_the_users_to_a_provider_of_its_choice() {
    for theirs in ["provider: xai", "fallback_model: xai/grok"] {
        for ours in ["api_key_env: GATEWAY_KEY", "header: [\"x-auth: $GATEWAY_KEY\"]"] {
            let mut lab = Lab::new([]);
            lab.repo.write("robot-to.yml", format!("{theirs}\n"));
            lab.repo.commit_all("settings");
            user_file(&lab.env, &format!("{ours}\n"));
            lab.env.env("GATEWAY_KEY", "gk-0123456789abcdef");
            let refused = lab.env.run([OBJECTIVE]);
            refused.assert_code(2);
            says(
                &refused,
                &[
                    "cannot be set by a repository",
                    "would go to a provider that the repository chooses",
                ],
            );
        }
    }
}

#[test]
fn a_variable_that_commands_need_is_not_taken_for_a_header() {
    let lab = Lab::new([]);
    let refused = lab.refuse(&["--header", "x-dir: $HOME"]);
    says(&refused, &["HOME is a variable that every command needs"]);
    for (header, said) in [
        ("x-team: Bearer zzzsecretzzz", "may be a secret"),
        ("Content-Length: 3", "cannot be set"),
        ("host: elsewhere", "cannot be set"),
        (
            "x-team: ${zzzname",
            "the value of the header x-team has a $ that begins no variable",
        ),
        ("x-team: zzz$", "x-team has a $ that begins no variable"),
        ("x-key: $1zzz", "x-key has a $ that begins no variable"),
    ] {
        let refused = lab.refuse(&["--header", header]);
        says(&refused, &[said]);
        assert!(!refused.stderr.contains("zzz"), "{}", refused.stderr);
    }
}
