//! What replies teach of models: how many tokens a text of theirs has, how much of it they had cached, and how long a
//! conversation they take.

use crate::model::{ModelId, Usage, estimate_tokens};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes per token that a real text can have. What lies outside is a server that counts wrongly, and teaches nothing.
const BYTES_PER_TOKEN: std::ops::RangeInclusive<f64> = 1.0..=12.0;
/// Shorter requests say too little of the texts that follow.
const MIN_BYTES: usize = 2_000;
/// Models that are remembered.
const MAX_MODELS: usize = 64;

/// What replies taught, by model.
#[derive(Debug, Default)]
pub struct Meter(Mutex<BTreeMap<String, Learnt>>);

#[derive(Clone, Copy, Debug, Default)]
struct Learnt {
    bytes_per_token: Option<f64>,
    /// Of a thousand tokens of the last request: from the cache.
    cached: u64,
    window: Option<u64>,
}

impl Meter {
    /// Takes in what a request of so many bytes cost by the provider's own count.
    pub fn learn(&self, model: &ModelId, bytes: usize, usage: Usage) {
        if usage.estimated || usage.input == 0 {
            return;
        }
        self.learn_size(model, bytes, usage.input);
        self.change(model, |learnt| {
            learnt.cached = usage.cached_input.min(usage.input).saturating_mul(1_000) / usage.input;
        });
    }

    /// Takes in that a request of so many bytes has so many tokens.
    pub fn learn_size(&self, model: &ModelId, bytes: usize, tokens: u64) {
        let ratio = bytes as f64 / tokens.max(1) as f64;
        if bytes >= MIN_BYTES && BYTES_PER_TOKEN.contains(&ratio) {
            self.change(model, |learnt| learnt.bytes_per_token = Some(ratio));
        }
    }

    /// Takes in that a conversation may have no more than so many tokens.
    pub fn learn_window(&self, model: &ModelId, tokens: u64) {
        self.change(model, |learnt| {
            learnt.window = Some(learnt.window.map_or(tokens, |known| known.min(tokens)));
        });
    }

    /// The longest conversation, as far as it was learnt.
    pub fn window(&self, model: &ModelId) -> Option<u64> {
        self.of(model).window
    }

    /// Whether a reply of this model told how long its texts are.
    pub fn is_sure(&self, model: &ModelId) -> bool {
        self.of(model).bytes_per_token.is_some()
    }

    /// Tokens of a text of so many bytes.
    pub fn tokens(&self, model: &ModelId, bytes: usize) -> u64 {
        match self.of(model).bytes_per_token {
            Some(ratio) => (bytes as f64 / ratio).ceil() as u64,
            None => estimate_tokens(bytes),
        }
    }

    /// Bytes of a text of so many tokens.
    pub fn bytes(&self, model: &ModelId, tokens: u64) -> usize {
        (tokens as f64 * self.of(model).bytes_per_token.unwrap_or(4.0)) as usize
    }

    /// What a request of so many bytes costs before its reply says anything: as much of it is taken to be cached as of
    /// the last one.
    pub fn request(&self, model: &ModelId, bytes: usize) -> Usage {
        let input = self.tokens(model, bytes);
        Usage {
            input,
            cached_input: input.saturating_mul(self.of(model).cached) / 1_000,
            estimated: true,
            ..Usage::default()
        }
    }

    fn of(&self, model: &ModelId) -> Learnt {
        self.lock().get(&model.to_string()).copied().unwrap_or_default()
    }

    fn change(&self, model: &ModelId, change: impl FnOnce(&mut Learnt)) {
        let mut all = self.lock();
        let name = model.to_string();
        if all.len() < MAX_MODELS || all.contains_key(&name) {
            change(all.entry(name).or_default());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Learnt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ModelId {
        ModelId {
            provider: "p".into(),
            name: "m".into(),
        }
    }

    fn usage(input: u64, cached_input: u64) -> Usage {
        Usage {
            input,
            cached_input,
            ..Usage::default()
        }
    }

    #[test]
    fn the_last_true_count_is_what_estimates_go_by() {
        let meter = Meter::default();
        assert_eq!(
            (meter.tokens(&id(), 40_000), meter.is_sure(&id())),
            (10_000, false)
        );
        meter.learn(&id(), 40_000, usage(20_000, 15_000));
        assert_eq!(
            (meter.tokens(&id(), 50_000), meter.is_sure(&id())),
            (25_000, true)
        );
        assert_eq!(meter.bytes(&id(), 25_000), 50_000);
        let next = meter.request(&id(), 50_000);
        assert_eq!(
            (next.input, next.cached_input, next.estimated),
            (25_000, 18_750, true)
        );
    }

    #[test]
    fn counts_that_no_text_can_have_teach_nothing() {
        let meter = Meter::default();
        for (bytes, tokens) in [(10_000, 900_000_000), (10_000, 1), (100, 30), (0, 0)] {
            meter.learn(&id(), bytes, usage(tokens, 0));
            assert!(!meter.is_sure(&id()), "{bytes} bytes, {tokens} tokens");
        }
        let estimated = Usage {
            estimated: true,
            ..usage(20_000, 0)
        };
        meter.learn(&id(), 40_000, estimated);
        assert!(!meter.is_sure(&id()));
    }

    #[test]
    fn a_window_only_gets_smaller() {
        let meter = Meter::default();
        assert_eq!(meter.window(&id()), None);
        meter.learn_window(&id(), 8_192);
        meter.learn_window(&id(), 32_768);
        assert_eq!(meter.window(&id()), Some(8_192));
    }
}
