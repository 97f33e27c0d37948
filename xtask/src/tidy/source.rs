//! Rules for one source file.

/// Most lines of a file, without its inline tests.
const MAX_LINES: usize = 500;

/// Effects that pure parts must not reach for.
const EFFECTS: [&str; 9] = [
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "std::time::Instant",
    "std::time::SystemTime",
    "tokio::fs",
    "tokio::process",
    "tokio::net",
];

/// Parts that are pure: nothing in them may name an effect.
const PURE: [&str; 4] = [
    "crates/robot-lab/src/",
    "crates/robot-lab-to/src/iteration/",
    "crates/robot-lab-to/src/commit_message.rs",
    "crates/robot-lab-to/src/view.rs",
];

/// The crate that may read the environment.
const ONLY_ENV: &str = "crates/robot-to/src/";

/// What is wrong with a file.
pub(super) fn check(name: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let code = without_tests(text);
    let lines = code.lines().count();
    let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
    if lines > MAX_LINES && !is_test {
        faults.push(format!(
            "{lines} lines without tests, more than {MAX_LINES}; split it by job"
        ));
    }
    if !text.starts_with("//! ") {
        faults.push("the first line must say, as a doc comment, what the file is for".into());
    }
    for (number, line) in code.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default();
        let mut fault = |what: &str| faults.push(format!("line {}: {what}", number + 1));
        if PURE.iter().any(|part| name.starts_with(part)) {
            for effect in EFFECTS.iter().filter(|effect| line.contains(**effect)) {
                fault(&format!("{effect} in a part that has no effects"));
            }
        }
        if name.starts_with("crates/robot-lab-to/src/iteration/")
            && (line.contains(".await") || line.contains("async "))
        {
            fault("a decision must not wait");
        }
        // Reading paths apart needs no environment; reading variables does.
        let reads = [
            "env::var",
            "env::vars",
            "env::current_dir",
            "env::temp_dir",
            "env::set_var",
        ];
        let may_read = is_test
            || name.starts_with(ONLY_ENV)
            || name.contains("/examples/")
            || name.contains("/benches/")
            || name.starts_with("crates/testkit/")
            || name.starts_with("xtask/")
            || name.starts_with("crates/robot-exec/src/helper");
        if !may_read && reads.iter().any(|read| line.contains(read)) {
            fault("only robot-to reads the environment; take what you need as a parameter");
        }
        if [concat!("#[", "allow("), concat!("#![", "allow(")]
            .iter()
            .any(|allow| line.contains(allow))
        {
            fault("use #[expect(.., reason = \"..\")] in place of allow");
        }
        if line.contains(concat!("#[", "ignore")) {
            fault("an ignored test is a claim that nobody checks");
        }
    }
    faults
}

/// The part of a file before its inline tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_finds_its_fault() {
        for (name, text, expected) in [
            (
                "crates/robot-lab/src/x.rs",
                "//! Job.\nuse std::fs;\n",
                "std::fs in a part that has no effects",
            ),
            (
                "crates/robot-lab-to/src/iteration/x.rs",
                "//! Job.\nx.await\n",
                "must not wait",
            ),
            (
                "crates/robot-lab-to/src/x.rs",
                "//! Job.\nstd::env::var(\"A\")\n",
                "only robot-to reads",
            ),
            (
                "crates/robot-to/src/x.rs",
                "fn main() {}\n",
                "the first line must say",
            ),
            (
                "crates/robot-to/src/x.rs",
                "//! Job.\n#[allow(dead_code)]\n",
                "in place of allow",
            ),
            (
                "crates/robot-to/src/x.rs",
                concat!("//! Job.\n#[", "ignore]\n"),
                "nobody checks",
            ),
        ] {
            let faults = check(name, text);
            assert!(
                faults.len() == 1 && faults[0].contains(expected),
                "{name}: {faults:?}"
            );
        }
        let long = format!("//! Job.\n{}", "x\n".repeat(501));
        assert!(check("crates/robot-to/src/x.rs", &long)[0].contains("502 lines"));
        assert!(check("crates/robot-to/tests/it/x.rs", &long).is_empty());
        let tested = format!(
            "//! Job.\n#[cfg(test)]\nmod tests {{\n{}use std::fs;\n",
            "x\n".repeat(600)
        );
        assert!(
            check("crates/robot-lab/src/x.rs", &tested).is_empty(),
            "tests may be long and have effects"
        );
    }
}
