//! The forms that calls are written in, and texts that only look like calls.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const KNOWN: [&str; 3] = ["read", "write", "bash"];

fn look(answer: &str) -> Found {
    find(answer, &|name| KNOWN.contains(&name))
}

fn calls_of(answer: &str) -> Vec<(String, Value)> {
    match look(answer) {
        Found::Calls { calls, .. } => calls
            .into_iter()
            .map(|(name, arguments)| (name, Value::Object(arguments)))
            .collect(),
        other => panic!("{answer}: {other:?}"),
    }
}

/// The same call, in every form in which models write one.
const FORMS: [&str; 17] = [
    "```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
    "```\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
    "```tool_call\n{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}\n```",
    "```tool_code\nread(path=\"a\")\n```",
    "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
    "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    "<function=read><parameter=path>a</parameter></function>",
    "<function=read>{\"path\": \"a\"}</function>",
    "<function_calls>\n<invoke name=\"read\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</function_calls>",
    "<invoke name=\"read\"><parameter name=\"path\">a</parameter></invoke>",
    "[read(path=\"a\")]",
    "[read(path='a')]",
    "[TOOL_CALLS] [{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}]",
    "<|python_tag|>{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}",
    "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
    "[{\"tool\": \"read\", \"args\": {\"path\": \"a\"}}]",
    "{\"type\": \"function\", \"function\": {\"name\": \"read\", \"arguments\": \"{\\\"path\\\": \\\"a\\\"}\"}}",
];

#[test]
fn case_134_every_form_is_read() {
    for form in FORMS {
        let expected = vec![("read".to_owned(), json!({"path": "a"}))];
        assert_eq!(calls_of(form), expected, "{form}");
        assert_eq!(calls_of(&format!("\n{form}\n\n")), expected, "{form}");
        let thought = format!("<think>\nI could <tool_call> or ```.\n</think>\n\n{form}");
        assert_eq!(calls_of(&thought), expected, "{form}");
    }
}

#[test]
fn case_134_words_before_a_call_stay() {
    for form in FORMS.iter().take(14) {
        let answer = format!("Let me look at it.\n\n{form}");
        let Found::Calls { prose, calls } = look(&answer) else {
            panic!("{answer}")
        };
        assert_eq!((prose.as_str(), calls.len()), ("Let me look at it.", 1), "{form}");
    }
}

#[test]
fn case_134_139_several_calls_come_in_order() {
    let two = vec![
        ("read".to_owned(), json!({"path": "a"})),
        ("bash".to_owned(), json!({"command": "ls"})),
    ];
    let (a, b) = (
        "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
        "{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}",
    );
    for answer in [
        format!("<tool_call>{a}</tool_call>\n<tool_call>{b}</tool_call>"),
        format!("```json\n{a}\n```\n\n```json\n{b}\n```"),
        format!("[{a}, {b}]"),
        format!("{{\"tool_calls\": [{a}, {b}]}}"),
        "[read(path='a'), bash(command=\"ls\")]".into(),
    ] {
        assert_eq!(calls_of(&answer), two, "{answer}");
    }
}

#[test]
fn case_134_values_between_tags_are_texts() {
    let answer = "<function=write>\n<parameter=path>\na.html\n</parameter>\n<parameter=content>\n\n<b>\"x\" \\n</b>\n\n\
                  </parameter>\n</function>";
    assert_eq!(
        calls_of(answer),
        [(
            "write".to_owned(),
            json!({"path": "a.html", "content": "\n<b>\"x\" \\n</b>\n"})
        )]
    );
}

