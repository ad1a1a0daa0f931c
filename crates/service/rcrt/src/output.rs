//! Output on stdout: tables and text for people, JSON for programs.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use crate::config::Format;

#[derive(Debug, Clone, Copy)]
pub struct Output {
    format: Format,
    color: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum Style {
    Bold,
    Good,
    Bad,
    Warning,
}

impl Output {
    pub fn new(format: Format) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { format, color: wanted && format == Format::Text && std::io::stdout().is_terminal() }
    }

    pub fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Prints indented JSON, because people read it too.
    pub fn json(self, value: &impl Serialize) -> anyhow::Result<()> {
        self.line(&serde_json::to_string_pretty(value)?)
    }

    /// Prints indented JSON for programs, or a line for people.
    pub fn either(self, value: &impl Serialize, text: &str) -> anyhow::Result<()> {
        if self.is_json() { self.json(value) } else { self.line(text) }
    }

    /// Prints a JSON value on one line, for streams.
    pub fn json_line(self, value: &impl Serialize) -> anyhow::Result<()> {
        self.line(&serde_json::to_string(value)?)
    }

    /// Prints a line for people on stderr; programs do not get it.
    pub fn note(self, text: &str) {
        if !self.is_json() {
            eprintln!("{text}");
        }
    }

    /// Prints a line on stdout. Exits quietly if the reader has closed the pipe (`| head`).
    #[allow(clippy::unused_self)]
    pub fn line(self, text: &str) -> anyhow::Result<()> {
        let mut stdout = std::io::stdout().lock();
        match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            other => Ok(other?),
        }
    }

    pub fn paint(self, style: Style, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Good => "32",
            Style::Bad => "31",
            Style::Warning => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Prints a list as JSON, or as a table with one row for each item.
    pub fn list<T: Serialize>(
        self,
        items: &[T],
        heading: &[&str],
        row: impl Fn(&T) -> Vec<String>,
    ) -> anyhow::Result<()> {
        if self.is_json() {
            return self.json(&items);
        }
        self.table(heading, &items.iter().map(row).collect::<Vec<_>>())
    }

    /// Prints aligned columns under a heading. The last column is not padded or cut.
    pub fn table(self, heading: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
        let mut widths: Vec<usize> = heading.iter().map(|cell| cell.chars().count()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
        self.line(&self.paint(Style::Bold, &aligned(&heading, &widths)))?;
        for row in rows {
            self.line(&aligned(row, &widths))?;
        }
        Ok(())
    }
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        line.push_str(cell);
        if index + 1 < row.len() {
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
        }
    }
    line.trim_end().to_owned()
}

/// `1 error`, `2 errors`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Returns the lines of a text, without control characters.
pub fn printable_lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| line.chars().filter(|c| *c == '\t' || !c.is_control()).collect())
}

/// Returns the first line of a text, cut to `most` characters.
pub fn one_line(text: &str, most: usize) -> String {
    // Anybody can write records, so remove control characters before they reach the terminal.
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
