//! The machine against a fake world that does whatever it likes. The oracle keeps its own books.

use super::*;
use crate::eval::Score;
use crate::event::{Event, Key, Record, parse_line, to_line};
use crate::workspace::Oid;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

fn oid(n: u64) -> Oid {
    format!("{n:040x}").parse().unwrap()
}

/// What the world does next: a choice and two coins.
type Dice = (u8, bool, bool);

/// The world's side of a run, with books of its own.
struct World {
    policy: Policy,
    state: RunState,
    log: Vec<Record>,
    dice: std::iter::Cycle<std::vec::IntoIter<Dice>>,
    /// What the branch points to: commit and tree. Only a commit moves it.
    branch: (Oid, Oid),
    commits: u64,
    /// The last tree that was graded, and whether a commit of it is earned.
    earned: Option<(Oid, bool)>,
    /// Trees that may not be graded again.
    settled: BTreeSet<Oid>,
    /// Inputs that were given, to be repeated when nobody expects them any more.
    past: Vec<Input>,
    /// The tree and message that the hooks let through.
    cleared: Option<(Oid, String)>,
    /// The refused change that the next iteration must start from, and whether this one started from one.
    from: Option<Oid>,
    outcomes: Vec<(u32, Event)>,
    turns: u32,
}

impl World {
    fn new(policy: Policy, hooks: bool, dice: Vec<Dice>) -> Self {
        let mut world = Self {
            policy,
            state: RunState::default(),
            log: Vec::new(),
            dice: dice.into_iter().cycle(),
            branch: (oid(1), oid(2)),
            commits: 0,
            earned: None,
            settled: BTreeSet::new(),
            past: Vec::new(),
            cleared: None,
            from: None,
            outcomes: Vec::new(),
            turns: 0,
        };
        world.record(Event::RunStarted {
            version: 1,
            run_id: "20261130-010203-abcdef".into(),
            objective: "x".into(),
            branch: "b".into(),
            base: oid(1),
            base_tree: oid(2),
            model: "m".into(),
            eval: "code".into(),
            hooks: hooks.then(|| "pre-commit".to_owned()).into_iter().collect(),
            plan: Box::default(),
        });
        world
    }

    fn roll(&mut self) -> Dice {
        self.dice.next().unwrap()
    }

    fn record(&mut self, event: Event) -> Record {
        let iteration = self.state.iteration + u32::from(matches!(event, Event::IterationStarted { .. }));
        let ts = "2026-11-30T01:02:03Z".parse().unwrap();
        let record = Record {
            seq: self.log.len() as u64 + 1,
            ts,
            iteration,
            event,
        };
        self.state.apply(&record);
        self.log.push(record.clone());
        record
    }

    fn turn(&mut self, key: Key) -> Input {
        self.turns += 1;
        let submission = |success, stop| Submission {
            success,
            summary: "did it".into(),
            should_fully_stop: stop,
            ..Submission::default()
        };
        let end = match self.roll() {
            (0, true, _) => TurnEnd::Halted(StopReason::interrupted()),
            (0, false, _) => TurnEnd::Halted(StopReason::max_tokens(9)),
            (1, _, _) => TurnEnd::Silent { stop: "ended".into() },
            (2, _, _) => TurnEnd::Limit { limit: "time".into() },
            (3, true, _) => TurnEnd::Error {
                kind: "k".into(),
                message: "m".into(),
            },
            (4, _, stop) => TurnEnd::Submitted(submission(false, stop)),
            (_, stop, _) => TurnEnd::Submitted(submission(true, stop)),
        };
        Input::TurnEnded { key, end }
    }

