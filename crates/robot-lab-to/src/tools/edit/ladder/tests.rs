//! Tests of the rungs: what each lets pass, what all refuse, and what holds for any text.

use super::super::lines::Fold;
use super::super::replace;
use super::*;
use proptest::prelude::*;

/// The file after an edit, as text, and the note of the rung.
fn edited(file: &str, old: &str, new: &str) -> Result<(String, Option<&'static str>), String> {
    let replaced = replace(file.as_bytes(), old, new, false)?;
    Ok((String::from_utf8(replaced.bytes).unwrap(), replaced.note))
}

struct Case {
    name: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
    right: &'static str,
}

fn all_right(cases: &[Case], note: &str) {
    for case in cases {
        let (file, rung) =
            edited(case.file, case.old, case.new).unwrap_or_else(|why| panic!("{}: {why}", case.name));
        assert_eq!(file, case.right, "{}", case.name);
        assert_eq!(rung, Some(note), "{}", case.name);
    }
}

#[test]
fn white_space_at_line_ends_may_differ() {
    let cases = [
        Case {
            name: "the file has trailing spaces",
            file: "def f(x):   \n    return x + 1\t\n\nprint(f(2))\n",
            old: "def f(x):\n    return x + 1\n",
            new: "def f(x):\n    return x + 2\n",
            right: "def f(x):\n    return x + 2\n\nprint(f(2))\n",
        },
        Case {
            name: "old_text has trailing spaces, and starts and ends within lines",
            file: "    if ready {\n        start();\n    } else {\n",
            old: "if ready { \n        start();  \n    }",
            new: "if ready {\n        begin();\n    }",
            right: "    if ready {\n        begin();\n    } else {\n",
        },
        Case {
            name: "one long line, trimmed to its end",
            file: "let total = price * count;\nlet total = price * count; // twice\n",
            old: "let total = price * count;  ",
            new: "let total = sum;",
            right: "let total = sum;\nlet total = price * count; // twice\n",
        },
        Case {
            name: "blank lines with spaces in the file",
            file: "import os\n    \nimport sys  \n",
            old: "import os\n\nimport sys\n",
            new: "import os\nimport sys\n",
            right: "import os\nimport sys\n",
        },
        Case {
            name: "a blank first line takes its spaces along",
            file: "one = 1\n   \ntwo_and_three = 23 \nfour = 4\n",
            old: "\ntwo_and_three = 23\nfour",
            new: "two = 2\nfour",
            right: "one = 1\ntwo = 2\nfour = 4\n",
        },
        Case {
            name: "a line that is only ended by old_text keeps its spaces",
            file: "first line  \nsecond line \nthird line\n",
            old: "\nsecond line\nthird line\n",
            new: "\n2\n",
            right: "first line  \n2\n",
        },
        Case {
            name: "BOM and no final newline stay",
            file: "\u{feff}alpha beta\ngamma delta",
            old: "alpha beta\ngamma delta\n",
            new: "alpha\ngamma\n",
            right: "\u{feff}alpha\ngamma",
        },
        Case {
            name: "CRLF and spaces",
            file: "alpha beta \r\ngamma delta\r\n",
            old: "alpha beta\ngamma delta\n",
            new: "alpha\nnew\ngamma\n",
            right: "alpha\r\nnew\r\ngamma\r\n",
        },
        Case {
            name: "mixed line ends: the new lines end like the first",
            file: "alpha beta\r\ngamma delta\nlast\n",
            old: "alpha beta\ngamma delta\n",
            new: "a\nb\n",
            right: "a\r\nb\r\nlast\n",
        },
        Case {
            name: "old_text with CRLF, file without",
            file: "alpha beta\ngamma delta\nlast\n",
            old: "alpha beta\r\ngamma delta\r\n",
            new: "a\r\nb\r\n",
            right: "a\nb\nlast\n",
        },
    ];
    all_right(&cases, LINE_ENDS.note);
}

