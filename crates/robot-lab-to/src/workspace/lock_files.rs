//! Lock files of package managers: when one changes, what was installed before is out of date.

use std::path::Path;

const NAMES: [&str; 8] = [
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "Gemfile.lock",
    "poetry.lock",
    "uv.lock",
    "go.sum",
    "composer.lock",
];

/// Whether a path is that of a lock file, at any depth.
#[must_use]
pub fn is_lock_file(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    NAMES.contains(&name) || (name.starts_with("requirements") && name.ends_with(".txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_are_known_at_any_depth() {
        for lock in [
            "package-lock.json",
            "web/app/pnpm-lock.yaml",
            "requirements.txt",
            "py/requirements-dev.txt",
            "go.sum",
        ] {
            assert!(is_lock_file(Path::new(lock)), "{lock}");
        }
        for other in [
            "package.json",
            "go.sum/x",
            "my-requirements.txt",
            "requirements.in",
            "yarn.lock.bak",
            "",
        ] {
            assert!(!is_lock_file(Path::new(other)), "{other}");
        }
    }
}
