//! The loop as a library: a run that a program puts together, with tools, hooks, an eval, a clock and watchers of its
//! own, and what becomes of their faults.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use robot_lab::{Abort, Hook, HookCx, NextTool, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec};
use robot_lab_providers::ScriptModel;
use robot_lab_to::clock::Clock;
use robot_lab_to::eval::{Eval, EvalContext, EvalRegistry, Measure, Score, from_fn};
use robot_lab_to::event::Record;
use robot_lab_to::iteration::{StopKind, StopReason};
use robot_lab_to::log::{Observer, read_log};
use robot_lab_to::run::{Past, StartError};
use robot_lab_to::settings::Place;
use robot_lab_to::workspace::HostEnv;
use robot_lab_to::{Halt, Run, RunBuilder, RunReport};
use serde_json::json;
use testkit::{TestEnvironment, TestRepo};

use crate::lab::PATIENCE;

/// A repository and an environment for a run that this process makes.
struct Bench {
    env: TestEnvironment,
    repo: TestRepo,
}

impl Bench {
    fn new() -> Self {
        let repo = TestRepo::new();
        repo.write("parts/base", "ok\n");
        repo.commit_all("start");
        Self {
            env: TestEnvironment::new(env!("CARGO_BIN_EXE_robot-to")),
            repo,
        }
    }

