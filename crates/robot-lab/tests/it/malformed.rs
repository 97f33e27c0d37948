//! Five hundred tool calls as models get them wrong: what runs is what was meant, and the rest is answered.

use async_trait::async_trait;
use robot_lab::testing::{FakeModel, FakeReply, Recorder};
use robot_lab::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

#[derive(serde::Deserialize, schemars::JsonSchema, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct NoteArgs {
    path: String,
    text: String,
    #[serde(default)]
    times: Option<u32>,
}

/// Keeps what it was called with.
#[derive(Default)]
struct Note(Arc<Mutex<Vec<NoteArgs>>>);

#[async_trait]
impl TypedTool for Note {
    type Args = NoteArgs;
    const NAME: &'static str = "note";
    const DESCRIPTION: &'static str = "Keeps a note.";
    async fn run(&self, args: NoteArgs, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        self.0.lock().unwrap().push(args);
        Ok(ToolOutcome::text("kept"))
    }
}

/// What became of one call.
struct Became {
    ran: Vec<NoteArgs>,
    answer: String,
    repair: Repair,
}

async fn send(name: &str, arguments: Value) -> Became {
    let note = Note::default();
    let ran = Arc::clone(&note.0);
    let mut tools = Toolset::new();
    tools.add_typed(note).unwrap();
    let model = Arc::new(FakeModel::script([
        FakeReply::calls([(name, arguments)]),
        FakeReply::text("done"),
    ]));
    let recorder = Arc::new(Recorder::default());
    let mut robot = Robot::builder("tester", Arc::clone(&model) as Arc<dyn Model>)
        .tools(tools)
        .events(Arc::clone(&recorder) as Arc<dyn EventSink>)
        .build();
    robot.run("go", &CancellationToken::new()).await.unwrap();
    let answer = robot
        .transcript()
        .messages()
        .iter()
        .find_map(|message| match message {
            Message::Tool(result) => Some(result.text()),
            _ => None,
        });
    let repair = recorder.events().into_iter().find_map(|event| match event {
        RobotEvent::ToolStarted { repair, .. } => Some(repair),
        _ => None,
    });
    let ran = ran.lock().unwrap().clone();
    Became {
        ran,
        answer: answer.unwrap(),
        repair: repair.unwrap(),
    }
}

/// Texts that are awkward to write in JSON.
const TEXTS: [&str; 10] = [
    "plain",
    "",
    "two\nlines\n",
    "say \"hello\" now",
    "it's here",
    "C:\\dir\\new",
    "{\"a\": [1, 2,],}",
    "True, None, ```",
    "é 😀 \t tab",
    "fn main() { println!(\"{}\", 'x'); } // {[",
];

fn json_text(text: &str) -> String {
    Value::from(text).to_string()
}

fn python_text(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
        .replace('\n', "\\n");
    format!("'{escaped}'")
}

