//! Asks the model for one small tool call, and says what a run would have of it.

use crate::commands::run::{facts, model};
use crate::error::CliError;
use crate::key::Keys;
use crate::surface::Finding;
use async_trait::async_trait;
use robot_lab::{
    Abort, EventSink, Patience, Repair, Robot, RobotEvent, RunError, Tool, ToolCall, ToolCx, ToolOutcome,
    ToolSpec, Toolset,
};
use robot_lab_to::settings::Plan;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a model may take: a local one loads first.
const PATIENCE: Duration = Duration::from_secs(180);
/// A context under so many tokens does not hold a task, the tools and a few files.
const SMALL_WINDOW: u64 = 16_384;
const WORD: &str = "ready";

/// Asks, and says what was found.
pub(super) async fn ask(plan: &Plan, cwd: &Path, keys: &Keys) -> Vec<Finding> {
    let failed = |error: &CliError| {
        vec![Finding::fail(
            "model",
            error.message().replace("; nothing was changed", ""),
            "name another: --provider NAME --model NAME; robot-to models lists what there is",
        )]
    };
    let chosen = match model::find(plan, cwd, keys, &model::Manner::default()) {
        Ok(chosen) => chosen,
        Err(error) => return failed(&error),
    };
    if let Some(missing) = &chosen.missing {
        return failed(missing);
    }
    let window = facts::window(plan, chosen.model.id());
    let heard = Arc::new(Heard::default());
    let began = Instant::now();
    let mut tools = Toolset::new();
    if let Err(error) = tools.add(Arc::new(Echo::new())) {
        return vec![Finding::of_error("tools", &error)];
    }
    let mut robot = Robot::builder("doctor", Arc::clone(&chosen.model))
        .system("You test a connection. Say in a short sentence what you do, then call the tool.")
        .tools(tools)
        .events(Arc::clone(&heard) as Arc<dyn EventSink>)
        .max_tool_calls(1)
        .patience(Patience {
            max_wait: Duration::ZERO,
            ..Patience::default()
        })
        .build();
    let cancel = CancellationToken::new();
    let asked = robot.run("Call the tool `echo` with the word `ready`.", &cancel);
    let outcome = tokio::time::timeout(PATIENCE, asked).await;
    let heard = heard.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut findings = match outcome {
        Err(_late) => vec![Finding::fail(
            "model",
            format!("no whole answer within {} s", PATIENCE.as_secs()),
            "take a smaller model, or a faster machine",
        )],
        Ok(Err(RunError::Model(error))) => {
            return vec![Finding::fail(
                "model",
                error.message,
                "mend that, and ask again; --debug of a run shows all of the exchange",
            )];
        }
        Ok(_) => {
            let name = chosen.model.id();
            vec![Finding::ok(
                "model",
                format!("{name} answers in {:.1} s", began.elapsed().as_secs_f64()),
            )]
        }
    };
    findings.extend(judged(&heard));
    findings.push(of_window(window));
    findings
}

/// What is to be said of what was heard.
fn judged(events: &[RobotEvent]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let call = events.iter().find_map(|event| match event {
        RobotEvent::ToolStarted {
            arguments, repair, ..
        } => Some((arguments, repair)),
        _ => None,
    });
    findings.push(match call {
        None => Finding::warn(
            "tools",
            "it did not call the tool that it was asked to call",
            "take a model that was trained to call tools, or a template that shows them to it",
        ),
        Some((arguments, _)) if arguments["word"] != WORD => Finding::warn(
            "tools",
            format!(
                "it called the tool with other arguments: {}",
                short(&arguments.to_string())
            ),
            "small models fare better with --local-guards",
        ),
        Some((_, Repair { text: true, .. })) => Finding::warn(
            "tools",
            "it writes its calls as text, which is understood when nothing follows",
            "a template that makes them calls is better; small models fare better with --local-guards",
        ),
        Some((_, repair)) if *repair != Repair::default() => Finding::warn(
            "tools",
            "its calls need mending, which is done",
            "small models fare better with --local-guards",
        ),
        Some(_) => Finding::ok("tools", "it calls them"),
    });
    let pieces = events.iter().filter(|event| {
        matches!(
            event,
            RobotEvent::TextDelta { .. } | RobotEvent::ReasoningDelta { .. }
        )
    });
    match pieces.count() {
        0 => {}
        1 => findings.push(Finding::ok("stream", "its words come all at once")),
        _ => findings.push(Finding::ok("stream", "its words come as they are written")),
    }
    for event in events {
        match event {
            RobotEvent::ModelAdapted { note, .. } => findings.push(Finding::ok("adapted", short(note))),
            RobotEvent::ModelServed { served_by, .. } => {
                findings.push(Finding::ok(
                    "served",
                    format!("the answer says it is from {}", short(served_by)),
                ));
            }
            RobotEvent::ModelFinished { usage, .. } if usage.estimated => findings.push(Finding::warn(
                "usage",
                "it does not say how many tokens it read and wrote",
                "limits of tokens go by an estimate",
            )),
            _ => {}
        }
    }
    findings
}

fn of_window(window: Option<u64>) -> Finding {
    match window {
        Some(tokens @ ..SMALL_WINDOW) => Finding::warn(
            "window",
            format!("{tokens} tokens, which a task with its files fills soon"),
            "start the server with more, and say so: --context-window N (Ollama: --num-ctx N)",
        ),
        Some(tokens) => Finding::ok("window", format!("{tokens} tokens")),
        None => Finding::warn(
            "window",
            "nobody says how much it can read at once",
            "say it, or it is learnt when a request is refused: --context-window N",
        ),
    }
}

/// A text that a server made up, short enough for a line.
fn short(text: &str) -> String {
    robot_lab_to::shell::head_and_tail(text, 200)
}

/// Keeps what happens.
#[derive(Default)]
struct Heard(Mutex<Vec<RobotEvent>>);

impl EventSink for Heard {
    fn emit(&self, event: RobotEvent) {
        const ENOUGH: usize = 10_000;
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() < ENOUGH {
            events.push(event);
        }
    }
}

/// The tool that the model is asked to call. Its call ends the conversation.
struct Echo(ToolSpec);

impl Echo {
    fn new() -> Self {
        Self(ToolSpec {
            name: "echo".into(),
            description: "Says a word.".into(),
            parameters: json!({
                "type": "object",
                "properties": { "word": { "type": "string", "description": "The word." } },
                "required": ["word"],
            }),
        })
    }
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _call: &ToolCall, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        Ok(ToolOutcome::Finished(Vec::new()))
    }
}
