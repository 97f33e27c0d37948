//! The id of a run, and the name that its branch is made of.

use crate::random;
use jiff::Timestamp;

/// Longest slug, in bytes.
const MAX_SLUG: usize = 40;

/// `YYYYMMDD-HHMMSS-xxxxxx`: when the run began (UTC), and six random hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    /// A new id.
    pub fn new(now: Timestamp) -> Self {
        // The run's directory is created exclusively, so an id that comes twice is noticed.
        Self(format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), random::hex(6)))
    }

    /// Reads an id; `None` when it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut digits = |len: usize, radix| {
            let part = parts.next().unwrap_or_default();
            part.len() == len && part.chars().all(|c| c.is_digit(radix) && !c.is_ascii_uppercase())
        };
        let fits = digits(8, 10) && digits(6, 10) && digits(6, 16) && parts.next().is_none();
        fits.then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name from an objective: lower-case ASCII letters, digits and single dashes, at most 40 characters; `takeover`
/// when nothing is left.
pub fn slug(objective: &str) -> String {
    let words: String = objective
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                ' '
            }
        })
        .collect();
    let mut slug = String::new();
    for word in words.split_whitespace() {
        let dash = usize::from(!slug.is_empty());
        let room = MAX_SLUG.saturating_sub(slug.len() + dash);
        // A word that does not fit ends the slug, unless there would be none.
        if word.len() > room && !slug.is_empty() {
            break;
        }
        if dash == 1 {
            slug.push('-');
        }
        slug.extend(word.chars().take(room));
    }
    if slug.is_empty() { "takeover".into() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slugs() {
        assert_eq!(
            slug("Implement lib/roman.sh until the tests pass!"),
            "implement-lib-roman-sh-until-the-tests"
        );
        assert_eq!(slug("  日本語 — ¿? "), "takeover");
        assert_eq!(slug(&"x".repeat(100)), "x".repeat(40));
    }

    #[test]
    fn ids_have_their_form() {
        let id = RunId::new("2026-11-30T01:02:03Z".parse().unwrap());
        assert!(id.as_str().starts_with("20261130-010203-"), "{id}");
        assert_eq!(RunId::parse(id.as_str()), Some(id));
        for bad in [
            "",
            "20261130-010203",
            "20261130-010203-ABCDEF",
            "../../etc",
            "20261130-010203-abcdef-x",
        ] {
            assert_eq!(RunId::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_slug_is_always_part_of_a_valid_branch_name(objective in ".*") {
            let slug = slug(&objective);
            prop_assert!(!slug.is_empty() && slug.len() <= 40);
            prop_assert!(slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            prop_assert!(!slug.starts_with('-') && !slug.ends_with('-') && !slug.contains("--"));
        }
    }
}