    fn perform(&mut self, record: &Record, effect: Effect) -> Result<Option<Input>, TestCaseError> {
        let input = match effect {
            Effect::Work(key) => {
                self.turns = 0;
                self.cleared = None;
                let Event::IterationStarted { from, .. } = &record.event else {
                    return Err(TestCaseError::fail("work without an iteration"));
                };
                prop_assert_eq!(from, &self.from, "a refused change is tried once more");
                self.earned = None;
                self.turn(key)
            }
            Effect::Nudge(key) | Effect::Order { key, .. } | Effect::Repair { key, .. } => self.turn(key),
            Effect::Snapshot(key) => {
                let result = match self.roll() {
                    (0, true, true) => Err(StopReason::environment("disk")),
                    (1, true, _) => Ok(Err(vec!["too large".into()])),
                    (2, _, _) => Ok(Ok(Taken {
                        tree: self.branch.1.clone(),
                        tampered: vec![],
                    })),
                    (3, true, false) => Ok(Ok(Taken {
                        tree: oid(9),
                        tampered: vec!["test.sh".into()],
                    })),
                    (n, a, _) => Ok(Ok(Taken {
                        tree: oid(10 + u64::from(n) * 2 + u64::from(a)),
                        tampered: vec![],
                    })),
                };
                Input::Snapshotted { key, result }
            }
            Effect::Grade { key, tree } => {
                prop_assert_ne!(&tree, &self.branch.1, "an unchanged tree is never graded");
                prop_assert_ne!(&tree, &oid(9), "what was tampered with is never graded");
                prop_assert!(
                    !self.settled.contains(&tree),
                    "a settled tree is never graded again"
                );
                let (n, gate_ok, improved) = self.roll();
                if n == 0 && gate_ok && improved {
                    return Ok(Some(Input::Graded {
                        key,
                        result: Err(StopReason::interrupted()),
                    }));
                }
                let score = Score {
                    gate_ok,
                    improved,
                    met_target: n == 1 && improved,
                    value: Some(f64::from(n)),
                    ..Score::default()
                };
                let earned = gate_ok && (improved || !self.policy.require_improvement);
                if gate_ok && !earned {
                    self.settled.insert(tree.clone());
                }
                self.earned = Some((tree, earned));
                Input::Graded {
                    key,
                    result: Ok(score),
                }
            }
            Effect::Hooks {
                key,
                tree,
                message,
                pre_commit,
            } => {
                prop_assert_eq!(
                    Some(&(tree.clone(), true)),
                    self.earned.as_ref(),
                    "hooks see only what was graded and earned"
                );
                let result = match self.roll() {
                    (0, true, false) => Err(StopReason::environment("disk")),
                    (1 | 2, a, _) => Ok(Hooked::Refused {
                        hook: if a { "pre-commit" } else { "commit-msg" }.into(),
                        output: "no".into(),
                    }),
                    (n @ 3..=6, a, b) if pre_commit => Ok(Hooked::Changed(Taken {
                        tree: if n == 3 {
                            self.branch.1.clone()
                        } else {
                            oid(10 + u64::from(n) * 2 + u64::from(a))
                        },
                        tampered: if n == 6 && b {
                            vec!["test.sh".into()]
                        } else {
                            vec![]
                        },
                    })),
                    _ => {
                        self.cleared = Some((tree, format!("{message}Change-Id: 1\n")));
                        Ok(Hooked::Passed {
                            message: format!("{message}Change-Id: 1\n"),
                        })
                    }
                };
                Input::Hooked {
                    key,
                    result,
                    elapsed_ms: 1,
                }
            }
            Effect::Commit {
                key,
                tree,
                parent,
                message,
            } => {
                prop_assert_eq!(
                    Some(&(tree.clone(), true)),
                    self.earned.as_ref(),
                    "only what was graded and earned"
                );
                prop_assert!(message.starts_with("robot-to "));
                if self.state.hooks {
                    prop_assert_eq!(
                        Some(&(tree.clone(), message.clone())),
                        self.cleared.as_ref(),
                        "only what the hooks let through, as they made it"
                    );
                }
                let (n, a, b) = self.roll();
                if n == 0 && a && b {
                    let reason = if key.candidate + key.attempt % 2 == 0 {
                        StopReason::environment("disk full")
                    } else {
                        StopReason::new(StopKind::BranchMoved, "branch moved")
                    };
                    Input::CommitFailed { key, reason }
                } else {
                    prop_assert_eq!(&parent, &self.branch.0, "compare and swap");
                    self.commits += 1;
                    self.branch = (oid(1_000 + self.commits), tree.clone());
                    self.settled.insert(tree);
                    Input::Committed {
                        key,
                        commit: self.branch.0.clone(),
                    }
                }
            }
            Effect::Conclude => {
                if let Event::GateFailure { tree: Some(tree), .. } = &record.event {
                    self.settled.insert(tree.clone());
                }
                let started_from = self.from.take();
                self.from = match &record.event {
                    // Not tried to the end.
                    Event::Interrupted { .. } => started_from,
                    Event::CommitFailed {
                        kind: StopKind::CommitRejected,
                        tree,
                        ..
                    } if started_from.is_none() => Some(tree.clone()),
                    _ => None,
                };
                self.outcomes.push((record.iteration, record.event.clone()));
                let most = 2 + self.policy.max_submit_nudges + self.policy.max_verify_repairs;
                prop_assert!(self.turns <= most, "{} turns, at most {most}", self.turns);
                return Ok(None);
            }
            Effect::Finish => return Ok(None),
        };
        Ok(Some(input))
    }

