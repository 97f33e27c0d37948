//! What users know of a robot: conversation, tools, hooks, limits, budget, cancellation.

use async_trait::async_trait;
use robot_lab::testing::{FakeModel, FakeReply, Recorder, assert_valid};
use robot_lab::*;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArgs {
    /// What to say.
    text: String,
}

struct Echo;

#[async_trait]
impl TypedTool for Echo {
    type Args = EchoArgs;
    const NAME: &'static str = "echo";
    const DESCRIPTION: &'static str = "Says it again.";
    async fn run(&self, args: EchoArgs, cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        Ok(match args.text.as_str() {
            "submit" => ToolOutcome::Finished(vec![ToolPart::text("taken")]),
            "abort" => return Err(Abort("enough".into())),
            "panic" => std::panic::resume_unwind(Box::new("boom")),
            "wait" => {
                cx.cancel.cancelled().await;
                ToolOutcome::Failed("stopped".into())
            }
            "hang" => std::future::pending().await,
            text => ToolOutcome::text(text),
        })
    }
}

fn echo(text: &str) -> (&'static str, serde_json::Value) {
    ("echo", json!({ "text": text }))
}

fn build(model: &Arc<FakeModel>) -> RobotBuilder {
    let mut tools = Toolset::new();
    tools.add_typed(Echo).unwrap();
    Robot::builder("tester", Arc::clone(model) as Arc<dyn Model>)
        .system("be brief")
        .tools(tools)
}

fn results(robot: &Robot) -> Vec<String> {
    let messages = robot.transcript().messages();
    messages
        .iter()
        .filter_map(|m| {
            if let Message::Tool(r) = m {
                Some(r.text())
            } else {
                None
            }
        })
        .collect()
}

#[tokio::test]
async fn a_conversation_goes_on_from_run_to_run() {
    let model = Arc::new(FakeModel::script([
        FakeReply::calls([echo("one"), echo("two")]).usage(100, 10),
        FakeReply::text("done").usage(120, 5),
        FakeReply::text("again").usage(130, 1),
    ]));
    let mut robot = build(&model).build();
    let first = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(
        (first.text.as_str(), first.turns, first.tool_calls),
        ("done", 2, 2)
    );
    assert_eq!(
        (first.usage.input, first.usage.output),
        (220, 15),
        "every request is metered"
    );
    assert_eq!(first.stop, StopReason::EndTurn);
    robot.run("more", &CancellationToken::new()).await.unwrap();
    assert_eq!(robot.usage().total(), 235 + 131);
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests
            .iter()
            .all(|r| r.tools.len() == 1 && r.system == "be brief"),
        "attached tools are sent"
    );
    assert_eq!(requests[2].messages.len(), 6);
    robot.clear_messages();
    assert!(robot.transcript().messages().is_empty());
    assert_eq!(
        robot.usage().total(),
        366,
        "clearing messages leaves the counts alone"
    );
}

#[tokio::test]
async fn wrong_calls_are_answered_and_five_in_a_row_end_it() {
    let bad = || FakeReply::calls([("nope", json!({})), ("echo", json!("{\"text\": "))]);
    let model = Arc::new(FakeModel::script([bad(), bad(), bad()]));
    let mut robot = build(&model).build();
    let error = robot.run("go", &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error, RunError::BadCalls { count: 5 });
    let results = results(&robot);
    assert!(
        results[0].contains("there is no tool `nope`; the tools are: echo"),
        "{results:?}"
    );
    assert!(results[1].contains("not valid JSON"), "{results:?}");
    assert!(results[5].contains("not run"), "{results:?}");
    assert_valid(robot.transcript().messages());
}

#[tokio::test]
async fn case_134_139_calls_written_as_text_run_with_ids_of_their_own() {
    let written = |n: u32| {
        let call = format!("{{\"name\": \"echo\", \"arguments\": {{\"text\": \"{n}\"}}}}");
        FakeReply::text(&format!(
            "So:\n<tool_call>{call}</tool_call>\n<tool_call>{call}</tool_call>"
        ))
    };
    let model = Arc::new(FakeModel::script([
        written(1),
        written(2),
        FakeReply::text("done"),
    ]));
    let recorder = Arc::new(Recorder::default());
    let mut robot = build(&model)
        .events(Arc::clone(&recorder) as Arc<dyn EventSink>)
        .build();
    let result = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!((result.tool_calls, result.text.as_str()), (4, "done"));
    assert_eq!(results(&robot), ["1", "1", "2", "2"]);
    assert_valid(robot.transcript().messages());
    let events = recorder.events();
    let recorded =
        |event: &&RobotEvent| matches!(event, RobotEvent::ToolStarted { repair, .. } if repair.text);
    assert_eq!(events.iter().filter(recorded).count(), 4);
}

