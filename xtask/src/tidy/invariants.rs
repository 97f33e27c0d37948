//! Every invariant in ARCHITECTURE.md names tests that exist.

use std::collections::BTreeSet;

/// The names of the functions in a source file: tests are among them.
pub(super) fn tests_in(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("fn ")?;
        Some(
            rest.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .next()?
                .to_owned(),
        )
    })
}

/// What the list of invariants lacks.
pub(super) fn check(architecture: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let section = architecture
        .split("\n## Invariants\n")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next());
    let Some(section) = section else {
        return vec!["ARCHITECTURE.md: there is no section of invariants".into()];
    };
    let mut faults: Vec<String> = section
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| is_test_name(name) && !tests.contains(*name))
        .map(|name| format!("ARCHITECTURE.md: there is no test {name}"))
        .collect();
    if section.matches('`').count() < 10 {
        faults.push("ARCHITECTURE.md: invariants name no tests".into());
    }
    faults
}

/// Tests are sentences: names of several words.
fn is_test_name(name: &str) -> bool {
    name.matches('_').count() >= 3 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let tests: BTreeSet<String> = tests_in("async fn it_holds_as_it_should() {\n fn other()").collect();
        let page =
            |name: &str| format!("x\n## Invariants\n\n1. It holds. (`{name}`) `a` `b` `c` `d`\n\n## More\n");
        assert!(check(&page("it_holds_as_it_should"), &tests).is_empty());
        assert_eq!(
            check(&page("it_holds_no_more_now"), &tests),
            ["ARCHITECTURE.md: there is no test it_holds_no_more_now"]
        );
    }
}
