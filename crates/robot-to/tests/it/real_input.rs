//! What the model is really sent, and what a robot really sees.

use testkit::{Call, Reply};

use crate::lab::{KEY, Lab, OBJECTIVE};
use crate::replies::{bash, good, submit, write};

#[test]
fn each_iteration_begins_with_every_tool_and_a_fresh_conversation() {
    let lab = Lab::new([good("one"), good("two"), good("three")]);
    let ran = lab.run(&["--max-iterations", "3"]);
    ran.assert_end(0, "max iterations reached (3)");
    let requests = ran.requests();
    for (request, iteration) in requests.iter().zip(1..) {
        let mut tools = request.tool_names();
        tools.sort_unstable();
        assert_eq!(
            tools,
            ["bash", "edit", "read", "submit_iteration_result", "write"]
        );
        let roles: Vec<_> = request
            .messages()
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["system", "user"]);
        assert!(
            request
                .last_text("user")
                .unwrap()
                .contains(&format!("This is iteration {iteration}."))
        );
        let system = request.last_text("system").unwrap();
        assert!(
            system.contains(OBJECTIVE) && system.contains("sh test.sh"),
            "{system}"
        );
        assert_eq!(request.body["model"], "test-model");
    }
    assert_eq!(
        requests[0].messages()[0],
        requests[2].messages()[0],
        "the stable part is the same"
    );
    assert!(
        requests[2]
            .last_text("user")
            .unwrap()
            .contains("learning of: Add part two")
    );
}

#[test]
fn the_tools_do_what_they_say() {
    let read = |path: &str| Call::new("read", serde_json::json!({ "path": path }));
    let edit = Call::new(
        "edit",
        serde_json::json!({ "path": "parts/one", "old_text": "nearly", "new_text": "ok" }),
    );
    let lab = Lab::new([
        Reply::calls([
            read("parts/base"),
            read("no/such/file"),
            bash("echo out; echo err >&2; exit 3"),
        ]),
        Reply::calls([write("parts/one", "nearly\n"), edit, bash("sh test.sh && pwd")]),
        Reply::calls([submit("Add part one")]),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.on_branch("parts/one"), "ok");
    let told = |request: usize, tool: usize| {
        let request = &ran.requests()[request];
        let message = request
            .messages()
            .iter()
            .filter(|message| message["role"] == "tool")
            .nth(tool)
            .unwrap()
            .clone();
        message["content"].to_string()
    };
    assert!(told(1, 0).contains("ok"), "{}", told(1, 0));
    assert!(told(1, 1).contains("no/such/file"), "{}", told(1, 1));
    for part in ["exit 3", "out", "err"] {
        assert!(told(1, 2).contains(part), "{}", told(1, 2));
    }
    let place = told(2, 5);
    assert!(
        place.contains("exit 0") && place.contains(lab.env.state().to_str().unwrap()),
        "{place}"
    );
}

#[test]
fn calls_after_the_report_are_refused_and_no_request_follows() {
    let lab = Lab::new([Reply::calls([
        write("parts/one", "ok\n"),
        submit("Add part one"),
        write("parts/late", "broken"),
    ])]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.requests().len(), 1);
    let files = lab.repo.git(&["ls-tree", "-r", "--name-only", &ran.file.branch]);
    assert!(
        files.contains("parts/one") && !files.contains("parts/late"),
        "{files}"
    );
}

#[test]
fn case_115_commands_do_not_see_the_key_and_see_no_terminal() {
    let look = "env | sort; cat /proc/self/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; \
                cat; [ -t 0 ] || echo no terminal";
    let mut lab = Lab::new([Reply::calls([bash(look)]), good("one")]);
    lab.env
        .env("SOME_OTHER_VARIABLE", "x")
        .env("GITHUB_TOKEN", "x")
        .env("GIT_DIR_OF_MINE", "x");
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert!(
        told.contains("PATH=") && told.contains("CI=1") && told.contains("no terminal"),
        "{told}"
    );
    assert!(!told.contains("OPENAI_API_KEY") && !told.contains(KEY), "{told}");
    for name in ["SOME_OTHER_VARIABLE", "GITHUB_TOKEN", "GIT_DIR_OF_MINE"] {
        assert!(!told.contains(name), "only an allow-list is passed on: {told}");
    }
}

#[test]
fn commands_cannot_read_the_key_from_the_program_that_started_them() {
    // Of the processes of this run alone: others may run at the same time.
    let dig = "for p in /proc/[0-9]*; do e=$(tr '\\0' '\\n' <$p/environ); \
               case $e in *\"$XDG_STATE_HOME\"*) echo \"$e\";; esac; done 2>/dev/null | grep -c '^OPENAI_API_KEY='";
    let lab = Lab::new([Reply::calls([bash(dig)]), good("one")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert_eq!(
        told.trim_end().lines().last(),
        Some("0"),
        "the key is there to be read"
    );
}

#[test]
fn a_variable_that_the_user_names_is_passed_on() {
    let mut lab = Lab::new([Reply::calls([bash("echo \"<$COLOUR>\"")]), good("one")]);
    lab.env.env("COLOUR", "green").env("SHAPE", "round");
    let ran = lab.run(&["--max-iterations", "1", "--env", "COLOUR"]);
    ran.assert_end(0, "max iterations reached (1)");
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert!(told.contains("<green>"), "{told}");
}

#[test]
fn whatever_a_robot_does_to_git_the_user_sees_nothing_of_it() {
    let vandal = "git config user.name Robot; git checkout -q -b mine; echo ok >parts/one; git add -A; \
                  git commit -q -m mine; git stash -q; git gc -q --prune=now; echo '*' >.git/info/exclude; \
                  mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch $HOME/owned\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
                  rm -rf .git/objects; echo ok >parts/two; true";
    let lab = Lab::new([Reply::calls([bash(vandal), submit("Add two parts")])]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.commits()[0].author, "Test User <test@example.invalid>");
    assert!(
        !lab.env.home().join("owned").exists(),
        "a hook of the robot was run"
    );
    assert_eq!(
        (ran.on_branch("parts/one"), ran.on_branch("parts/two")),
        ("ok".into(), "ok".into())
    );
}

#[test]
fn files_outside_the_workspace_are_out_of_reach_of_the_file_tools() {
    let lab = Lab::new([]);
    let checkout = lab.repo.path().join("parts/base");
    let outside = lab.env.home().join("stolen");
    for reply in [
        Reply::calls([
            write("../../escape", "x"),
            write(outside.to_str().unwrap(), "x"),
            // A path in the user's checkout means the same file in the workspace.
            write(checkout.to_str().unwrap(), "ok\nok\n"),
            write(checkout.with_file_name("one").to_str().unwrap(), "ok\n"),
            write("parts/base", "ok\n"),
        ]),
        Reply::calls([submit("Add part one")]),
    ] {
        lab.server.push(reply);
    }
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(!outside.exists());
    assert_eq!(ran.on_branch("parts/one"), "ok");
    assert_eq!(ran.file.state.commits, 1);
}
