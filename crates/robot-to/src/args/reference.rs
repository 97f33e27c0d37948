//! The reference of the command line, `docs/cli.md`, made from what clap knows.

use crate::config::{Kind, Setting, only_the_user, settings};
use clap::{Arg, Command};
use std::path::PathBuf;

const HEAD: &str = "\
# The command line

<!-- Made from the flags themselves by `INSTA_UPDATE=always cargo test -p robot-to reference`. Do not edit. -->

`--flag value` and `--flag=value` are the same. A flag with a key is a setting, which can be in a file or a variable as
well: see [configuration.md](configuration.md).
";

/// The whole page.
fn page() -> String {
    let mut command = super::command();
    command.build();
    let mut page = HEAD.to_owned();
    section(&mut page, &command, None);
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        section(&mut page, sub, Some(&command));
    }
    page
}

fn section(page: &mut String, command: &Command, whole: Option<&Command>) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
    let about = escaped(about.trim());
    page.push_str(&format!("\n## {name}\n\n{about}\n\n```text\n{usage}\n```\n"));
    let all = settings();
    // A command that has all of them is a run in another form.
    let is_run = whole.is_some() && all.iter().all(|setting| setting.is_in(command));
    if is_run {
        page.push_str("\nEvery flag of a run, as above");
    }
    let mut heading = String::new();
    let own = command.get_arguments().filter(|arg| {
        let setting = all.iter().any(|setting| setting.is_of(arg));
        let usual = ["help", "version"].contains(&arg.get_id().as_str());
        !(arg.is_hide_set() || usual || is_run && setting)
    });
    let own: Vec<&Arg> = own.collect();
    if is_run {
        page.push_str(if own.is_empty() { ".\n" } else { ", and:\n" });
    }
    for arg in own {
        let group = arg.get_help_heading().unwrap_or_default();
        if !page.ends_with("|\n") || (group != heading && !is_run) {
            heading = group.to_owned();
            if !group.is_empty() && !is_run {
                page.push_str(&format!("\n### {group}\n"));
            }
            page.push_str("\n| flag | what it is | default | key | variable |\n|---|---|---|---|---|\n");
        }
        page.push_str(&row(arg, all.iter().find(|setting| setting.is_of(arg))));
    }
}

fn row(arg: &Arg, setting: Option<&Setting>) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let values = arg.get_possible_values();
    let values: Vec<String> = values
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let is_switch = setting.is_some_and(|setting| matches!(setting.kind(), Kind::Switch { .. }));
    let values = if values.is_empty() || is_switch || !arg.get_action().takes_values() {
        String::new()
    } else {
        format!(": {}", values.join(", "))
    };
    let aliases: String = arg
        .get_visible_aliases()
        .unwrap_or_default()
        .iter()
        .map(|alias| format!("<br>`--{alias}`"))
        .collect();
    let default = match setting {
        Some(setting) => setting.default().filter(|words| !words.is_empty()),
        None => {
            let words = arg.get_default_values().iter();
            let words: Vec<String> = words.map(|word| word.to_string_lossy().into()).collect();
            Some(words).filter(|words| !words.is_empty() && arg.get_action().takes_values())
        }
    };
    let default = default
        .map(|words| format!("`{}`", words.join(" ")))
        .unwrap_or_default();
    let key = setting.map(|setting| {
        let only = only_the_user(setting.key()).map_or("", |_| "<br>not in a repository's file");
        format!("`{}`{only}", setting.key())
    });
    format!(
        "| `{}`{aliases} | {}{values} | {default} | {} | {} |\n",
        arg.to_string().replace('|', "\\|"),
        escaped(&help.replace('\n', " ")),
        key.unwrap_or_default(),
        setting
            .map(|setting| format!("`{}`", setting.variable()))
            .unwrap_or_default()
    )
}

/// A text of the help as Markdown.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn the_reference_of_the_command_line_is_up_to_date() {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "cli.md"]
        .iter()
        .collect();
    let page = page();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/cli.md is out of date: INSTA_UPDATE=always cargo test -p robot-to reference"
    );
}
