//! Tables with aligned columns.

use std::iter;

/// Maximum width that counts for alignment, in characters; wider cells do not push the next column
/// of other rows.
const MAX_CELL_CHARS: usize = 60;

/// Rows of `N` cells.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Default for Table<N> {
    fn default() -> Self {
        Self { rows: Vec::new() }
    }
}

impl Table<1> {
    pub(super) fn line(text: &str) -> String {
        format!("{}\n", plain(text))
    }
}

impl<const N: usize> Table<N> {
    pub(super) fn row(&mut self, cells: [&str; N]) {
        self.rows.push(cells.map(plain));
    }

    /// The rows, one per line.
    pub(super) fn page(&self) -> String {
        self.lines("")
    }

    /// Like [`Self::page`], indented by two columns.
    pub(super) fn indented(&self) -> String {
        self.lines("  ")
    }

    fn lines(&self, indent: &str) -> String {
        let widths: Vec<usize> = (0..N).map(|column| self.width(column)).collect();
        let mut page = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (cell, width) in row.iter().zip(&widths) {
                let missing = width.saturating_sub(cell.chars().count());
                line.push_str(cell);
                line.extend(iter::repeat_n(' ', missing + 2));
            }
            page.push_str(line.trim_end());
            page.push('\n');
        }
        page
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|cell| cell.chars().count());
        widths
            .filter(|width| *width <= MAX_CELL_CHARS)
            .max()
            .unwrap_or_default()
    }
}

/// `text` with control characters escaped.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_spaces() {
        let mut table = Table::default();
        table.row(["a", "long cell", "x"]);
        table.row(["longer", "b", ""]);

        assert_eq!(table.page(), "a       long cell  x\nlonger  b\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }

    #[test]
    fn one_very_wide_cell_widens_no_other_row() {
        let wide = "w".repeat(MAX_CELL_CHARS + 1);
        let mut table = Table::default();
        table.row([&wide, "x"]);
        table.row(["a", "y"]);

        assert_eq!(table.page(), format!("{wide}  x\na  y\n"));
    }
}
