//! What a run costs, and that it ends where the user says.

use std::time::Duration;

use robot_lab::Cost;
use robot_lab_to::event::Event;
use serde_json::json;
use testkit::{Call, ModelServer, Reply};

use crate::lab::{KEY, Lab, OBJECTIVE, PATIENCE, Ran};
use crate::replies::{bash, good, submit};

/// Ten dollars for a million tokens read, fifty for a million written.
const PRICE: [&str; 2] = ["--price", "in=10,out=50,cached=1"];

fn cost(text: &str) -> Cost {
    text.parse().unwrap()
}

/// The cost of each request.
fn costs(ran: &Ran<'_>) -> Vec<Option<Cost>> {
    let costs = ran.records.iter().filter_map(|record| match &record.event {
        Event::ModelFinished { cost, .. } => Some(*cost),
        _ => None,
    });
    costs.collect()
}

/// A call that leads to another one, which reads mostly what was cached.
fn cached() -> Reply {
    Reply::calls([bash("true")]).usage(181_000, 5).cached(180_000)
}

#[test]
fn what_openrouter_charged_is_the_bill_without_any_price() {
    let usage =
        json!({ "prompt_tokens": 9_000, "completion_tokens": 20, "total_tokens": 9_020, "cost": 0.0123 });
    let end = json!({ "choices": [], "usage": usage }).to_string();
    let mut lab = Lab::new([good("one").no_usage().raw_event(end)]);
    lab.env.env("OPENROUTER_API_KEY", KEY);
    let (base, model) = (lab.server.root_url(), "anthropic/claude-sonnet-4.5");
    let mut command = lab
        .env
        .command([OBJECTIVE, "--verify", "sh test.sh", "--max-iterations", "1"]);
    command.args(["--provider", "openrouter", "--base-url", &base, "--model", model]);
    let ran = lab.launch(command).end(PATIENCE);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.file.state.cost.exact(), "0.0123");
    assert!(!ran.file.state.unpriced, "{}", ran.shown());
    let first = &ran.requests()[0].body["messages"];
    for message in [&first[0], &first[1]] {
        assert_eq!(
            message["content"][0]["cache_control"],
            json!({ "type": "ephemeral" }),
            "{first}"
        );
    }
}

#[test]
fn case_117_cached_tokens_count_toward_the_limit_of_tokens() {
    let subset = Lab::new([cached(), cached(), cached()]);
    let additive = Lab::speaking_to(
        "anthropic",
        Some("ANTHROPIC_API_KEY"),
        [cached(), cached(), cached()],
    );
    for lab in [&subset, &additive] {
        let ran = lab.run(&["--max-tokens", "200000"]);
        ran.assert_end(0, "max tokens reached (200000)");
        assert_eq!(ran.requests().len(), 2, "it ends in the second call");
        let usage = ran.file.state.usage;
        assert_eq!((usage.input, usage.cached_input), (362_000, 360_000));
        assert!(
            ran.shown().contains("Tokens:     362k in (99% cached), "),
            "{}",
            ran.shown()
        );
    }
}

