//! What a server does not take is put otherwise, once; what helped is remembered.

use crate::support::{Outcome, model_of, request, send};
use robot_lab::model::ReplyBuilder;
use robot_lab::{
    AssistantMessage, AssistantPart, FinishReason, Message, ModelErrorKind as Kind, ModelEvent, ModelRequest,
    ToolCall, ToolPart, ToolResult, ToolSpec,
};
use robot_lab_providers::{Effort, HttpModel, ModelConfig};
use serde_json::{Value, json};
use testkit::{Call, ModelServer, Reply, Request};

fn refusal(message: &str, parameter: Option<&str>) -> Reply {
    Reply::status(400).body(json!({ "error": {
        "message": message, "type": "invalid_request_error", "param": parameter, "code": null,
    } }))
}

/// A model that asks for all that can be asked for.
fn asking(provider: &str, model: &str, server: &ModelServer) -> HttpModel {
    HttpModel::new(ModelConfig {
        base_url: Some(server.root_url()),
        temperature: Some(0.2),
        max_output_tokens: Some(20_000),
        reasoning: Some(Effort::Minimal),
        ..ModelConfig::new(provider, model)
    })
    .unwrap()
}

fn with_tools() -> ModelRequest {
    ModelRequest {
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads.".into(),
            parameters: json!({ "type": "object", "additionalProperties": false, "properties": {
                "path": { "type": ["string", "null"], "format": "path" } } }),
        }],
        ..request()
    }
}

/// A conversation with a reply that reasoned and called a tool.
fn reasoned() -> ModelRequest {
    let mut request = with_tools();
    let call = ToolCall {
        id: "a".into(),
        name: "read".into(),
        arguments: json!({}),
    };
    let parts = vec![
        AssistantPart::Reasoning { text: "hm".into() },
        AssistantPart::Call(call),
    ];
    let result = ToolResult {
        call_id: "a".into(),
        parts: vec![ToolPart::text("1")],
        ok: true,
    };
    request.messages.extend([
        Message::Assistant(AssistantMessage { parts }),
        Message::Tool(result),
    ]);
    request
}

fn adapted(outcome: &Outcome) -> Vec<String> {
    let note = |event: &ModelEvent| match event {
        ModelEvent::Adapted { note, .. } => Some(note.clone()),
        _ => None,
    };
    outcome.events.iter().filter_map(note).collect()
}

/// A server that refuses while `wrong` says why, and two requests to it: the second is right at once.
async fn learns(
    provider: &str,
    name: &str,
    request: ModelRequest,
    wrong: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
) -> (Vec<Request>, Vec<String>) {
    let server = ModelServer::answering(move |request| wrong(request).unwrap_or_else(|| Reply::text("hi")));
    let model = asking(provider, name, &server);
    let first = send(&model, request.clone()).await.whole();
    assert_eq!(first.text(), "hi");
    let requests = server.requests();
    let second = send(&model, request.clone()).await.whole();
    assert_eq!(adapted(&second), Vec::<String>::new());
    assert_eq!(
        server.requests().len(),
        requests.len() + 1,
        "what helped is remembered"
    );
    let changes = first.events.iter().filter_map(|event| match event {
        ModelEvent::Adapted { change, .. } => change.as_deref(),
        _ => None,
    });
    let later = asking(provider, name, &server).having_learnt(changes.chain(["of a newer program"]));
    let third = send(&later, request).await.whole();
    assert_eq!((third.text(), adapted(&third)), ("hi".into(), vec![]));
    assert_eq!(
        server.requests().len(),
        requests.len() + 2,
        "what was written down need not be learnt again"
    );
    drop(server.take_violations());
    (requests, adapted(&first))
}