#[test]
fn a_common_indentation_may_differ() {
    let cases = [
        Case {
            name: "a method that was given without its indentation",
            file: "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n",
            old: "def g(self):\n    return 2\n",
            new: "def g(self):\n    if self.x:\n        return 3\n\n    return 2\n",
            right: "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        if self.x:\n            return 3\n\n        return 2\n",
        },
        Case {
            name: "too much indentation, trailing space too",
            file: "fn main() {\n    start(); \n    stop();\n}\n",
            old: "        start();\n        stop();",
            new: "        start();\n            wait();\n        stop();",
            right: "fn main() {\n    start();\n        wait();\n    stop();\n}\n",
        },
        Case {
            name: "one long line",
            file: "\treturn compute(first, second)\n",
            old: "    \treturn compute(first, second)\n",
            new: "    \treturn compute(second, first)\n",
            right: "\treturn compute(second, first)\n",
        },
        Case {
            name: "tabs for spaces, two depths",
            file: "def f():\n    if x:\n        go()\n    stop()\n",
            old: "def f():\n\tif x:\n\t\tgo()\n",
            new: "def f():\n\tif x:\n\t\tif y:\n\t\t\tgo()\n",
            right: "def f():\n    if x:\n        if y:\n            go()\n    stop()\n",
        },
        Case {
            name: "spaces for tabs in a CRLF file",
            file: "func f() {\r\n\tif ready {\r\n\t\tgo()\r\n\t}\r\n}\r\n",
            old: "  if ready {\n    go()\n  }\n",
            new: "  go()\n",
            right: "func f() {\r\n\tgo()\r\n}\r\n",
        },
        Case {
            name: "no final newline",
            file: "a:\n  - first item\n  - second item",
            old: "- first item\n- second item\n",
            new: "- only item\n",
            right: "a:\n  - only item",
        },
    ];
    for case in &cases {
        let note = if case.name.contains("for") {
            TABS
        } else {
            INDENTATION.note
        };
        all_right(std::slice::from_ref(case), note);
    }
}

#[test]
fn escapes_may_be_one_level_too_many() {
    let cases = [
        Case {
            name: "newlines and quotes",
            file: "fn main() {\n\tprintln!(\"hello\");\n}\n",
            old: r#"fn main() {\n\tprintln!(\"hello\");\n}"#,
            new: r#"fn main() {\n\tprintln!(\"bye\");\n}"#,
            right: "fn main() {\n\tprintln!(\"bye\");\n}\n",
        },
        Case {
            name: "only quotes; the escapes of the file stay",
            file: "print(\"one\\ntwo\")\n",
            old: r#"print(\"one\ntwo\")"#,
            new: r#"print(\"one\nthree\")"#,
            right: "print(\"one\\nthree\")\n",
        },
        Case {
            name: "everything twice, in a CRLF file",
            file: "re = \"\\\\d+\\n\"\r\nend_of_it()\r\n",
            old: r#"re = \"\\\\d+\\n\"\nend_of_it()\n"#,
            new: r#"re = \"\\\\w+\\n\"\nend_of_it()\n"#,
            right: "re = \"\\\\w+\\n\"\r\nend_of_it()\r\n",
        },
    ];
    all_right(&cases, ESCAPES.note);
}

