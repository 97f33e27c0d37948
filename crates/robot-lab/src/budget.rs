//! A limit of tokens that several robots share.

use crate::model::Usage;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts tokens against a limit. Every request is charged once, when its cost is known.
#[derive(Debug, Default)]
pub struct TokenBudget {
    limit: Option<u64>,
    spent: AtomicU64,
}

impl TokenBudget {
    /// A budget of `limit` tokens, or none when `None`, of which `spent` are gone.
    pub fn new(limit: Option<u64>, spent: u64) -> Self {
        Self {
            limit,
            spent: AtomicU64::new(spent),
        }
    }

    /// What was charged so far.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::SeqCst)
    }

    /// Adds the cost of one request.
    pub fn charge(&self, usage: Usage) {
        let add = |spent: u64| Some(spent.saturating_add(usage.total()));
        // `add` always answers, so the update cannot fail.
        let _ = self.spent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.limit.is_some_and(|limit| self.spent() >= limit)
    }

    /// Whether a request that has cost `running` so far brings the budget over its limit.
    pub fn is_exceeded_by(&self, running: Usage) -> bool {
        self.limit
            .is_some_and(|limit| self.spent().saturating_add(running.total()) > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_consumed_exactly_is_spent() {
        let budget = TokenBudget::new(Some(100), 0);
        let usage = Usage {
            input: 60,
            output: 40,
            ..Usage::default()
        };
        assert!(!budget.is_exceeded_by(usage));
        budget.charge(usage);
        assert!(budget.is_spent());
        assert!(budget.is_exceeded_by(Usage {
            output: 1,
            ..Usage::default()
        }));
        assert!(!TokenBudget::new(None, u64::MAX).is_spent());
    }
}