#[tokio::test]
async fn case_134_a_call_in_a_text_that_cannot_be_read_is_told_so_and_five_end_it() {
    let broken =
        || FakeReply::text("<tool_call>{\"name\": \"echo\", \"arguments\": {\"text\": \"\\d\"}}</tool_call>");
    let model = Arc::new(FakeModel::script((0..5).map(|_| broken())));
    let mut robot = build(&model).build();
    let error = robot.run("go", &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error, RunError::BadCalls { count: 5 });
    let told = robot.transcript().messages().iter().any(|message| {
        matches!(message, Message::User { text } if text.contains("no such escape") && text.contains("line 1 column"))
    });
    assert!(told);
}

#[tokio::test]
async fn a_reply_that_repeats_itself_is_cut_and_paid_for_by_what_came() {
    let piece = || Ok(ModelEvent::Text("I will fix it now. ".into()));
    let mut events: Vec<_> = (0..1_000).map(|_| piece()).collect();
    events.push(Ok(ModelEvent::Finished(FinishReason::Stop)));
    for cut in [false, true] {
        let model = Arc::new(FakeModel::script([FakeReply::events(events.clone())]));
        let mut robot = build(&model).cut_repetition(cut).build();
        let outcome = robot.run("go", &CancellationToken::new()).await;
        let paid = robot.usage().output;
        match (cut, outcome) {
            (true, Err(RunError::Model(error))) => {
                assert_eq!(error.kind, ModelErrorKind::Repetition);
                assert!((50..200).contains(&paid), "{paid}");
            }
            (false, Ok(_)) => assert!(paid > 4_000, "{paid}"),
            (_, outcome) => panic!("{cut}: {outcome:?}"),
        }
        assert_valid(robot.transcript().messages());
    }
}

#[tokio::test]
async fn the_breaker_ends_a_runaway_and_the_robot_answers_without_clearing() {
    let mut script: Vec<_> = (0..6).map(|_| FakeReply::calls([echo("step")])).collect();
    script.push(FakeReply::text("fine"));
    let model = Arc::new(FakeModel::script(script));
    let mut robot = build(&model).max_tool_calls(5).build();
    let error = robot.run("go", &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error, RunError::ToolLoop { limit: 5 });
    assert_eq!(
        results(&robot).len(),
        6,
        "five ran, the sixth was answered as not run"
    );
    assert_eq!(
        robot
            .run("how are you?", &CancellationToken::new())
            .await
            .unwrap()
            .text,
        "fine"
    );
}

#[tokio::test]
async fn a_finishing_tool_ends_the_invocation_without_another_request() {
    let model = Arc::new(FakeModel::script([FakeReply::calls([
        echo("submit"),
        echo("late"),
    ])]));
    let mut robot = build(&model).build();
    let result = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(result.stop, StopReason::ToolFinished);
    assert_eq!(
        results(&robot),
        ["taken", "refused: already submitted; this call was not run"]
    );
    assert_eq!(model.left(), 0);
}

#[tokio::test]
async fn a_panic_is_an_answer_and_an_abort_leaves_a_valid_transcript() {
    let model = Arc::new(FakeModel::script([
        FakeReply::calls([echo("panic")]),
        FakeReply::calls([echo("abort"), echo("late")]),
    ]));
    let mut robot = build(&model).build();
    let error = robot.run("go", &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error, RunError::Aborted(Abort("enough".into())));
    assert!(results(&robot)[0].contains("crashed"));
    assert_valid(robot.transcript().messages());
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_tool_that_listens_and_one_that_does_not() {
    for (text, expected) in [
        ("wait", "error: stopped"),
        ("hang", "error: cancelled; it may have done a part"),
    ] {
        let model = Arc::new(FakeModel::script([FakeReply::calls([echo(text), echo("late")])]));
        let mut robot = build(&model).build();
        let cancel = CancellationToken::new();
        let stopper = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            stopper.cancel();
        });
        let outcome = robot.run("go", &cancel).await;
        assert_eq!(results(&robot)[0], expected);
        assert_valid(robot.transcript().messages());
        assert!(outcome.is_ok_and(|r| r.stop == StopReason::Cancelled));
    }
}