    /// The counters by the table of outcomes, worked out from the outcomes alone.
    fn counters(&self) -> (u32, u32, u32) {
        let (mut failures, mut plateau, mut no_change) = (0, 0, 0);
        for (_, outcome) in &self.outcomes {
            match outcome {
                Event::Committed { improved, .. } => {
                    (failures, no_change) = (0, 0);
                    plateau = if *improved { 0 } else { plateau + 1 };
                }
                Event::NoImprovement { .. } => (plateau, no_change) = (plateau + 1, 0),
                Event::NoChange { .. } => (plateau, no_change) = (plateau + 1, no_change + 1),
                Event::Interrupted { .. } => {}
                _ => (failures, plateau, no_change) = (failures + 1, plateau + 1, 0),
            }
        }
        (failures, plateau, no_change)
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let state = &self.state;
        let json = serde_json::to_string(state).unwrap();
        let mut kept: RunState = serde_json::from_str(&json).unwrap();
        // Only the log keeps these.
        kept.seen.clone_from(&state.seen);
        prop_assert_eq!(&kept, state, "state survives run.json");
        let read: Vec<Record> = self
            .log
            .iter()
            .map(|record| parse_line(to_line(record).unwrap().as_bytes()).unwrap())
            .collect();
        prop_assert_eq!(&read, &self.log, "records survive the log");
        prop_assert_eq!(&RunState::fold(&read), state, "the fold of the log is the state");
        Ok(())
    }

