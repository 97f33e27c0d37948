//! The rules of the tree: size and head of files, what may depend on what, where effects may be.

mod invariants;
mod layers;
mod source;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Everything that is wrong, a line each.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let mut faults = layers::check(root)?;
    let mut tests = BTreeSet::new();
    for path in rust_files(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = std::fs::read_to_string(&path)?;
        tests.extend(invariants::tests_in(&text));
        faults.extend(
            source::check(&name, &text)
                .into_iter()
                .map(|fault| format!("{name}: {fault}")),
        );
    }
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    faults.extend(invariants::check(&architecture, &tests));
    Ok(faults)
}

/// All Rust files under `crates` and `xtask`, in order.
fn rust_files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![root.join("crates"), root.join("xtask")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                if entry.file_name() != "target" {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_keeps_its_rules() {
        let faults = check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}
