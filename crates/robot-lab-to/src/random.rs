//! Random text for names and marks. It is hard to foresee, but no secret.

use std::hash::{BuildHasher as _, Hasher as _};

/// So many random hexadecimal digits, at most 16.
pub(crate) fn hex(digits: usize) -> String {
    // The standard library seeds each hasher anew, from a random key of the process.
    let random = std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish();
    format!("{random:016x}").chars().take(digits).collect()
}
