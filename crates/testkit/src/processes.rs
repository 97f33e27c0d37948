//! The search for processes that outlived the one which started them.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::files::contains;

/// The processes that carry `marker` in their environment, command line or working directory, by id.
///
/// The calling process is not among them, and neither are those that have ended and only wait to be reaped.
#[must_use]
pub fn survivors(marker: &str) -> Vec<(u32, String)> {
    assert!(!marker.is_empty(), "nothing to search for");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("a /proc to read").flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if id == std::process::id() {
            continue;
        }
        let path = entry.path();
        // A process may end meanwhile, or belong to somebody else: both say that there is nothing to find.
        let command_line = fs::read(path.join("cmdline")).unwrap_or_default();
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        let directory = fs::read_link(path.join("cwd"))
            .unwrap_or_default()
            .into_os_string()
            .into_encoded_bytes();
        if [&command_line, &environment, &directory]
            .iter()
            .any(|bytes| contains(bytes, marker.as_bytes()))
        {
            let words: Vec<_> = command_line
                .split(|byte| *byte == 0)
                .map(String::from_utf8_lossy)
                .collect();
            found.push((id, words.join(" ").trim_end().to_owned()));
        }
    }
    found.sort();
    found
}

/// Waits until no process carries `marker`, and gives those that still do after the limit.
#[must_use]
pub fn wait_until_gone(marker: &str, limit: Duration) -> Vec<(u32, String)> {
    let deadline = Instant::now() + limit;
    loop {
        let left = survivors(marker);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
