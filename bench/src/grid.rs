//! Text tables, for the terminal and for Markdown.

/// Table with a heading; all rows have the same length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(crate) fn new(heading: Vec<String>) -> Self {
        Self {
            heading,
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Formats the table as text with aligned columns.
    pub(crate) fn plain(&self) -> String {
        let widths = self.widths();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths);
            let padded = cells.map(|(cell, width)| format!("{cell:<width$}"));
            let line = padded.collect::<Vec<_>>().join("  ");
            line.trim_end().to_owned()
        };
        self.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Formats the table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
        let mut lines = self.lines().map(line);
        let heading = lines.next().unwrap_or_default();
        let rule = format!("|{}\n", "---|".repeat(self.heading.len()));
        [heading, rule].into_iter().chain(lines).collect()
    }

    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.heading).chain(&self.rows)
    }

    fn widths(&self) -> Vec<usize> {
        let column = |place: usize| {
            let cells = self.lines().filter_map(move |row| row.get(place));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.heading.len()).map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let words = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        let mut grid = Grid::new(words(["case", "÷ nginx"]));
        grid.push(words(["a", "0.95"]));
        grid.push(words(["longer", ""]));
        grid
    }

    #[test]
    fn columns_are_aligned_in_plain_text() {
        assert_eq!(grid().plain(), "case    ÷ nginx\na       0.95\nlonger");
    }

    #[test]
    fn markdown_has_a_rule_under_the_heading() {
        assert_eq!(
            grid().markdown(),
            "| case | ÷ nginx |\n|---|---|\n| a | 0.95 |\n| longer |  |\n"
        );
    }
}