#[test]
fn look_alikes_may_differ_and_stay_where_the_edit_keeps_them() {
    let cases = [
        Case {
            name: "curly quotes and a dash in the file",
            file: "It’s a “simple” test — really.\n",
            old: "It's a \"simple\" test - really.",
            new: "It's a \"simple\" proof - really.",
            right: "It’s a “simple” proof — really.\n",
        },
        Case {
            name: "curly quotes in old_text, over two lines with CRLF",
            file: "say(\"hello\")\r\nsay('bye')\r\nend\r\n",
            old: "say(“hello”)\nsay(‘bye’)\n",
            new: "say(“hello”)\nsay('now')\nsay('later')\n",
            right: "say(\"hello\")\r\nsay('now')\r\nsay('later')\r\nend\r\n",
        },
        Case {
            name: "a space that does not break, text added at the end, no final newline",
            file: "price:\u{a0}10\u{202f}000 EUR",
            old: "price: 10 000 EUR or more\n",
            new: "",
            right: "",
        },
        Case {
            name: "the look-alike itself is what is edited",
            file: "title: “A long title”, by hand\n",
            old: "title: \"A long title\", by hand\n",
            new: "title: 'A long title', by hand\n",
            right: "title: 'A long title', by hand\n",
        },
    ];
    for case in cases.iter().filter(|case| !case.right.is_empty()) {
        all_right(std::slice::from_ref(case), LOOK_ALIKES.note);
    }
    let file = "price:\u{a0}10\u{202f}000 EUR or more";
    let (file, _) = edited(file, "price: 10 000 EUR or more\n", "price: 10 000 EUR or less\n").unwrap();
    assert_eq!(file, "price:\u{a0}10\u{202f}000 EUR or less", "no final newline");
}

#[test]
fn spacing_inside_of_kept_lines_may_differ() {
    let cases = [
        Case {
            name: "aligned lines around the change",
            file: "x    = 1\nlong = 2\ny    = 3\n",
            old: "x = 1\nlong = 2\ny = 3\n",
            new: "x = 1\nlong = 20\ny = 3\n",
            right: "x    = 1\nlong = 20\ny    = 3\n",
        },
        Case {
            name: "lines added between, shifted, CRLF",
            file: "{\r\n  a:   1,\r\n  b:   2,\r\n  c:   3\r\n}\r\n",
            old: "a: 1,\nb: 2,\nc: 3",
            new: "a: 1,\nb: 2,\nbb: 22,\nc: 3",
            right: "{\r\n  a:   1,\r\n  b:   2,\r\n  bb: 22,\r\n  c:   3\r\n}\r\n",
        },
        Case {
            name: "the last line changes, no final newline",
            file: "one   = 1\ntwo   = 2\nthree = 3",
            old: "one = 1\ntwo = 2\nthree = 3\n",
            new: "one = 1\ntwo = 2\nfour = 4\n",
            right: "one   = 1\ntwo   = 2\nfour = 4",
        },
        Case {
            name: "a line goes",
            file: "one   = 1\ntwo = 2\nthree   = 3\n",
            old: "one = 1\ntwo = 2\nthree = 3\n",
            new: "one = 1\nthree = 3\n",
            right: "one   = 1\nthree   = 3\n",
        },
    ];
    all_right(&cases, SPACING.note);
}

