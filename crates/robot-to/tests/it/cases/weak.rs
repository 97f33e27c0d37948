//! Models that are weak at calling tools, and what keeps them from harm.

use robot_lab_to::event::Event;
use serde_json::{Value, json};
use testkit::{Call, Reply, Request};

use crate::lab::{Lab, Ran, text_of};
use crate::replies::{bash, good, part, submit, write};

fn edit(path: &str, old: &str, new: &str) -> Call {
    Call::new("edit", json!({ "path": path, "old_text": old, "new_text": new }))
}

fn read(path: &str) -> Call {
    Call::new("read", json!({ "path": path }))
}

/// What the robot was answered, in order.
fn outputs(ran: &Ran<'_>) -> Vec<String> {
    let outputs = ran.records.iter().filter_map(|record| match &record.event {
        Event::ToolFinished { output, .. } => Some(output.clone()),
        _ => None,
    });
    outputs.collect()
}

/// Calls with what was done to them: tool, repaired, called, from text.
fn started(ran: &Ran<'_>) -> Vec<(String, bool, Option<String>, bool)> {
    let started = ran.records.iter().filter_map(|record| match &record.event {
        Event::ToolStarted {
            tool,
            repaired,
            called,
            from_text,
            ..
        } => Some((tool.clone(), *repaired, called.clone(), *from_text)),
        _ => None,
    });
    started.collect()
}

/// Why iterations ended in an error.
fn errors(ran: &Ran<'_>) -> Vec<String> {
    let errors = ran.records.iter().filter_map(|record| match &record.event {
        Event::AgentError { error, message, .. } => Some(format!("{error}: {message}")),
        _ => None,
    });
    errors.collect()
}

fn roles(request: &Request) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    let roles = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap().to_owned());
    roles.collect()
}

