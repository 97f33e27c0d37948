//! Every template as it is rendered, and what holds for every prompt: it is bounded, and its stable part is stable.

use super::*;
use crate::eval::Score;
use crate::event::Event;
use crate::iteration::Submission;
use crate::notes::{entry, header};
use proptest::prelude::*;
use std::path::PathBuf;

/// What a prompt consists of besides the texts that have budgets.
const TEMPLATE: usize = 5_000;
/// A line that says how much was cut.
const CUT: usize = 60;
/// The sum of the budgets of a system prompt.
const MAX_SYSTEM: usize = TEMPLATE
    + (OBJECTIVE_BUDGET + CUT)
    + 3 * (TEXT_BUDGET + CUT)
    + MAX_LOCKED * (PATH_BUDGET + 10)
    + (MAX_INSTRUCTIONS + CUT)
    + (8 * 1024 * 3 + 2 * CUT)
    + 202 * (160 * 4 + 30);
/// The same of a first message.
const MAX_MESSAGE: usize = TEMPLATE + NOTES_BUDGET + (TEXT_BUDGET + CUT) + 2 * 4_096;

fn project() -> Project {
    Project {
        mark: "20261130-010203-abcdef".into(),
        instructions: Some("Write British English.".into()),
        agents: Some("Run `make lint` before you are done.".into()),
        files: Some("README.md\nsrc/ (12 files)".into()),
    }
}

fn facts<'a>(project: &'a Project, locked: &'a [String]) -> Facts<'a> {
    Facts {
        objective: "make the tests pass",
        verify_command: Some("sh test.sh"),
        measure: Some(("sh count.sh", true)),
        eval: Some("the eval `taste`"),
        locked,
        conventional: true,
        stop_when: Some("all tests pass"),
        project,
        small: false,
    }
}

fn situation<'a>(iteration: u32, notes: &'a str) -> Situation<'a> {
    Situation {
        iteration,
        work_dir: Path::new("/state/robot-0"),
        nonce: "f00d",
        notes,
        notes_file: Some(Path::new("/state/notes.md")),
        failing: Some("1 of 3 tests failed"),
        score: Some(Standing {
            best: Some(84.0),
            parent: Some(84.0),
            target: Some(90.0),
            minimize: false,
            since_improvement: 3,
            committed: true,
        }),
    }
}

#[test]
fn system_prompt() {
    let prompts = Prompts::new().unwrap();
    let (project, locked) = (project(), ["test.sh".to_owned()]);
    insta::assert_snapshot!(prompts.system(&facts(&project, &locked)).unwrap());
    let bare = Facts {
        objective: "tidy up",
        verify_command: None,
        measure: None,
        eval: None,
        locked: &[],
        conventional: false,
        stop_when: None,
        project: &Project::default(),
        small: false,
    };
    insta::assert_snapshot!("system_prompt_bare", prompts.system(&bare).unwrap());
}

#[test]
fn a_small_prompt_has_less_than_300_tokens_and_no_example() {
    let prompts = Prompts::new().unwrap();
    let (mut project, locked) = (project(), ["test.sh".to_owned()]);
    project.files = Some("README.md\n".repeat(1_000));
    let facts = Facts {
        small: true,
        ..facts(&project, &locked)
    };
    let prompt = prompts.system(&facts).unwrap();
    let tokens = robot_lab::model::estimate_tokens(prompt.len());
    assert!(tokens < 300, "{tokens}: {prompt}");
    assert!(!prompt.contains("```") && !prompt.contains("README"), "{prompt}");
    insta::assert_snapshot!("system_prompt_small", prompt);
}

#[test]
fn messages() {
    let prompts = Prompts::new().unwrap();
    let now = situation(2, "# x\n\n### Iteration 1 [FAIL]\n\n**Summary:** tried\n");
    let first = Situation {
        iteration: 1,
        notes: "",
        failing: None,
        score: None,
        ..now.clone()
    };
    let all = [
        prompts.iteration(&first).unwrap(),
        prompts.iteration(&now).unwrap(),
        prompts.nudge().unwrap(),
        prompts.order("tool call limit reached (100)").unwrap(),
        prompts.repair("f00d", "verify=false (exit 1)\nboom").unwrap(),
        prompts
            .carried("f00d", "pre-commit refuses the commit\nline 3 is too long")
            .unwrap(),
    ];
    insta::assert_snapshot!(all.join("\n=====\n"));
}

