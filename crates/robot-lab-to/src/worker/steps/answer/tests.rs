//! What an answer of a weak model is taken for.

use super::*;
use proptest::prelude::*;

/// As if the model was shown everything.
fn files(answer: &str, shown: &Texts, rule: &str) -> Result<Texts, String> {
    super::files(answer, shown, shown, rule)
}

fn texts(files: &[(&str, &str)]) -> Texts {
    files
        .iter()
        .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
        .collect()
}

const TWO: [(&str, &str); 2] = [
    ("shapes.py", "def area(w, h):\n    return w * h\n"),
    (
        "lib/report.py",
        "from shapes import area\n\n\ndef report(w, h):\n    return area(w, h)\n",
    ),
];

#[test]
fn a_block_is_the_file_that_it_names_or_is_most_like() {
    let shown = texts(&TWO);
    let new = "def area(width, height):\n    return width * height\n";
    for (answer, path) in [
        (format!("shapes.py\n```python\n{new}```"), "shapes.py"),
        (
            format!("Here is **shapes.py**:\n\n```\n{new}```\nDone."),
            "shapes.py",
        ),
        (format!("```python shapes.py\n{new}```"), "shapes.py"),
        (
            format!("```python\n--- file shapes.py\n{new}--- end of shapes.py\n```"),
            "shapes.py",
        ),
        (
            format!("```python\nThe file shapes.py is now:\n\n{new}```"),
            "shapes.py",
        ),
        (
            "```python\nfrom shapes import area\n\n\ndef report(w, h):\n    return -area(w, h)\n```".into(),
            "lib/report.py",
        ),
    ] {
        let changed = files(&answer, &shown, "Mend it.").unwrap();
        assert_eq!(changed.keys().collect::<Vec<_>>(), [Path::new(path)], "{answer}");
        if path == "shapes.py" {
            assert_eq!(changed.values().next().unwrap(), new, "{answer}");
        }
    }
    let only = texts(&TWO[..1]);
    let changed = files("```\nx = 1\ndef area(): pass\n```", &only, "").unwrap();
    assert_eq!(
        changed.keys().next().unwrap(),
        Path::new("shapes.py"),
        "there is no other"
    );
}

#[test]
fn a_file_that_the_rule_names_can_be_new() {
    let answer = "new.py:\n```python\nx = 1\n```";
    let changed = files(answer, &texts(&TWO), "Put x into new.py.").unwrap();
    assert_eq!(changed, texts(&[("new.py", "x = 1\n")]));
    let foreign = files(answer, &texts(&TWO), "Put x somewhere.");
    assert_eq!(
        foreign.unwrap_err(),
        "The file is the same as before. Do what the rule says."
    );
}

#[test]
fn an_answer_that_is_no_whole_file_is_told_so_in_a_sentence() {
    let long = format!("def a():\n{}    return 1\n", "    x = 1\n".repeat(20));
    let shown = texts(&[("a.py", &long), ("b.py", "from a import a\na()\n")]);
    for (answer, why) in [
        (
            "I would change a.",
            "Answer with the whole file in one code block.",
        ),
        (
            "```python\ndef a():\n    cut in the mid",
            "Answer with the whole file in one code block.",
        ),
        (
            "a.py\n```\ndef a():\n    # ... rest of the code\n```",
            "Write the whole file, without a line such as `# ... rest of the code`.",
        ),
        (
            "a.py\n```\ndef a():\n    return 2\n```",
            "Write all of a.py, not a piece of it.",
        ),
        (
            "b.py\n```\nfrom a import a\na()\n```",
            "The file is the same as before. Do what the rule says.",
        ),
    ] {
        assert_eq!(files(answer, &shown, "rule").unwrap_err(), why, "{answer}");
    }
    let renamed = "shapes.py\n```\ndef size(w, h):\n    return w * h\n```";
    assert_eq!(
        files(renamed, &texts(&TWO), "rule").unwrap_err(),
        "Keep `area`, which is still used."
    );
    assert_eq!(
        files(renamed, &texts(&TWO), "Rename area to size.")
            .unwrap()
            .len(),
        1
    );
    let alone = super::files(renamed, &texts(&TWO[..1]), &texts(&TWO), "rule");
    assert_eq!(
        alone.unwrap_err(),
        "Keep `area`, which is still used.",
        "where it was not shown"
    );
    let both = format!(
        "{renamed}\nreport.py\n```\nfrom shapes import size\n\n\ndef report(w, h):\n    return size(w, h)\n```"
    );
    assert_eq!(files(&both, &texts(&TWO), "rule").unwrap().len(), 2);
}

#[test]
fn an_answer_without_marks_is_the_file_when_it_can_be_nothing_else() {
    let shown = texts(&TWO[1..]);
    let bare = "from shapes import area\n\n\ndef report(w, h):\n    return -area(w, h)";
    assert_eq!(
        files(bare, &shown, "").unwrap(),
        texts(&[("lib/report.py", &format!("{bare}\n"))])
    );
    for answer in [
        "from shapes import area",
        "I would write:\nfrom shapes import area\ndef report(w, h):\n    return 1",
    ] {
        assert!(files(answer, &shown, "").is_err(), "{answer}");
    }
    assert!(files(bare, &texts(&TWO), "").is_err(), "two were shown");
}

#[test]
fn the_ends_of_lines_stay() {
    let shown = texts(&[("a.txt", "one\r\ntwo")]);
    assert_eq!(
        files("```\none\nthree\n\n```", &shown, "").unwrap(),
        texts(&[("a.txt", "one\r\nthree")])
    );
}

proptest! {
    #[test]
    fn only_shown_or_named_files_are_ever_written(answer in "(```|\n|python|a\\.py|\\.\\./|/etc/x\\.py|def a|[ :*]|--- file a\\.py\n){0,40}") {
        let shown = texts(&[("a.py", "def a(): pass\n"), ("b.py", "b = 1\n")]);
        if let Ok(changed) = files(&answer, &shown, "mend a.py and c.py") {
            prop_assert!(changed.len() <= MAX_FILES);
            for path in changed.keys() {
                prop_assert!(shown.contains_key(path) || names("a.py c.py", path), "{:?}", path);
            }
        }
    }
}
