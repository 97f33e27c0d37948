//! Providers that are out of order, in virtual time: how long is waited, who asks, and what is told of it.

use async_trait::async_trait;
use futures::StreamExt as _;
use robot_lab::robot::ModelTimeouts;
use robot_lab::testing::{FakeReply, Recorder};
use robot_lab::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

type Answer = Box<dyn Fn(Duration) -> FakeReply + Send + Sync>;

/// A model whose answers follow from the time since it was made. It keeps the times at which it is asked.
struct Provider {
    id: ModelId,
    since: Instant,
    /// How long it takes to answer.
    latency: Duration,
    answer: Answer,
    asked: Mutex<Vec<Duration>>,
    seen: Mutex<Vec<ModelRequest>>,
}

impl Provider {
    fn new(name: &str, answer: impl Fn(Duration) -> FakeReply + Send + Sync + 'static) -> Arc<Self> {
        Self::slow(name, Duration::ZERO, answer)
    }

    fn slow(
        name: &str,
        latency: Duration,
        answer: impl Fn(Duration) -> FakeReply + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            latency,
            id: ModelId {
                provider: "fake".into(),
                name: name.into(),
            },
            since: Instant::now(),
            answer: Box::new(answer),
            asked: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<Duration> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Model for Provider {
    fn id(&self) -> &ModelId {
        &self.id
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let now = self.since.elapsed();
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        self.asked.lock().unwrap().push(now);
        self.seen.lock().unwrap().push(request);
        (self.answer)(now).stream()
    }
}

fn ok() -> FakeReply {
    FakeReply::text("fine").usage(10, 1)
}

fn overloaded() -> FakeReply {
    FakeReply::error(ModelErrorKind::Overloaded, "busy (529)")
}

fn limited(wait: Option<Duration>) -> FakeReply {
    FakeReply::error(
        ModelErrorKind::RateLimited { retry_after: wait },
        "slow down (429)",
    )
}

fn patience(max_wait: Duration) -> Patience {
    Patience {
        max_wait,
        ..Patience::default()
    }
}

struct Tried {
    outcome: Result<RobotResult, RunError>,
    events: Vec<RobotEvent>,
    took: Duration,
}

impl Tried {
    fn error(&self) -> &ModelError {
        match &self.outcome {
            Err(RunError::Model(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    fn waits(&self) -> Vec<(Duration, bool)> {
        let waits = self.events.iter().filter_map(|event| match event {
            RobotEvent::Waiting { wait, announced, .. } => Some((*wait, *announced)),
            _ => None,
        });
        waits.collect()
    }

    fn resumed(&self) -> Vec<(String, bool)> {
        let resumed = self.events.iter().filter_map(|event| match event {
            RobotEvent::Resumed { model, answered, .. } => Some((model.clone(), *answered)),
            _ => None,
        });
        resumed.collect()
    }

    fn count(&self, which: impl Fn(&RobotEvent) -> bool) -> usize {
        self.events.iter().filter(|event| which(event)).count()
    }

    fn models(&self) -> Vec<String> {
        let models = self.events.iter().filter_map(|event| match event {
            RobotEvent::ModelFinished { model, .. } => Some(model.clone()),
            _ => None,
        });
        models.collect()
    }
}

async fn run(robot: RobotBuilder) -> Tried {
    run_until(robot, &CancellationToken::new()).await
}

async fn run_until(robot: RobotBuilder, cancel: &CancellationToken) -> Tried {
    let recorder = Arc::new(Recorder::default());
    let mut robot = robot.events(Arc::clone(&recorder) as Arc<dyn EventSink>).build();
    let began = Instant::now();
    let outcome = robot.run("go", cancel).await;
    Tried {
        outcome,
        events: recorder.events(),
        took: began.elapsed(),
    }
}

fn robot(model: &Arc<Provider>) -> RobotBuilder {
    Robot::builder("tester", Arc::clone(model) as Arc<dyn Model>)
}

#[tokio::test(start_paused = true)]
async fn f52_an_outage_of_two_hours_costs_nothing_but_time() {
    let kinds = [
        ModelErrorKind::Overloaded,
        ModelErrorKind::Network,
        ModelErrorKind::Overloaded,
        ModelErrorKind::Timeout,
    ];
    let model = Provider::new("main", move |now| {
        if now < 2 * HOUR {
            let kind = kinds[usize::try_from(now.as_millis() % 4).unwrap()].clone();
            FakeReply::error(kind, "busy")
        } else {
            ok()
        }
    });
    let tried = run(robot(&model).patience(patience(6 * HOUR))).await;
    let result = tried.outcome.as_ref().unwrap();
    assert_eq!(
        (result.text.as_str(), result.usage.total()),
        ("fine", 11),
        "no token is lost"
    );
    assert!(
        tried.took >= 2 * HOUR && tried.took < 2 * HOUR + 6 * MINUTE,
        "{:?}",
        tried.took
    );
    assert_eq!(tried.waits().len(), 1, "{:?}", tried.events);
    assert!(!tried.waits()[0].1 && tried.waits()[0].0 <= 6 * HOUR);
    assert_eq!(tried.resumed(), [("fake/main".to_owned(), true)]);
    assert!(model.asked().len() < 130, "{} requests", model.asked().len());
    let failures = tried.count(|event| matches!(event, RobotEvent::ModelFailed { .. }));
    assert_eq!(failures, 2, "the quick retries, and then one wait");
}

#[tokio::test(start_paused = true)]
async fn case_121_a_limit_of_five_hours_is_waited_for_to_its_end_and_a_little_longer() {
    let model = Provider::new("main", |now| {
        if now < 5 * HOUR {
            limited(Some(5 * HOUR - now))
        } else {
            ok()
        }
    });
    let tried = run(robot(&model).patience(patience(6 * HOUR))).await;
    assert!(tried.outcome.is_ok());
    let asked = model.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[1] >= 5 * HOUR && asked[1] <= 5 * HOUR + Duration::from_secs(30));
    let [(wait, true)] = tried.waits()[..] else {
        panic!("{:?}", tried.events)
    };
    assert!(wait >= 5 * HOUR && wait <= 5 * HOUR + Duration::from_secs(31));
    let failures = tried.count(|event| matches!(event, RobotEvent::ModelFailed { .. }));
    assert_eq!(failures, 0, "a wait is no failure");
}

#[tokio::test(start_paused = true)]
async fn case_122_a_reset_in_thirty_days_ends_at_once_and_overflows_nothing() {
    for asked in [720 * HOUR, Duration::from_secs(u64::MAX / 2), Duration::MAX] {
        let model = Provider::new("main", move |_| limited(Some(asked)));
        let tried = run(robot(&model).patience(patience(6 * HOUR))).await;
        let error = tried.error();
        let after = error.retry_after.unwrap();
        assert!(
            after >= asked.min(720 * HOUR),
            "it says when it would end: {after:?}"
        );
        assert!(error.message.ends_with(" d, and 6 h may be waited"), "{error}");
        assert_eq!((model.asked().len(), tried.took), (1, Duration::ZERO));
        assert_eq!(tried.waits(), []);
    }
    // Patience without end does not overflow either.
    let model = Provider::new("main", |now| {
        if now < 720 * HOUR {
            limited(Some(720 * HOUR))
        } else {
            ok()
        }
    });
    let tried = run(robot(&model).patience(patience(Duration::MAX))).await;
    assert!(tried.outcome.is_ok() && tried.took >= 720 * HOUR);
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_the_patience_ends_with_its_last_failure() {
    let model = Provider::new("main", |_| overloaded());
    let tried = run(robot(&model).patience(patience(HOUR))).await;
    let error = tried.error();
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert_eq!(error.message, "busy (529); waited 60 min for it");
    let last = *model.asked().last().unwrap();
    let since = Duration::from_secs(3);
    assert!(
        last >= HOUR && last <= HOUR + since,
        "the last try is at the end: {last:?}"
    );
    assert_eq!(tried.resumed(), [("fake/main".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn without_patience_a_request_fails_after_its_quick_retries() {
    let model = Provider::new("main", |_| overloaded());
    let tried = run(robot(&model).patience(patience(Duration::ZERO))).await;
    assert_eq!((model.asked().len(), tried.waits().len()), (3, 0));
    assert!(tried.error().message.starts_with("busy (529)"));
    let model = Provider::new("main", |_| limited(Some(Duration::from_secs(1))));
    let tried = run(robot(&model).patience(patience(Duration::ZERO))).await;
    assert_eq!(model.asked().len(), 1);
    assert!(matches!(tried.error().kind, ModelErrorKind::RateLimited { .. }));
}

#[tokio::test(start_paused = true)]
async fn without_patience_the_fallback_is_asked_all_the_same_and_waits_of_nothing_come_to_an_end() {
    let nothing = Backoff {
        first: Duration::ZERO,
        cap: Duration::ZERO,
    };
    for (spare_is_up, expected) in [(true, (3, 1)), (false, (3, 3))] {
        let model = Provider::new("main", |_| overloaded());
        let spare = Provider::new("spare", move |_| if spare_is_up { ok() } else { overloaded() });
        let robot = robot(&model)
            .patience(Patience {
                max_wait: Duration::ZERO,
                quick: nothing,
                slow: Backoff {
                    first: Duration::from_secs(1),
                    cap: Duration::from_secs(1),
                },
                ..Patience::default()
            })
            .fallback(Arc::clone(&spare) as Arc<dyn Model>, Arc::new(Limiter::new()));
        let tried = run(robot).await;
        assert_eq!(tried.outcome.is_ok(), spare_is_up);
        assert_eq!((model.asked().len(), spare.asked().len()), expected);
    }
    let model = Provider::new("main", |_| overloaded());
    let robot = robot(&model).patience(Patience {
        max_wait: Duration::ZERO,
        max_retries: 0,
        quick: nothing,
        slow: nothing,
    });
    assert!(run(robot).await.outcome.is_err());
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn case_127_what_is_permanent_is_asked_once() {
    for kind in [
        ModelErrorKind::Auth,
        ModelErrorKind::Billing,
        ModelErrorKind::ModelNotFound,
        ModelErrorKind::BadRequest,
        ModelErrorKind::ContextLength,
    ] {
        let of = kind.clone();
        let model = Provider::new("main", move |_| FakeReply::error(of.clone(), "no"));
        let spare = Provider::new("spare", |_| ok());
        let fallback = Arc::clone(&spare) as Arc<dyn Model>;
        let tried = run(robot(&model).fallback(fallback, Arc::new(Limiter::new()))).await;
        assert_eq!(tried.error().kind, kind);
        assert_eq!((model.asked().len(), spare.asked().len()), (1, 0), "{kind:?}");
        assert_eq!(tried.took, Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn f55_replies_that_keep_breaking_are_a_handful_and_no_outage() {
    let cut = || FakeReply::events(vec![Ok(ModelEvent::Text("half".into()))]);
    let broken = || {
        let error = ModelError::new(ModelErrorKind::Network, "the connection broke");
        FakeReply::events(vec![Ok(ModelEvent::Text("half".into())), Err(error)])
    };
    for (reply, said) in [
        (
            Box::new(cut) as Box<dyn Fn() -> FakeReply + Send + Sync>,
            "the reply broke off before its end",
        ),
        (Box::new(broken), "the connection broke"),
    ] {
        let model = Provider::new("main", move |_| reply());
        let tried = run(robot(&model).patience(patience(6 * HOUR))).await;
        let error = tried.error();
        assert_eq!(error.kind, ModelErrorKind::MalformedReply);
        assert!(
            error.message.starts_with("5 replies to one request broke off"),
            "{error}"
        );
        assert!(error.message.contains(said), "{error}");
        assert_eq!((model.asked().len(), tried.waits().len()), (5, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_once_when_it_is_cancelled() {
    let model = Provider::new("main", |_| limited(Some(5 * HOUR)));
    let cancel = CancellationToken::new();
    let stopper = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(HOUR).await;
        stopper.cancel();
    });
    let tried = run_until(robot(&model).patience(patience(6 * HOUR)), &cancel).await;
    assert_eq!(tried.outcome.as_ref().unwrap().stop, StopReason::Cancelled);
    assert_eq!((tried.took, tried.resumed().len()), (HOUR, 1));
}

/// So many robots, each with a request of its own, over one limiter.
async fn together(model: &Arc<Provider>, workers: usize, max_wait: Duration) -> Vec<Tried> {
    let limiter = Arc::new(Limiter::new());
    let robots = (0..workers).map(|_| {
        run(robot(model)
            .limiter(Arc::clone(&limiter))
            .patience(patience(max_wait)))
    });
    futures::future::join_all(robots).await
}

#[tokio::test(start_paused = true)]
async fn case_125_ten_workers_and_a_limit_that_never_ends_are_no_storm() {
    let model = Provider::new("main", |_| limited(Some(Duration::from_secs(1))));
    let tried = together(&model, 10, HOUR).await;
    assert!(tried.iter().all(|tried| tried.outcome.is_err()));
    let asked = model.asked();
    assert!(asked.len() <= 10 + 40, "{} requests in an hour", asked.len());
    let most = (0..60)
        .map(|minute| {
            let (from, to) = (MINUTE * minute, MINUTE * (minute + 1));
            asked.iter().filter(|at| (from..to).contains(at)).count()
        })
        .skip(1)
        .max();
    assert!(most <= Some(12), "{most:?} requests in a minute");
    for tried in &tried {
        assert_eq!(
            tried.waits().len(),
            1,
            "each tells of its wait once: {:?}",
            tried.events
        );
    }
}

#[tokio::test(start_paused = true)]
async fn case_125_ten_workers_in_an_outage_ask_one_at_a_time_and_go_on_together() {
    let model = Provider::new("main", |now| if now < HOUR { overloaded() } else { ok() });
    let tried = together(&model, 10, 6 * HOUR).await;
    assert!(tried.iter().all(|tried| tried.outcome.is_ok()));
    let asked = model.asked();
    // Each worker asks twice at most before the first one takes it for an outage.
    let during = asked.iter().filter(|at| **at < HOUR).count();
    assert!(during <= 20 + 60, "{during} requests in an hour of outage");
    assert!(asked.len() - during <= 10, "each is answered once");
}

#[tokio::test(start_paused = true)]
async fn case_130_eight_workers_share_ten_requests_a_minute_and_none_fails() {
    let window = Mutex::new((Duration::ZERO, 0));
    let model = Provider::slow("main", Duration::from_secs(2), move |now| {
        let mut window = window.lock().unwrap();
        if now >= window.0 + MINUTE {
            *window = (now, 0);
        }
        window.1 += 1;
        if window.1 > 10 {
            limited(Some(window.0 + MINUTE - now))
        } else {
            ok()
        }
    });
    let limiter = Arc::new(Limiter::new());
    let finished = Arc::new(Mutex::new(Vec::new()));
    let workers = (0..8).map(|worker| {
        let (model, limiter, finished) = (Arc::clone(&model), Arc::clone(&limiter), Arc::clone(&finished));
        async move {
            for _ in 0..5 {
                let tried = run(robot(&model)
                    .limiter(Arc::clone(&limiter))
                    .patience(patience(HOUR)))
                .await;
                assert!(tried.outcome.is_ok(), "{:?}", tried.outcome);
                finished.lock().unwrap().push(worker);
            }
        }
    });
    futures::future::join_all(workers).await;
    let finished = finished.lock().unwrap();
    let last_firsts: Vec<_> = (0..8)
        .map(|worker| finished.iter().position(|one| *one == worker).unwrap())
        .collect();
    assert!(
        last_firsts.iter().all(|at| *at < 16),
        "nobody is left out: {finished:?}"
    );
    let (asked, refused) = (model.asked().len(), model.asked().len() - 40);
    assert!(refused <= 32, "{refused} of {asked} requests were wasted");
}

#[tokio::test(start_paused = true)]
async fn case_129_the_fallback_answers_in_an_outage_and_the_main_model_is_back_later() {
    let model = Provider::new("main", |now| if now < HOUR { overloaded() } else { ok() });
    let spare = Provider::new("spare", |_| ok());
    let (limiter, spare_limiter) = (Arc::new(Limiter::new()), Arc::new(Limiter::new()));
    let one = || {
        run(robot(&model)
            .limiter(Arc::clone(&limiter))
            .patience(patience(6 * HOUR))
            .fallback(Arc::clone(&spare) as Arc<dyn Model>, Arc::clone(&spare_limiter)))
    };
    let first = one().await;
    assert!(first.outcome.is_ok());
    assert_eq!(first.models(), ["fake/spare"], "the model that answered is named");
    assert_eq!(
        (model.asked().len(), spare.asked().len()),
        (3, 1),
        "after the quick retries"
    );
    assert!(first.took < Duration::from_secs(4) && first.waits().is_empty());
    tokio::time::sleep(2 * HOUR).await;
    let later = one().await;
    assert_eq!(later.models(), ["fake/main"]);
}

#[tokio::test(start_paused = true)]
async fn a_short_limit_is_waited_for_and_a_long_one_goes_to_the_fallback() {
    for (wait, answered) in [
        (Duration::from_secs(20), "fake/main"),
        (5 * HOUR, "fake/spare"),
        (720 * HOUR, "fake/spare"),
    ] {
        let model = Provider::new(
            "main",
            move |now| if now < wait { limited(Some(wait)) } else { ok() },
        );
        let spare = Provider::new("spare", |_| ok());
        let robot = robot(&model)
            .patience(patience(6 * HOUR))
            .fallback(Arc::clone(&spare) as Arc<dyn Model>, Arc::new(Limiter::new()));
        let tried = run(robot).await;
        assert!(tried.outcome.is_ok(), "{:?}", tried.outcome);
        assert_eq!(tried.models(), [answered]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_refuses_or_fails_too_leaves_the_wait_for_the_main_model() {
    for refusal in [
        FakeReply::error(ModelErrorKind::Auth, "wrong key"),
        FakeReply::error(ModelErrorKind::ContextLength, "too long"),
        overloaded(),
    ] {
        let model = Provider::new("main", |now| if now < HOUR { overloaded() } else { ok() });
        let spare = Provider::new("spare", move |_| refusal.clone());
        let robot = robot(&model)
            .patience(patience(6 * HOUR))
            .fallback(Arc::clone(&spare) as Arc<dyn Model>, Arc::new(Limiter::new()));
        let tried = run(robot).await;
        assert!(tried.outcome.is_ok(), "{:?}", tried.outcome);
        assert_eq!(tried.models(), ["fake/main"]);
        assert_eq!(tried.waits().len(), 1);
        assert!(spare.asked().len() < 40, "{}", spare.asked().len());
    }
}

#[tokio::test(start_paused = true)]
async fn when_both_models_are_down_both_are_told_in_the_wait_and_at_its_end() {
    let model = Provider::new("main", |_| overloaded());
    let spare = Provider::new("spare", |_| {
        FakeReply::error(ModelErrorKind::Billing, "no credit")
    });
    let limiter = Arc::new(Limiter::new());
    let one = || {
        run(robot(&model)
            .patience(patience(HOUR))
            .fallback(Arc::clone(&spare) as Arc<dyn Model>, Arc::clone(&limiter)))
    };
    for refused_before in [false, true] {
        let tried = one().await;
        let message = &tried.error().message;
        for part in [
            "busy (529); waited 60 min for it",
            "; fake/spare does not answer either: no credit",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let others: Vec<_> = tried
            .events
            .iter()
            .filter_map(|event| match event {
                RobotEvent::Waiting { model, other, .. } => Some((model.as_str(), other.clone())),
                _ => None,
            })
            .collect();
        let other = OutOfOrder {
            model: "fake/spare".into(),
            kind: ModelErrorKind::Billing,
            message: "no credit".into(),
        };
        assert_eq!(others, [("fake/main", Some(other))], "{refused_before}");
        assert_eq!(spare.asked().len(), 1, "what is refused for good is asked once");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_told_when_one_model_answers_in_place_of_the_other() {
    let model = Provider::new("main", |now| if now < HOUR { overloaded() } else { ok() });
    let spare = Provider::new("spare", |now| if now < HOUR { ok() } else { overloaded() });
    let recorder = Arc::new(Recorder::default());
    let mut robot = robot(&model)
        .events(Arc::clone(&recorder) as Arc<dyn EventSink>)
        .patience(patience(6 * HOUR))
        .fallback(Arc::clone(&spare) as Arc<dyn Model>, Arc::new(Limiter::new()))
        .build();
    for pause in [Duration::ZERO, MINUTE, HOUR, MINUTE] {
        tokio::time::sleep(pause).await;
        robot.run("go", &CancellationToken::new()).await.unwrap();
    }
    let switched: Vec<_> = recorder
        .events()
        .into_iter()
        .filter_map(|event| match event {
            RobotEvent::Switched {
                model,
                instead_of,
                why,
            } => Some((model, instead_of, why)),
            _ => None,
        })
        .collect();
    let switch = |model: &str, instead_of: &str| {
        let why = Some("busy (529)".to_owned());
        (model.to_owned(), instead_of.to_owned(), why)
    };
    assert_eq!(
        switched,
        [
            switch("fake/spare", "fake/main"),
            switch("fake/main", "fake/spare")
        ]
    );
}

/// A robot whose main model is down from the first minute on, and whose fallback takes this many tokens.
async fn conversation_with_small_fallback(known: Option<u64>) -> (Vec<u64>, Vec<RobotEvent>, Arc<Provider>) {
    let window = 3_000u64;
    let model = Provider::new("main", |now| if now < MINUTE { ok() } else { overloaded() });
    let tokens = |request: &ModelRequest| request.size() as u64 / 4;
    let spare = Provider::new("spare", |_| ok());
    /// Refuses what is too long.
    struct Small(Arc<Provider>, u64);
    #[async_trait]
    impl Model for Small {
        fn id(&self) -> &ModelId {
            self.0.id()
        }

        async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
            let sent = request.size() as u64 / 4;
            if sent > self.1 {
                let message = format!(
                    "request ({sent} tokens) exceeds the available context size ({} tokens)",
                    self.1
                );
                return Err(ModelError::new(ModelErrorKind::ContextLength, message));
            }
            self.0.stream(request).await
        }
    }
    let recorder = Arc::new(Recorder::default());
    let facts = ModelFacts {
        context_window: known,
        ..ModelFacts::default()
    };
    let known = [("fake/spare".to_owned(), facts)].into();
    let mut robot = robot(&model)
        .events(Arc::clone(&recorder) as Arc<dyn EventSink>)
        .budget(Arc::new(Budget::new(Limits::default(), Spent::default(), known)))
        .patience(patience(HOUR))
        .fallback(
            Arc::new(Small(Arc::clone(&spare), window)),
            Arc::new(Limiter::new()),
        )
        .build();
    let cancel = CancellationToken::new();
    robot.run("the task", &cancel).await.unwrap();
    for turn in 0..4 {
        robot
            .run(&format!("{turn} {}", "words ".repeat(500)), &cancel)
            .await
            .unwrap();
    }
    tokio::time::sleep(MINUTE).await;
    for turn in 4..9 {
        robot
            .run(&format!("{turn} {}", "words ".repeat(500)), &cancel)
            .await
            .unwrap();
    }
    let sent: Vec<u64> = spare.seen.lock().unwrap().iter().map(tokens).collect();
    assert!(
        sent.len() == 5 && sent.iter().all(|sent| *sent <= window),
        "{sent:?}"
    );
    (sent, recorder.events(), spare)
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_reads_less_is_sent_the_conversation_in_short() {
    for known in [Some(3_000), None] {
        let (_, events, spare) = conversation_with_small_fallback(known).await;
        let compacted = events.iter().filter_map(|event| match event {
            RobotEvent::Compacted { model, window, .. } => Some((model.as_str(), *window)),
            _ => None,
        });
        let compacted: Vec<_> = compacted.collect();
        assert!(
            !compacted.is_empty() && compacted.len() < 5,
            "in large steps: {compacted:?}"
        );
        assert!(
            compacted.iter().all(|told| *told == ("fake/spare", Some(3_000))),
            "{compacted:?}"
        );
        let learnt = events.iter().filter_map(|event| match event {
            RobotEvent::WindowLearnt { model, tokens } => Some((model.clone(), *tokens)),
            _ => None,
        });
        let expected = known.is_none().then(|| ("fake/spare".to_owned(), 3_000));
        assert_eq!(learnt.collect::<Vec<_>>(), Vec::from_iter(expected));
        let last = spare.seen.lock().unwrap().last().unwrap().messages.clone();
        let ends = matches!(last.last(), Some(Message::User { text }) if text.starts_with("8 words"));
        assert!(ends, "the latest word is there: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn opaque_parts_go_back_to_the_model_that_made_them_and_to_no_other() {
    let opaque = |of: &str| ModelEvent::Opaque(serde_json::json!({ "signature": of }));
    let reply = move |of: &str| {
        FakeReply::events(vec![
            Ok(opaque(of)),
            Ok(ModelEvent::Text("fine".into())),
            Ok(ModelEvent::Finished(FinishReason::Stop)),
        ])
    };
    let down = MINUTE..HOUR;
    let model = Provider::new("main", move |now| {
        if down.contains(&now) {
            overloaded()
        } else {
            reply("main")
        }
    });
    let spare = Provider::new("spare", move |now| {
        if now < 2 * HOUR {
            reply("spare")
        } else {
            overloaded()
        }
    });
    let mut robot = robot(&model)
        .patience(patience(6 * HOUR))
        .fallback(Arc::clone(&spare) as Arc<dyn Model>, Arc::new(Limiter::new()))
        .build();
    let cancel = CancellationToken::new();
    // The main model; the fallback; the fallback still, which has taken over; the main model, when the fallback fails.
    for pause in [Duration::ZERO, 2 * MINUTE, HOUR, HOUR] {
        tokio::time::sleep(pause).await;
        robot.run("go", &cancel).await.unwrap();
    }
    let signatures = |request: &ModelRequest| -> Vec<String> {
        let parts = request.messages.iter().filter_map(|message| match message {
            Message::Assistant(reply) => Some(&reply.parts),
            _ => None,
        });
        let signature = |part: &AssistantPart| match part {
            AssistantPart::Opaque { data } => Some(data["signature"].as_str().unwrap().to_owned()),
            _ => None,
        };
        parts.flatten().filter_map(signature).collect()
    };
    let last = |provider: &Provider| signatures(provider.seen.lock().unwrap().last().unwrap());
    assert_eq!(last(&spare), ["spare", "spare"]);
    assert_eq!(last(&model), ["main"]);
}

/// A stream that sends one event again and again.
struct Drip(ModelId, ModelEvent, Duration);

#[async_trait]
impl Model for Drip {
    fn id(&self) -> &ModelId {
        &self.0
    }

    async fn stream(&self, _request: ModelRequest) -> Result<ModelStream, ModelError> {
        let (event, pause) = (self.1.clone(), self.2);
        let stream = futures::stream::unfold((), move |()| {
            let event = event.clone();
            async move {
                tokio::time::sleep(pause).await;
                Some((Ok(event), ()))
            }
        });
        Ok(stream.boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn f56_each_timeout_has_its_name() {
    let second = Duration::from_secs(1);
    let text = || ModelEvent::Text("x".into());
    for (event, pause, said) in [
        (text(), 301 * second, "no content from the model in 300 s"),
        (
            ModelEvent::Usage(Usage::default()),
            second,
            "no content from the model in 300 s",
        ),
        (
            ModelEvent::Text(String::new()),
            second,
            "no content from the model in 300 s",
        ),
        (text(), 130 * second, "no more content from the model in 120 s"),
        (text(), second, "no whole reply from the model in 3600 s"),
    ] {
        let id = ModelId {
            provider: "fake".into(),
            name: "drip".into(),
        };
        let model: Arc<dyn Model> = Arc::new(Drip(id, event, pause));
        let robot = Robot::builder("tester", model)
            .timeouts(ModelTimeouts::default())
            .patience(Patience {
                max_retries: 0,
                ..patience(Duration::ZERO)
            });
        let tried = run(robot).await;
        assert!(tried.error().message.contains(said), "{}", tried.error());
    }
}
