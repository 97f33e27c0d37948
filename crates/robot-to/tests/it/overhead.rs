//! What an iteration costs besides its robot and its commands, as far as it can be counted.

use crate::lab::{Lab, Ran};
use crate::replies::good;

/// Most git processes of an iteration that is committed.
const MOST: usize = 14;

/// Runs `iterations` good iterations with a git that counts how often it is called.
fn calls_of(iterations: usize) -> usize {
    let names: Vec<String> = (0..iterations).map(|n| format!("n{n}")).collect();
    let mut lab = Lab::new(names.iter().map(|name| good(name)));
    let (bin, calls) = (lab.env.root().join("counting"), lab.env.root().join("calls"));
    let wrapper = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\nexec \"$REAL_GIT\" \"$@\"\n",
        calls.display()
    );
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file());
    let wrapper = wrapper.replace("$REAL_GIT", real.unwrap().to_str().unwrap());
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("git"), wrapper).unwrap();
    std::process::Command::new("chmod")
        .arg("+x")
        .arg(bin.join("git"))
        .status()
        .unwrap();
    lab.env.env("PATH", format!("{}:{path}", bin.display()));
    let ran: Ran<'_> = lab.run(&["--max-iterations", &iterations.to_string()]);
    assert_eq!(ran.subjects().len(), iterations);
    crate::lab::text_of(&calls).lines().count()
}

#[test]
fn case_55_a_committed_iteration_takes_at_most_fourteen_git_processes() {
    let (few, many) = (calls_of(2), calls_of(6));
    let each = (many - few) / 4;
    assert!(
        (1..=MOST).contains(&each),
        "{each} calls of git in each iteration"
    );
}