/// The notes of a run in which the same things keep happening, as the loop writes them.
fn notes_of(iterations: u32) -> String {
    let mut notes = header("20261130-010203-abcdef", "make the tests pass");
    for n in 1..=iterations {
        let learnings = vec![
            format!("part {n} needs part {}", n / 2),
            "the tests are slow".to_owned(),
        ];
        let summary = format!("Add part {n} of {}", "the parser ".repeat(n as usize % 5 + 1));
        let event = match n % 3 {
            0 => Event::GateFailure {
                candidate: 0,
                summary,
                learnings,
                detail: "verify=false (exit 1)".into(),
                output: "expected ok\n".repeat(n as usize % 40),
                tree: None,
            },
            _ => Event::Committed {
                candidate: 0,
                commit: "1".repeat(40).parse().unwrap(),
                tree: "2".repeat(40).parse().unwrap(),
                message: String::new(),
                improved: true,
                value: None,
                submission: Submission {
                    success: true,
                    summary,
                    key_changes: vec![format!("parts/{n}.rs")],
                    key_learnings: learnings,
                    ..Submission::default()
                },
                stop: None,
                stop_text: None,
            },
        };
        notes.push_str(&entry(n, &event).unwrap());
    }
    notes
}

#[test]
fn case_176_the_prompt_of_iteration_1000_is_as_long_as_that_of_iteration_200() {
    let prompts = Prompts::new().unwrap();
    let length = |iteration: u32| {
        let notes = notes_of(iteration - 1);
        prompts.iteration(&situation(iteration, &notes)).unwrap().len()
    };
    let (early, late) = (length(200), length(1_000));
    assert!(early > NOTES_BUDGET / 2, "the budget is used: {early}");
    assert!(early.abs_diff(late) * 50 <= early, "{early} and {late}");
}

#[test]
fn a_step_is_told_in_few_words() {
    let prompts = Prompts::new().unwrap();
    let system = prompts.steps(Some("Use tabs.")).unwrap();
    let step = prompts
        .step(&StepFacts {
            rule: "Make it return the text in lower case.",
            files: vec![(Path::new("slug.py"), "def slug(text):\n    return text\n")],
            failing: Some("slug('A') returned 'A'"),
            refused: Some("Keep `slug`, which is still used."),
        })
        .unwrap();
    let by_tools = StepFacts {
        rule: "Shorten it.",
        files: vec![],
        failing: None,
        refused: None,
    };
    let by_tools = prompts.step(&by_tools).unwrap();
    insta::assert_snapshot!("steps", format!("{system}\n=====\n{step}\n=====\n{by_tools}"));
    let huge = "x".repeat(1 << 20);
    let facts = StepFacts {
        rule: &huge,
        files: vec![],
        failing: Some(&huge),
        refused: Some(&huge),
    };
    assert!(prompts.step(&facts).unwrap().len() < 2 * (TEXT_BUDGET + CUT) + TEMPLATE);
    assert!(prompts.steps(Some(&huge)).unwrap().len() < MAX_INSTRUCTIONS + CUT + TEMPLATE);
}

#[test]
fn a_score_says_nothing_that_a_prompt_could_not_bound() {
    let huge = "x".repeat(1 << 20);
    let score = Score {
        output: Some(huge.clone()),
        ..Score::default()
    };
    let repair = Prompts::new()
        .unwrap()
        .repair("f00d", score.output.as_deref().unwrap())
        .unwrap();
    assert!(repair.len() < TEMPLATE + TEXT_BUDGET + CUT, "{}", repair.len());
    let order = Prompts::new().unwrap().order(&huge).unwrap();
    assert!(order.len() < TEMPLATE, "{}", order.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_prompt_is_at_most_the_sum_of_its_budgets(
        unit in "[aé🙂 \n]{1,9}", size in 0usize..60_000, entries in 0usize..300, files in 0usize..3_000,
        small in any::<bool>(),
    ) {
        let prompts = Prompts::new().unwrap();
        let huge = unit.repeat(size / unit.len() + 1);
        let paths: Vec<PathBuf> = (0..files).map(|n| format!("{}/{n}/{unit}{n}", n % 13).into()).collect();
        let locked = vec![huge.clone(); 100];
        let agents: String = huge.chars().take(8 * 1024).collect();
        let project = Project {
            mark: "20261130-010203-abcdef".into(),
            instructions: Some(huge.clone()),
            agents: Some(agents.get(..agents.floor_char_boundary(8 * 1024)).unwrap().to_owned()),
            files: Some(listing(&paths, true)),
        };
        let facts = Facts {
            objective: &huge,
            verify_command: Some(&huge),
            measure: Some((&huge, false)),
            eval: Some(&huge),
            locked: &locked,
            conventional: true,
            stop_when: Some(&huge),
            project: &project,
            small,
        };
        let system = prompts.system(&facts).unwrap();
        prop_assert!(system.len() <= MAX_SYSTEM, "{}", system.len());
        prop_assert_eq!(&system, &prompts.system(&facts).unwrap());
        let notes: String = (0..entries)
            .map(|n| format!("\n### Iteration {n}\n\n**Summary:** {unit}\n\n    {}\n", huge.replace('\n', "\n    ")))
            .take(20)
            .collect();
        let now = Situation { failing: Some(&huge), ..situation(7, &notes) };
        let message = prompts.iteration(&now).unwrap();
        prop_assert!(message.len() <= MAX_MESSAGE, "{}", message.len());
        prop_assert!(!message.contains("Add part"));
    }
}
