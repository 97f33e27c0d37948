//! Object ids: the full hexadecimal name of a git object, checked once.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The id of a git object: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
///
/// An `Oid` can be passed to git as an argument without a second look: it can be neither an option nor a
/// revision expression.
///
/// ```
/// use robot_lab_to::workspace::Oid;
/// assert!("0123456789abcdef0123456789abcdef01234567".parse::<Oid>().is_ok());
/// assert!("HEAD".parse::<Oid>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(Arc<str>);

/// A text that is not a full object id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an object id: {0:?}; expected 40 or 64 lower-case hexadecimal digits")]
pub struct InvalidOid(String);

impl Oid {
    /// The id as git writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first ten digits, for messages.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }

    /// The id of no object, as long as this one. Git reads it as "must not exist" in a compare-and-swap.
    pub(super) fn zero(&self) -> Self {
        Self("0".repeat(self.0.len()).into())
    }

    /// Reads an id from the output of git: the digits, with or without a line end.
    pub(super) fn from_output(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok()?.trim_end().parse().ok()
    }
}

impl std::str::FromStr for Oid {
    type Err = InvalidOid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Oid {
    type Error = InvalidOid;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits && matches!(text.len(), 40 | 64) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidOid(text))
        }
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0.as_ref().to_owned()
    }
}

impl AsRef<std::ffi::OsStr> for Oid {
    fn as_ref(&self) -> &std::ffi::OsStr {
        (*self.0).as_ref()
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oid({})", self.short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_lower_case_ids_are_ids() {
        for good in ["0".repeat(40), "a".repeat(64)] {
            assert_eq!(good.parse::<Oid>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "HEAD",
            "--all",
            &"A".repeat(40),
            &"0".repeat(41),
            &"g".repeat(40),
        ] {
            assert!(bad.parse::<Oid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn serde_checks_what_it_reads() {
        let oid: Oid = "1".repeat(40).parse().unwrap();
        let json = serde_json::to_string(&oid).unwrap();
        assert_eq!(serde_json::from_str::<Oid>(&json).unwrap(), oid);
        assert!(serde_json::from_str::<Oid>("\"refs/heads/main\"").is_err());
    }
}
