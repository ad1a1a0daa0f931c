//! A table, cell by cell.

/// The maximum number of empty cells that stand for one cell that spans columns.
const MAX_SPAN: usize = 64;

#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    cell: Option<String>,
    span: usize,
}

impl Table {
    pub fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub fn begin_cell(&mut self) {
        self.cell = Some(String::new());
        self.span = 1;
    }

    pub fn span(&mut self, columns: usize) {
        self.span = columns.clamp(1, MAX_SPAN);
    }

    /// The text of the open cell.
    pub fn cell(&mut self) -> Option<&mut String> {
        self.cell.as_mut()
    }

    pub fn end_cell(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
            row.extend(std::iter::repeat_n(String::new(), self.span - 1));
        }
    }

    /// As Markdown; the first row is the header. Empty rows are omitted.
    pub fn markdown(&self) -> String {
        let rows: Vec<&Vec<String>> =
            self.rows.iter().filter(|row| row.iter().any(|cell| !cell.trim().is_empty())).collect();
        let Some(columns) = rows.iter().map(|row| row.len()).max() else { return String::new() };
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            text.push('|');
            for cell in *row {
                let cell = cell.trim().replace('|', "\\|").replace('\n', "<br>");
                text.extend([" ", &cell, " |"]);
            }
            if index == 0 {
                text.push_str(&"  |".repeat(columns - row.len()));
                text.extend(["\n|", &" --- |".repeat(columns)]);
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// One line per row, for a table inside another table's cell.
    pub fn lines(&self) -> String {
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| cell.trim()).collect::<Vec<_>>().join(" / "));
        rows.collect::<Vec<_>>().join("\n")
    }
}
