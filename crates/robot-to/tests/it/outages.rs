//! A provider that has a bad night: what is waited for, what is shown of it, and how a run goes on.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use robot_lab_to::event::Event;
use serde_json::{Value, json};
use testkit::{ModelServer, Reply, Request, Signal};

use crate::lab::{KEY, Lab, OBJECTIVE, PATIENCE, Ran};
use crate::replies::good;

/// What a clean end may take on a machine that is busy with other things; what it interrupts takes far longer.
const SOON: Duration = Duration::from_secs(20);

fn limit(seconds: &str) -> Reply {
    Reply::status(429).header("retry-after", seconds)
}

/// The waits of a run: why, whether their end was announced, and how many seconds it was away.
fn waits(ran: &Ran<'_>) -> Vec<(String, bool, i64)> {
    let waits = ran.records.iter().filter_map(|record| match &record.event {
        Event::ProviderWait {
            kind,
            announced,
            until,
            ..
        } => Some((
            kind.clone(),
            *announced,
            until.as_second() - record.ts.as_second(),
        )),
        _ => None,
    });
    waits.collect()
}

/// An iteration that was committed and in which nothing counted as a failure.
#[track_caller]
fn is_as_good_as_ever(ran: &Ran<'_>) {
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.outcomes(), ["commit:success"]);
    assert_eq!(ran.file.state.iteration, 1, "no iteration was lost");
    assert_eq!(ran.file.state.failures_in_a_row, 0);
}