#[tokio::test]
async fn the_budget_cuts_in_the_middle_of_a_reply_and_books_the_estimate() {
    let long = "x".repeat(400);
    let mut events: Vec<_> = (0..100).map(|_| Ok(ModelEvent::Text(long.clone()))).collect();
    events.push(Ok(ModelEvent::Finished(FinishReason::Stop)));
    let model = Arc::new(FakeModel::script([FakeReply::events(events)]));
    let budget = Arc::new(Budget::new(
        Limits {
            tokens: Some(1_000),
            cost: None,
        },
        Spent::default(),
        KnownModels::new(),
    ));
    let recorder = Arc::new(Recorder::default());
    let mut robot = build(&model)
        .budget(Arc::clone(&budget))
        .events(Arc::clone(&recorder) as Arc<dyn EventSink>)
        .build();
    let result = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(result.stop, StopReason::Budget(Some(BudgetLimit::Tokens(1_000))));
    assert!(result.usage.estimated && result.usage.total() > 1_000 && result.usage.total() < 1_200);
    assert_eq!(budget.spent().tokens, result.usage.total());
    let deltas = recorder
        .events()
        .iter()
        .filter(|e| matches!(e, RobotEvent::TextDelta { .. }))
        .count();
    assert!(deltas < 12, "{deltas} of 100 pieces were read");
    let next = robot.run("more", &CancellationToken::new()).await.unwrap();
    assert_eq!(
        next.stop,
        StopReason::Budget(Some(BudgetLimit::Tokens(1_000))),
        "nothing is left, so nothing is sent"
    );
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_is_sent_again_when_that_may_help() {
    let cut = || FakeReply::events(vec![Ok(ModelEvent::Text("half".into()))]);
    let model = Arc::new(FakeModel::script([
        FakeReply::error(ModelErrorKind::Overloaded, "busy"),
        cut(),
        FakeReply::text("whole").usage(10, 1),
    ]));
    let mut robot = build(&model).build();
    let result = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(result.text, "whole");
    assert!(
        result.usage.estimated && result.usage.total() > 11,
        "the cut reply is booked too: {:?}",
        result.usage
    );

    let model = Arc::new(FakeModel::script([FakeReply::error(
        ModelErrorKind::Auth,
        "wrong key",
    )]));
    let error = build(&model)
        .build()
        .run("go", &CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        matches!(error, RunError::Model(e) if e.kind == ModelErrorKind::Auth),
        "permanent: at once"
    );

    let limit = ModelErrorKind::RateLimited {
        retry_after: Some(Duration::from_secs(18_000)),
    };
    let model = Arc::new(FakeModel::script([FakeReply::error(limit, "later")]));
    let error = build(&model)
        .build()
        .run("go", &CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        matches!(error, RunError::Model(_)),
        "a wait of five hours is the caller's to decide"
    );
}

/// A hook that writes down what it sees.
struct Log(&'static str, Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: &str) {
        self.1.lock().unwrap().push(format!("{} {what}", self.0));
    }
}

#[async_trait]
impl Hook for Log {
    fn name(&self) -> &'static str {
        self.0
    }
    async fn before_run(&self, _cx: &HookCx<'_>) -> Result<(), Abort> {
        self.note("before");
        Ok(())
    }
    async fn around_model(
        &self,
        _cx: &HookCx<'_>,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.note("model in");
        let reply = next.run(request).await;
        self.note("model out");
        reply
    }
    async fn around_tool(
        &self,
        cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        let seen = cx.store.get::<Mutex<u32>>();
        *seen.lock().unwrap() += 1;
        let n = *seen.lock().unwrap();
        self.note(&format!("tool in {n}"));
        if call.arguments == json!({"text": "forbidden"}) {
            return Ok(ToolOutcome::Refused("not that".into()));
        }
        let outcome = next.run(call).await;
        self.note("tool out");
        outcome
    }
    async fn after_turn(&self, cx: &HookCx<'_>, _turn: &Turn<'_>) -> TurnAction {
        self.note("turn");
        if cx.turn == 1 && self.0 == "inner" {
            TurnAction::Steer("hurry".into())
        } else {
            TurnAction::Continue
        }
    }
    async fn after_run(&self, _cx: &HookCx<'_>, outcome: &Result<RobotResult, RunError>) {
        self.note(if outcome.is_ok() {
            "after ok"
        } else {
            "after error"
        });
    }
}

