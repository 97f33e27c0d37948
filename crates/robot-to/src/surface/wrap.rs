//! Breaks a line for a terminal, between words, with a hanging indent. Colours take no room.

/// Narrower than this, a terminal breaks lines by itself.
const LEAST: usize = 40;

/// The line in parts of at most `width` characters; parts after the first are indented by `indent`. A word that is
/// longer than a line stays whole. Text of several lines is left alone.
pub(super) fn wrap(line: &str, width: usize, indent: usize) -> String {
    if width < indent + LEAST || line.contains('\n') || length(line) <= width {
        return line.to_owned();
    }
    let mut text = String::with_capacity(line.len() + 64);
    let mut column = 0;
    let mut empty = true;
    for word in line.split_inclusive(' ') {
        let room = length(word.trim_end());
        if !empty && room > 0 && column + room > width {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        }
        text.push_str(word);
        column += length(word);
        // The spaces that a line begins with are no place to break it.
        empty = empty && room == 0;
    }
    text
}

/// Characters that take room: all but sequences that colour.
fn length(text: &str) -> usize {
    let mut coloured = false;
    let mut length = 0;
    for c in text.chars() {
        match c {
            '\x1b' => coloured = true,
            'm' if coloured => coloured = false,
            _ if coloured => {}
            _ => length += 1,
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace("\x1b[31m", "").replace("\x1b[0m", "")
    }

    #[test]
    fn a_line_is_broken_between_words_and_colours_take_no_room() {
        let line = format!("#1   {}", "\x1b[31mword\x1b[0m and more ".repeat(9));
        let wrapped = wrap(&line, 60, 5);
        let lines: Vec<_> = wrapped.lines().map(plain).collect();
        assert_eq!(lines.len(), 3, "{wrapped}");
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{wrapped}");
        assert!(
            lines.iter().skip(1).all(|line| line.starts_with("     ")),
            "{wrapped}"
        );
        let words = |text: &str| plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&wrapped), words(&line));
    }

    #[test]
    fn what_fits_and_what_cannot_be_broken_stays() {
        let long = format!("a {}", "x".repeat(100));
        for (line, width) in [("short", 80), ("a line\nand another", 8), (long.as_str(), 30)] {
            assert_eq!(wrap(line, width, 0), line);
        }
        assert_eq!(wrap(&long, 80, 2), format!("a\n  {}", "x".repeat(100)));
    }
}