#[test]
fn whatever_leaves_a_doubt_is_refused() {
    let block = "fn a() { \n    go();\n}\nfn a() {\t\n    go();\n}\n";
    let table = [
        (block, "fn a() {\n    go();\n}\n", "x", "2 places (lines 1, 4)"),
        (
            "  start_it();\n  stop_it();\n\n\tstart_it();\n\tstop_it();\n",
            "start_it();\nstop_it();\n",
            "x",
            "its indentation shifted it fits 2 places (lines 1, 4)",
        ),
        (
            "say \"hello there, you\"\nsay \"hello there, you\"\n",
            r#"say \"hello there, you\""#,
            "x",
            "its escapes taken back it fits 2 places (lines 1, 2)",
        ),
        (
            "it’s all the same to me\nit‘s all the same to me\n",
            "it's all the same to me",
            "x",
            "taken as equal it fits 2 places (lines 1, 2)",
        ),
        ("a  \nb \n", "a\nb\n", "x", "so short a text must match exactly"),
        ("let x = 1; \n", "let x = 1;  \n", "x", "so short"),
        // Likeness is not a reason, however close it is.
        (
            "fn total(a: u32) -> u32 {\n    a + 1\n}\n",
            "fn total(a: u32) -> u32 {\n    a + 2\n}\n",
            "x",
            "\n1|fn total(a: u32) -> u32 {\n2|    a + 1\n3|}",
        ),
        (
            "if a:\n    b_and_c()\nd_and_e()\n",
            "if a:\n        b_and_c()\n    d_and_e()\n",
            "x",
            "not in the file",
        ),
        // The file does not say how deep a second level is.
        (
            "    alpha_beta()\n    gamma_delta()\n",
            "\talpha_beta()\n\tgamma_delta()\n",
            "\tif x:\n\t\talpha_beta()\n",
            "indentation of new_text is not clear",
        ),
        (
            "  alpha_beta()\n  gamma_delta()\n",
            "    alpha_beta()\n    gamma_delta()\n",
            " alpha_beta()\n",
            "indentation of new_text is not clear",
        ),
        // Are these escapes of the new text, or of the file?
        (
            "print(\"hello there\")\n",
            r#"print(\"hello there\")"#,
            r#"print(\"hello\nthere\")"#,
            "which escapes of new_text",
        ),
        (
            "first_line()\nsecond_line()\n",
            r"first_line()\nsecond_line()",
            "first_line('\\n')\nsecond_line()",
            "which escapes of new_text",
        ),
        (
            "x    = 1\nlong = 2\ny    = 3\n",
            "x = 1\nlong = 2\ny = 3\n",
            "x = 10\nlong = 2\ny = 3\n",
            "white space inside line 1 differs",
        ),
        (
            "def f(x):  \n    return x\n",
            "def f(x):\n    return x\n",
            "def f(x):  \n    return x\n",
            "nothing would change: line 1",
        ),
        (
            "foo_bar_and_baz()\nfoo_bar_and_bazaar\n",
            "foo_bar_and_b  \n",
            "x",
            "not in the file",
        ),
    ];
    for (file, old, new, why) in table {
        let refusal = edited(file, old, new).unwrap_err();
        assert!(refusal.contains(why), "{old:?}: {refusal}");
    }
    let all = replace(block.as_bytes(), "fn a() {\n    go();\n}\n", "x", true).unwrap_err();
    assert!(
        all.contains("takes exact text only"),
        "never with replace_all: {all}"
    );
}

#[test]
fn bytes_that_are_no_text_stay() {
    let file = b"\xff\xfe start \n\x80\x81 middle_of_it \nlast_of_it\xe2\x80\n";
    let replaced = replace(file, "middle_of_it\nlast_of_it", "m\nl", false).unwrap();
    assert_eq!(replaced.bytes, b"\xff\xfe start \n\x80\x81 m\nl\xe2\x80\n");
    assert_eq!((replaced.lines, replaced.note), (vec![2], Some(LINE_ENDS.note)));
}

/// A file around a block of lines that are nowhere else.
#[derive(Debug, Clone)]
struct Sample {
    before: String,
    block: Vec<(String, String, String)>,
    after: String,
    end: &'static str,
    ended: bool,
}

impl Sample {
    /// The block with another indentation and line ends of its own.
    fn block(&self, front: &str, end: &str, trailing: impl Fn(usize, &str) -> String) -> String {
        let lines: Vec<String> = self
            .block
            .iter()
            .enumerate()
            .map(|(index, (indent, text, blanks))| {
                let front = if text.is_empty() { "" } else { front };
                let indent = if text.is_empty() { "" } else { indent };
                format!("{front}{indent}{text}{}", trailing(index, blanks))
            })
            .collect();
        lines.join(end) + if self.ended { end } else { "" }
    }