    fn run(&mut self) -> Result<StopReason, TestCaseError> {
        let mut next = None;
        for _ in 0..3_000 {
            if let Phase::Stopped { reason } = &self.state.phase {
                return Ok(reason.clone());
            }
            // Now and then an answer to something long over comes in. It must change nothing.
            let (n, _, _) = self.roll();
            if let Some(late) = self.past.iter().rev().nth(usize::from(n)).cloned() {
                prop_assert_eq!(
                    decide(&self.state, late, &self.policy),
                    Ok(vec![]),
                    "late answers are dropped"
                );
            }
            let input = next.take().unwrap_or(Input::Begin {
                elapsed: Duration::ZERO,
                halt: None,
            });
            let events = decide(&self.state, input.clone(), &self.policy);
            let events = events.map_err(|illegal| TestCaseError::fail(illegal.to_string()))?;
            prop_assert!(
                !events.is_empty(),
                "an expected answer says something: {:?}",
                input
            );
            if !matches!(input, Input::Begin { .. }) {
                self.past.push(input);
            }
            let mut answers = 0;
            for event in events {
                let record = self.record(event);
                if let Some(effect) = effect_of(&record)
                    && let Some(answer) = self.perform(&record, effect)?
                {
                    answers += 1;
                    next = Some(answer);
                }
            }
            prop_assert!(answers <= 1, "at most one effect is waited for");
        }
        Err(TestCaseError::fail("it does not end"))
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    (
        any::<bool>(),
        0u32..3,
        0u32..3,
        1u32..4,
        1u32..12,
        prop::option::of(1u32..5),
        any::<bool>(),
    )
        .prop_map(
            |(require_improvement, repairs, nudges, failures, iterations, plateau, stop_when)| Policy {
                require_improvement,
                max_verify_repairs: repairs,
                max_submit_nudges: nudges,
                max_consecutive_failures: failures,
                max_iterations: Some(iterations),
                stop_on_plateau: plateau,
                stop_when: stop_when.then(|| "done".into()),
                ..Policy::default()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_the_world_does_a_run_keeps_its_promises(
        policy in policies(),
        hooks in any::<bool>(),
        dice in prop::collection::vec((0u8..10, any::<bool>(), any::<bool>()), 1..120)
    ) {
        let mut world = World::new(policy, hooks, dice);
        let reason = world.run()?;
        world.check()?;
        let state = &world.state;

        // Each iteration that began has exactly one outcome, and they come in order.
        let numbers: Vec<u32> = world.outcomes.iter().map(|(n, _)| *n).collect();
        prop_assert_eq!(numbers, (1..=state.iteration).collect::<Vec<_>>());

        // The branch moved by commits only, and the state knows where it is.
        let committed = world.outcomes.iter().filter(|(_, o)| matches!(o, Event::Committed { .. })).count() as u64;
        prop_assert_eq!(committed, world.commits);
        prop_assert_eq!(u64::from(state.commits), world.commits);
        prop_assert_eq!((state.parent.as_ref(), state.parent_tree.as_ref()), (Some(&world.branch.0), Some(&world.branch.1)));
        let interrupted = world.outcomes.iter().filter(|(_, o)| matches!(o, Event::Interrupted { .. })).count();
        prop_assert_eq!(state.iteration, state.commits + state.discarded + interrupted as u32);

        let (failures, plateau, no_change) = world.counters();
        let counters = (state.failures_in_a_row, state.since_improvement, state.no_change_in_a_row);
        prop_assert_eq!(counters, (failures, plateau, no_change));

        // The reason is one that holds.
        let policy = &world.policy;
        let last = world.outcomes.last().map(|(_, outcome)| outcome);
        let holds = match reason.kind {
            StopKind::Failures => failures >= policy.max_consecutive_failures && !state.rejected,
            StopKind::CommitRejected => failures >= policy.max_consecutive_failures && state.rejected,
            StopKind::NothingToDo => no_change >= 3,
            StopKind::Plateau => policy.stop_on_plateau.is_some_and(|n| plateau >= n),
            StopKind::MaxIterations => policy.max_iterations == Some(state.iteration),
            StopKind::TargetMet => matches!(last, Some(Event::Committed { .. })),
            StopKind::StopCondition => policy.stop_when.is_some() && matches!(last, Some(Event::Committed { .. })),
            StopKind::BranchMoved => matches!(last, Some(Event::CommitFailed { .. })),
            StopKind::Interrupted | StopKind::MaxTokens | StopKind::Environment => {
                matches!(last, Some(Event::Interrupted { .. }))
            }
            _ => false,
        };
        prop_assert!(holds, "{:?} after {:?}", reason, last);
        prop_assert!(state.iteration <= policy.max_iterations.unwrap_or(u32::MAX));
    }
}

#[test]
fn a_halt_between_two_iterations_begins_no_new_one() {
    let world = World::new(Policy::default(), false, vec![(0, false, false)]);
    let halt = Some(StopReason::interrupted());
    let events = decide(
        &world.state,
        Input::Begin {
            elapsed: Duration::ZERO,
            halt,
        },
        &world.policy,
    )
    .unwrap();
    assert_eq!(
        events,
        [Event::Aborted {
            kind: StopKind::Interrupted,
            reason: "interrupted".into()
        }]
    );
}

#[test]
fn an_impossible_input_is_an_error() {
    let mut world = World::new(Policy::default(), false, vec![(0, false, false)]);
    let begin = || Input::Begin {
        elapsed: Duration::ZERO,
        halt: None,
    };
    let events = decide(&world.state, begin(), &world.policy).unwrap();
    world.record(events[0].clone());
    assert!(
        decide(&world.state, begin(), &world.policy).is_err(),
        "an iteration is under way"
    );
    let graded = Input::Graded {
        key: Key {
            iteration: 1,
            candidate: 0,
            attempt: 1,
        },
        result: Ok(Score::default()),
    };
    assert!(
        decide(&world.state, graded, &world.policy).is_err(),
        "nothing was submitted"
    );
}

#[test]
fn limits_end_a_run_before_an_iteration() {
    let mut world = World::new(Policy::default(), false, vec![(0, false, false)]);
    let usage = robot_lab::Usage {
        input: 60,
        output: 40,
        ..robot_lab::Usage::default()
    };
    let cost = Some(robot_lab::Cost::from_cents(30));
    world.record(Event::model_finished(0, "m".into(), usage, cost, None, 1));
    let elapsed = Duration::from_secs(60);
    for (policy, text) in [
        (
            Policy {
                max_tokens: Some(100),
                ..Policy::default()
            },
            "max tokens reached (100)",
        ),
        (
            Policy {
                max_cost: Some(robot_lab::Cost::from_cents(30)),
                ..Policy::default()
            },
            "max cost reached ($0.30)",
        ),
        (
            Policy {
                max_time: Some(elapsed),
                ..Policy::default()
            },
            "max time reached (60 s)",
        ),
    ] {
        let events = decide(&world.state, Input::Begin { elapsed, halt: None }, &policy).unwrap();
        assert!(
            matches!(&events[..], [Event::Aborted { reason, .. }] if reason == text),
            "{events:?}"
        );
    }
}

#[test]
fn the_best_score_goes_by_the_direction_and_resuming_begins_the_counters_anew() {
    use crate::eval::{Goal, Measure};
    use crate::settings::Plan;
    let measure = Measure {
        command: "m".into(),
        timeout: Duration::from_secs(1),
        metric: None,
    };
    let goal = Goal {
        minimize: true,
        ..Goal::default()
    };
    let plan = Box::new(Plan {
        measure: Some(measure),
        goal,
        ..Plan::new("x")
    });
    let mut world = World::new(Policy::default(), false, vec![(0, false, false)]);
    let resumed = |plan| Event::RunResumed {
        run_id: "r".into(),
        branch: "b".into(),
        model: "m".into(),
        hooks: vec![],
        carried_lost: false,
        plan,
    };
    world.record(resumed(plan.clone()));
    let value = |value, attempt| {
        let score = Score {
            gate_ok: true,
            value: Some(value),
            ..Score::default()
        };
        Event::eval(
            Key {
                iteration: 0,
                candidate: 0,
                attempt,
            },
            oid(2),
            &score,
        )
    };
    for (score, best) in [(3.0, 3.0), (2.0, 2.0), (5.0, 2.0)] {
        world.record(value(score, 0));
        assert_eq!(world.state.best, Some(best));
    }
    world.record(Event::AgentError {
        candidate: 0,
        error: "e".into(),
        message: "m".into(),
    });
    world.record(Event::Interrupted {
        candidate: 0,
        kind: StopKind::Interrupted,
        reason: "r".into(),
    });
    world.record(Event::Aborted {
        kind: StopKind::Interrupted,
        reason: "r".into(),
    });
    world.record(resumed(plan));
    let state = &world.state;
    assert_eq!(
        (
            state.failures_in_a_row,
            state.since_improvement,
            &state.pending_stop
        ),
        (0, 0, &None)
    );
    assert_eq!(
        (&state.phase, state.discarded),
        (&Phase::Ready, 1),
        "what is not a counter goes on"
    );
}
