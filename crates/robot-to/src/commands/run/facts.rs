//! What a run knows of its model's price and context, which is written into its plan.

use crate::args::RunArgs;
use robot_lab::{ModelFacts, ModelId, Price};
use robot_lab_providers::{Known, ModelConfig, known_model};
use robot_lab_to::settings::Plan;
use serde_json::Value;

/// Writes what is known of the model `id`, and what the flags say of it, into the plan. `given` is asked for the name of
/// each flag whether it counts. A run that goes on keeps what it knew. Answers the month of the price when that is from
/// the table.
pub(in crate::commands) fn fill(
    plan: &mut Plan,
    id: &ModelId,
    args: &RunArgs,
    given: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    let Known { facts: known, as_of } = known(plan, id);
    let elsewhere = ["provider", "model", "base_url"].into_iter().any(given);
    let mut facts = match plan.models.get(&id.to_string()) {
        Some(facts) if !elsewhere => *facts,
        _ => known,
    };
    if given("num_ctx") && args.num_ctx.is_some() {
        facts.context_window = known.context_window;
    }
    if given("price") && args.price.is_some() {
        facts.price = args.price;
    }
    if given("context_window") && args.context_window.is_some() {
        facts.context_window = args.context_window;
    }
    plan.models.insert(id.to_string(), facts);
    as_of.filter(|_| facts.price == known.price)
}

/// Writes what is known of the fallback `id` into the plan. What the flags say is said of the model itself.
pub(in crate::commands) fn fill_fallback(plan: &mut Plan, id: &ModelId) {
    let of_fallback = super::model::of_fallback(plan);
    let known = known(of_fallback.as_ref().unwrap_or(plan), id).facts;
    plan.models.entry(id.to_string()).or_insert(known);
}

/// How much a model can read at once, in tokens, where that is known.
pub(in crate::commands) fn window(plan: &Plan, id: &ModelId) -> Option<u64> {
    known(plan, id).facts.context_window
}

fn known(plan: &Plan, id: &ModelId) -> Known {
    let provider = plan.model.get("provider").and_then(Value::as_str);
    let free = |facts: ModelFacts| Known {
        facts: ModelFacts {
            price: Some(Price::FREE),
            ..facts
        },
        as_of: None,
    };
    match provider {
        Some(super::model::SCRIPT) => free(ModelFacts::default()),
        // It reads as much as it did, and nothing is paid for again.
        Some(super::model::REPLAY) => free(known_model(&ModelConfig::new(&id.provider, &id.name)).facts),
        _ => known_model(&super::model::connection(plan)),
    }
}
