//! Makes text of others plain text of Markdown: as CommonMark and GitHub read it, it stays what it was, one line.

use robot_lab_to::commit_message::one_line;

/// A text for the middle of a line. It must not be what the line begins with.
pub(super) fn text(text: &str) -> String {
    let line = one_line(text);
    let mut escaped = String::with_capacity(line.len() + 8);
    let mut before = ' ';
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        let special = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' | '^' => true,
            // Within a word it means nothing.
            '_' => !(before.is_alphanumeric() && next.is_alphanumeric()),
            // Nothing that a robot wrote becomes a link.
            '/' => before == ':',
            '.' => escaped.to_lowercase().ends_with("www"),
            '@' => true,
            _ => false,
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(c);
        before = c;
    }
    escaped
}

/// A text as code within a line, also of a table.
pub(super) fn code(text: &str) -> String {
    let line = one_line(text);
    let ticks = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(ticks + 1);
    // A space on each side is taken away again, and keeps backticks of the text from those around it.
    let pad = if line.is_empty() || line.starts_with(['`', ' ']) || line.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{line}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser};

    /// The events of a piece of Markdown between those of its paragraph, with neighbouring text as one.
    fn inline(markdown: &str) -> Vec<String> {
        let mut events: Vec<String> = Vec::new();
        let mut in_text = false;
        // What only makes quotes and dashes prettier says nothing of structure.
        let options = Options::all() - Options::ENABLE_SMART_PUNCTUATION;
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Code(code) => {
                    events.push(format!("code {code}"));
                    in_text = false;
                }
                Event::Text(text) if in_text => {
                    if let Some(last) = events.last_mut() {
                        last.push_str(&text);
                    }
                }
                Event::Text(text) => {
                    events.push(text.into_string());
                    in_text = true;
                }
                other => {
                    events.push(format!("{other:?}"));
                    in_text = false;
                }
            }
        }
        events
    }

    #[test]
    fn what_robots_write_is_plain_text() {
        for hostile in [
            "<img src=x onerror=alert(1)> <!-- <script>",
            "[click](http://evil.example) ![x](y) http://evil.example www.evil.example a@b.example",
            "`code` **bold** __also__ _a_ ~~gone~~ $x^2$ a|b &lt; \\",
            "snake_case_name stays readable",
            "a\x1b[31m\u{202e}b\r\n# heading\n- list\n| a | b |\n|---|---|",
        ] {
            let shown = inline(&format!("x {}", text(hostile)));
            assert_eq!(shown.len(), 3, "{shown:?}");
            assert_eq!(shown[1], format!("x {}", one_line(hostile)));
        }
        assert_eq!(text("snake_case_name, 3 > 2"), "snake_case_name, 3 \\> 2");
    }

    proptest! {
        #[test]
        fn any_text_is_plain_text_for_a_parser_of_markdown(hostile in "[ -~\\n\\tä`*_|<>&\\\\]{0,60}") {
            let shown = inline(&format!("- x {}y", text(&hostile)));
            let expected = format!("x {}y", one_line(&hostile));
            prop_assert!(shown.contains(&expected), "{:?} is not in {:?}", expected, shown);
            prop_assert_eq!(shown.len(), 5, "{:?}", shown);
        }

        #[test]
        fn any_text_is_code_for_a_parser_of_markdown(hostile in "[ -~`]{0,40}") {
            let line = one_line(&hostile);
            prop_assume!(!line.is_empty());
            let shown = inline(&format!("x {} y", code(&hostile)));
            prop_assert!(shown.contains(&format!("code {line}")), "{:?} is not in {:?}", line, shown);
        }
    }
}