/// A way to get a call wrong that means one thing.
type Kind = (&'static str, fn(&NoteArgs) -> (String, Value));

fn object(args: &NoteArgs) -> Value {
    json!({"path": args.path, "text": args.text, "times": args.times})
}

fn valid(args: &NoteArgs) -> String {
    object(args).to_string()
}

/// The same with raw line feeds and tabs, and a comma.
fn raw(args: &NoteArgs) -> String {
    let escaped = args.text.replace('\\', "\\\\").replace('"', "\\\"");
    let (path, times) = (json_text(&args.path), args.times.unwrap());
    format!("{{\"path\": {path}, \"text\": \"{escaped}\",\n\"times\": {times}, }}")
}

const REPAIRABLE: [Kind; 19] = [
    ("trailing comma", |a| {
        let valid = valid(a);
        (
            "note".into(),
            format!("{},}}", valid.strip_suffix('}').unwrap()).into(),
        )
    }),
    ("fence", |a| {
        ("note".into(), format!("```json\n{}\n```", valid(a)).into())
    }),
    ("words around", |a| {
        (
            "note".into(),
            format!("Here you go: {} Good luck!", valid(a)).into(),
        )
    }),
    ("single quotes", |a| {
        let (path, text) = (python_text(&a.path), python_text(&a.text));
        (
            "note".into(),
            format!(
                "{{'path': {path}, 'text': {text}, 'times': {}}}",
                a.times.unwrap()
            )
            .into(),
        )
    }),
    ("bare keys", |a| {
        let (path, text) = (json_text(&a.path), json_text(&a.text));
        (
            "note".into(),
            format!("{{path: {path}, text: {text}, times: {}}}", a.times.unwrap()).into(),
        )
    }),
    ("python's None", |a| {
        let (path, text) = (json_text(&a.path), json_text(&a.text));
        (
            "note".into(),
            format!("{{\"path\": {path}, \"text\": {text}, \"times\": None}}").into(),
        )
    }),
    ("raw control characters", |a| ("note".into(), raw(a).into())),
    ("encoded twice", |a| ("note".into(), json_text(&valid(a)).into())),
    ("encoded twice, as a value", |a| ("note".into(), valid(a).into())),
    ("a number in quotes", |a| {
        (
            "note".into(),
            json!({"path": a.path, "text": a.text, "times": a.times.unwrap().to_string()}),
        )
    }),
    ("a whole number with .0", |a| {
        (
            "note".into(),
            json!({"path": a.path, "text": a.text, "times": f64::from(a.times.unwrap())}),
        )
    }),
    ("upper case", |a| ("NOTE".into(), object(a))),
    ("a namespace", |a| ("functions.note".into(), object(a))),
    ("another namespace", |a| ("tools/note".into(), object(a))),
    ("a filler", |a| ("Note_Tool".into(), object(a))),
    ("a filler in camel case", |a| ("noteFile".into(), object(a))),
    ("null and a comma", |a| {
        let (path, text) = (json_text(&a.path), json_text(&a.text));
        (
            "note".into(),
            format!("{{\"path\": {path}, \"text\": {text}, \"times\": null,}}").into(),
        )
    }),
    ("white space", |a| {
        (" note ".into(), format!("\n\n  {}\n,", valid(a)).into())
    }),
    ("everything", |a| {
        let (path, text) = (python_text(&a.path), python_text(&a.text));
        (
            "Functions.Note_Tool".into(),
            format!(
                "```\n{{path: {path}, 'text': {text}, \"times\": '{}',}}\n```",
                a.times.unwrap()
            )
            .into(),
        )
    }),
];

/// A way to get a call wrong that could mean more than one thing, or that leaves something out, and what the answer
/// says of it.
type Wrong = (
    &'static str,
    fn(&NoteArgs) -> (String, Value),
    &'static [&'static str],
);

const PLACE: &[&str] = &[
    "line",
    "column",
    "note takes: path (string), text (string), times (integer, optional)",
];
const FIELD: &[&str] = &["argument", "note takes: path (string)"];

