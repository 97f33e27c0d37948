//! Limits of tokens and money that several robots share, and what is known of the models that spend them.

use crate::cost::{Cost, Price};
use crate::meter::Meter;
use crate::model::{ModelId, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of a model beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelFacts {
    /// What it costs; `None` where nobody knows.
    pub price: Option<Price>,
    /// Tokens that it can read and write at once.
    pub context_window: Option<u64>,
    /// Tokens that it can write at once.
    pub max_output: Option<u64>,
}

/// Models by [`ModelId`], as `provider/name`.
pub type KnownModels = BTreeMap<String, ModelFacts>;

/// What may be spent. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Cost>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money. Requests to models without a price are not in it.
    pub cost: Cost,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLimit {
    /// Of tokens.
    Tokens(u64),
    /// Of money.
    Cost(Cost),
    /// Of tokens, of a [part](Budget::part).
    Part(u64),
}

/// Counts what requests cost against limits. Every request is charged once, when its cost is known.
#[derive(Debug, Default)]
pub struct Budget {
    limits: Limits,
    known: KnownModels,
    meter: Arc<Meter>,
    spent: Mutex<Spent>,
    /// Whether its own limits do not hold for now.
    lifted: AtomicBool,
    /// The budget that this is a part of.
    whole: Option<Arc<Budget>>,
}

impl Budget {
    /// A budget of which a part may be gone, for these models.
    pub fn new(limits: Limits, spent: Spent, known: KnownModels) -> Self {
        Self {
            limits,
            known,
            spent: Mutex::new(spent),
            ..Self::default()
        }
    }

    /// A part of this budget, with a limit of tokens of its own. What is charged to it is charged to the whole too, and
    /// the limits of the whole hold.
    #[must_use]
    pub fn part(self: &Arc<Self>, tokens: Option<u64>) -> Self {
        Self {
            limits: Limits { tokens, cost: None },
            known: self.known.clone(),
            meter: Arc::clone(&self.meter),
            spent: Mutex::default(),
            lifted: AtomicBool::new(false),
            whole: Some(Arc::clone(self)),
        }
    }

    /// What was charged so far, to this budget or part.
    pub fn spent(&self) -> Spent {
        *self.lock()
    }

    /// What requests to this model cost; `None` where nobody knows. Nothing costs nothing.
    pub fn cost_of(&self, model: &ModelId, usage: Usage) -> Option<Cost> {
        let price = self.facts(model).price;
        match price {
            None if usage.total() == 0 => Some(Cost::ZERO),
            price => price.map(|price| price.of(usage)),
        }
    }

    /// What is known of a model.
    pub fn facts(&self, model: &ModelId) -> ModelFacts {
        self.known.get(&model.to_string()).copied().unwrap_or_default()
    }

    /// What was learnt of the models from their replies.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Adds what a request has cost, and says how much money that is.
    pub fn charge(&self, model: &ModelId, usage: Usage) -> Option<Cost> {
        self.charge_as(model, usage, None)
    }

    /// The same for a request of which the provider may have said what it charged: then that counts, whatever the price.
    pub fn charge_as(&self, model: &ModelId, usage: Usage, charged: Option<Cost>) -> Option<Cost> {
        let cost = charged.or_else(|| self.cost_of(model, usage));
        let mut budget = Some(self);
        while let Some(own) = budget {
            let mut spent = own.lock();
            spent.tokens = spent.tokens.saturating_add(usage.total());
            spent.cost += cost.unwrap_or_default();
            budget = own.whole.as_deref();
        }
        cost
    }

    /// The limit at which nothing is left. That of the whole counts before that of a part.
    pub fn reached(&self) -> Option<BudgetLimit> {
        self.limit(
            |spent, limit| spent.tokens >= limit,
            |spent, limit| spent.cost >= limit,
        )
    }

    /// The limit that a request to this model passes which has cost `running` so far.
    pub fn exceeded_by(&self, model: &ModelId, running: Usage) -> Option<BudgetLimit> {
        let cost = self.cost_of(model, running).unwrap_or_default();
        self.limit(
            |spent, limit| spent.tokens.saturating_add(running.total()) > limit,
            |spent, limit| spent.cost + cost > limit,
        )
    }

    /// Lets requests pass its own limits until [`hold`](Self::hold). Those of the whole hold all the same.
    pub fn lift(&self) {
        self.lifted.store(true, Ordering::SeqCst);
    }

    /// Ends [`lift`](Self::lift).
    pub fn hold(&self) {
        self.lifted.store(false, Ordering::SeqCst);
    }

    fn limit(
        &self,
        tokens: impl Fn(Spent, u64) -> bool + Copy,
        cost: impl Fn(Spent, Cost) -> bool + Copy,
    ) -> Option<BudgetLimit> {
        if let Some(reached) = self.whole.as_ref().and_then(|whole| whole.limit(tokens, cost)) {
            return Some(reached);
        }
        if self.lifted.load(Ordering::SeqCst) {
            return None;
        }
        let spent = self.spent();
        let of_tokens = self.limits.tokens.filter(|limit| tokens(spent, *limit));
        if let Some(limit) = of_tokens {
            return Some(match self.whole {
                Some(_) => BudgetLimit::Part(limit),
                None => BudgetLimit::Tokens(limit),
            });
        }
        let of_cost = self.limits.cost.filter(|limit| cost(spent, *limit));
        of_cost.map(BudgetLimit::Cost)
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ModelId {
        ModelId {
            provider: "p".into(),
            name: name.into(),
        }
    }

    fn usage(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    fn of_tokens(tokens: u64) -> Limits {
        Limits {
            tokens: Some(tokens),
            cost: None,
        }
    }

    #[test]
    fn a_budget_consumed_exactly_is_spent() {
        let budget = Budget::new(of_tokens(100), Spent::default(), KnownModels::new());
        assert_eq!(budget.exceeded_by(&id("m"), usage(60, 40)), None);
        assert_eq!(
            budget.charge(&id("m"), usage(60, 40)),
            None,
            "nobody knows its price"
        );
        assert_eq!(budget.reached(), Some(BudgetLimit::Tokens(100)));
        assert_eq!(
            budget.exceeded_by(&id("m"), usage(0, 1)),
            Some(BudgetLimit::Tokens(100))
        );
        let gone = Spent {
            tokens: u64::MAX,
            ..Spent::default()
        };
        assert_eq!(
            Budget::new(Limits::default(), gone, KnownModels::new()).reached(),
            None
        );
    }

    #[test]
    fn each_model_is_charged_by_its_own_price() {
        let facts = |price: &str| ModelFacts {
            price: Some(price.parse().unwrap()),
            ..ModelFacts::default()
        };
        let known = [
            ("p/dear".into(), facts("in=10,out=50")),
            ("p/cheap".into(), facts("in=1,out=5")),
        ];
        let limits = Limits {
            tokens: None,
            cost: Some(Cost::from_cents(12)),
        };
        let budget = Budget::new(limits, Spent::default(), known.into());
        assert_eq!(
            budget.charge(&id("dear"), usage(10_000, 0)),
            Some(Cost::from_cents(10))
        );
        assert_eq!(
            budget.charge(&id("cheap"), usage(10_000, 0)),
            Some(Cost::from_cents(1))
        );
        assert_eq!(budget.reached(), None);
        assert_eq!(budget.exceeded_by(&id("cheap"), usage(10_000, 0)), None);
        let over = budget.exceeded_by(&id("cheap"), usage(10_000, 1));
        assert_eq!(over, Some(BudgetLimit::Cost(Cost::from_cents(12))));
    }

    #[test]
    fn a_part_is_charged_to_the_whole_and_ends_before_it() {
        let whole = Arc::new(Budget::new(of_tokens(100), Spent::default(), KnownModels::new()));
        let first = whole.part(Some(60));
        first.charge(&id("m"), usage(60, 0));
        assert_eq!(first.reached(), Some(BudgetLimit::Part(60)));
        assert_eq!(whole.reached(), None);
        first.lift();
        assert_eq!(first.reached(), None);
        first.hold();
        assert_eq!(first.reached(), Some(BudgetLimit::Part(60)));
        let second = whole.part(Some(60));
        assert_eq!((second.reached(), second.spent().tokens), (None, 0));
        second.charge(&id("m"), usage(40, 0));
        assert_eq!(
            second.reached(),
            Some(BudgetLimit::Tokens(100)),
            "the whole is over"
        );
        assert_eq!(whole.spent().tokens, 100);
    }
}