#[tokio::test]
async fn case_142_refused_parameters_of_chat_completions_are_renamed_or_left_out() {
    let wrong = |request: &Request| {
        let has = |key: &str| request.body.get(key).is_some();
        if has("max_tokens") {
            let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                           'max_completion_tokens' instead.";
            return Some(refusal(message, Some("max_tokens")));
        }
        if has("temperature") {
            let message = "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) \
                           value is supported.";
            return Some(refusal(message, Some("temperature")));
        }
        if request.body["reasoning_effort"] == "minimal" {
            let message = "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported \
                           values are: 'low', 'medium', and 'high'.";
            return Some(refusal(message, Some("reasoning_effort")));
        }
        has("stream_options").then(|| {
            Reply::status(422).body(json!({ "detail": [{
                "type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted",
                "input": { "temperature": 1 },
            }] }))
        })
    };
    let (requests, notes) = learns("openai", "m", request(), wrong).await;
    let last = &requests.last().unwrap().body;
    assert_eq!(requests.len(), 5, "{requests:?}");
    assert_eq!(last["max_completion_tokens"], 20_000);
    assert_eq!(last["reasoning_effort"], "low");
    for gone in ["max_tokens", "temperature", "stream_options"] {
        assert_eq!(last.get(gone), None, "{gone}");
    }
    assert_eq!(
        notes,
        [
            "max_tokens is called max_completion_tokens",
            "temperature is left out",
            "the model thinks with effort low",
            "stream_options is left out",
        ]
    );
}

