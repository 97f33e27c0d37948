//! Text that was escaped once too often, and characters that look like others.

use std::borrow::Cow;

/// Which escapes are taken back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Escapes {
    /// `\n`, `\t`, `\r`, quotes and backslashes.
    All,
    /// `\"` and `\'`.
    Quotes,
}

/// Which kinds of escapes a text has.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Kinds {
    /// `\n`, `\t`, `\r`.
    pub(super) control: bool,
    /// `\"`, `\'`.
    pub(super) quote: bool,
    /// `\\`.
    pub(super) backslash: bool,
}

impl Kinds {
    /// Whether there are any.
    pub(super) fn any(self) -> bool {
        self != Self::default()
    }

    /// Whether the other has each kind that is here.
    pub(super) fn within(self, other: Self) -> bool {
        (!self.control || other.control)
            && (!self.quote || other.quote)
            && (!self.backslash || other.backslash)
    }
}

/// Takes one level of escapes back, and says which kinds there were. Other backslashes stay.
pub(super) fn unescape(text: &str, which: Escapes) -> (String, Kinds) {
    let mut out = String::with_capacity(text.len());
    let mut kinds = Kinds::default();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let plain = match (char, chars.peek(), which) {
            ('\\', Some(&quote @ ('"' | '\'')), _) => {
                kinds.quote = true;
                quote
            }
            ('\\', Some('\\'), Escapes::All) => {
                kinds.backslash = true;
                '\\'
            }
            ('\\', Some(&letter @ ('n' | 't' | 'r')), Escapes::All) => {
                kinds.control = true;
                match letter {
                    'n' => '\n',
                    't' => '\t',
                    _ => '\r',
                }
            }
            _ => {
                out.push(char);
                continue;
            }
        };
        chars.next();
        out.push(plain);
    }
    (out, kinds)
}

/// The ASCII character that the start of this text looks like, and how many bytes it takes there. Quotes, dashes and
/// spaces of typography only: each stands for one character, and none is a letter.
fn look_alike(bytes: &[u8]) -> Option<(u8, usize)> {
    Some(match bytes {
        // U+00A0.
        [0xc2, 0xa0, ..] => (b' ', 2),
        // U+2010 to U+2015: hyphens, dashes, the bar.
        [0xe2, 0x80, 0x90..=0x95, ..] => (b'-', 3),
        // U+2018 to U+201B.
        [0xe2, 0x80, 0x98..=0x9b, ..] => (b'\'', 3),
        // U+201C to U+201F.
        [0xe2, 0x80, 0x9c..=0x9f, ..] => (b'"', 3),
        // U+2007 and U+202F: spaces that do not break.
        [0xe2, 0x80, 0x87 | 0xaf, ..] => (b' ', 3),
        // U+2212: minus.
        [0xe2, 0x88, 0x92, ..] => (b'-', 3),
        _ => return None,
    })
}

/// Writes a text with ASCII in place of what looks like it.
pub(super) fn fold(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(special) = memchr::memchr2(0xc2, 0xe2, rest) {
        let (plain, from) = rest.split_at_checked(special).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let (byte, length) = look_alike(from).unwrap_or((from.first().copied().unwrap_or_default(), 1));
        out.push(byte);
        rest = from.get(length..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// The place in a text that a place in its folded form comes from.
pub(super) fn unfold(text: &[u8], folded: usize) -> usize {
    let mut at = 0;
    for _ in 0..folded {
        let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) else {
            break;
        };
        at += look_alike(rest).map_or(1, |(_, length)| length);
    }
    at
}

/// How long a text is when it is folded.
pub(super) fn folded_len(text: &str) -> usize {
    let mut out = Vec::new();
    fold(text.as_bytes(), &mut out);
    out.len()
}

/// The text with `\n` as its only line end.
pub(super) fn line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_level_of_escapes_is_taken_back() {
        let (text, kinds) = unescape(r#"say(\"a\\n\");\n\tend\d\"#, Escapes::All);
        assert_eq!(text, "say(\"a\\n\");\n\tend\\d\\");
        assert!(kinds.control && kinds.quote && kinds.backslash);
        let (text, kinds) = unescape(r#"say(\"a\n\")\\"#, Escapes::Quotes);
        assert_eq!(text, r#"say("a\n")\\"#);
        assert!(kinds.quote && !kinds.control && !kinds.backslash);
        assert!(!unescape("plain \\d", Escapes::All).1.any());
    }

    #[test]
    fn look_alikes_become_ascii() {
        let mut out = Vec::new();
        fold("“a”\u{a0}—\u{202f}‘b’ é €\u{2212}".as_bytes(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\" - 'b' é €-");
        let mut out = Vec::new();
        fold(b"\xe2\x80\xc2\xe2", &mut out);
        assert_eq!(out, b"\xe2\x80\xc2\xe2", "cut characters stay");
    }

    proptest! {
        #[test]
        fn escaping_and_unescaping_is_nothing(text in "[ab\"'\\\\\n\t]{0,20}") {
            let escaped: String = text.chars().map(|char| match char {
                '\n' => "\\n".to_owned(),
                '\t' => "\\t".to_owned(),
                '"' | '\'' | '\\' => format!("\\{char}"),
                other => other.to_string(),
            }).collect();
            prop_assert_eq!(unescape(&escaped, Escapes::All).0, text);
        }

        /// The fold of a part is the part of the fold.
        #[test]
        fn folded_places_lead_back(text in "[a “’—\u{a0}é€]{0,20}", cut in 0usize..30) {
            let mut folded = Vec::new();
            fold(text.as_bytes(), &mut folded);
            let cut = cut.min(folded.len());
            let mut front = Vec::new();
            fold(&text.as_bytes()[..unfold(text.as_bytes(), cut)], &mut front);
            prop_assert_eq!(&front, &folded[..cut]);
        }
    }
}
