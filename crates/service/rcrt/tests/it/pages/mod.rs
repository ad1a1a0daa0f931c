//! Compares the documents with the code: paths, links, commands, options, settings and defaults.

pub mod crates;
mod functions;
mod modules;
mod operations;
mod paths;
mod test_files;
mod width;
mod words;

use std::path::{Path, PathBuf};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A document of the repository.
struct Page {
    /// The path from the top of the repository.
    path: String,
    text: String,
}

impl Page {
    fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), text }
    }

    /// All pages that describe the current state, so not CHANGELOG.md.
    fn all() -> Vec<Self> {
        let mut paths: Vec<String> = [
            "README.md",
            "SECURITY.md",
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "bootstrap-breadcrumbs/README.md",
            "vendor/v8/README.md",
        ]
        .map(str::to_owned)
        .to_vec();
        let mut folders = vec!["docs".to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(top().join(&folder)).unwrap().map(Result::unwrap) {
                let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else if Path::new(&path).extension().is_some_and(|end| end == "md") {
                    paths.push(path);
                }
            }
        }
        assert!(paths.len() > 8, "{paths:?}");
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// The rows, without the head, of the table with this first head.
    #[track_caller]
    fn table(&self, first_head: &str) -> Vec<Vec<String>> {
        let tables = self.tables();
        let mut found = tables.into_iter().filter(|table| table[0][0] == first_head);
        let table =
            found.next().unwrap_or_else(|| panic!("{} has no table that begins with | {first_head} |", self.path));
        assert!(found.next().is_none(), "{} has two tables that begin with | {first_head} |", self.path);
        table[1..].to_vec()
    }

    /// All tables with their heads, row by row.
    fn tables(&self) -> Vec<Vec<Vec<String>>> {
        let mut tables: Vec<Vec<Vec<String>>> = Vec::new();
        let mut is_in_table = false;
        for line in self.text.lines() {
            let Some(row) = line.strip_prefix('|').and_then(|line| line.trim_end().strip_suffix('|')) else {
                is_in_table = false;
                continue;
            };
            if row.chars().all(|c| matches!(c, '-' | ':' | '|' | ' ')) && row.contains('-') {
                continue;
            }
            // A bar in a cell is written `\|`.
            let row = row.replace("\\|", "\u{1}");
            let cells = row.split('|').map(|cell| cell.replace('\u{1}', "|").trim().to_owned()).collect();
            if !is_in_table {
                tables.push(Vec::new());
            }
            is_in_table = true;
            tables.last_mut().unwrap().push(cells);
        }
        tables
    }

    /// The texts between backticks.
    fn spans(&self) -> Vec<String> {
        self.paragraphs().iter().flat_map(|paragraph| spans(paragraph)).collect()
    }

    /// Each paragraph and each table row as one line, without blocks of code.
    fn paragraphs(&self) -> Vec<String> {
        let mut paragraphs = vec![String::new()];
        for (line, is_code) in self.lines() {
            if is_code || line.trim().is_empty() || line.starts_with('|') {
                paragraphs.push(String::new());
            }
            if !is_code && let Some(last) = paragraphs.last_mut() {
                *last += line;
                last.push(' ');
            }
        }
        paragraphs
    }

    /// The lines of fenced or indented blocks of code. A line that ends with `\` is joined with the
    /// next one.
    fn code(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut continues = false;
        for (line, is_code) in self.lines() {
            if !is_code {
                continues = false;
                continue;
            }
            let ends = line.strip_suffix('\\');
            let part = ends.unwrap_or(line).trim();
            match lines.last_mut() {
                Some(last) if continues => *last = format!("{last} {part}"),
                _ => lines.push(part.to_owned()),
            }
            continues = ends.is_some();
        }
        lines
    }

    fn lines(&self) -> Vec<(&str, bool)> {
        let mut is_fenced = false;
        let mut lines = Vec::new();
        for line in self.text.lines() {
            if line.trim_start().starts_with("```") {
                is_fenced = !is_fenced;
            } else {
                lines.push((line, is_fenced || line.starts_with("    ")));
            }
        }
        lines
    }
}

fn spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(|span| span.replace("\\|", "|")).collect()
}
