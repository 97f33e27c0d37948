//! Finds the numbers in a text, as people write them.

/// A number and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number<'a> {
    pub(super) text: &'a str,
    pub(super) value: f64,
}

/// All numbers, in order. Digits inside a word (`p95`, `utf8`) are none; a unit may follow (`12ms`, `85%`).
pub(super) fn numbers(text: &str) -> Vec<Number<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let in_word = before.is_alphanumeric() || before == '_';
        let number = if in_word { None } else { number_at(rest) };
        let step = match number {
            Some((length, value)) => {
                let (taken, _) = rest.split_at(length);
                found.push(Number { text: taken, value });
                length
            }
            None => c.len_utf8(),
        };
        let (taken, after) = rest.split_at(step);
        before = taken.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    found
}

/// The number that the text begins with: its length in bytes and its value.
fn number_at(text: &str) -> Option<(usize, f64)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = text.len() - unsigned.len();
    if let Some(word) = ["infinity", "inf", "nan"]
        .iter()
        .find(|word| starts_with_word(unsigned, word))
    {
        let value = if *word == "nan" { f64::NAN } else { f64::INFINITY };
        return Some((sign + word.len(), value));
    }
    let whole = grouped(unsigned).unwrap_or_else(|| digits(unsigned));
    let fraction = match tail(unsigned, whole).strip_prefix('.') {
        Some(after) if digits(after) > 0 => 1 + digits(after),
        _ => 0,
    };
    if whole + fraction == 0 {
        return None;
    }
    let mantissa = whole + fraction;
    let exponent = match tail(unsigned, mantissa).strip_prefix(['e', 'E']) {
        Some(after) => {
            let power = after.strip_prefix(['+', '-']).unwrap_or(after);
            if digits(power) > 0 {
                1 + (after.len() - power.len()) + digits(power)
            } else {
                0
            }
        }
        None => 0,
    };
    let length = sign + mantissa + exponent;
    let plain: String = text.chars().take(length).filter(|c| *c != ',').collect();
    plain.parse().ok().map(|value| (length, value))
}

/// The length of `1,234,567`: groups of three after one to three digits, and at least one group.
fn grouped(text: &str) -> Option<usize> {
    let mut length = digits(text);
    if !(1..=3).contains(&length) {
        return None;
    }
    let first = length;
    while let Some(after) = tail(text, length).strip_prefix(',') {
        if digits(after) != 3 {
            break;
        }
        length += 4;
    }
    (length > first).then_some(length)
}

/// How many ASCII digits the text begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn tail(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let begins = text
        .get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word));
    begins && !tail(text, word.len()).starts_with(|c: char| c.is_alphanumeric() || c == '_')
}