#[test]
fn case_134_calls_written_as_text_do_the_work() {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments}).to_string();
    let one = call("write", json!({"path": "parts/one", "content": "ok\n"}));
    let report = call("submit", json!({"success": true, "summary": "Add part one"}));
    let lab = Lab::new([
        Reply::text(format!("Let me add it.\n\n```json\n{one}\n```")),
        Reply::text(format!("<tool_call>\n{report}\n</tool_call>")),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let submit = "submit_iteration_result".to_owned();
    assert_eq!(
        started(&ran),
        [
            ("write".to_owned(), false, None, true),
            (submit, false, Some("submit".into()), true)
        ]
    );
}

#[test]
fn case_131_134_a_text_that_was_cut_or_quotes_a_call_does_nothing() {
    let call = "{\"name\": \"write\", \"arguments\": {\"path\": \"parts/one\", \"content\": \"ok\"}}";
    let lab = Lab::new([
        Reply::text(format!("<tool_call>{call}</tool_call>")).finish("length"),
        Reply::text(format!("You would say:\n```json\n{call}\n```\nto add it.")),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.outcomes(), ["iteration:failure"]);
    assert_eq!(ran.count("tool:start"), 0);
}

#[test]
fn case_131_a_call_that_was_cut_is_not_run_and_told_to_be_split() {
    let lab = Lab::new([
        Reply::calls([write("parts/one", "half")]).finish("length"),
        good("one"),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.on_branch("parts/one"), "ok");
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert!(told.contains("split the work"), "{told}");
}

#[test]
fn case_135_136_137_slips_are_repaired_and_the_rest_is_answered() {
    let lab = Lab::new([
        Reply::calls([
            Call::raw("Write_File", "{'path': 'parts/one', \"content\": \"ok\n\",}"),
            Call::raw("write", "{\"path\":\"parts/a\\b\",\"content\":\"x\ny\",}"),
            Call::raw("write", "null"),
            Call::raw(
                "functions.read",
                "\"{\\\"path\\\": \\\"parts/one\\\", \\\"limit\\\": \\\"5\\\"}\"",
            ),
            Call::raw("remove", "{}"),
        ]),
        Reply::calls([submit("Add part one")]),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.on_branch("parts/one"), "ok");
    let outputs = outputs(&ran);
    for (output, part) in [
        (0, "created parts/one"),
        (1, "line 1 column 17, after `{\"path\":\"parts/a`"),
        (1, "write takes: path (string), content (string)"),
        (2, "must be a JSON object, not null"),
        (3, "ok\n"),
        (
            4,
            "there is no tool `remove`; the tools are: read, write, edit, bash",
        ),
    ] {
        assert!(outputs[output].contains(part), "{part}: {outputs:?}");
    }
    let started = started(&ran);
    assert_eq!(
        started[0],
        ("write".into(), true, Some("Write_File".into()), false)
    );
    assert_eq!(
        started[3],
        ("read".into(), true, Some("functions.read".into()), false)
    );
}

#[test]
fn a_call_is_repaired_before_the_guards_look_at_it() {
    let lab = Lab::new([
        Reply::calls([
            Call::raw("Write_File", "{'file_path': 'test.sh', 'content': 'exit 0',}"),
            write("parts/one", "ok\n"),
        ]),
        Reply::text("[edit(path='./test.sh', old_text='failed=1', new_text='failed=0')]"),
        Reply::calls([submit("Add part one")]),
    ]);
    let ran = lab.run(&["--protect-path", "test.sh", "--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let outputs = outputs(&ran);
    for refused in [0, 2] {
        assert!(outputs[refused].contains("test.sh is locked"), "{outputs:?}");
    }
}

#[test]
fn case_139_the_calls_of_one_reply_run_in_order_and_are_answered_together() {
    let lab = Lab::new([
        Reply::calls([
            write("parts/one", "a\n").id("x"),
            edit("parts/one", "a", "b").id("x"),
            edit("parts/one", "b", "ok").id("y"),
            read("parts/one").id("z"),
        ]),
        Reply::calls([submit("Add part one")]),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(outputs(&ran)[3], "ok\n");
    assert_eq!(roles(&ran.requests()[1])[3..], ["tool"; 4]);
}

#[test]
fn case_140_146_an_empty_answer_is_nudged_once_and_fails() {
    let lab = Lab::new([
        Reply::text(""),
        Reply::text(" \n"),
        Reply::calls([write("parts/one", "ok\n")]),
        Reply::text("I have added it."),
        Reply::calls([submit("Add part one")]),
    ]);
    let ran = lab.run(&["--max-iterations", "2"]);
    assert_eq!(ran.outcomes(), ["iteration:failure", "commit:success"]);
    assert_eq!(ran.count("agent:nudge"), 2);
    assert!(ran.notes().contains("empty reply"), "{}", ran.notes());
}

#[test]
fn case_147_calls_after_the_submission_are_refused() {
    let lab = Lab::new([Reply::calls([
        write("parts/one", "ok\n"),
        submit("Add part one"),
        write("parts/one", "broken\n"),
        submit("Add it again"),
    ])]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.on_branch("parts/one"), "ok");
}

#[test]
fn case_150_a_file_that_is_there_is_not_written_over() {
    let replies = || {
        [Reply::calls([
            write("test.sh", "exit 0\n"),
            write("parts/one", "ok\n"),
            submit("Add part one"),
        ])]
    };
    let lab = Lab::new(replies());
    let ran = lab.run(&["--local-guards", "--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let outputs = outputs(&ran);
    assert!(
        outputs[0].contains("refused: test.sh is there already") && outputs[0].contains("with edit"),
        "{outputs:?}"
    );
    assert!(ran.on_branch("test.sh").contains("failed=1"), "it is as it was");
    for flags in [&["--local-guards", "--no-write-guard"][..], &[]] {
        let lab = Lab::new(replies());
        let mut all = vec!["--max-iterations", "1"];
        all.extend(flags);
        let ran = lab.run(&all);
        assert_eq!(ran.on_branch("test.sh"), "exit 0", "{flags:?}");
    }
    let alone = Lab::new([]).refuse(&["--no-write-guard"]);
    assert!(
        alone.stderr.contains("--no-write-guard needs --local-guards"),
        "{}",
        alone.stderr
    );
}

#[test]
fn case_151_the_same_call_with_the_same_result_is_told_and_then_ends_the_iteration() {
    let mut replies: Vec<Reply> = (0..6).map(|_| Reply::calls([bash("cat parts/base")])).collect();
    replies.push(good("one"));
    let lab = Lab::new(replies);
    let ran = lab.run(&["--max-iterations", "2"]);
    assert_eq!(ran.outcomes(), ["agent:run:error", "commit:success"]);
    let requests = ran.requests();
    assert!(!requests[2].body.to_string().contains("It will not change"));
    let told = requests[3].last_text("user").unwrap();
    assert!(
        told.contains("the same call of `bash` 3 times with the same result"),
        "{told}"
    );
    let errors = errors(&ran);
    assert!(errors[0].contains("6 times with the same result"), "{errors:?}");
}

#[test]
fn two_calls_in_turn_are_a_loop_and_calls_with_new_results_are_none() {
    let mut replies = Vec::new();
    // What changes in between is no loop, however often it is looked at.
    for n in 0..8 {
        replies.push(Reply::calls([bash(&format!("echo {n} >>count; cat count"))]));
        replies.push(Reply::calls([read("count")]));
    }
    replies.push(Reply::calls([
        bash("rm count"),
        write("parts/one", "ok\n"),
        submit("Add part one"),
    ]));
    for _ in 0..6 {
        replies.push(Reply::calls([read("parts/base")]));
        replies.push(Reply::calls([read("test.sh")]));
    }
    let lab = Lab::new(replies);
    let ran = lab.run(&["--max-iterations", "2"]);
    assert_eq!(ran.outcomes(), ["commit:success", "agent:run:error"]);
    let errors = errors(&ran);
    assert!(errors[0].contains("the same 2 calls 6 times"), "{errors:?}");
}

#[test]
fn a_file_is_read_before_it_is_edited_however_it_is_spelt() {
    let lab = Lab::new([
        Reply::calls([
            edit("parts/base", "ok", "fine"),
            edit("./parts/../parts/base", "ok", "fine"),
            read("parts/none"),
            bash("ln -s base parts/link"),
            read("./parts/base"),
            edit("parts/link", "ok", "fine"),
            edit("parts/base", "fine", "ok"),
            bash("rm parts/link"),
            write("parts/one", "o\n"),
            submit("Add part one"),
        ]),
        // What was written is known, also in a repair.
        Reply::calls([edit("parts/one", "o", "ok"), submit("Add part one")]),
        // A new iteration knows nothing.
        Reply::calls([edit("parts/one", "ok", "fine"), submit("Change part one")]),
    ]);
    let ran = lab.run(&["--local-guards", "--max-iterations", "2"]);
    assert_eq!(ran.outcomes()[0], "commit:success");
    let outputs = outputs(&ran);
    for refused in [0, 1] {
        for part in [
            "refused: you have not read parts/base",
            "white space",
            "two or three lines",
            "Do not guess",
        ] {
            assert!(outputs[refused].contains(part), "{part}: {outputs:?}");
        }
    }
    assert!(outputs[5].starts_with("edited parts/link"), "{outputs:?}");
    assert!(outputs[6].starts_with("edited parts/base"), "{outputs:?}");
    assert!(
        outputs
            .iter()
            .filter(|output| output.contains("not read parts/one"))
            .count()
            == 1,
        "{outputs:?}"
    );
    // A robot that repairs does not see what it said before.
    let repair = &ran.requests()[1];
    assert_eq!(roles(repair), ["system", "user"], "{}", repair.body);
    assert!(
        repair
            .last_text("user")
            .unwrap()
            .contains("parts/one: expected ok, got o")
    );
}

#[test]
fn files_are_kept_as_they_were_before_the_first_change() {
    let lab = Lab::new([Reply::calls([
        read("parts/base"),
        edit("parts/base", "ok", "fine"),
        edit("parts/base", "fine", "ok"),
        write("parts/one", "ok\n"),
        edit("parts/none", "a", "b"),
        submit("Add part one"),
    ])]);
    let ran = lab.run(&["--local-guards", "--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let kept = ran.dir.path().join("checkpoints/1/parts");
    assert_eq!(text_of(&kept.join("base")), "ok\n");
    assert!(kept.join("one.absent").is_file() && !kept.join("one").exists());
}

#[test]
fn a_check_of_each_changed_file_is_told_and_a_name_is_no_command() {
    let odd = "parts/$(touch pwned) ;touch pwned; '\"x";
    let lab = Lab::new([
        Reply::calls([write("parts/one", "no\n"), bash("cat parts/one")]),
        Reply::calls([
            write("parts/one", "ok\n"),
            write(odd, "ok\n"),
            write("-n", "ok\n"),
            bash("ls; rm -- -n parts/*touch*"),
            submit("Add part one"),
        ]),
    ]);
    let ran = lab.run(&[
        "--lint",
        "grep -q ok '{file}' || { echo \"{file} says no\"; exit 3; }",
        "--max-iterations",
        "1",
    ]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    let outputs = outputs(&ran);
    assert!(
        outputs[0].contains("created parts/one")
            && outputs[0].contains("the check of parts/one fails [exit 3]:\nparts/one says no"),
        "{outputs:?}"
    );
    for clean in [2, 3, 4] {
        assert!(!outputs[clean].contains("check"), "{outputs:?}");
    }
    assert!(!outputs[5].contains("pwned\n"), "{outputs:?}");
}

#[test]
fn an_answer_that_is_given_again_is_thrown_away_and_asked_for_in_other_words() {
    let lab = Lab::new([
        Reply::text("I would add a part."),
        // After the nudge: the same, and then, asked in other words, something better.
        Reply::text("I would add a part."),
        good("one"),
        Reply::text("Nothing comes to mind."),
        Reply::text("Nothing comes to mind."),
        Reply::text("Nothing comes to mind."),
    ]);
    let ran = lab.run(&["--local-guards", "--max-iterations", "2"]);
    assert_eq!(ran.outcomes(), ["commit:success", "agent:run:error"]);
    let requests = ran.requests();
    let (second, third) = (&requests[1], &requests[2]);
    assert_eq!(roles(second), roles(third), "the repeated answer is not shown");
    let told = third.last_text("user").unwrap();
    assert!(told.contains("Do not repeat what was said"), "{told}");
    assert!(errors(&ran)[0].contains("repetition"), "{:?}", errors(&ran));
    assert_eq!(ran.count("model:error"), 2);
}

#[test]
fn a_reply_without_end_is_cut_under_guards() {
    let lab = Lab::new([Reply::text("I will fix it. ".repeat(4_000)), good("one")]);
    let ran = lab.run(&["--local-guards", "--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.count("model:error"), 1);
    let system = ran.requests()[0].body["messages"][0]["content"].to_string();
    assert!(system.len() < 2_000, "{system}");
}

#[test]
fn without_guards_an_answer_stays_as_it_is() {
    let lab = Lab::new([part("one", "broken\n"), good("one")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert!(roles(&ran.requests()[1]).len() > 4, "the conversation goes on");
    assert!(!ran.dir.path().join("checkpoints").exists());
}