#[test]
fn case_121_f51_a_limit_is_waited_for_and_costs_nothing() {
    let lab = Lab::new([limit("2"), good("one")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    is_as_good_as_ever(&ran);
    let requests = ran.requests();
    let waited = requests[1].at.duration_since(requests[0].at);
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    assert_eq!(requests[0].body, requests[1].body, "the same request again");
    let [(kind, true, 1..=3)] = &waits(&ran)[..] else {
        panic!("{:?}", waits(&ran))
    };
    assert_eq!(kind, "rate_limited");
    assert_eq!((ran.count("provider:resume"), ran.count("model:error")), (1, 0));
    assert_eq!(ran.file.state.usage.total(), 15, "what was refused costs nothing");
    assert!(ran.file.state.waited_ms >= 2_000);
    let shown = ran.shown();
    for part in [
        "waiting for openai until ",
        " (rate limit), Ctrl-C stops: ",
        "openai/test-model answers, after 0:0",
        "Waited:     0:0",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let until = shown.split("waiting for openai until ").nth(1).unwrap();
    let time = until.split(' ').next().unwrap();
    assert_eq!(
        time.matches(':').count(),
        2,
        "a wait of seconds is told to the second: {until}"
    );
}

#[test]
fn f52_a_provider_out_of_order_is_waited_for_in_one_record() {
    let lab = Lab::new([
        Reply::status(529),
        Reply::status(500),
        Reply::status(503).header("retry-after", "1"),
        good("one"),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    is_as_good_as_ever(&ran);
    assert_eq!(ran.count("model:error"), 2, "two quick retries");
    assert_eq!((waits(&ran).len(), ran.count("provider:resume")), (1, 1));
}

#[test]
fn f52_an_outage_whose_end_nobody_knows_is_waited_for_step_by_step() {
    let lab = Lab::new([Reply::status(529), good("one")]);
    let ran = lab.run(&["--max-iterations", "1", "--max-retries", "0", "--max-wait", "2h"]);
    is_as_good_as_ever(&ran);
    let [(kind, false, 7_199..=7_201)] = &waits(&ran)[..] else {
        panic!("{:?}", waits(&ran))
    };
    assert_eq!(kind, "overloaded");
    assert!(
        ran.shown().contains("waiting for openai (overloaded), until "),
        "{}",
        ran.shown()
    );
}

#[test]
fn case_124_an_overload_within_a_stream_is_an_overload() {
    let overload = json!({ "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let lab = Lab::new([Reply::text("A word").raw_event(overload.to_string()), good("one")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    is_as_good_as_ever(&ran);
    let kinds: Vec<_> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ModelFailed { kind, .. } => Some(kind.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["overloaded"]);
}

/// Hands connections on to another address.
fn forward(listener: TcpListener, to: SocketAddr) {
    fn copy(mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
    }
    spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(to)) else {
                return;
            };
            let (there, back) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            spawn(move || copy(there, server));
            spawn(move || copy(back, client));
        }
    });
}

/// Waits until the last run of the repository waits for its provider, and gives its status.
fn wait_until_it_waits(lab: &Lab) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let shown = lab.env.run(["status", "--json"]);
        let status: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        if !status["waiting"].is_null() {
            return status;
        }
        assert!(Instant::now() < deadline, "it does not wait: {shown:?}");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn f56_a_server_that_is_not_there_yet_is_waited_for() {
    let lab = Lab::new([good("one")]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = lab
        .server
        .root_url()
        .trim_start_matches("http://")
        .parse()
        .unwrap();
    let url = format!("http://{port}/v1");
    let mut command = lab
        .env
        .command([OBJECTIVE, "--verify", "sh test.sh", "--model", "test-model"]);
    command.args(["--base-url", &url, "--max-iterations", "1", "--max-retries", "0"]);
    let started = lab.launch(command);
    let status = wait_until_it_waits(&lab);
    assert_eq!(status["waiting"]["kind"], "network");
    forward(TcpListener::bind(port).unwrap(), server);
    let ran = started.end(PATIENCE);
    is_as_good_as_ever(&ran);
    assert_eq!(waits(&ran).len(), 1);
}

#[test]
fn case_121_a_wait_is_shown_by_status_and_ends_with_the_first_signal() {
    let lab = Lab::new([limit("18000")]);
    let started = lab.start(&[]);
    let status = wait_until_it_waits(&lab);
    assert_eq!(status["standing"], "waiting");
    assert_eq!(status["waiting"]["model"], "openai/test-model");
    assert_eq!(status["waiting"]["announced"], true);
    let text = lab.env.run(["status"]).stdout;
    assert!(text.contains("waiting: for openai/test-model until "), "{text}");
    let listed = lab.env.run(["runs"]).stdout;
    assert!(listed.contains("  waiting  make every part hold"), "{listed}");
    started.process.signal(Signal::INT);
    let ran = started.end(SOON);
    ran.assert_end(130, "interrupted");
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    assert_eq!((ran.requests().len(), ran.file.state.failures_in_a_row), (1, 0));
    assert_eq!(ran.count("provider:resume"), 1, "the wait is over");

    lab.server.push(good("one"));
    let ran = lab
        .launch(lab.env.command(["resume", "--max-iterations", "1"]))
        .end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 2: Add part one"]);
}

#[test]
fn case_122_a_limit_that_ends_later_than_may_be_waited_ends_the_run_at_once_and_it_goes_on_later() {
    let lab = Lab::new([limit("2592000")]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.finished.assert_code(5);
    let reason = ran.reason();
    for part in [
        "environment: openai got too many requests",
        "the end of that is in 30 d, and 6 h may be waited",
        "; it is over at 20",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    assert_eq!((ran.requests().len(), waits(&ran).len()), (1, 0));
    assert!(
        ran.finished.stdout.contains("robot-to resume "),
        "{}",
        ran.shown()
    );

    lab.server.push(good("one"));
    let ran = lab.launch(lab.env.command(["resume"])).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 2: Add part one"]);
}

#[test]
fn an_outage_longer_than_max_wait_ends_the_run_and_it_goes_on_later() {
    let lab = Lab::new([Reply::status(503), Reply::status(503), Reply::status(503)]);
    let ran = lab.run(&["--max-iterations", "1", "--max-retries", "0", "--max-wait", "1"]);
    ran.finished.assert_code(5);
    assert!(
        ran.reason().starts_with("environment: openai has trouble")
            && ran.reason().ends_with("waited 1 s for it"),
        "{}",
        ran.reason()
    );
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    assert_eq!(ran.file.state.failures_in_a_row, 0);
    assert_eq!(ran.requests().len(), 2, "the last try is at the end of the wait");

    lab.server.push(Reply::status(503));
    let ran = lab
        .launch(
            lab.env
                .command(["resume", "--max-wait", "0", "--max-retries", "0"]),
        )
        .end(PATIENCE);
    ran.finished.assert_code(5);
    assert!(!ran.reason().contains("waited"), "{}", ran.reason());

    let resume = ["resume", "--max-wait", "6h", "--max-retries", "2"];
    lab.server.push(good("one"));
    let ran = lab.launch(lab.env.command(resume)).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
}

#[test]
fn a_run_that_was_killed_while_it_waited_goes_on() {
    let lab = Lab::new([limit("18000")]);
    let process = lab.env.spawn(lab.arguments(&["--max-iterations", "1"]));
    wait_until_it_waits(&lab);
    process.signal(Signal::KILL);
    assert_eq!(process.wait(SOON).signal, Some(9));
    let status: Value = serde_json::from_str(&lab.env.run(["status", "--json"]).stdout).unwrap();
    assert_eq!(
        (status["standing"].as_str(), &status["waiting"]),
        (Some("cut off"), &Value::Null)
    );

    lab.server.push(good("one"));
    let ran = lab.launch(lab.env.command(["resume"])).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 2: Add part one"]);
}

#[test]
fn a_wait_takes_no_time_from_the_iteration() {
    let lab = Lab::new([limit("8"), good("one")]);
    let ran = lab.run(&["--max-iterations", "1", "--iteration-timeout", "6"]);
    is_as_good_as_ever(&ran);
    assert_eq!(ran.count("agent:order"), 0);
}

#[test]
fn a_wait_ends_with_the_time_of_the_run() {
    let lab = Lab::new([limit("18000")]);
    let ran = lab.run(&["--max-time", "3"]);
    ran.assert_end(0, "max time reached (3 s)");
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    assert_eq!(ran.count("provider:resume"), 1);
}

#[test]
fn f57_replies_that_keep_making_no_sense_fail_the_iteration_and_not_the_run() {
    let nonsense = || Reply::text("A word").raw_event("{\"choices\": [{\"delta\": ");
    let lab = Lab::new([
        nonsense(),
        nonsense(),
        nonsense(),
        nonsense(),
        nonsense(),
        good("one"),
    ]);
    let ran = lab.run(&["--max-iterations", "2"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(ran.outcomes(), ["agent:run:error", "commit:success"]);
    assert!(
        ran.notes()
            .contains("5 replies to one request broke off or made no sense"),
        "{}",
        ran.notes()
    );
    assert_eq!(waits(&ran).len(), 0, "it is no outage");
}

#[test]
fn f56_a_model_that_says_nothing_is_given_up_after_the_time_that_is_set() {
    let lab = Lab::new([
        Reply::hang(),
        good("one").stall_after(2, Duration::from_secs(600)),
        good("one"),
    ]);
    let ran = lab.run(&["--max-iterations", "1", "--model-timeout", "3"]);
    is_as_good_as_ever(&ran);
    let said: Vec<_> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ModelFailed { kind, message, .. } => Some((kind.as_str(), message.as_str())),
            _ => None,
        })
        .collect();
    let timeout = |said| ("timeout", said);
    assert_eq!(
        said,
        [
            timeout("no answer from the model in 3 s"),
            timeout("no more content from the model in 3 s")
        ]
    );
}

/// Answers as `main` or as `spare`, by the model that is asked.
fn two_models(main: impl Fn() -> Reply + Send + Sync + 'static) -> ModelServer {
    ModelServer::answering(move |request: &Request| match request.body["model"].as_str() {
        Some("test-model") => main(),
        _ => good("one"),
    })
}

#[test]
fn case_129_the_fallback_works_while_the_main_model_is_out_of_order() {
    let lab = Lab::serving(two_models(|| Reply::status(529)));
    let ran = lab.run(&["--max-iterations", "1", "--fallback-model", "spare"]);
    is_as_good_as_ever(&ran);
    let asked: Vec<_> = ran
        .requests()
        .iter()
        .map(|request| request.body["model"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        asked,
        ["test-model", "test-model", "test-model", "spare"],
        "after the quick retries"
    );
    let answered: Vec<_> = ran
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ModelFinished { model, .. } => Some(model.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        answered,
        ["openai/spare"],
        "the record names the model that answered"
    );
    assert_eq!(ran.count("model:switch"), 1);
    let told = "openai/spare answers in place of openai/test-model: openai has trouble";
    assert!(ran.shown().contains(told), "{}", ran.shown());
    assert_eq!(waits(&ran).len(), 0);
}

#[test]
fn case_129_when_both_models_are_down_both_are_told() {
    let lab = Lab::serving(ModelServer::answering(|request| {
        match request.body["model"].as_str() {
            Some("test-model") => Reply::status(529),
            _ => limit("600"),
        }
    }));
    let ran = lab.run(&[
        "--fallback-model",
        "spare",
        "--max-retries",
        "0",
        "--max-wait",
        "1",
    ]);
    ran.finished.assert_code(5);
    let (reason, shown) = (ran.reason(), ran.shown());
    for part in [
        "openai has trouble",
        "does not answer either: openai got too many requests",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    for part in [
        "waiting for openai (overloaded; openai/spare: rate limit), until ",
        "; openai/spare: openai got too many requests",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn case_129_a_run_that_two_models_worked_on_says_so() {
    let lab = Lab::serving(ModelServer::answering(|request| {
        let iteration = request.body.to_string().contains("Add part one");
        match request.body["model"].as_str() {
            Some("test-model") if iteration => limit("18000"),
            Some("test-model") => good("one"),
            _ => good("two"),
        }
    }));
    let ran = lab.run(&["--max-iterations", "2", "--fallback-model", "openai/spare"]);
    ran.assert_end(0, "max iterations reached (2)");
    assert_eq!(
        ran.subjects(),
        ["robot-to 1: Add part one", "robot-to 2: Add part two"]
    );
    let answers = "Answers:    openai/spare 1, openai/test-model 1";
    assert!(ran.finished.stdout.contains(answers), "{}", ran.shown());
    assert!(lab.env.run(["status"]).stdout.contains("openai/spare 1"));
}

#[test]
fn a_fallback_that_is_the_model_itself_is_refused() {
    let lab = Lab::new([]);
    for named in ["test-model", "openai/test-model", " test-model"] {
        let finished = lab.refuse(&["--fallback-model", named]);
        assert!(
            finished.stderr.contains("is the model itself"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn a_fallback_that_is_counted_otherwise_than_the_model_is_told() {
    let lab = Lab::serving(two_models(|| good("one")));
    let price = ["--price", "in=1,out=2", "--fallback-model", "spare"];
    let mut args = vec!["--max-iterations", "1"];
    args.extend(price);
    let ran = lab.run(&args);
    is_as_good_as_ever(&ran);
    let told = "note: the fallback openai/spare costs nothing where it is served, and is counted so; --price holds for \
                openai/test-model alone";
    assert!(ran.shown().contains(told), "{}", ran.shown());
}

#[test]
fn a_fallback_of_another_provider_needs_its_own_key() {
    let lab = Lab::new([]);
    let finished = lab.refuse(&["--fallback-model", "anthropic/claude-sonnet-4-5"]);
    assert!(
        finished.stderr.contains("ANTHROPIC_API_KEY"),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains(KEY));
}
