//! What a run has to know of prices before it begins.

use super::StartError;
use crate::settings::Plan;
use robot_lab::{ModelId, Price};

fn price(plan: &Plan, model: &ModelId) -> Option<Price> {
    plan.models.get(&model.to_string()).and_then(|facts| facts.price)
}

/// A limit of money needs a price.
pub(super) fn check_price(plan: &Plan, model: &ModelId) -> Result<(), StartError> {
    match plan.policy.max_cost {
        Some(_) if price(plan, model).is_none() => Err(StartError::Configuration(format!(
            "the price of {model} is not known, and a limit of cost cannot be kept without it; give it in US dollars per \
             million tokens, such as --price in=2.50,out=10, which holds for --model, or leave --max-cost out"
        ))),
        _ => Ok(()),
    }
}

/// What the user should know of the prices.
pub(super) fn price_notices(plan: &Plan, model: &ModelId, fallback: Option<&ModelId>) -> Vec<String> {
    let of_fallback = fallback.and_then(|fallback| fallback_notice(plan, model, fallback));
    price_notice(plan, model).into_iter().chain(of_fallback).collect()
}

fn fallback_notice(plan: &Plan, model: &ModelId, fallback: &ModelId) -> Option<String> {
    let paid = price(plan, model).is_some_and(|price| !price.is_free());
    match price(plan, fallback) {
        None => Some(format!(
            "the price of the fallback {fallback} is not known, so its cost is counted only where the provider says it"
        )),
        Some(price) if price.is_free() && paid => Some(format!(
            "the fallback {fallback} costs nothing where it is served, and is counted so; --price holds for {model} alone"
        )),
        Some(_) => None,
    }
}

fn price_notice(plan: &Plan, model: &ModelId) -> Option<String> {
    match price(plan, model) {
        None => Some(format!(
            "the price of {model} is not known, so cost is counted only where the provider says it; --price says it"
        )),
        Some(price) if price.is_free() && plan.policy.max_cost.is_some() => Some(format!(
            "{model} costs nothing where it is served, so the limit of cost ends nothing; --price says otherwise"
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab::{Cost, ModelFacts};

    #[test]
    fn a_limit_of_cost_needs_a_price_and_one_that_ends_nothing_is_said() {
        let model = ModelId {
            provider: "openai".into(),
            name: "new-model".into(),
        };
        let mut plan = Plan::new("x");
        assert!(check_price(&plan, &model).is_ok());
        assert!(price_notice(&plan, &model).is_some_and(|notice| notice.contains("not known")));
        plan.policy.max_cost = Some(Cost::from_cents(500));
        let refused = check_price(&plan, &model).unwrap_err().to_string();
        assert!(
            refused.contains("openai/new-model") && refused.contains("--price in="),
            "{refused}"
        );
        let free = ModelFacts {
            price: Some(Price::FREE),
            ..ModelFacts::default()
        };
        plan.models.insert(model.to_string(), free);
        assert!(check_price(&plan, &model).is_ok());
        assert!(price_notice(&plan, &model).is_some_and(|notice| notice.contains("ends nothing")));
        plan.policy.max_cost = None;
        assert_eq!(price_notice(&plan, &model), None);
    }

    #[test]
    fn how_a_fallback_is_counted_is_said_where_it_is_otherwise() {
        let id = |name: &str| ModelId {
            provider: "openai".into(),
            name: name.into(),
        };
        let (main, spare) = (id("main"), id("spare"));
        let mut plan = Plan::new("x");
        let told = |plan: &Plan| price_notices(plan, &main, Some(&spare));
        let set = |plan: &mut Plan, model: &ModelId, price: Price| {
            let facts = ModelFacts {
                price: Some(price),
                ..ModelFacts::default()
            };
            plan.models.insert(model.to_string(), facts);
        };
        let paid: Price = "in=1,out=2".parse().unwrap();
        set(&mut plan, &main, paid);
        assert!(told(&plan)[0].starts_with("the price of the fallback openai/spare is not known"));
        set(&mut plan, &spare, Price::FREE);
        assert!(told(&plan)[0].contains("is counted so; --price holds for openai/main alone"));
        set(&mut plan, &main, Price::FREE);
        assert_eq!(told(&plan), [""; 0]);
        set(&mut plan, &spare, paid);
        assert_eq!(told(&plan), [""; 0]);
    }
}
