//! Reads JSON with the slips that models make where only one thing can be meant. What is cut off is never completed, and
//! what a backslash may mean is never guessed.

use super::{Flaw, MAX_DEPTH};
use serde_json::{Map, Number, Value};

/// A text that is read from the front.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Reads from this byte on, which begins a character.
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at, depth: 0 }
    }

    /// Where it stands.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes over white space.
    pub(super) fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    /// Passes over this text, if it is next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let next = self.rest().starts_with(text);
        if next {
            self.at += text.len();
        }
        next
    }

    /// Passes over a word of these characters, which may be empty.
    pub(super) fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// One value, with white space before it.
    pub(super) fn value(&mut self) -> Result<Value, Flaw> {
        self.space();
        match self.peek() {
            Some('{') => self.nested(Self::object).map(Value::Object),
            Some('[') => self.nested(Self::list).map(Value::Array),
            Some('"' | '\'') => self.string().map(Value::String),
            Some('-' | '0'..='9') => self.number().map(Value::Number),
            Some(c) if is_word(c) => self.literal(),
            _ => Err(self.flaw("expected a value")),
        }
    }

    /// An object that begins here.
    pub(super) fn whole_object(&mut self) -> Result<Map<String, Value>, Flaw> {
        self.nested(Self::object)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn flaw(&self, what: &str) -> Flaw {
        Flaw::at(self.text, self.at, what)
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Flaw>) -> Result<T, Flaw> {
        if self.depth >= MAX_DEPTH {
            return Err(self.flaw(&format!("values are nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn object(&mut self) -> Result<Map<String, Value>, Flaw> {
        if !self.take("{") {
            return Err(self.flaw("expected `{`"));
        }
        let mut object = Map::new();
        loop {
            self.space();
            if self.take("}") {
                return Ok(object);
            }
            let before = self.clone();
            let key = match self.peek() {
                Some('"' | '\'') => self.string()?,
                Some(c) if is_word(c) => self
                    .word(|c| is_word(c) || c == '-' || c.is_ascii_digit())
                    .to_owned(),
                _ => return Err(self.flaw("expected a key in quotes, or `}`")),
            };
            if object.contains_key(&key) {
                return Err(before.flaw("this key is there twice"));
            }
            self.space();
            if !self.take(":") {
                return Err(self.flaw("expected `:`"));
            }
            let value = self.value()?;
            object.insert(key, value);
            self.space();
            if !self.take(",") && self.peek() != Some('}') {
                return Err(self.flaw("expected `,` or `}`"));
            }
        }
    }

    fn list(&mut self) -> Result<Vec<Value>, Flaw> {
        if !self.take("[") {
            return Err(self.flaw("expected `[`"));
        }
        let mut list = Vec::new();
        loop {
            self.space();
            if self.take("]") {
                return Ok(list);
            }
            list.push(self.value()?);
            self.space();
            if !self.take(",") && self.peek() != Some(']') {
                return Err(self.flaw("expected `,` or `]`"));
            }
        }
    }

    /// A text in double or single quotes. Line feeds and other control characters may stand in it as they are.
    fn string(&mut self) -> Result<String, Flaw> {
        let opened = self.clone();
        let quote = self.next();
        let mut text = String::new();
        loop {
            let before = self.clone();
            match self.next() {
                None => return Err(opened.flaw("this text has no closing quote")),
                Some('\\') => match self.next() {
                    Some(c @ ('"' | '\\' | '/')) => text.push(c),
                    // Between single quotes there is no other way to write one.
                    Some('\'') if quote == Some('\'') => text.push('\''),
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some('u') => match self.unicode() {
                        Some(c) => text.push(c),
                        None => return Err(before.flaw("`\\u` without the four digits of a character")),
                    },
                    Some('b' | 'f') => {
                        return Err(before.flaw(
                            "this backslash may stand for itself or for a control character; write `\\\\` for a backslash",
                        ));
                    }
                    _ => return Err(before.flaw("no such escape; write `\\\\` for a backslash")),
                },
                c if c == quote => return Ok(text),
                Some(c) => text.push(c),
            }
        }
    }

    /// What follows `\u`: four digits, or a pair of surrogates.
    fn unicode(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        if !self.take("\\u") {
            return None;
        }
        let second = self.four_digits()?;
        let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + low)
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn number(&mut self) -> Result<Number, Flaw> {
        let before = self.clone();
        let digits = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
        digits
            .parse()
            .map_err(|_| before.flaw("this is no number; write a text in quotes"))
    }

    /// The words of JSON and of Python.
    fn literal(&mut self) -> Result<Value, Flaw> {
        let before = self.clone();
        match self.word(|c| is_word(c) || c.is_ascii_digit()) {
            "true" | "True" => Ok(Value::Bool(true)),
            "false" | "False" => Ok(Value::Bool(false)),
            "null" | "None" => Ok(Value::Null),
            _ => Err(before.flaw("expected a value; write a text in quotes")),
        }
    }
}

/// Whether a name without quotes may begin so.
fn is_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}