    fn around(&self, block: &str) -> String {
        let tail = if self.ended { "" } else { self.end };
        format!("{}{block}{tail}{}", self.before, self.after)
            .replace("\r\n", "\n")
            .replace('\n', self.end)
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    let blanks = || "[ \t]{0,2}";
    let lines = prop::collection::vec((blanks(), "[xyz(;]{0,4}", blanks()), 0..4);
    let ends = prop::sample::select(vec!["\n", "\r\n"]);
    (
        "([ab ]{0,4}\n){0,3}",
        lines,
        "([ab ]{0,4}\n){0,3}[ab]{0,3}",
        ends,
        any::<bool>(),
        (blanks(), blanks()),
    )
        .prop_map(|(before, lines, after, end, ended, (first, last))| {
            let mut block = vec![(first, "unique_first_line();".to_owned(), String::new())];
            block.extend(lines);
            block.push((last, "unique_last_line();".to_owned(), " ".to_owned()));
            Sample {
                before,
                block,
                after,
                end,
                ended,
            }
        })
}

/// Text from what matters to the rungs.
fn any_text() -> impl Strategy<Value = String> {
    "[ab \t\n\r\"'\\\\nt“’\u{a0}—\u{feff}é]{0,24}"
}

/// A file, and a part of it with one kind of difference.
fn almost_a_part() -> impl Strategy<Value = (String, String)> {
    let lines = prop::collection::vec(
        "[ \t]{0,3}[abc]?( {0,2}[a“’\"\\\\\u{a0}—]){0,2}[ \t]{0,2}(\r?\n)",
        1..6,
    );
    (lines, "[abc]{0,2}", 0usize..20, 1usize..30, 0u8..6, "[ \t]{1,2}").prop_map(
        |(lines, last, from, length, kind, blanks)| {
            let file = lines.concat() + &last;
            // Whole lines are a part more often than chance would have it.
            let part: String = if length % 2 == 0 {
                file.split_inclusive('\n')
                    .skip(from % 4)
                    .take(1 + length % 4)
                    .collect()
            } else {
                file.chars().skip(from).take(length).collect()
            };
            let ascii = |text: &str| {
                let mut out = Vec::new();
                escape::fold(text.as_bytes(), &mut out);
                String::from_utf8(out).unwrap()
            };
            let by_line = |change: &dyn Fn(&str) -> String| {
                let lines: Vec<String> = part.split('\n').map(change).collect();
                lines.join("\n")
            };
            let old = match kind {
                0 => by_line(&|line| line.trim_end_matches([' ', '\t', '\r']).to_owned()),
                1 => by_line(&|line| {
                    if line.is_empty() {
                        String::new()
                    } else {
                        format!("{blanks}{line}")
                    }
                }),
                2 => by_line(&|line| line.strip_prefix([' ', '\t']).unwrap_or(line).to_owned()),
                3 => part
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace('\n', "\\n"),
                4 => ascii(&part),
                _ => part.replace("  ", " "),
            };
            (file, if old.is_empty() { "a".into() } else { old })
        },
    )
}

type RungFn = fn(&[u8], &str, &str) -> Result<Option<Fit>, String>;

/// A text with its lines folded, and `\n` as its line end.
fn folded(text: &[u8], fold: Fold) -> Vec<u8> {
    let text = String::from_utf8(text.to_vec()).unwrap().replace("\r\n", "\n");
    let mut out = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        fold(line.as_bytes(), &mut out);
    }
    out
}

fn trimmed_lines(text: &[u8]) -> Vec<u8> {
    folded(text, |body, out| out.extend_from_slice(trim_end(body)))
}

