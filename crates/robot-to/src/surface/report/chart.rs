//! The path of a score over the iterations, drawn with characters.

/// Most columns and rows of the drawing.
const COLUMNS: usize = 60;
const ROWS: usize = 7;
/// Columns that an iteration takes while there are few.
const WIDE: usize = 3;

/// A score that was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// The iteration; 0 is the base commit.
    pub(super) iteration: u32,
    pub(super) score: f64,
    /// Whether it was committed, as the base commit is.
    pub(super) taken: bool,
}

/// The drawing, in lines of at most about 75 characters; `None` when there are less than two scores.
pub(super) fn chart(points: &[Point], target: Option<f64>) -> Option<String> {
    let scores = || points.iter().map(|point| point.score);
    let (low, high) = (
        scores().fold(f64::INFINITY, f64::min),
        scores().fold(f64::NEG_INFINITY, f64::max),
    );
    let (first, last) = (points.first()?.iteration, points.last()?.iteration);
    if points.len() < 2 || !(high - low).is_finite() {
        return None;
    }
    let rows = if high > low { ROWS } else { 1 };
    let row_of = |score: f64| {
        if rows == 1 {
            return 0;
        }
        // Between 0 and the last row, as the score is between both ends.
        let row = (high - score) / (high - low) * (rows - 1) as f64;
        row.round() as usize
    };
    let span = (last - first) as usize + 1;
    let columns = (span * WIDE).min(COLUMNS);
    let column_of = |iteration: u32| {
        let offset = (iteration - first) as usize;
        if span * WIDE <= COLUMNS {
            offset * WIDE
        } else {
            (offset * columns / span).min(columns - 1)
        }
    };
    let mut grid = vec![vec![' '; columns]; rows];
    let mut set = |row: usize, column: usize, mark: char| {
        if let Some(cell) = grid.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = mark;
        }
    };
    if let Some(target) = target.filter(|target| (low..=high).contains(target)) {
        (0..columns).for_each(|column| set(row_of(target), column, '┄'));
    }
    let mut taken = points.iter().filter(|point| point.taken).peekable();
    while let Some(point) = taken.next() {
        let end = taken.peek().map_or(columns, |next| column_of(next.iteration));
        (column_of(point.iteration)..end).for_each(|column| set(row_of(point.score), column, '─'));
    }
    // What was taken is drawn last, so that nothing hides it.
    for (mark, taken) in [('×', false), ('●', true)] {
        for point in points.iter().filter(|point| point.taken == taken) {
            set(row_of(point.score), column_of(point.iteration), mark);
        }
    }
    let labels = [number(high), number(low)];
    let margin = labels
        .iter()
        .map(|label| label.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (row, cells) in grid.iter().enumerate() {
        let label = match row {
            0 => labels[0].as_str(),
            row if row + 1 == rows => labels[1].as_str(),
            _ => "",
        };
        let cells: String = cells.iter().collect();
        text.push_str(&format!("{label:>margin$} │ {}\n", cells.trim_end()));
    }
    let ends = format!(
        "{first}{:>room$}",
        last,
        room = column_of(last).max(first.to_string().len())
    );
    text.push_str(&format!("{:>margin$} └{}\n", "", "─".repeat(columns + 1)));
    text.push_str(&format!("{:>margin$}   {ends}  (iteration)\n", ""));
    Some(text)
}

/// A score in a few characters.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if value == value.trunc() && size < 1e9 {
        return format!("{value:.0}");
    }
    if (1e-3..1e9).contains(&size) {
        let text = format!("{value:.4}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.3e}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(scores: &[(u32, f64, bool)]) -> Vec<Point> {
        let point = |(iteration, score, taken): &(u32, f64, bool)| Point {
            iteration: *iteration,
            score: *score,
            taken: *taken,
        };
        scores.iter().map(point).collect()
    }

    #[test]
    fn the_path_of_a_score() {
        let points = points(&[
            (0, 40.0, true),
            (1, 31.0, true),
            (2, 33.5, false),
            (4, 24.0, true),
            (5, 24.0, false),
            (6, 12.0, true),
        ]);
        insta::assert_snapshot!(chart(&points, Some(20.0)).unwrap());
    }

    #[test]
    fn one_score_is_no_path_and_a_flat_one_is_a_line() {
        assert_eq!(chart(&points(&[(1, 1.0, true)]), None), None);
        assert_eq!(chart(&[], None), None);
        let flat = chart(&points(&[(1, 1.0, true), (2, 1.0, false)]), None).unwrap();
        assert!(flat.starts_with("1 │ ●──×──\n"), "{flat}");
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, -3.0, 12.5, 0.1234567, 1e12, 1e-7].map(number);
        assert_eq!(numbers, ["0", "-3", "12.5", "0.1235", "1.000e12", "1.000e-7"]);
    }

    proptest! {
        #[test]
        fn whatever_the_scores_the_drawing_is_bounded(
            scores in prop::collection::vec((any::<f64>(), any::<bool>()), 0..300),
            target in proptest::option::of(any::<f64>()),
        ) {
            let points: Vec<_> = (0..)
                .zip(scores)
                .filter(|(_, (score, _))| score.is_finite())
                .map(|(iteration, (score, taken))| Point { iteration, score, taken })
                .collect();
            if let Some(text) = chart(&points, target) {
                prop_assert!(text.lines().count() <= ROWS + 2);
                prop_assert!(text.lines().all(|line| line.chars().count() <= 90), "{}", text);
                let marks = text.matches(['●', '×']).count();
                prop_assert!(marks >= 1 && marks <= points.len());
            }
        }
    }
}
