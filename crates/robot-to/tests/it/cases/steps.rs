//! Small steps: one rule of the objective at a time, answered with whole files, with a check after each.

use testkit::{Call, Reply};

use crate::lab::{Lab, PATIENCE, Ran};
use crate::replies::{good, submit, write};

const TWO_RULES: &str = "Put ok into parts/one. Put ok into parts/two.";

/// A repository in which two parts do not hold yet.
fn lab(replies: impl IntoIterator<Item = Reply>) -> Lab {
    let lab = Lab::new(replies);
    lab.repo.write("parts/one", "no\n");
    lab.repo.write("parts/two", "no\n");
    lab.repo.commit_all("two parts that do not hold");
    lab
}

fn run<'a>(lab: &'a Lab, objective: &str, extra: &[&str]) -> Ran<'a> {
    let mut arguments = lab.options(extra);
    arguments.insert(0, objective.into());
    arguments.extend(["--small-steps".into(), "--max-iterations".into(), "1".into()]);
    lab.launch(lab.env.command(arguments)).end(PATIENCE)
}

/// What the model was told in each request.
fn told(ran: &Ran<'_>) -> Vec<String> {
    let requests = ran.requests();
    requests
        .iter()
        .map(|request| request.last_text("user").unwrap())
        .collect()
}

fn file(text: &str) -> Reply {
    Reply::text(format!("```\n{text}\n```"))
}

#[test]
fn each_rule_is_a_short_conversation_on_the_files_as_they_are_and_green_is_the_end() {
    let lab = lab([file("ok"), file("ok")]);
    let ran = run(&lab, TWO_RULES, &[]);
    assert_eq!(ran.subjects(), [format!("robot-to 1: {TWO_RULES}")]);
    let told = told(&ran);
    assert_eq!(told.len(), 2, "nothing is asked once the check holds");
    assert!(
        told[0].contains("The file parts/one is now:\n\nno\n")
            && told[0].contains("Rule: Put ok into parts/one.")
    );
    assert!(
        told[1].contains("The file parts/two is now:\n\nno\n") && !told[1].contains("parts/one is now"),
        "{}",
        told[1]
    );
    assert!(
        told[1].contains("The check prints now: parts/two: expected ok, got no"),
        "{}",
        told[1]
    );
    for request in ran.requests() {
        assert_eq!(
            request.body["messages"].as_array().unwrap().len(),
            2,
            "a conversation of its own"
        );
        assert!(request.body.get("tools").is_none());
        assert_eq!(request.body["max_tokens"], 512);
    }
}

#[test]
fn an_answer_that_is_no_file_is_asked_for_again_and_never_shown() {
    let lab = lab([Reply::text("I would put ok there."), file("ok"), file("ok")]);
    let ran = run(&lab, TWO_RULES, &["--temperature", "0"]);
    assert_eq!(ran.subjects().len(), 1);
    let requests = ran.requests();
    let again = requests[1].last_text("user").unwrap();
    assert!(
        again.contains("not taken. Answer with the whole file in one code block."),
        "{again}"
    );
    assert_eq!(requests[1].body["messages"].as_array().unwrap().len(), 2);
    assert_eq!(requests[0].body["temperature"], 0.0);
    assert_eq!(requests[1].body["temperature"], 0.8, "not the same again");
}

#[test]
fn a_step_that_undoes_an_earlier_one_is_undone() {
    let both =
        |one: &str, two: &str| Reply::text(format!("parts/one\n```\n{one}\n```\nparts/two\n```\n{two}\n```"));
    let objective = "Mend parts/one and parts/two. Then make parts/one and parts/two say ok.";
    // The second step mends one part and breaks the other again, so that the check says what it said at first.
    let lab = lab([both("ok", "no"), both("no", "no"), both("ok", "ok")]);
    let ran = run(&lab, objective, &[]);
    assert_eq!(ran.subjects().len(), 1);
    let told = told(&ran);
    assert!(
        told[2].contains("It undid what the file does already"),
        "{}",
        told[2]
    );
    assert!(
        told[2].contains("The file parts/one is now:\n\nok\n"),
        "it was put back: {}",
        told[2]
    );
}

#[test]
fn locked_files_are_neither_shown_nor_written() {
    let lab = lab(std::iter::repeat_with(|| Reply::text("test.sh\n```\nexit 0\n```")).take(8));
    let objective = "Make test.sh pass for parts/one. Make test.sh pass for parts/two.";
    let ran = run(&lab, objective, &["--protect-path", "test.sh"]);
    assert_eq!(ran.outcomes(), ["iteration:failure"]);
    assert!(
        ran.notes().contains("none of the answers was a change"),
        "{}",
        ran.notes()
    );
    assert!(told(&ran).iter().all(|told| !told.contains("The file test.sh")));
}

#[test]
fn files_that_are_too_large_to_be_shown_are_worked_on_with_tools() {
    let lab = Lab::new([
        Reply::calls([write("parts/one", "ok\n"), submit("Add part one")]),
        good("two"),
        good("three"),
    ]);
    lab.repo
        .write("large.txt", "a line of a large file\n".repeat(1_000));
    lab.repo.commit_all("a large file");
    let ran = run(&lab, "Shorten large.txt by a part.", &[]);
    assert_eq!(ran.subjects(), ["robot-to 1: Shorten large.txt by a part."]);
    let request = &ran.requests()[0];
    assert!(request.body["tools"].as_array().unwrap().len() > 3);
    assert!(
        request
            .last_text("user")
            .unwrap()
            .contains("Make this one change with the tools")
    );
}

#[test]
fn with_guards_alone_a_check_that_holds_submits_in_the_place_of_the_robot() {
    let lab = Lab::new([
        Reply::calls([Call::new("read", serde_json::json!({"path": "parts/one"}))]),
        Reply::calls([Call::new(
            "edit",
            serde_json::json!({"path": "parts/one", "old_text": "no", "new_text": "yes"}),
        )]),
        Reply::calls([Call::new(
            "edit",
            serde_json::json!({"path": "parts/one", "old_text": "yes", "new_text": "ok"}),
        )]),
    ]);
    lab.repo.write("parts/one", "no\n");
    lab.repo.commit_all("a part that does not hold");
    let ran = lab.run(&["--local-guards", "--max-iterations", "1"]);
    assert_eq!(ran.subjects(), ["robot-to 1: make every part hold"]);
    let told = ran.requests()[2].last_text("tool").unwrap();
    assert!(
        told.contains("The check fails now:\nparts/one: expected ok, got yes"),
        "{told}"
    );
}

#[test]
fn small_steps_without_tools_are_refused() {
    let refused = Lab::new([]).refuse(&["--small-steps", "--no-tools"]);
    let said = &refused.stderr;
    assert!(
        said.contains("--small-steps needs a robot with tools, and there is none"),
        "{said}"
    );
}
