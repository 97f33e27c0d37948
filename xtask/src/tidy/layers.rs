//! Which crate may use which: the arrows of ARCHITECTURE.md, and nothing else.

use serde_json::Value;
use std::io;
use std::path::Path;
use std::process::Command;

/// The crates of this workspace, and those of them that each may depend on.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("robot-exec", &[]),
    ("robot-lab", &["robot-exec"]),
    ("robot-lab-providers", &["robot-lab"]),
    ("robot-lab-to", &["robot-exec", "robot-lab"]),
    (
        "robot-to",
        &["robot-exec", "robot-lab", "robot-lab-providers", "robot-lab-to"],
    ),
    ("testkit", &[]),
    ("xtask", &[]),
];

/// Outside crates that only one crate may use.
const ONLY_IN: [(&str, &str); 3] = [
    ("reqwest", "robot-lab-providers"),
    ("clap", "robot-to"),
    ("cap-std", "robot-lab-to"),
];

/// Compares what Cargo knows with the table.
pub(super) fn check(root: &Path) -> io::Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(faults(&metadata))
}

fn faults(metadata: &Value) -> Vec<String> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut faults = Vec::new();
    for package in list(metadata.get("packages")) {
        let name = text(&package, "name");
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            faults.push(format!(
                "{name}: not in the table of crates; say what it may depend on"
            ));
            continue;
        };
        for dependency in list(package.get("dependencies")) {
            let used = text(&dependency, "name");
            let for_tests = text(&dependency, "kind") == "dev";
            let ours = ALLOWED.iter().any(|(known, _)| *known == used);
            // Tests may use the test kit, and a crate may test itself with its own features.
            let test_only = for_tests && (used == "testkit" || used == name || used == "robot-lab");
            if ours && !test_only && !allowed.contains(&used.as_str()) {
                faults.push(format!("{name}: may not depend on {used}"));
            }
            if let Some((_, only)) = ONLY_IN.iter().find(|(outside, _)| *outside == used)
                && *only != name
            {
                faults.push(format!("{name}: {used} is only for {only}"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrong_arrow_is_found() {
        let package = |name: &str, used: &str, kind: Value| json!({"packages": [{"name": name, "dependencies": [{"name": used, "kind": kind}]}]});
        assert_eq!(
            faults(&package("robot-lab-to", "robot-lab", Value::Null)),
            [""; 0]
        );
        assert_eq!(faults(&package("robot-lab", "testkit", json!("dev"))), [""; 0]);
        assert_eq!(
            faults(&package("robot-lab", "robot-to", Value::Null)),
            ["robot-lab: may not depend on robot-to"]
        );
        assert_eq!(
            faults(&package("robot-lab", "testkit", Value::Null)),
            ["robot-lab: may not depend on testkit"]
        );
        assert_eq!(
            faults(&package("robot-lab-to", "reqwest", Value::Null)),
            ["robot-lab-to: reqwest is only for robot-lab-providers"]
        );
        assert!(
            faults(&package("new-crate", "serde", Value::Null))[0].starts_with("new-crate: not in the table")
        );
    }
}