#[tokio::test]
async fn hooks_wrap_in_order_and_share_a_store() {
    let model = Arc::new(FakeModel::script([
        FakeReply::calls([echo("a"), echo("forbidden")]),
        FakeReply::text("ok"),
    ]));
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut robot = build(&model)
        .hook(Arc::new(Log("outer", Arc::clone(&log))))
        .hook(Arc::new(Log("inner", Arc::clone(&log))))
        .build();
    robot.run("go", &CancellationToken::new()).await.unwrap();
    let expected = [
        "outer before",
        "inner before",
        "outer model in",
        "inner model in",
        "inner model out",
        "outer model out",
        "outer tool in 1",
        "inner tool in 2",
        "inner tool out",
        "outer tool out",
        "outer tool in 3",
        "outer turn",
        "inner turn",
        "outer model in",
        "inner model in",
        "inner model out",
        "outer model out",
        "outer after ok",
        "inner after ok",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(results(&robot)[1], "refused: not that");
    assert!(
        robot
            .transcript()
            .messages()
            .contains(&Message::User { text: "hurry".into() })
    );
}

/// Panics where it is told to.
struct Crash(&'static str);

impl Crash {
    fn at(&self, place: &str) {
        if self.0 == place {
            std::panic::resume_unwind(Box::new(format!("boom at {place}")));
        }
    }
}

#[async_trait]
impl Hook for Crash {
    fn name(&self) -> &'static str {
        "crash"
    }
    async fn before_run(&self, _cx: &HookCx<'_>) -> Result<(), Abort> {
        self.at("before_run");
        Ok(())
    }
    async fn around_model(
        &self,
        _cx: &HookCx<'_>,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.at("around_model");
        next.run(request).await
    }
    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        self.at("around_tool");
        next.run(call).await
    }
    async fn after_turn(&self, _cx: &HookCx<'_>, _turn: &Turn<'_>) -> TurnAction {
        self.at("after_turn");
        TurnAction::Continue
    }
    async fn after_run(&self, _cx: &HookCx<'_>, _outcome: &Result<RobotResult, RunError>) {
        self.at("after_run");
    }
}

#[tokio::test]
async fn a_hook_that_panics_ends_the_invocation_and_leaves_a_valid_conversation() {
    for place in ["before_run", "around_model", "around_tool", "after_turn"] {
        let model = Arc::new(FakeModel::script([
            FakeReply::calls([echo("a"), echo("b")]),
            FakeReply::text("ok"),
        ]));
        let mut robot = build(&model).hook(Arc::new(Crash(place))).build();
        let cancel = CancellationToken::new();
        let outcome = robot.run("go", &cancel).await;
        let Err(RunError::Aborted(abort)) = outcome else {
            panic!("{place}: {outcome:?}")
        };
        assert!(
            abort.to_string().ends_with(&format!("boom at {place}")),
            "{abort}"
        );
        assert_valid(robot.transcript().messages());
        if place == "around_tool" {
            assert!(results(&robot)[0].starts_with("error: the invocation was aborted: a hook"));
            assert!(results(&robot)[1].starts_with("refused: the invocation was aborted: a hook"));
        }
    }
    let model = Arc::new(FakeModel::script([FakeReply::text("ok")]));
    let mut robot = build(&model).hook(Arc::new(Crash("after_run"))).build();
    let outcome = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(outcome.stop, StopReason::EndTurn, "it only looks on");
}

#[tokio::test]
async fn what_is_discarded_of_a_reply_counts_only_as_spent() {
    let text = |text: &str| Ok(ModelEvent::Text(text.into()));
    let usage = |input, output| {
        Ok(ModelEvent::Usage(Usage {
            input,
            output,
            ..Usage::default()
        }))
    };
    let events = vec![
        text("lost, and much longer than eight tokens would be in any count"),
        usage(100, 8),
        Ok(ModelEvent::Discarded),
        text("kept"),
        usage(100, 2),
        Ok(ModelEvent::Finished(FinishReason::Stop)),
    ];
    let model = Arc::new(FakeModel::script([FakeReply::events(events)]));
    let mut robot = build(&model).build();
    let result = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(result.text, "kept");
    let spent = Usage {
        input: 200,
        output: 10,
        ..Usage::default()
    };
    assert_eq!(result.usage, spent);
}