    fn place(&self) -> Place {
        let path = std::env::var_os("PATH").unwrap();
        let variables = [
            ("PATH", path),
            ("HOME", self.env.home().into()),
            ("XDG_STATE_HOME", self.env.state().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        Place {
            repo: self.repo.path().to_owned(),
            host: HostEnv::new(variables),
            // A test is no helper.
            helper: env!("CARGO_BIN_EXE_robot-to").into(),
            ..Place::default()
        }
    }

    fn run(&self, turns: &str) -> RunBuilder {
        let place = self.place();
        Run::builder("make every part hold")
            .place(|own| *own = place)
            .model(model(turns))
    }
}

fn model(turns: &str) -> Arc<ScriptModel> {
    Arc::new(ScriptModel::from_yaml(&format!("turns:\n{turns}")).unwrap())
}

/// An iteration in one reply: a part, and a report of success.
fn part(name: &str) -> String {
    format!(
        "  - calls:
      - {{ tool: write, args: {{ path: parts/{name}, content: \"ok\\n\" }} }}
      - {{ tool: submit_iteration_result, args: {{ success: true, summary: Add part {name} }} }}
"
    )
}

fn outcomes(report: &RunReport) -> Vec<String> {
    let records = read_log(&report.log).unwrap().records;
    let outcomes = records.iter().filter(|record| record.event.is_outcome());
    outcomes.map(|record| record.event.name()).collect()
}

/// A tool that says what it is told to, or panics.
struct Shout(ToolSpec);

impl Shout {
    fn tool(name: &str) -> Arc<dyn Tool> {
        Arc::new(Self(ToolSpec {
            name: name.into(),
            description: "Says it loudly.".into(),
            parameters: json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
        }))
    }
}

#[async_trait]
impl Tool for Shout {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, call: &ToolCall, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        match call.arguments["text"].as_str() {
            Some(text) => Ok(ToolOutcome::text(text.to_uppercase())),
            None => resume_unwind(Box::new("nothing to shout")),
        }
    }
}

/// Notes the tools that are called and how it went, or panics at one of them.
struct Watch {
    seen: Arc<Mutex<Vec<String>>>,
    crash_at: Option<&'static str>,
}

#[async_trait]
impl Hook for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        if self.crash_at == Some(call.name.as_str()) {
            resume_unwind(Box::new("no such thing"));
        }
        let name = call.name.clone();
        let outcome = next.run(call).await?;
        self.seen
            .lock()
            .unwrap()
            .push(format!("{name} {}", outcome.is_ok()));
        Ok(outcome)
    }
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> jiff::Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }
}

#[derive(Default)]
struct Names(Mutex<Vec<String>>);

impl Observer for Names {
    fn record(&self, record: &Record) {
        self.0.lock().unwrap().push(record.event.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_runs_the_loop_with_parts_of_its_own() {
    let bench = Bench::new();
    let turns = format!(
        "  - calls:
      - {{ tool: shout, args: {{ text: hello }} }}
  - expect: HELLO
    calls:
      - {{ tool: edit, args: {{ path: parts/base, old_text: ok, new_text: fine }} }}
      - {{ tool: submit_iteration_result, args: {{ success: true, summary: Reword }} }}
{}",
        part("one")
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let made = Arc::new(Mutex::new(Vec::new()));
    let names = Arc::new(Names::default());
    let (their_seen, their_made) = (Arc::clone(&seen), Arc::clone(&made));
    let count = from_fn("count", |cx: EvalContext| async move {
        let parts = std::fs::read_dir(cx.work_dir.join("parts")).map_err(StopReason::environment)?;
        Ok(cx.score(parts.count() as f64))
    });
    let report = bench
        .run(&turns)
        .tools(move |cx| {
            their_made
                .lock()
                .unwrap()
                .push((cx.iteration, cx.work_dir.join("parts/base").is_file()));
            vec![Shout::tool("shout")]
        })
        .hooks(move |_| {
            vec![Arc::new(Watch {
                seen: Arc::clone(&their_seen),
                crash_at: None,
            })]
        })
        .eval(count.protects("parts/base"))
        .clock(Arc::new(Noon))
        .observer(Arc::clone(&names) as Arc<dyn Observer>)
        .plan(|plan| plan.goal.target = Some(2.0))
        .run()
        .await
        .unwrap();

    assert_eq!(report.reason.kind, StopKind::TargetMet, "{:?}", report.reason);
    assert_eq!(report.reason.text, "target met: value=2 (before 1)");
    // The base is locked by the eval, so `edit` is refused, and the rest of the first iteration changes nothing.
    assert_eq!(outcomes(&report), ["iteration:no_change", "commit:success"]);
    assert_eq!((report.state.commits, report.diff.files), (1, 1));
    assert_eq!(*made.lock().unwrap(), [(1, true), (2, true)]);
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "shout true",
            "edit false",
            "submit_iteration_result true",
            "write true",
            "submit_iteration_result true"
        ]
    );
    assert!(report.run_id.as_str().starts_with("20261130-120000-"));
    let records = read_log(&report.log).unwrap().records;
    assert_eq!(
        *names.0.lock().unwrap(),
        records
            .iter()
            .map(|record| record.event.name())
            .collect::<Vec<_>>()
    );
    assert!(records.iter().all(|record| record.ts == Noon.now()));
    assert_eq!(
        bench.repo.git(&["show", &format!("{}:parts/one", report.branch)]),
        "ok"
    );
    assert_eq!(bench.repo.git(&["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_hooks_and_evals_that_panic_cost_an_iteration_and_not_the_run() {
    let bench = Bench::new();
    let turns = format!(
        "{}{}  - calls:
      - {{ tool: shout }}
  - expect: \"the tool `shout` crashed\"
    calls:
      - {{ tool: write, args: {{ path: parts/three, content: ok }} }}
      - {{ tool: submit_iteration_result, args: {{ success: true, summary: Add part three }} }}
{}",
        part("one"),
        part("two"),
        part("five")
    );
    let graded = AtomicU32::new(0);
    let graded = Arc::new(graded);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let eval = {
        let graded = Arc::clone(&graded);
        from_fn("moody", move |cx: EvalContext| {
            graded.fetch_add(1, Ordering::SeqCst);
            async move {
                match cx.iteration {
                    1 => resume_unwind(Box::new("not today")),
                    5 => std::future::pending().await,
                    _ => Ok(Score::pass("moody=fine")),
                }
            }
        })
    };
    let report = bench
        .run(&turns)
        .tools(|cx| match cx.iteration {
            4 => resume_unwind(Box::new("out of tools")),
            _ => vec![Shout::tool("shout")],
        })
        .hooks(move |cx| {
            vec![Arc::new(Watch {
                seen: Arc::clone(&seen),
                crash_at: (cx.iteration == 2).then_some("write"),
            })]
        })
        .eval(eval)
        .max_iterations(5)
        .plan(|plan| {
            plan.policy.max_verify_repairs = 0;
            plan.policy.max_consecutive_failures = 9;
            plan.verify_timeout = Duration::from_secs(2);
        })
        .run()
        .await
        .unwrap();
    assert_eq!(report.reason.text, "max iterations reached (5)");
    assert_eq!(
        outcomes(&report),
        [
            "iteration:gate_failure",
            "agent:run:error",
            "commit:success",
            "agent:run:error",
            "iteration:gate_failure"
        ]
    );
    assert_eq!(
        graded.load(Ordering::SeqCst),
        4,
        "the base, and iterations 1, 3 and 5"
    );
    let notes = std::fs::read_to_string(&report.notes).unwrap();
    for said in [
        "it crashed: not today",
        "no such thing",
        "out of tools",
        "it did not answer within 2 s",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    assert_eq!(bench.repo.git(&["status", "--porcelain"]), "");
}

/// An eval that blocks its thread in iteration 1, after `first`, until the sender is gone; and whether it got that far.
fn blocking(
    first: impl Fn() + Send + Sync + 'static,
) -> (impl Eval + 'static, std::sync::mpsc::Sender<()>, Arc<AtomicU32>) {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let released = Arc::new(AtomicU32::new(0));
    let theirs = Arc::clone(&released);
    let eval = from_fn("blocking", move |cx: EvalContext| {
        if cx.iteration == 1 {
            first();
            // Not for ever, so that a run that waits for it ends and fails the test.
            held.lock().unwrap().recv_timeout(PATIENCE).ok();
            theirs.fetch_add(1, Ordering::SeqCst);
        }
        async { Ok(Score::pass("blocking=fine")) }
    });
    (eval, hold, released)
}

#[tokio::test]
async fn an_eval_that_blocks_its_thread_is_given_up_at_its_deadline() {
    let bench = Bench::new();
    let (eval, hold, released) = blocking(|| {});
    let report = bench
        .run(&(part("one") + &part("two")))
        .eval(eval)
        .max_iterations(2)
        .plan(|plan| {
            plan.policy.max_verify_repairs = 0;
            plan.verify_timeout = Duration::from_secs(2);
        })
        .run()
        .await
        .unwrap();
    assert_eq!(released.load(Ordering::SeqCst), 0, "the run waited for the eval");
    drop(hold);
    // The second candidate is not graded beside the first.
    assert_eq!(outcomes(&report), ["iteration:gate_failure"; 2]);
    let notes = std::fs::read_to_string(&report.notes).unwrap();
    assert_eq!(
        notes.matches("it did not answer within 2 s").count(),
        2,
        "{notes}"
    );
}

#[tokio::test]
async fn a_run_ends_while_an_eval_blocks_its_thread() {
    let bench = Bench::new();
    let halt = Halt::new();
    let theirs = halt.clone();
    let (eval, hold, released) = blocking(move || theirs.stop(StopReason::interrupted()));
    let report = bench.run(&part("one")).eval(eval).halt(halt).run().await.unwrap();
    assert_eq!(released.load(Ordering::SeqCst), 0, "the run waited for the eval");
    drop(hold);
    assert_eq!(report.reason.kind, StopReason::interrupted().kind);
    assert_eq!(report.state.commits, 0);
}

#[tokio::test]
async fn max_time_ends_a_run_while_an_eval_blocks_its_thread() {
    let bench = Bench::new();
    let (eval, hold, released) = blocking(|| {});
    let limit = Duration::from_secs(3);
    let report = bench
        .run(&part("one"))
        .eval(eval)
        .max_time(limit)
        .run()
        .await
        .unwrap();
    assert_eq!(released.load(Ordering::SeqCst), 0, "the run waited for the eval");
    drop(hold);
    assert_eq!(report.reason.kind, StopReason::max_time(limit).kind);
    assert_eq!(report.state.commits, 0);
}

#[tokio::test]
async fn an_eval_that_waits_is_dropped_once_nobody_waits_for_it() {
    let bench = Bench::new();
    let eval = from_fn("waiting", |cx: EvalContext| async move {
        if cx.iteration == 1 {
            tokio::time::sleep(PATIENCE).await;
        }
        Ok(Score::pass("waiting=fine"))
    });
    let report = bench
        .run(&(part("one") + &part("two")))
        .eval(eval)
        .max_iterations(2)
        .plan(|plan| {
            plan.policy.max_verify_repairs = 0;
            plan.verify_timeout = Duration::from_secs(2);
        })
        .run()
        .await
        .unwrap();
    assert_eq!(outcomes(&report), ["iteration:gate_failure", "commit:success"]);
}

#[tokio::test]
async fn an_eval_with_a_value_beside_a_measure_is_refused_with_a_way_out() {
    let bench = Bench::new();
    let count = from_fn("count", |cx: EvalContext| async move { Ok(cx.score(6.0)) });
    let refused = bench
        .run(&part("one"))
        .eval(count)
        .plan(|plan| {
            plan.measure = Some(Measure {
                command: "echo 1".into(),
                timeout: Duration::from_secs(60),
                metric: None,
            });
        })
        .run()
        .await;
    match refused {
        Err(StartError::Configuration(why)) => assert!(
            why.contains("the eval `count` gives no score: it has a value, and so has the measure command")
                && why.contains("leave out --measure, or let the eval answer without a value"),
            "{why}"
        ),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_what_it_needs_says_what_and_changes_nothing() {
    let bench = Bench::new();
    let before = bench.repo.fingerprint();
    let place = bench.place();
    let nobody = Run::builder("x").place(|own| *own = place).run().await;
    let nowhere = Run::builder("x")
        .repo(bench.repo.path())
        .model(model(&part("one")))
        .run()
        .await;
    let crash = |_: EvalContext| async { resume_unwind(Box::new("at once")) };
    let unnamed = bench
        .run(&part("one"))
        .plan(|plan| plan.eval = Some("taste".into()));
    let twice = bench.run(&part("one")).eval(from_fn(
        "code",
        |cx: EvalContext| async move { Ok(cx.score(1.0)) },
    ));
    let homeless = bench.run(&part("one")).place(|place| {
        place.host = HostEnv::new([("PATH", std::env::var_os("PATH").unwrap())]);
    });
    for (started, said) in [
        (nobody, "RunBuilder::model"),
        (nowhere, "RunBuilder::host"),
        (
            bench.run(&part("one")).eval(from_fn("moody", crash)).run().await,
            "the eval `moody` gives no score: it crashed: at once",
        ),
        (
            bench.run(&part("one")).eval(Odd).run().await,
            "the eval crashed before the run: which files",
        ),
        (
            unnamed.run().await,
            "there is no eval \"taste\"; there are: code, null, and command:PATH",
        ),
        (twice.run().await, "an eval cannot be named \"code\""),
        (homeless.run().await, "neither XDG_STATE_HOME nor HOME"),
    ] {
        match started {
            Err(StartError::Configuration(why)) => assert!(why.contains(said), "{why}"),
            other => panic!("{said}: {other:?}"),
        }
    }
    before.assert_same(&bench.repo.fingerprint());
    assert!(!bench.repo.path().join(".robot_lab_to").exists());
}

/// Does not know its own files.
struct Odd;

#[async_trait]
impl Eval for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    async fn score(&self, _cx: &EvalContext) -> Result<Score, StopReason> {
        Ok(Score::pass("odd"))
    }

    fn protected_paths(&self) -> Vec<String> {
        resume_unwind(Box::new("which files"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registered_eval_is_found_by_name_and_a_run_that_goes_on_needs_it_again() {
    let bench = Bench::new();
    let mut evals = EvalRegistry::new();
    let long = |setup: &robot_lab_to::eval::EvalSetup<'_>| -> Result<Arc<dyn Eval>, String> {
        let least = setup.plan.goal.target.ok_or("it needs a target")?;
        Ok(Arc::new(from_fn("long", move |cx: EvalContext| async move {
            let parts = std::fs::read_dir(cx.work_dir.join("parts")).map_err(StopReason::environment)?;
            Ok(cx.score(parts.count() as f64 / least))
        })))
    };
    evals.register("long", long).unwrap();
    assert!(evals.register("long", long).is_err());
    let run = |turns: &str| {
        bench
            .run(turns)
            .evals(evals.clone())
            .plan(|plan| plan.eval = Some("long".into()))
    };
    let refused = run(&part("one")).run().await.unwrap_err().to_string();
    assert!(
        refused.contains("the eval \"long\" cannot be used: it needs a target"),
        "{refused}"
    );
    let halt = Halt::new();
    let report = run(&part("one"))
        .plan(|plan| plan.goal.target = Some(10.0))
        .max_iterations(1)
        .halt(halt.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(report.state.best, Some(0.2));
    assert!(halt.reason().is_none());

    let past = Past::open(&bench.place(), None).await.unwrap();
    let place = bench.place();
    let again = Run::resume(past)
        .place(|own| *own = place)
        .model(model(&part("two")))
        .max_iterations(2);
    let refused = again.run().await.unwrap_err().to_string();
    assert!(
        refused.contains("a run goes on where its own evals are registered"),
        "{refused}"
    );
    let past = Past::open(&bench.place(), None).await.unwrap();
    let place = bench.place();
    let again = Run::resume(past)
        .place(|own| *own = place)
        .model(model(&part("two")))
        .evals(evals)
        .max_iterations(2)
        .run()
        .await
        .unwrap();
    assert_eq!(
        (again.run_id, again.state.best),
        (report.run_id, Some(0.3)),
        "{:?}",
        again.reason
    );
}