#[tokio::test]
async fn case_142_each_protocol_does_without_what_its_server_refuses() {
    let says = |path: &'static str, message: &'static str, parameter: Option<&'static str>| {
        move |request: &Request| {
            let found = request.body.pointer(path).is_some();
            found.then(|| refusal(message, parameter))
        }
    };
    let unsigned = with_tools;
    for (provider, model, path, message, parameter, note) in [
        (
            "openai-responses",
            "m",
            "/include",
            "Encrypted content is not supported with this model.",
            Some("include"),
            "include is left out",
        ),
        (
            "openai-responses",
            "m",
            "/reasoning/summary",
            "Your organization must be verified to generate reasoning summaries.",
            Some("reasoning.summary"),
            "summary is left out",
        ),
        (
            "openai-responses",
            "m",
            "/reasoning",
            "Unsupported parameter: 'reasoning.effort' is not supported.",
            Some("reasoning.effort"),
            "effort is left out",
        ),
        (
            "anthropic",
            "claude-opus-5",
            "/output_config",
            "adaptive thinking is not supported on this model",
            None,
            "thinking is asked for in the other way",
        ),
        (
            "anthropic",
            "claude-sonnet-4-5",
            "/thinking/budget_tokens",
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\".",
            None,
            "thinking is asked for in the other way",
        ),
        (
            "gemini",
            "gemini-3-pro",
            "/generationConfig/thinkingConfig/thinkingLevel",
            "Thinking level is not supported for this model.",
            None,
            "thinking is asked for in the other way",
        ),
        (
            "gemini",
            "gemini-3-pro",
            "/tools/0/functionDeclarations/0/parametersJsonSchema",
            "Unknown name \"parametersJsonSchema\" at 'tools[0].function_declarations[0]': Cannot find field.",
            None,
            "the tools are described in plainer schemas",
        ),
        (
            "ollama",
            "m",
            "/think",
            "\"m\" does not support thinking",
            None,
            "thinking is left out",
        ),
    ] {
        let (requests, notes) = learns(provider, model, unsigned(), says(path, message, parameter)).await;
        assert_eq!(
            (requests.len(), notes.as_slice()),
            (2, &[note.to_owned()][..]),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_asked_for_replies_in_one_piece() {
    let text = json!([{ "type": "text", "text": "hi" }]);
    for (provider, model, whole) in [
        (
            "openai",
            "m",
            json!({ "choices": [{ "message": { "content": "hi" }, "finish_reason": "stop" }] }),
        ),
        (
            "openai-responses",
            "m",
            json!({ "object": "response", "status": "completed", "output": [
                { "type": "message", "content": [{ "type": "output_text", "text": "hi" }] },
            ] }),
        ),
        (
            "anthropic",
            "claude-sonnet-4-5",
            json!({ "type": "message", "content": text, "stop_reason": "end_turn" }),
        ),
        (
            "gemini",
            "gemini-2.5-pro",
            json!({ "candidates": [{ "content": { "parts": [{ "text": "hi" }] }, "finishReason": "STOP" }] }),
        ),
        (
            "ollama",
            "m",
            json!({ "message": { "content": "hi" }, "done": true, "done_reason": "stop" }),
        ),
    ] {
        let wrong = move |request: &Request| {
            Some(match request.is_streaming() {
                true => refusal("Streaming is not supported by this deployment.", None),
                false => Reply::status(200).body(whole.clone()),
            })
        };
        let (requests, notes) = learns(provider, model, request(), wrong).await;
        assert!(!requests.last().unwrap().is_streaming(), "{provider}");
        assert_eq!(notes, ["replies come in one piece"], "{provider}");
    }
}

#[tokio::test]
async fn case_142_a_limit_that_is_too_large_is_lowered_to_the_one_that_is_named() {
    let wrong = |request: &Request| {
        let too_large = request.body["max_tokens"].as_u64() > Some(8_192);
        let message =
            "max_tokens: 20000 > 8192, which is the maximum allowed number of output tokens for m-20251022";
        too_large.then(|| refusal(message, None))
    };
    let (requests, notes) = learns("anthropic", "claude-opus-5", request(), wrong).await;
    assert_eq!(requests.last().unwrap().body["max_tokens"], 8_192);
    assert_eq!(notes, ["a reply has at most 8192 tokens"]);
}

#[tokio::test]
async fn case_142_schemas_of_tools_are_made_plain_where_a_server_knows_few_words() {
    let wrong = |request: &Request| {
        let schema = &request.body["tools"][0]["function"]["parameters"];
        let strange = schema.to_string().contains("additionalProperties");
        strange.then(|| refusal("Invalid schema for function 'read': unknown keyword", None))
    };
    let (requests, _) = learns("openai", "m", with_tools(), wrong).await;
    let expected = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    assert_eq!(
        requests.last().unwrap().body["tools"][0]["function"]["parameters"],
        expected
    );
}

#[tokio::test]
async fn case_142_a_model_that_wants_responses_is_spoken_to_in_responses() {
    let wrong = |request: &Request| {
        let chat = request.path.ends_with("/chat/completions");
        let message = "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use \
                       function tools, use /v1/responses or set reasoning_effort to 'none'.";
        chat.then(|| refusal(message, Some("reasoning_effort")))
    };
    let (requests, notes) = learns("openai", "m", with_tools(), wrong).await;
    let last = requests.last().unwrap();
    assert_eq!((last.path.as_str(), requests.len()), ("/v1/responses", 2));
    assert_eq!(last.body["reasoning"]["effort"], "minimal");
    assert_eq!(notes, ["it is spoken to in responses"]);
}

#[tokio::test]
async fn case_142_what_does_not_help_ends_soon_and_is_not_remembered() {
    let server = ModelServer::answering(|request| {
        let message = if request.body.get("temperature").is_some() {
            "'temperature' is unsupported."
        } else {
            "Something else is wrong."
        };
        refusal(message, None)
    });
    let model = asking("openai", "m", &server);
    for sent in [2, 4] {
        let outcome = send(&model, request()).await;
        assert!(outcome.refused, "it has cost nothing");
        let error = outcome.broken();
        assert_eq!(error.kind, Kind::BadRequest);
        assert!(error.message.contains("Something else"), "{}", error.message);
        assert_eq!(server.requests().len(), sent);
    }
    // One that refuses everything, in words that always fit.
    let server = ModelServer::answering(|_| {
        refusal(
            "temperature, max_tokens, max_completion_tokens, reasoning_effort, stream_options, reasoning_content and \
             the schema are not supported; use v1/responses",
            None,
        )
    });
    let error = send(&asking("openai", "m", &server), with_tools()).await.broken();
    assert_eq!(error.kind, Kind::BadRequest);
    assert!(server.requests().len() <= 7, "{}", server.requests().len());
}

#[tokio::test]
async fn case_142_other_failures_change_nothing() {
    for (status, message) in [
        (401, "temperature is not supported for this key"),
        (429, "temperature is not supported so often"),
        (400, "the temperature must be at most 2"),
        (400, "the context window is full; temperature is not supported"),
    ] {
        let refused = Reply::status(status).body(json!({ "error": { "message": message } }));
        let server = ModelServer::start([refused]);
        send(&asking("openai", "m", &server), request()).await.broken();
        assert_eq!(server.requests().len(), 1, "{message}");
    }
}

#[tokio::test]
async fn case_141_reasoning_goes_back_where_a_server_wants_it_and_stays_where_it_does_not() {
    let echoed = |request: &Request| request.body.to_string().contains("\"reasoning_content\":\"hm\"");
    let wants = move |request: &Request| {
        let message = "The reasoning_content in the thinking mode must be passed back to the API.";
        (!echoed(request)).then(|| refusal(message, None))
    };
    let refuses = move |request: &Request| {
        let message = "property 'messages.2.reasoning_content' is unsupported";
        echoed(request).then(|| refusal(message, None))
    };
    let note = ["earlier reasoning is sent back the other way"];
    let (requests, notes) = learns("openai", "m", reasoned(), wants).await;
    assert_eq!(
        (requests.len(), notes.as_slice()),
        (2, &note.map(str::to_owned)[..])
    );
    let (requests, notes) = learns("deepseek", "m", reasoned(), refuses).await;
    assert_eq!(
        (requests.len(), notes.as_slice()),
        (2, &note.map(str::to_owned)[..])
    );
}

#[tokio::test]
async fn case_141_reasoning_that_cannot_be_verified_any_more_stays_here() {
    let sealed = json!({ "type": "thinking", "thinking": "hm", "signature": "of another" });
    let mut request = reasoned();
    let Message::Assistant(reply) = &mut request.messages[1] else {
        panic!("{request:?}")
    };
    reply.parts.insert(0, AssistantPart::Opaque { data: sealed });
    let wrong = |request: &Request| {
        let signed = request.body.to_string().contains("of another");
        signed.then(|| {
            refusal(
                "messages.1.content.0: Invalid `signature` in `thinking` block",
                None,
            )
        })
    };
    let (requests, _) = learns("anthropic", "claude-opus-5", request, wrong).await;
    assert_eq!(requests.len(), 2);
}

fn folded(outcome: &Outcome) -> ReplyBuilder<'static> {
    let mut reply = ReplyBuilder::new(1_000);
    outcome.events.iter().cloned().for_each(|event| reply.push(event));
    reply
}

#[tokio::test]
async fn case_132_a_stream_that_loses_calls_gives_way_to_replies_in_one_piece() {
    let call = || Call::new("read", json!({ "path": "x" })).id("a");
    let server = ModelServer::answering(move |request| {
        if request.is_streaming() {
            Reply::text("Let me see.").finish("tool_calls").usage(100, 20)
        } else {
            Reply::calls([call()]).usage(100, 30)
        }
    });
    let model = model_of("openai", server.root_url());
    let first = send(&model, with_tools()).await.whole();
    assert_eq!(adapted(&first), ["replies come in one piece"]);
    let reply = folded(&first).finish().unwrap();
    assert_eq!(reply.message.calls().count(), 1);
    assert_eq!(
        reply.message.text(),
        "",
        "what came of the first attempt does not count"
    );
    assert_eq!(
        (reply.usage.input, reply.usage.output, reply.usage.estimated),
        (200, 50, false),
        "but for what it has cost"
    );
    let second = send(&model, with_tools()).await.whole();
    assert_eq!((second.calls().len(), server.requests().len()), (1, 3));
    assert!(!server.requests()[2].is_streaming());
}

#[tokio::test]
async fn case_132_calls_that_ollama_writes_only_in_one_piece_are_asked_for_so() {
    let end = json!({ "model": "m", "message": { "role": "assistant", "content": "" }, "done": true,
                      "done_reason": "stop", "prompt_eval_count": 100, "eval_count": 25 });
    let mut whole = end.clone();
    whole["message"]["tool_calls"] =
        json!([{ "function": { "name": "read", "arguments": { "path": "x" } } }]);
    let server = ModelServer::answering(move |request| {
        if request.is_streaming() {
            Reply::events([end.to_string()])
        } else {
            Reply::status(200).body(whole.clone())
        }
    });
    let model = model_of("ollama", server.root_url());
    for (sent, usage) in [(2, 250), (3, 125)] {
        let outcome = send(&model, with_tools()).await.whole();
        assert_eq!(outcome.calls().len(), 1);
        assert_eq!(server.requests().len(), sent);
        assert_eq!(folded(&outcome).usage().total(), usage);
    }
}

#[tokio::test]
async fn case_132_calls_just_before_the_last_line_of_ollama_are_read_in_a_stream() {
    let server = ModelServer::start([Reply::calls([Call::new("read", json!({ "path": "x" }))])]);
    let outcome = send(&model_of("ollama", server.root_url()), with_tools())
        .await
        .whole();
    assert_eq!((outcome.calls().len(), server.requests().len()), (1, 1));
}

#[tokio::test]
async fn case_140_a_reply_that_says_nothing_either_way_is_one_and_asked_for_twice_only_once() {
    let server = ModelServer::answering(|_| Reply::text("").usage(100, 20));
    let model = model_of("openai", server.root_url());
    for sent in [2, 3] {
        let outcome = send(&model, with_tools()).await.whole();
        assert_eq!((outcome.text().as_str(), server.requests().len()), ("", sent));
    }
    // Nothing can be lost in so few tokens, or where there are no tools.
    for (tokens, request) in [(1, with_tools()), (20, request())] {
        let server = ModelServer::start([Reply::text("").usage(100, tokens)]);
        send(&model_of("openai", server.root_url()), request)
            .await
            .whole();
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn case_132_calls_that_are_lost_either_way_are_an_error_that_is_paid_for() {
    let server = ModelServer::answering(|_| Reply::text("").finish("tool_calls").usage(100, 20));
    let outcome = send(&model_of("openai", server.root_url()), with_tools()).await;
    assert_eq!(
        folded(&outcome).usage().input,
        1_100,
        "one reported, one estimated"
    );
    assert_eq!(outcome.broken().kind, Kind::MalformedReply);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn case_155_the_model_that_answers_and_a_refusal_are_known() {
    let mut other = json!({ "model": "other-1", "choices": [{ "delta": { "refusal": "I cannot help." },
                            "finish_reason": "stop" }] });
    let server = ModelServer::start([Reply::events([other.to_string()])]);
    let outcome = send(&model_of("openai", server.root_url()), request())
        .await
        .whole();
    assert_eq!(outcome.served_by.as_deref(), Some("other-1"));
    assert_eq!(
        outcome.events.last(),
        Some(&ModelEvent::Finished(FinishReason::Refused))
    );
    other["choices"][0]["finish_reason"] = Value::from("content_filter");
    let server = ModelServer::start([Reply::events([other.to_string()])]);
    let outcome = send(&model_of("openai", server.root_url()), request())
        .await
        .whole();
    assert_eq!(
        outcome.events.last(),
        Some(&ModelEvent::Finished(FinishReason::ContentFilter))
    );
}
