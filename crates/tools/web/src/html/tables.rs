//! Data tables become tables; layout tables become blocks.

use dom_query::NodeRef;

use super::element::{attribute, count, name_of};
use super::render::Renderer;
use super::writer::Gap;

const MAX_COLUMNS: usize = 60;
/// The most cells in one table. A larger table is written as blocks.
const MAX_CELLS: usize = 50_000;
/// The most characters in one cell.
const MAX_CELL: usize = 4000;

struct Row<'t> {
    cells: Vec<NodeRef<'t>>,
    is_head: bool,
}

impl Renderer<'_> {
    pub fn table(&mut self, node: &NodeRef<'_>, depth: usize) {
        self.flush();
        let rows = rows_of(node);
        if self.flat.is_some() || !is_data(node, &rows) {
            self.writer.want(Gap::Blank);
            self.children(node, depth);
            self.flush();
            self.writer.want(Gap::Blank);
            return;
        }
        for caption in node.children_it(false).filter(|child| is_named(child, &["caption"])) {
            self.node(&caption, depth + 1);
        }
        self.writer.want(Gap::Blank);
        let grid = self.grid(&rows, depth);
        let width = grid.iter().map(Vec::len).max().unwrap_or(0);
        let has_head = rows.first().is_some_and(|row| row.is_head);
        if self.is_markdown() {
            if !has_head {
                self.writer.block(&row_text(&[], width));
                self.writer.block(&format!("|{}", " --- |".repeat(width)));
            }
            for (index, cells) in grid.iter().enumerate() {
                self.writer.block(&row_text(cells, width));
                if index == 0 && has_head {
                    self.writer.block(&format!("|{}", " --- |".repeat(width)));
                }
            }
        } else {
            for cells in &grid {
                let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                self.writer.block(cells.join("\t").trim_end());
            }
        }
        self.writer.want(Gap::Blank);
    }

    /// Puts each cell's text into its column. Spanning cells leave empty cells.
    fn grid(&mut self, rows: &[Row<'_>], depth: usize) -> Vec<Vec<String>> {
        // For each column, the rows that a spanning cell still covers.
        let mut covered: Vec<usize> = Vec::new();
        let mut grid = Vec::with_capacity(rows.len());
        for row in rows {
            let mut texts: Vec<String> = Vec::new();
            let skip = |texts: &mut Vec<String>, covered: &mut Vec<usize>| {
                while texts.len() < MAX_COLUMNS
                    && let Some(left) = covered.get_mut(texts.len())
                    && *left > 0
                {
                    *left -= 1;
                    texts.push(String::new());
                }
            };
            for cell in &row.cells {
                skip(&mut texts, &mut covered);
                let (across, down) = (count(cell, "colspan", MAX_COLUMNS), count(cell, "rowspan", 1000));
                let mut text = Some(self.cell(cell, depth));
                for _ in 0..across.min(MAX_COLUMNS.saturating_sub(texts.len())) {
                    if covered.len() <= texts.len() {
                        covered.resize(texts.len() + 1, 0);
                    }
                    covered[texts.len()] = down - 1;
                    texts.push(text.take().unwrap_or_default());
                }
            }
            skip(&mut texts, &mut covered);
            grid.push(texts);
        }
        grid
    }

    fn cell(&mut self, cell: &NodeRef<'_>, depth: usize) -> String {
        let text = self.gathered(cell, '\n', depth + 1);
        let (text, total) = crate::text::cut(&text, MAX_CELL);
        let cut = if total > MAX_CELL { "…" } else { "" };
        if !self.is_markdown() {
            return text.replace(['\n', '\t'], " ") + cut;
        }
        text.replace('|', "\\|").replace('\n', "<br>") + cut
    }
}

fn row_text(cells: &[String], width: usize) -> String {
    let mut line = "|".to_owned();
    for column in 0..width {
        match cells.get(column).filter(|text| !text.is_empty()) {
            Some(text) => line.extend([" ", text, " |"]),
            None => line.push_str("  |"),
        }
    }
    line
}

fn is_named(node: &NodeRef<'_>, names: &[&str]) -> bool {
    name_of(node).is_some_and(|name| names.contains(&&*name))
}

fn rows_of<'t>(table: &NodeRef<'t>) -> Vec<Row<'t>> {
    let mut rows = Vec::new();
    for part in table.children_it(false) {
        if is_named(&part, &["tr"]) {
            rows.push(row_of(&part, false));
        } else if is_named(&part, &["thead", "tbody", "tfoot"]) {
            let in_head = is_named(&part, &["thead"]);
            rows.extend(part.children_it(false).filter(|row| is_named(row, &["tr"])).map(|row| row_of(&row, in_head)));
        }
    }
    rows.retain(|row| !row.cells.is_empty());
    rows
}

fn row_of<'t>(row: &NodeRef<'t>, in_head: bool) -> Row<'t> {
    let cells: Vec<NodeRef<'t>> = row.children_it(false).filter(|cell| is_named(cell, &["td", "th"])).collect();
    let names_columns = !cells.is_empty() && cells.iter().all(|cell| is_named(cell, &["th"]));
    Row { is_head: in_head || names_columns, cells }
}

fn is_data(table: &NodeRef<'_>, rows: &[Row<'_>]) -> bool {
    let role = attribute(table, "role").unwrap_or_default();
    if matches!(role.trim(), "presentation" | "none") {
        return false;
    }
    let width = |line: &Row<'_>| line.cells.iter().map(|cell| count(cell, "colspan", MAX_COLUMNS)).sum::<usize>();
    let columns = rows.iter().map(width).max().unwrap_or(0);
    if !(2..=MAX_COLUMNS).contains(&columns) || rows.len() * columns > MAX_CELLS {
        return false;
    }
    // Layout tables have whole page parts in their cells.
    !table.descendants_it().any(|below| {
        is_named(&below, &["table", "h1", "h2", "h3", "pre", "blockquote", "article", "section", "form", "hr"])
    })
}
