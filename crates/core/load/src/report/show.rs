//! A report as a table, and as a page.

use std::fmt::Write;

use crate::report::{Report, Row, number};
use crate::table::Table;

const HEADING: [&str; 7] = ["section", "what", "value", "ratio", "target", "holds", "note"];

impl Report {
    /// All rows under one heading.
    pub fn table(&self) -> Table {
        let mut table = Table::new(HEADING);
        for row in &self.rows {
            table.row([vec![row.section.clone()], cells(row)].concat());
        }
        table.without_empty_columns()
    }

    /// A page in Markdown: how the numbers were measured, then a table for each section, in order
    /// of first appearance.
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail.
        let _ = write!(page, "# {}\n\nTaken {} by `{}` on {}.", self.title, self.taken_at, self.command, self.machine);
        if !self.versions.is_empty() {
            let versions: Vec<String> =
                self.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
            let _ = write!(page, " Versions: {}.", versions.join(", "));
        }
        page.push('\n');
        for section in self.sections() {
            let mut table = Table::new(HEADING[1..].iter().copied());
            self.rows.iter().filter(|row| row.section == section).for_each(|row| {
                table.row(cells(row));
            });
            let _ = write!(page, "\n## {section}\n\n{}", table.without_empty_columns().markdown());
        }
        page
    }

    fn sections(&self) -> Vec<&str> {
        let mut sections: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !sections.contains(&row.section.as_str()) {
                sections.push(&row.section);
            }
        }
        sections
    }
}

/// A row without its section.
fn cells(row: &Row) -> Vec<String> {
    let value = match row.value {
        Some(value) => format!("{} {}", number(value), row.unit).trim_end().to_owned(),
        None => "missing".to_owned(),
    };
    let ratio = row.ratio.as_ref().map(|ratio| format!("{} × {}", number(ratio.value), ratio.to));
    let holds = row.holds.map(|holds| if holds { "yes" } else { "NO" }.to_owned());
    [Some(row.name.clone()), Some(value), ratio, row.target.clone(), holds, row.note.clone()]
        .map(Option::unwrap_or_default)
        .into()
}
