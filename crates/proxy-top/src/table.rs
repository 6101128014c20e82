//! Tables of texts, aligned in columns.

use crate::text::{fitted, width};

/// Number of spaces between columns.
const GAP: usize = 2;
/// Least width of the first column, which is cut where a line is too long.
const MIN_FIRST: usize = 24;

/// The meaning of a text, which a terminal shows by its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Title,
    Good,
    Warning,
    Bad,
}

/// A text of one tone, escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl Cell {
    pub(crate) const fn new(text: String, tone: Tone) -> Self {
        Self { text, tone }
    }

    pub(crate) const fn plain(text: String) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// Cells in a line, each with its gap.
pub(crate) type Line = Vec<Cell>;

/// A table. Columns of numbers are aligned to the right; the first and the last column are texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) titles: &'static [&'static str],
    pub(crate) rows: Vec<Line>,
}

impl Table {
    /// Titles and rows in lines of at most `columns`; `None` cuts nothing.
    pub(crate) fn lines(&self, columns: Option<usize>) -> (Line, Vec<Line>) {
        let widths = self.widths(columns);
        let titles = self.titles.iter();
        let titles = titles.map(|title| Cell::new((*title).to_owned(), Tone::Title));
        let titles = self.line(titles.collect(), &widths, columns);
        let rows = self.rows.iter();
        let rows = rows.map(|row| self.line(row.clone(), &widths, columns));
        (titles, rows.collect())
    }

    fn widths(&self, columns: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.titles.iter().map(|title| width(title)).collect();
        for row in &self.rows {
            for (most, cell) in widths.iter_mut().zip(row) {
                *most = width(&cell.text).max(*most);
            }
        }
        let others = widths.iter().skip(1).map(|width| width + GAP);
        let others: usize = others.sum();
        if let (Some(columns), Some(first)) = (columns, widths.first_mut()) {
            let rest = columns.saturating_sub(others).max(MIN_FIRST);
            *first = rest.min(*first);
        }
        widths
    }

    fn line(&self, cells: Line, widths: &[usize], columns: Option<usize>) -> Line {
        let last = self.titles.len().saturating_sub(1);
        let mut rest = columns.unwrap_or(usize::MAX);
        let mut line = Vec::with_capacity(cells.len());
        for (position, (cell, wanted)) in cells.into_iter().zip(widths).enumerate() {
            let gap = if position == 0 { 0 } else { GAP };
            let room = (*wanted).min(rest.saturating_sub(gap));
            let text = fitted(&cell.text, room);
            let padding = " ".repeat(room.saturating_sub(width(&text)));
            let gap = " ".repeat(gap.min(rest));
            let text = match position {
                0 => format!("{text}{padding}"),
                position if position == last => format!("{gap}{text}"),
                _ => format!("{gap}{padding}{text}"),
            };
            rest = rest.saturating_sub(width(&text));
            line.push(Cell::new(text, cell.tone));
        }
        line
    }
}

/// The text of a line, without spaces at its end.
pub(crate) fn text_of(line: &Line) -> String {
    let text: String = line.iter().map(|cell| cell.text.as_str()).collect();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |cells: [&str; 3]| cells.map(|text| Cell::plain(text.to_owned())).to_vec();
        Table {
            titles: &["route", "req/s", "note"],
            rows: vec![
                row(["shop", "12.3", ""]),
                row(["a long name of a route that goes on", "4", "slow"]),
            ],
        }
    }

    fn shown(columns: Option<usize>) -> Vec<String> {
        let (titles, rows) = table().lines(columns);
        std::iter::once(&titles).chain(&rows).map(text_of).collect()
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            shown(None),
            [
                "route                                req/s  note",
                "shop                                  12.3",
                "a long name of a route that goes on      4  slow",
            ]
        );
    }

    #[test]
    fn the_first_column_is_cut_in_a_narrow_terminal() {
        assert_eq!(
            shown(Some(40)),
            [
                "route                        req/s  note",
                "shop                          12.3",
                "a long name of a route tha…      4  slow",
            ]
        );
        for columns in 0..30 {
            assert!(
                shown(Some(columns))
                    .iter()
                    .all(|line| width(line) <= columns),
                "{columns}"
            );
        }
    }
}