#[test]
fn case_119_an_iteration_that_never_ends_is_ordered_to_submit_and_then_fails() {
    let lab = Lab::serving(ModelServer::answering(|_| {
        Reply::calls([bash("true")]).usage(30_000, 100)
    }));
    let ran = lab.run(&["--max-iterations", "1", "--max-iteration-tokens", "100000"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.outcomes(), ["agent:run:error"]);
    assert_eq!(ran.count("agent:order"), 1);
    let before = ran
        .records
        .iter()
        .take_while(|record| !matches!(record.event, Event::Ordered { .. }))
        .filter(|record| matches!(record.event, Event::ModelFinished { .. }))
        .count();
    assert_eq!(before, 4, "one request more than fits");
    assert!(ran.requests().len() <= before + 4, "{}", ran.requests().len());
}

#[test]
fn case_119_work_of_an_iteration_without_tokens_is_graded_when_it_submits() {
    let lab = Lab::serving(ModelServer::answering(|request| {
        let last = request.last_text("user").unwrap_or_default();
        if last.contains("You are out of room: token limit of an iteration reached (50000)") {
            Reply::calls([submit("Add part one")]).usage(30_000, 100)
        } else {
            Reply::calls([bash("echo ok > parts/one")]).usage(30_000, 100)
        }
    }));
    let ran = lab.run(&["--max-iterations", "1", "--max-iteration-tokens", "50000"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part one"]);
    assert_eq!(ran.requests().len(), 3);
}

#[test]
fn case_120_a_run_ends_at_most_one_call_above_its_limit_of_cost() {
    let replies = ["one", "two", "three", "four"].map(|name| good(name).usage(10_000, 0).cached(0));
    let lab = Lab::new(replies);
    let ran = lab.run(&[&PRICE[..], &["--max-cost", "0.25"]].concat());
    ran.assert_end(0, "max cost reached ($0.25)");
    assert_eq!(ran.requests().len(), 3, "{:?}", costs(&ran));
    assert!(
        costs(&ran).iter().all(|each| *each >= Some(cost("0.1"))),
        "{:?}",
        costs(&ran)
    );
    let state = &ran.file.state;
    assert!(
        state.cost < cost("0.40") && state.cost >= cost("0.25"),
        "{}",
        state.cost
    );
    let told = "per accepted change)\n";
    assert!(
        ran.shown().contains("Cost:       ") && ran.shown().contains(told),
        "{}",
        ran.shown()
    );
    let report = lab.env.run(["report"]);
    assert!(
        report.stdout.contains("- **Cost:** ") && report.stdout.contains("per accepted change)"),
        "{}",
        report.stdout
    );
    let report = lab.env.run(["report", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["cost"].as_str(), Some(state.cost.exact().as_str()));
    assert!(report["cost_per_commit"].as_str().is_some(), "{report}");
}

#[test]
fn case_120_a_reply_is_cut_where_it_passes_the_limit_of_cost() {
    let flood = Reply::text("wordy ".repeat(33_000)).stall_after(5, Duration::from_secs(600));
    let lab = Lab::new([flood]);
    let ran = lab.run(&["--price", "in=1,out=100", "--max-cost", "2"]);
    ran.assert_end(0, "max cost reached ($2.00)");
    assert_eq!(ran.outcomes(), ["iteration:interrupted"]);
    let state = &ran.file.state;
    assert!(state.cost > cost("2") && state.cost < cost("4"), "{}", state.cost);
    assert!(
        state.usage.estimated && ran.shown().contains("Cost:       ~$"),
        "{}",
        ran.shown()
    );
}

#[test]
fn case_120_a_limit_of_cost_without_a_known_price_is_refused() {
    let lab = Lab::new([]);
    let command = ["--provider", "openai", "--model", "unheard-of", "--max-cost", "5"];
    let refused = lab.refuse_command(lab.env.command([&[OBJECTIVE], &command[..]].concat()));
    assert!(
        refused
            .stderr
            .contains("the price of openai/unheard-of is not known")
            && refused.stderr.contains("--price in="),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_run_that_goes_on_counts_its_cost_by_the_price_that_it_was_started_with() {
    let lab = Lab::new(["one", "two", "three"].map(|name| good(name).usage(10_000, 0)));
    let first = lab.run(&[&PRICE[..], &["--max-cost", "0.05"]].concat());
    first.assert_end(0, "max cost reached ($0.05)");
    let same = lab.env.run(["resume"]);
    same.assert_code(2);
    assert!(
        same.stderr.contains("raise it with --max-cost"),
        "{}",
        same.stderr
    );
    let command = lab.env.command(["resume", "--max-cost", "0.15"]);
    let ran = lab.launch(command).end(PATIENCE);
    ran.assert_end(0, "max cost reached ($0.15)");
    assert_eq!(ran.requests().len(), 2);
    assert_eq!(ran.file.state.cost, costs(&ran).into_iter().flatten().sum());
}

#[test]
fn a_model_on_this_machine_costs_nothing_and_that_a_limit_of_cost_ends_nothing_is_said() {
    let lab = Lab::new([good("one")]);
    let ran = lab.run(&["--max-iterations", "1", "--max-cost", "5"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert!(
        ran.shown().contains("the limit of cost ends nothing"),
        "{}",
        ran.shown()
    );
    assert!(ran.shown().contains("Cost:       $0.00\n"), "{}", ran.shown());
}

#[test]
fn case_131_a_call_that_the_output_limit_cut_is_not_run_and_the_robot_is_told_to_split_it() {
    let cut = Call::raw("write", r#"{"path":"parts/one","content":"half of it"#);
    let lab = Lab::new([
        Reply::calls([cut]).finish("length"),
        Reply::calls([bash("ls parts; echo ok > parts/two"), submit("Add part two")]),
    ]);
    let ran = lab.run(&["--max-iterations", "1"]);
    ran.assert_end(0, "max iterations reached (1)");
    assert_eq!(ran.subjects(), ["robot-to 1: Add part two"]);
    let told = ran.requests()[1].last_text("tool").unwrap();
    assert!(
        told.contains("cut off at the output limit") && told.contains("split"),
        "{told}"
    );
    let tools = ran.records.iter().filter_map(|record| match &record.event {
        Event::ToolStarted { tool, .. } => Some(tool.as_str()),
        _ => None,
    });
    assert_eq!(tools.collect::<Vec<_>>(), ["bash", "submit_iteration_result"]);
}