/// What was booked of a run with this reply, by a price that is dearer above 150 tokens read, and what it came to.
async fn booked(events: Vec<Result<ModelEvent, ModelError>>) -> (Vec<(u64, u64, bool)>, Cost) {
    let mut price: Price = "in=1,out=1".parse().unwrap();
    let dear: Price = "in=100,out=100".parse().unwrap();
    price.long = Some((150, dear.rates));
    let facts = ModelFacts {
        price: Some(price),
        ..ModelFacts::default()
    };
    let known = [("fake/scripted".to_owned(), facts)].into();
    let budget = Arc::new(Budget::new(Limits::default(), Spent::default(), known));
    let model = Arc::new(FakeModel::script([FakeReply::events(events)]));
    let recorder = Arc::new(Recorder::default());
    let patience = Patience {
        max_retries: 0,
        max_wait: Duration::ZERO,
        ..Patience::default()
    };
    let mut robot = build(&model)
        .events(Arc::clone(&recorder) as Arc<dyn EventSink>)
        .budget(Arc::clone(&budget))
        .patience(patience)
        .build();
    drop(robot.run("go", &CancellationToken::new()).await);
    let (mut all, mut sum) = (Vec::new(), Cost::ZERO);
    for event in recorder.events() {
        if let RobotEvent::ModelFinished { usage, cost, .. } = event {
            all.push((usage.input, usage.output, usage.estimated));
            sum += cost.unwrap();
        }
    }
    assert_eq!(budget.spent().cost, sum, "the ledger is what was told");
    assert_eq!(budget.spent().tokens, robot.usage().total());
    (all, sum)
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_a_request_is_booked_by_itself_and_one_that_was_refused_is_not() {
    let text = |text: &str| Ok(ModelEvent::Text(text.into()));
    let usage = |input, output| {
        Ok(ModelEvent::Usage(Usage {
            input,
            output,
            ..Usage::default()
        }))
    };
    let first = || vec![text("lost"), usage(100, 8), Ok(ModelEvent::Discarded)];
    let after = |rest: Vec<_>| first().into_iter().chain(rest).collect();
    let finished = || Ok(ModelEvent::Finished(FinishReason::Stop));
    let whole = after(vec![
        Ok(ModelEvent::Again),
        text("kept"),
        usage(100, 2),
        finished(),
    ]);
    let micro = |dollars: &str| dollars.parse::<Cost>().unwrap();
    assert_eq!(
        booked(whole).await,
        (vec![(100, 8, false), (100, 2, false)], micro("0.00021")),
        "neither is long, and together they are not one that is"
    );
    let refused = |kind| Err(ModelError::new(kind, "no"));
    for kind in [ModelErrorKind::Auth, ModelErrorKind::Overloaded] {
        let none = after(vec![refused(kind)]);
        assert_eq!(
            booked(none).await,
            (vec![(100, 8, false)], micro("0.000108")),
            "nothing was read a second time"
        );
    }
    let charged = |dollars: &str| Ok(ModelEvent::Charged(micro(dollars)));
    let told = vec![
        text("lost"),
        usage(100, 8),
        charged("0.5"),
        Ok(ModelEvent::Discarded),
        Ok(ModelEvent::Again),
        text("kept"),
        usage(100, 2),
        charged("0.1"),
        charged("0.25"),
        finished(),
    ];
    assert_eq!(
        booked(told).await,
        (vec![(100, 8, false), (100, 2, false)], micro("0.75")),
        "what was charged counts before any price"
    );
    let cut = after(vec![Ok(ModelEvent::Again), refused(ModelErrorKind::Auth)]);
    let (all, _) = booked(cut).await;
    assert_eq!(all.len(), 2);
    assert!(
        all[1].0 > 0 && all[1].2,
        "it had begun, so it is estimated: {all:?}"
    );
}

#[tokio::test]
async fn case_155_another_model_that_answers_is_told_of_once_and_a_refusal_has_its_reason() {
    let reply = |served: &str, call: bool| {
        let mut events = vec![
            Ok(ModelEvent::Adapted {
                note: "temperature is left out".into(),
                change: None,
            }),
            Ok(ModelEvent::Served(served.into())),
        ];
        let finish = if call {
            events.push(Ok(ModelEvent::Call(ToolCall {
                id: String::new(),
                name: "echo".into(),
                arguments: json!({ "text": "a" }),
            })));
            FinishReason::ToolCalls
        } else {
            FinishReason::Refused
        };
        events.push(Ok(ModelEvent::Finished(finish)));
        FakeReply::events(events)
    };
    let replies = [
        reply("scripted", true),
        reply("other", true),
        reply("other", true),
        reply("third", false),
    ];
    let model = Arc::new(FakeModel::script(replies));
    let recorder = Arc::new(Recorder::default());
    let mut robot = build(&model)
        .events(Arc::clone(&recorder) as Arc<dyn EventSink>)
        .build();
    let result = robot.run("go", &CancellationToken::new()).await.unwrap();
    assert_eq!(result.stop, StopReason::Refused);
    let events = recorder.events();
    let served: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            RobotEvent::ModelServed { served_by, .. } => Some(served_by.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(served, ["other", "third"]);
    let adapted = |event: &&RobotEvent| matches!(event, RobotEvent::ModelAdapted { .. });
    assert_eq!(events.iter().filter(adapted).count(), 4);
}
