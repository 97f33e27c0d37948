//! What a run has learnt of the servers of its models, as its log tells it: a process that goes on need not learn it
//! again.

use crate::event::{Event, Record};
use crate::settings::Plan;
use robot_lab::KnownModels;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most changes of one model; there are fewer.
const MAX_CHANGES: usize = 32;

/// What was learnt, by model.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    /// The settings by which it was learnt.
    model: Value,
    known: KnownModels,
    of: BTreeMap<String, OfModel>,
}

#[derive(Clone, Debug, Default)]
struct OfModel {
    changes: Vec<String>,
    window: Option<u64>,
}

impl Learnt {
    /// What these records tell that still counts by this plan: with other settings of the model, the server may be
    /// another one.
    pub(super) fn of(records: &[Record], plan: &Plan) -> Self {
        let mut learnt = Self::default();
        for record in records {
            match &record.event {
                Event::RunStarted { plan, .. } | Event::RunResumed { plan, .. } => learnt.planned(plan),
                Event::ModelAdapted {
                    model,
                    change: Some(change),
                    ..
                } => {
                    let changes = &mut learnt.of.entry(model.clone()).or_default().changes;
                    if changes.len() < MAX_CHANGES && !changes.contains(change) {
                        changes.push(change.clone());
                    }
                }
                Event::WindowLearnt { model, tokens, .. } => {
                    learnt.of.entry(model.clone()).or_default().window = Some(*tokens);
                }
                _ => {}
            }
        }
        learnt.planned(plan);
        learnt
    }

    fn planned(&mut self, plan: &Plan) {
        if plan.model != self.model {
            self.of.clear();
        }
        for (model, learnt) in &mut self.of {
            let window = |known: &KnownModels| known.get(model).and_then(|facts| facts.context_window);
            if window(&plan.models) != window(&self.known) {
                learnt.window = None;
            }
        }
        self.model.clone_from(&plan.model);
        self.known.clone_from(&plan.models);
    }

    /// How requests to a model, as `provider/name`, are put otherwise, in the model's own words.
    pub fn changes(&self, model: &str) -> impl Iterator<Item = &str> {
        let of = self.of.get(model);
        of.into_iter()
            .flat_map(|of| of.changes.iter().map(String::as_str))
    }

    /// How many tokens a conversation with a model may have.
    pub(super) fn window(&self, model: &str) -> Option<u64> {
        self.of.get(model)?.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab::ModelFacts;
    use serde_json::json;

    fn plan(temperature: f64, window: u64) -> Plan {
        let facts = ModelFacts {
            context_window: Some(window),
            ..ModelFacts::default()
        };
        Plan {
            model: json!({ "provider": "p", "model": "m", "temperature": temperature }),
            models: [("p/m".to_owned(), facts)].into(),
            ..Plan::new("x")
        }
    }

    fn resumed(plan: Plan) -> Event {
        Event::RunResumed {
            run_id: "r".into(),
            branch: "b".into(),
            model: "p/m".into(),
            hooks: vec![],
            carried_lost: false,
            plan: Box::new(plan),
        }
    }

    fn learnt(events: Vec<Event>, plan: &Plan) -> (Vec<String>, Option<u64>) {
        let record = |(seq, event)| Record {
            seq,
            ts: jiff::Timestamp::UNIX_EPOCH,
            iteration: 1,
            event,
        };
        let records: Vec<Record> = (1..).zip(events).map(record).collect();
        let learnt = Learnt::of(&records, plan);
        (
            learnt.changes("p/m").map(str::to_owned).collect(),
            learnt.window("p/m"),
        )
    }

    #[test]
    fn what_was_learnt_counts_as_long_as_the_model_is_asked_in_the_same_way() {
        let adapted = |change: Option<&str>| Event::ModelAdapted {
            candidate: 0,
            model: "p/m".into(),
            note: "n".into(),
            change: change.map(str::to_owned),
        };
        let window = Event::WindowLearnt {
            candidate: 0,
            model: "p/m".into(),
            tokens: 8_192,
        };
        let events = vec![
            resumed(plan(0.5, 32_768)),
            adapted(Some("without:temperature")),
            adapted(None),
            window,
            adapted(Some("without:temperature")),
            adapted(Some("whole")),
        ];
        let both = vec!["without:temperature".to_owned(), "whole".to_owned()];
        let same = plan(0.5, 32_768);
        assert_eq!(learnt(events.clone(), &same), (both.clone(), Some(8_192)));
        assert_eq!(learnt(events.clone(), &plan(0.5, 65_536)), (both, None));
        assert_eq!(learnt(events.clone(), &plan(0.7, 32_768)), (vec![], None));
        let mut changed = events;
        changed.push(resumed(plan(0.7, 32_768)));
        changed.push(resumed(same.clone()));
        assert_eq!(
            learnt(changed, &same),
            (vec![], None),
            "it was another one in between"
        );
    }
}