#[test]
fn case_134_what_is_quoted_cut_or_unknown_is_no_call() {
    let call = "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}";
    let long = "words ".repeat(400);
    for answer in [
        // Words after it.
        format!("You would write\n```json\n{call}\n```\nand then wait."),
        format!("<tool_call>{call}</tool_call>\nThat was it."),
        format!("{call}\nis how it looks"),
        // Inside something else.
        format!("The file says:\n```\n<tool_call>{call}</tool_call>\n```"),
        format!("````markdown\n```json\n{call}\n```\n````"),
        format!("````json\n{call}\n````"),
        format!("```markdown\n{call}\n```"),
        format!("> ```json\n> {call}\n> ```"),
        format!("Write:\n\n    <tool_call>{call}</tool_call>"),
        format!("It is `<tool_call>{call}</tool_call>`"),
        format!("Write <tool_call> like this:\n<tool_call>{call}</tool_call>"),
        format!("An example:\n```\nx\n```\n\n<tool_call>{call}</tool_call>"),
        format!("{long}\n<tool_call>{call}</tool_call>"),
        // Not whole.
        format!("<tool_call>{call}"),
        format!("```json\n{call}"),
        "<function=read><parameter=path>a</parameter>".into(),
        "[read(path=\"a\")".into(),
        format!("<think>{call}"),
        // Data, and tools that are not there.
        "{\"name\": \"read\"}".into(),
        "{\"name\": \"read\", \"arguments\": {}, \"version\": 1}".into(),
        "{\"name\": \"read\", \"tool\": \"bash\", \"arguments\": {}}".into(),
        "{\"name\": \"read\", \"arguments\": [1]}".into(),
        "{\"name\": \"delete\", \"arguments\": {}}".into(),
        format!("[{call}, {{\"name\": \"delete\", \"arguments\": {{}}}}]"),
        "[read](a) and (b)".into(),
        "[read(\"a\")]".into(),
        "read(path=\"a\")".into(),
        "[]".into(),
        "{}".into(),
        "".into(),
        // A file that holds calls could pass for several.
        "<function=read><parameter=path>a</parameter></function>\n<function=bash><parameter=command>ls</parameter></function>"
            .into(),
    ] {
        let found = look(&answer);
        assert!(!matches!(found, Found::Calls { .. }), "{answer}: {found:?}");
    }
}

#[test]
fn case_134_135_a_call_that_cannot_be_read_is_told_where() {
    for (answer, part) in [
        (
            "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"C:\\d\"}}</tool_call>",
            "no such escape",
        ),
        (
            "```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"say \"a\"\"}}\n```",
            "(line 2 column",
        ),
        (
            "<function=write><parameter=content>a <function=b> c</parameter></function>",
            "tags of calls",
        ),
    ] {
        let Found::Unreadable(flaw) = look(answer) else {
            panic!("{answer}")
        };
        assert!(flaw.to_string().contains(part), "{flaw}");
    }
}

proptest! {
    #[test]
    fn case_134_an_example_in_the_middle_of_an_answer_is_never_a_call(
        form in prop::sample::select(FORMS.to_vec()), before in "[A-Za-z ,.\n]{0,80}", after in "[ \n]{0,3}[A-Za-z][A-Za-z ,.\n]{0,80}"
    ) {
        let found = look(&format!("{before}\n{form}\n{after}"));
        prop_assert!(!matches!(found, Found::Calls { .. }), "{:?}", found);
    }

    #[test]
    fn case_131_134_no_beginning_of_an_answer_is_a_call(form in prop::sample::select(FORMS.to_vec()), cut in any::<prop::sample::Index>()) {
        let end = form.floor_char_boundary(cut.index(form.len()));
        prop_assert!(!matches!(look(form.get(..end).unwrap()), Found::Calls { .. }), "{}", form.get(..end).unwrap());
    }

    #[test]
    fn case_134_a_call_in_a_quoted_file_is_never_a_call(
        form in prop::sample::select(FORMS.to_vec()), language in "(text|markdown|md|python|rust|xml)", before in "[a-z \n]{0,40}"
    ) {
        let found = look(&format!("{before}\n```{language}\n{form}\n```"));
        prop_assert!(!matches!(found, Found::Calls { .. }), "{:?}", found);
    }

    #[test]
    fn any_answer_at_all_is_looked_at(text in any::<String>(), marks in prop::collection::vec(prop::sample::select(MARKS.to_vec()), 0..4)) {
        drop(look(&text));
        drop(look(&format!("{}{text}", marks.join("\n"))));
    }
}
