//! Aligned columns for people, and the same as Markdown.

use std::fmt;

/// Rows under a heading. Columns of numbers are aligned to the right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<S: Into<String>>(heading: impl IntoIterator<Item = S>) -> Self {
        Self { heading: heading.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty, and cells beyond the heading's are dropped.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Self {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.heading.len(), String::new());
        self.rows.push(row);
        self
    }

    /// The same table without columns that are empty in all rows.
    #[must_use]
    pub fn without_empty_columns(&self) -> Self {
        let says: Vec<bool> =
            (0..self.heading.len()).map(|column| self.rows.iter().any(|row| !row[column].is_empty())).collect();
        let kept = |cells: &Vec<String>| {
            cells.iter().zip(&says).filter(|&(_, &says)| says).map(|(cell, _)| cell.clone()).collect::<Vec<_>>()
        };
        Self { heading: kept(&self.heading), rows: self.rows.iter().map(kept).collect() }
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> =
            (0..self.heading.len()).map(|column| if self.is_number(column) { "---:" } else { "---" }.into()).collect();
        let mut text = line(&self.heading) + &line(&rule);
        self.rows.iter().for_each(|row| text.push_str(&line(row)));
        text
    }

    fn is_number(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().map(|row| row[column].as_str()).filter(|cell| !cell.is_empty()).peekable();
        cells.peek().is_some() && cells.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    }
}

/// Aligned text, each line with a line break.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |cell: &String| cell.chars().count();
        let columns: Vec<(usize, bool)> = (0..self.heading.len())
            .map(|column| {
                let widest = self.rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
                (widest.max(width(&self.heading[column])), self.is_number(column))
            })
            .collect();
        for row in std::iter::once(&self.heading).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&columns)
                .map(
                    |(cell, &(width, is_number))| {
                        if is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                    },
                )
                .collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}
