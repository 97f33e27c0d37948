//! How the indentation of one block differs from that of another, and the same change for a third text.

use super::lines::split_indent;

/// Widest and narrowest indentation that a tab may stand for, in spaces.
const TAB_WIDTHS: std::ops::RangeInclusive<usize> = 2..=8;

/// One change of indentation, the same for every line that is not blank.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shift {
    /// This is added in front.
    Add(Vec<u8>),
    /// This is taken away in front.
    Remove(Vec<u8>),
    /// Every leading tab becomes so many spaces.
    ToSpaces(Width),
    /// Every so many leading spaces become a tab; what is left over stays.
    ToTabs(Width),
}

/// How many spaces a tab stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Width {
    spaces: usize,
    /// The only indentation that it was seen with. One depth alone may also be a tab for two levels of spaces, so it
    /// says nothing about other depths.
    only: Option<Vec<u8>>,
}

impl Shift {
    /// The one shift that makes the indentation of each first line that of its second. Blank pairs do not count.
    pub(super) fn between<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> Option<Self> {
        let indents = pairs
            .map(|(from, to)| (split_indent(from), split_indent(to)))
            .filter(|((_, from), (_, to))| !from.is_empty() && !to.is_empty())
            .map(|((from, _), (to, _))| (from, to));
        Self::common(indents.clone()).or_else(|| Self::tabs(indents))
    }

    fn common<'a>(mut indents: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<Self> {
        let (from, to) = indents.next()?;
        // What is left when the equal part next to the text is cut off is the same for all lines with the same shift.
        let shift = unequal(from, to);
        if !indents.all(|(from, to)| unequal(from, to) == shift) {
            return None;
        }
        match shift {
            ([], added) => Some(Self::Add(added.to_vec())),
            (removed, []) => Some(Self::Remove(removed.to_vec())),
            _ => None,
        }
    }

    fn tabs<'a>(indents: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> Option<Self> {
        let has_tab = |indent: &[u8]| indent.contains(&b'\t');
        if !indents.clone().any(|(from, to)| has_tab(from) != has_tab(to)) {
            return None;
        }
        let (first, _) = indents.clone().next()?;
        let only = indents.clone().all(|(from, _)| from == first);
        let only = only.then(|| first.to_vec());
        let mut fitting = TAB_WIDTHS
            .flat_map(|spaces| {
                let width = Width {
                    spaces,
                    only: only.clone(),
                };
                [Self::ToSpaces(width.clone()), Self::ToTabs(width)]
            })
            .filter(|shift| {
                indents
                    .clone()
                    .all(|(from, to)| shift.indent(from).is_some_and(|shifted| shifted == to))
            });
        let shift = fitting.next()?;
        fitting.next().is_none().then_some(shift)
    }

    /// The shifted indentation; None when the shift says nothing about this one.
    fn indent(&self, indent: &[u8]) -> Option<Vec<u8>> {
        let run = |wanted: u8| indent.iter().take_while(|byte| **byte == wanted).count();
        let (front, used) = match self {
            Self::Add(added) => (added.clone(), 0),
            Self::Remove(removed) => {
                return indent.strip_prefix(removed.as_slice()).map(<[u8]>::to_vec);
            }
            Self::ToSpaces(width) | Self::ToTabs(width)
                if width.only.as_ref().is_some_and(|only| only != indent) =>
            {
                return None;
            }
            Self::ToSpaces(width) => {
                let tabs = run(b'\t');
                (vec![b' '; tabs * width.spaces], tabs)
            }
            Self::ToTabs(width) => {
                let tabs = run(b' ') / width.spaces;
                (vec![b'\t'; tabs], tabs * width.spaces)
            }
        };
        Some([front.as_slice(), indent.get(used..).unwrap_or_default()].concat())
    }

    /// Writes a shifted line; a blank one stays as it is. False when the shift says nothing about this indentation.
    pub(super) fn apply(&self, body: &[u8], out: &mut Vec<u8>) -> bool {
        let (indent, rest) = split_indent(body);
        if rest.is_empty() {
            out.extend_from_slice(body);
            return true;
        }
        let Some(shifted) = self.indent(indent) else {
            return false;
        };
        out.extend_from_slice(&shifted);
        out.extend_from_slice(rest);
        true
    }
}

/// Both without their longest common end.
fn unequal<'a>(one: &'a [u8], two: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let equal = one
        .iter()
        .rev()
        .zip(two.iter().rev())
        .take_while(|(one, two)| one == two)
        .count();
    let cut = |all: &'a [u8]| all.get(..all.len() - equal).unwrap_or_default();
    (cut(one), cut(two))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(from: &[&str], to: &[&str]) -> Option<Shift> {
        Shift::between(
            from.iter()
                .zip(to)
                .map(|(from, to)| (from.as_bytes(), to.as_bytes())),
        )
    }

    fn shifted(shift: &Shift, line: &str) -> Option<String> {
        let mut out = Vec::new();
        shift
            .apply(line.as_bytes(), &mut out)
            .then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn one_shift_fits_all_lines_or_there_is_none() {
        let add = between(&["a", "", "  b"], &["\ta", " ", "\t  b"]).unwrap();
        assert_eq!(add, Shift::Add(b"\t".to_vec()));
        assert_eq!(shifted(&add, " x").unwrap(), "\t x");
        assert_eq!(shifted(&add, "  ").unwrap(), "  ", "blank");

        let remove = between(&["    a", "      b"], &["  a", "    b"]).unwrap();
        assert_eq!(shifted(&remove, "   x").unwrap(), " x");
        assert_eq!(
            shifted(&remove, " x"),
            None,
            "there is less than what must be removed"
        );

        assert_eq!(between(&["a", "b"], &[" a", "  b"]), None, "no common shift");
        assert_eq!(between(&["  a", "b"], &["a", "  b"]), None);
        assert_eq!(between(&["", " "], &[" ", ""]), None, "blank lines show nothing");
        assert_eq!(between(&["  a"], &["  a"]).unwrap(), Shift::Add(Vec::new()));
    }

    #[test]
    fn tabs_and_spaces_stand_for_each_other_with_one_width() {
        let spaces = between(&["a", "\tb", "\t\t c"], &["a", "    b", "         c"]).unwrap();
        assert_eq!(shifted(&spaces, "\t\t\tx").unwrap(), "            x");
        let tabs = between(&["  a", "    b", "     c"], &["\ta", "\t\tb", "\t\t c"]).unwrap();
        assert_eq!(shifted(&tabs, "      x").unwrap(), "\t\t\tx");
        assert_eq!(
            between(&["\ta", "\t\tb"], &["  a", "      b"]),
            None,
            "two widths"
        );

        let one_depth = between(&["\ta", "\tb"], &["    a", "    b"]).unwrap();
        assert_eq!(shifted(&one_depth, "\tx").unwrap(), "    x");
        assert_eq!(
            shifted(&one_depth, "\t\tx"),
            None,
            "the width is not known from one depth"
        );
    }
}
