//! Turns a reply as it came into one that can be acted on: calls that were written as text become calls, names become
//! those of tools, and arguments become objects that the schemas know.

use super::names::Known;
use super::text::{Found, find};
use super::{Repair, arguments, schema};
use crate::message::{AssistantPart, ToolCall};
use crate::model::{FinishReason, ModelReply};
use crate::tool::Toolset;
use serde_json::Value;

/// What was done to a reply.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Settled {
    /// For each of its calls, in order.
    pub(crate) repairs: Vec<Repair>,
    /// Why a text that ends as a call does is none.
    pub(crate) unreadable: Option<String>,
}

/// Repairs what can be repaired. A reply that was cut stays as it is: nothing of it runs.
pub(crate) fn settle(reply: &mut ModelReply, tools: &Toolset) -> Settled {
    let whole = matches!(reply.finish, FinishReason::Stop | FinishReason::ToolCalls);
    let mut unreadable = None;
    let mut from_text = false;
    if whole && reply.message.calls().next().is_none() && !tools.names().is_empty() {
        let knows = |name: &str| !matches!(tools.find(name), Known::Not(_));
        match find(&reply.message.text(), &knows) {
            Found::Nothing => {}
            Found::Calls { prose, calls } => {
                from_text = true;
                put(&mut reply.message.parts, prose, calls);
            }
            Found::Unreadable(flaw) => unreadable = Some(flaw.to_string()),
        }
    }
    let cut = reply.finish == FinishReason::Length;
    let mut repairs = Vec::new();
    for part in &mut reply.message.parts {
        if let AssistantPart::Call(call) = part {
            let mut repair = if cut { Repair::default() } else { mend(call, tools) };
            repair.text = from_text;
            repairs.push(repair);
        }
    }
    Settled { repairs, unreadable }
}

/// Puts calls in the place of the text that they were written in. Their ids are made when they enter a conversation.
fn put(parts: &mut Vec<AssistantPart>, prose: String, calls: Vec<(String, serde_json::Map<String, Value>)>) {
    parts.retain(|part| !matches!(part, AssistantPart::Text { .. }));
    if !prose.trim().is_empty() {
        parts.push(AssistantPart::Text { text: prose });
    }
    parts.extend(calls.into_iter().map(|(name, arguments)| {
        AssistantPart::Call(ToolCall {
            id: String::new(),
            name,
            arguments: Value::Object(arguments),
        })
    }));
}

fn mend(call: &mut ToolCall, tools: &Toolset) -> Repair {
    let mut repair = Repair::default();
    if let Known::Surely(name) = tools.find(&call.name) {
        repair.name = Some(std::mem::replace(&mut call.name, name.to_owned()));
    }
    if !call.arguments.is_object()
        && let Ok(object) = arguments(&call.arguments)
    {
        call.arguments = Value::Object(object);
        repair.arguments = true;
    }
    if let Some(tool) = tools.get(&call.name)
        && let Value::Object(object) = &mut call.arguments
    {
        repair.arguments |= schema::fit(object, &tool.spec().parameters);
    }
    repair
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Abort, ToolCx, ToolOutcome, TypedTool};
    use crate::{AssistantMessage, Usage};
    use serde_json::json;

    struct Echo;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct EchoArgs {
        #[serde(rename = "text")]
        _text: String,
        #[serde(default, rename = "times")]
        _times: Option<u32>,
    }

    #[async_trait::async_trait]
    impl TypedTool for Echo {
        type Args = EchoArgs;
        const NAME: &'static str = "echo";
        const DESCRIPTION: &'static str = "Says it again.";
        async fn run(&self, _args: EchoArgs, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
            Ok(ToolOutcome::text("done"))
        }
    }

    fn settled(parts: Vec<AssistantPart>, finish: FinishReason) -> (Vec<AssistantPart>, Settled) {
        let mut tools = Toolset::new();
        tools.add_typed(Echo).unwrap();
        let mut reply = ModelReply {
            message: AssistantMessage { parts },
            usage: Usage::default(),
            finish,
            served_by: None,
        };
        let settled = settle(&mut reply, &tools);
        (reply.message.parts, settled)
    }

    fn call(name: &str, arguments: Value) -> AssistantPart {
        AssistantPart::Call(ToolCall {
            id: String::new(),
            name: name.into(),
            arguments,
        })
    }

    fn text(text: &str) -> AssistantPart {
        AssistantPart::Text { text: text.into() }
    }

    #[test]
    fn a_call_is_mended_and_what_was_done_is_told() {
        let written = json!("{'text': 'a', 'times': '3',}");
        let (parts, settled) = settled(
            vec![
                text("Now:"),
                call("Functions.Echo", written),
                call("echo", json!({"text": "b"})),
            ],
            FinishReason::ToolCalls,
        );
        assert_eq!(
            parts,
            [
                text("Now:"),
                call("echo", json!({"text": "a", "times": 3})),
                call("echo", json!({"text": "b"}))
            ]
        );
        let first = Repair {
            arguments: true,
            name: Some("Functions.Echo".into()),
            text: false,
        };
        assert_eq!(settled.repairs, [first, Repair::default()]);
    }

    #[test]
    fn case_134_a_call_in_a_text_replaces_it() {
        let written =
            "Let me see.\n<tool_call>{\"name\": \"Echo\", \"arguments\": {\"text\": \"a\"}}</tool_call>";
        let parts = vec![text(written)];
        let (parts, settled) = settled(parts, FinishReason::Stop);
        assert_eq!(parts, [text("Let me see."), call("echo", json!({"text": "a"}))]);
        assert!(settled.repairs.iter().all(|repair| repair.text), "{settled:?}");
    }

    #[test]
    fn case_131_134_nothing_is_made_of_a_reply_that_was_cut_or_that_has_calls() {
        let written = "<tool_call>{\"name\": \"echo\", \"arguments\": {\"text\": \"a\"}}</tool_call>";
        for finish in [
            FinishReason::Length,
            FinishReason::ContentFilter,
            FinishReason::Other("unknown".into()),
        ] {
            let (parts, settled) = settled(vec![text(written)], finish);
            assert_eq!((parts, settled), (vec![text(written)], Settled::default()));
        }
        let parts = vec![text(written), call("echo", json!({"text": "b"}))];
        let (after, _) = settled(parts.clone(), FinishReason::ToolCalls);
        assert_eq!(after, parts);
        let cut = vec![call("Echo", json!("{'text': 'a'}"))];
        assert_eq!(settled(cut.clone(), FinishReason::Length).0, cut);
    }

    #[test]
    fn a_text_that_ends_as_a_call_does_is_answered() {
        let written = "<tool_call>{\"name\": \"echo\", \"arguments\": {\"text\": \"\\d\"}}</tool_call>";
        let (parts, settled) = settled(vec![text(written)], FinishReason::Stop);
        assert_eq!(parts, [text(written)]);
        let why = settled.unreadable.unwrap();
        assert!(
            why.contains("no such escape") && why.contains("line 1 column"),
            "{why}"
        );
    }
}