const WRONG: [Wrong; 22] = [
    (
        "cut in a text",
        |a| {
            (
                "note".into(),
                format!("{{\"path\": \"{}", "a".repeat(a.text.len())).into(),
            )
        },
        PLACE,
    ),
    (
        "cut before its end",
        |a| {
            (
                "note".into(),
                valid(a)
                    .trim_end_matches('}')
                    .trim_end_matches(|c: char| c.is_ascii_digit())
                    .to_owned()
                    .into(),
            )
        },
        PLACE,
    ),
    (
        "cut in a fence",
        |a| {
            (
                "note".into(),
                format!("```json\n{}", valid(a).split_at(9).0).into(),
            )
        },
        PLACE,
    ),
    (
        "an escape that is none",
        |a| {
            (
                "note".into(),
                format!("{{\"path\": \"a\\d\", \"text\": {}}}", json_text(&a.text)).into(),
            )
        },
        PLACE,
    ),
    (
        "a backslash that may be one",
        |a| {
            (
                "note".into(),
                format!("{{\"path\": \"a\\b\", \"text\": {},}}", json_text(&a.text)).into(),
            )
        },
        PLACE,
    ),
    (
        "half a character",
        |a| {
            (
                "note".into(),
                format!("{{\"path\": \"\\ud83d\", \"text\": {}}}", json_text(&a.text)).into(),
            )
        },
        PLACE,
    ),
    (
        "quotes in quotes",
        |a| {
            (
                "note".into(),
                format!(
                    "{{\"path\": {}, \"text\": \"say \"x\" now\"}}",
                    json_text(&a.path)
                )
                .into(),
            )
        },
        PLACE,
    ),
    (
        "an apostrophe in single quotes",
        |a| {
            (
                "note".into(),
                format!("{{'path': {}, 'text': 'it's'}}", python_text(&a.path)).into(),
            )
        },
        PLACE,
    ),
    (
        "a key twice",
        |a| {
            (
                "note".into(),
                format!(
                    "{{path: \"a\", \"path\": {0}, \"text\": {0}}}",
                    json_text(&a.text)
                )
                .into(),
            )
        },
        PLACE,
    ),
    (
        "no comma",
        |a| {
            (
                "note".into(),
                format!("{{\"path\": {0} \"text\": {0}}}", json_text(&a.text)).into(),
            )
        },
        PLACE,
    ),
    (
        "a text without quotes",
        |a| {
            (
                "note".into(),
                format!("{{\"path\": {}, \"text\": hello}}", json_text(&a.path)).into(),
            )
        },
        PLACE,
    ),
    (
        "two objects",
        |a| ("note".into(), format!("{} {}", valid(a), valid(a)).into()),
        PLACE,
    ),
    (
        "a brace too many",
        |a| ("note".into(), format!("{}}}", valid(a)).into()),
        PLACE,
    ),
    (
        "no object",
        |a| ("note".into(), format!("path: {}", a.path).into()),
        PLACE,
    ),
    (
        "too deep",
        |a| {
            (
                "note".into(),
                format!("{{\"path\": {}{}}}", "[".repeat(500), a.path).into(),
            )
        },
        PLACE,
    ),
    (
        "a list",
        |a| ("note".into(), json!([object(a)])),
        &["must be a JSON object, not a list", "note takes:"],
    ),
    (
        "a list in a text",
        |a| ("note".into(), format!("[{}]", valid(a)).into()),
        &["must be a JSON object, not a list"],
    ),
    (
        "null",
        |_| ("note".into(), Value::Null),
        &["must be a JSON object, not null", "note takes:"],
    ),
    (
        "a number",
        |_| ("note".into(), json!(7)),
        &["must be a JSON object, not a number"],
    ),
    (
        "a list for a text",
        |a| ("note".into(), json!({"path": [a.path], "text": a.text})),
        FIELD,
    ),
    (
        "a field that is not there",
        |a| {
            (
                "note".into(),
                json!({"path": a.path, "text": a.text, "mode": "w"}),
            )
        },
        &["unknown field `mode`", "note takes:"],
    ),
    (
        "a tool that is not there",
        |a| ("nota".into(), object(a)),
        &["there is no tool `nota`; the tools are: note; did you mean `note`?"],
    ),
];

#[tokio::test]
async fn case_135_136_137_of_five_hundred_malformed_calls_none_runs_wrongly() {
    let mut sent = 0;
    for round in 0..13u32 {
        let text = TEXTS[round as usize % TEXTS.len()];
        let meant = NoteArgs {
            path: format!("dir/file{round}.rs"),
            text: text.into(),
            times: Some(round),
        };
        for (kind, spoil) in REPAIRABLE {
            let (name, arguments) = spoil(&meant);
            let became = send(&name, arguments.clone()).await;
            let mut expected = meant.clone();
            if matches!(kind, "python's None" | "null and a comma") {
                expected.times = None;
            }
            let told = format!("{kind}: {name} {arguments}: {}", became.answer);
            assert_eq!(became.ran, [expected], "{told}");
            assert_ne!(became.repair, Repair::default(), "{told}");
            sent += 1;
        }
        for (kind, spoil, parts) in WRONG {
            let (name, arguments) = spoil(&meant);
            let became = send(&name, arguments.clone()).await;
            let told = format!("{kind}: {name} {arguments}: {}", became.answer);
            assert!(became.ran.is_empty(), "{told}");
            for part in parts {
                assert!(became.answer.contains(part), "{part:?} is not in {told}");
            }
            sent += 1;
        }
    }
    assert!(sent >= 500, "{sent}");
}
