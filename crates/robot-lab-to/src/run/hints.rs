//! What may help when verify fails on the base commit: it runs on a clean copy, without the folders that git ignores.

use crate::settings::Plan;
use crate::workspace::Ledger;
use std::path::{Path, PathBuf};

/// Folders of dependencies, and what makes them. Without a command they are made by many.
const FOLDERS: [(&str, Option<&str>, bool); 13] = [
    // The name, what makes it, and whether a copy of it works.
    ("node_modules", Some("npm ci"), true),
    ("bower_components", Some("bower install"), true),
    ("vendor", None, true),
    (
        ".venv",
        Some("python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
        false,
    ),
    (
        "venv",
        Some("python3 -m venv venv && venv/bin/pip install -r requirements.txt"),
        false,
    ),
    (".tox", None, false),
    (".bundle", None, true),
    ("deps", Some("mix deps.get"), true),
    ("Pods", Some("pod install"), true),
    ("target", None, true),
    (".gradle", None, true),
    (".yarn", None, true),
    (".env", None, true),
];
/// Folders that a hint names.
const MAX_NAMED: usize = 3;

/// The hint, when ignored folders that may be missing are in the user's checkout and nothing is done about them. Only a
/// hint: where git cannot say, there is none.
pub(super) async fn missing(plan: &Plan, ledger: &Ledger) -> Option<String> {
    if plan.verify_command.is_none() || plan.setup.is_some() {
        return None;
    }
    let names: Vec<&str> = FOLDERS.iter().map(|(name, ..)| *name).collect();
    let found = ledger.ignored_named(&names).await.ok()?;
    hint(&found, &plan.copy)
}

fn hint(found: &[PathBuf], copied: &[String]) -> Option<String> {
    let plain = |path: &PathBuf| -> PathBuf { path.components().collect() };
    let is_copied = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        copied.iter().any(|pattern| {
            let last = pattern
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default();
            name == last || path == Path::new(pattern)
        })
    };
    let mut paths: Vec<PathBuf> = found.iter().map(plain).filter(|path| !is_copied(path)).collect();
    paths.sort_by_key(|path| (path.components().count(), path.clone()));
    let hints: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let (_, command, copies) = FOLDERS.iter().find(|(known, ..)| *known == name)?;
            let copy = copies.then(|| format!("--copy {}", path.display()));
            let setup = command.map(|command| format!("--setup \"{command}\""));
            let both: Vec<String> = copy.into_iter().chain(setup).collect();
            let what = if both.is_empty() {
                "--setup CMD".into()
            } else {
                both.join(" or ")
            };
            Some(format!("{} ({what})", path.display()))
        })
        .take(MAX_NAMED)
        .collect();
    if hints.is_empty() {
        return None;
    }
    Some(format!(
        "verify runs on a clean copy, without what git ignores in your checkout; perhaps it needs {}",
        hints.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_what_is_there_and_what_to_do() {
        let found = ["web/node_modules/", ".venv/", "node_modules/", "a/b/c/target"].map(PathBuf::from);
        assert_eq!(
            hint(&found, &[]).unwrap(),
            "verify runs on a clean copy, without what git ignores in your checkout; perhaps it needs .venv (--setup \
             \"python3 -m venv .venv && .venv/bin/pip install -r requirements.txt\"), node_modules (--copy node_modules \
             or --setup \"npm ci\"), web/node_modules (--copy web/node_modules or --setup \"npm ci\")"
        );
        let copied = ["**/node_modules", ".venv", "target/"].map(str::to_owned);
        assert_eq!(hint(&found, &copied), None);
        assert_eq!(hint(&[], &[]), None);
    }
}