proptest! {
    /// Spaces at line ends: the same result as the exact edit, which writes `new` in place of the whole block.
    #[test]
    fn a_block_with_other_line_ends_is_edited_as_if_exact(
        sample in sample(), blanks in prop::collection::vec("[ \t]{0,2}", 6), new in "[pq \n]{0,8}",
    ) {
        let file = sample.around(&sample.block("", "\n", |_, blanks| blanks.to_owned()));
        let old = sample.block("", "\n", |index, _| blanks[index].clone());
        prop_assume!(!file.contains(&old.replace('\n', sample.end)));
        let (edited, note) = edited(&file, &old, &new).unwrap();
        prop_assert_eq!(edited, sample.around(&new));
        prop_assert_eq!(note, Some(LINE_ENDS.note));
    }

    /// Indentation: the same result as the exact edit, with `new` shifted like the block.
    #[test]
    fn a_shifted_block_is_edited_as_if_exact(
        sample in sample(), by in "[ \t]{1,4}", deeper in any::<bool>(), new in prop::collection::vec("[pq]{1,3}", 1..4),
    ) {
        let (of_file, of_old) = if deeper { (by.as_str(), "") } else { ("", by.as_str()) };
        let keep = |_: usize, blanks: &str| blanks.to_owned();
        let file = sample.around(&sample.block(of_file, "\n", keep));
        let new = |front: &str| {
            let lines: Vec<String> = new.iter().map(|line| format!("{front}{line}")).collect();
            lines.join("\n") + if sample.ended { "\n" } else { "" }
        };
        let (edited, note) = edited(&file, &sample.block(of_old, "\n", keep), &new(of_old)).unwrap();
        prop_assert_eq!(edited, sample.around(&new(of_file)));
        prop_assert_eq!(note, Some(INDENTATION.note));
    }

    /// Two blocks that differ from the text in the same way are never one.
    #[test]
    fn two_places_are_refused(sample in sample(), by in "[ \t]{1,3}", other in "[ \t]{1,3}", between in "(ab\n)?") {
        let old = sample.block("", "\n", |_, _| "\t".into());
        for (one, two) in [
            (sample.block("", "\n", |_, _| " ".into()), sample.block("", "\n", |_, _| "  ".into())),
            (sample.block(&by, "\n", |_, _| "\t".into()), sample.block(&other, "\n", |_, _| "\t".into())),
        ] {
            let tail = if sample.ended { "" } else { "\n" };
            let file = sample.around(&format!("{one}{tail}{between}{two}"));
            let refusal = edited(&file, &old, "new").unwrap_err();
            prop_assert!(refusal.contains("2 places"), "{}", refusal);
        }
    }

    /// A copy of a part of the file is found as it is, where it is.
    #[test]
    fn a_verbatim_part_matches_exactly(file in any_text(), from in any::<prop::sample::Index>(), length in 1usize..30, new in "[pq\n]{0,4}") {
        let bytes = file.as_bytes();
        prop_assume!(!bytes.is_empty());
        let from = from.index(bytes.len());
        let Ok(old) = std::str::from_utf8(&bytes[from..(from + length).min(bytes.len())]) else { return Ok(()) };
        let places = bytes.windows(old.len()).filter(|window| *window == old.as_bytes()).count();
        match replace(bytes, old, &new, false) {
            Ok(replaced) => {
                prop_assert_eq!((places, replaced.note), (1, None));
                prop_assert!(replaced.bytes.starts_with(&bytes[..from]));
                prop_assert!(replaced.bytes.ends_with(&bytes[from + old.len()..]));
            }
            Err(_) => prop_assert!(places > 1 || old == new),
        }
    }

    /// Rungs see short texts here too. What they find lies in the file, and is all that changes.
    #[test]
    fn a_rung_changes_its_span_only((file, old) in almost_a_part(), new in any_text()) {
        let file = file.as_bytes();
        let (old, new) = (&*line_feeds(&old), &*line_feeds(&new));
        for rung in [line_ends, indentation, escapes, look_alikes, spacing] {
            let Ok(Some(fit)) = rung(file, old, new) else { continue };
            prop_assert!(fit.span.start <= fit.span.end && fit.span.end <= file.len());
            let feeds = file[..fit.span.start].iter().filter(|byte| **byte == b'\n').count();
            prop_assert_eq!(fit.line, 1 + feeds);
            let marked = file.starts_with(b"\xef\xbb\xbf");
            prop_assert!(!marked || fit.span.start >= 3);
            for at in [fit.span.start, fit.span.end] {
                prop_assert!(at == 0 || file.get(at - 1..=at) != Some(b"\r\n"), "a line end is one thing");
            }
        }
    }

    /// The oracle folds the whole file and replaces there; folding what a rung did must give the same.
    #[test]
    fn a_rung_does_what_replacing_in_folded_text_does((file, old) in almost_a_part(), new in "[ab \t\n]{0,8}") {
        let (file, old) = (file.trim_start_matches('\u{feff}').as_bytes(), &*line_feeds(&old));
        let rungs: [(RungFn, Fold, bool); 4] = [
            (line_ends, |body, out| out.extend_from_slice(trim_end(body)), false),
            (look_alikes, escape::fold, false),
            (indentation, |body, out| out.extend_from_slice(trim_end(split_indent(body).1)), true),
            (spacing, collapse, true),
        ];
        for (rung, fold, whole_lines) in rungs {
            let Ok(Some(fit)) = rung(file, old, &new) else { continue };
            let edited = [&file[..fit.span.start], fit.text.as_slice(), &file[fit.span.end..]].concat();
            let [text, mut needle, mut put] = [file, old.as_bytes(), new.as_bytes()].map(|text| folded(text, fold));
            if whole_lines {
                if old.ends_with('\n') != new.ends_with('\n') { continue }
                [needle, put] = [needle, put].map(|text| {
                    let text = text.strip_suffix(b"\n").filter(|_| old.ends_with('\n')).unwrap_or(&text);
                    [b"\n", text, b"\n"].concat()
                });
                if old.ends_with('\n') && new.is_empty() { put.pop(); }
            } else {
                // Within a line, white space at the end of the new text is none at a line end.
                put = new.as_bytes().to_vec();
            }
            if !whole_lines && (needle.starts_with(b"\n") || old.ends_with([' ', '\t'])) {
                continue;
            }
            let text = [b"\n".as_slice(), &text, b"\n"].concat();
            let places: Vec<usize> =
                (1 - usize::from(whole_lines)..text.len()).filter(|at| text[*at..].starts_with(&needle)).collect();
            let [at] = places[..] else { continue };
            let expected = [&text[..at], &put, &text[at + needle.len()..]].concat();
            let [expected, edited] = [expected, [b"\n".as_slice(), &edited].concat()].map(|text| {
                let mut text = folded(&text, fold);
                while text.last() == Some(&b'\n') { text.pop(); }
                text
            });
            prop_assert_eq!(String::from_utf8_lossy(&edited), String::from_utf8_lossy(&expected), "{}", fit.note);
        }
    }

    /// The oracle trims the whole file and searches it from every byte.
    #[test]
    fn the_first_rung_is_a_search_in_trimmed_text(
        file in "[ab \n]{0,24}(\r\n)?[ab \n]{0,12}", old in "[ab]( ?[ab\n]){0,4}[ab]", new in "[pq\n]{0,3}",
    ) {
        let (text, needle) = (trimmed_lines(file.as_bytes()), trimmed_lines(old.as_bytes()));
        let places = text.windows(needle.len()).filter(|window| *window == needle).count();
        match line_ends(file.as_bytes(), &old, &new) {
            Ok(None) => prop_assert_eq!(places, 0),
            Ok(Some(fit)) => {
                prop_assert_eq!(places, 1);
                prop_assert_eq!(trimmed_lines(&file.as_bytes()[fit.span]), needle);
            }
            Err(_) => prop_assert!(places > 1),
        }
    }

    /// Any bytes, any texts: an answer.
    #[test]
    fn nothing_panics(
        file in prop::collection::vec(prop::sample::select(b"ab \t\n\r\\\"\xc2\xa0\xe2\x80\x94\xff\xef\xbb\xbf".to_vec()), 0..60),
        old in any_text(), new in any_text(), whole in any::<(Vec<u8>, String, String, bool)>(),
    ) {
        for rung in [line_ends, indentation, escapes, look_alikes, spacing] {
            drop(rung(&file, &old, &new));
        }
        drop(replace(&file, &old, &new, false));
        drop(replace(&whole.0, &whole.1, &whole.2, whole.3));
        let text = String::from_utf8_lossy(&file).repeat(3);
        drop(replace(&file, &text, &new, false));
    }
}
