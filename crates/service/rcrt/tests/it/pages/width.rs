//! The lines of the documents and of comments have at most 100 columns.

use std::path::Path;

use super::{Page, top};

const COLUMNS: usize = 100;

/// A link or a path alone on its line, which cannot be wrapped.
fn is_unbreakable(line: &str) -> bool {
    let text = line.trim();
    let text = text.strip_prefix("- ").unwrap_or(text);
    let link = text.strip_prefix('[').and_then(|rest| rest.split_once("]("));
    let rest = link.filter(|(name, _)| !name.contains(']')).map_or(text, |(_, target)| target);
    !rest.contains(char::is_whitespace)
}

#[test]
fn prose_stays_within_100_columns() {
    let (mut checked, mut too_long) = (0, Vec::new());
    for page in Page::all().into_iter().chain([Page::read("CHANGELOG.md")]) {
        for (line, is_code) in page.lines() {
            if is_code || line.trim_start().starts_with('|') {
                continue;
            }
            checked += 1;
            let columns = line.chars().count();
            if columns > COLUMNS && !is_unbreakable(line) {
                too_long.push(format!("{}: {columns} columns: {line}", page.path));
            }
        }
    }
    assert!(checked > 1000, "{checked} lines were checked");
    assert!(too_long.is_empty(), "longer than {COLUMNS} columns: {too_long:#?}");
}

/// How comments begin in a file; `None` for files whose comments are not checked.
fn comment_markers(path: &Path, text: &str) -> Option<&'static [&'static str]> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("rs") => Some(&["///", "//!", "//"]),
        Some("sql") => Some(&["--"]),
        Some("toml" | "py" | "sh") => Some(&["#"]),
        None if text.starts_with("#!") || path.ends_with("Makefile") => Some(&["#"]),
        _ => None,
    }
}

/// The text of a line that is only a comment.
fn comment<'l>(line: &'l str, markers: &[&str]) -> Option<&'l str> {
    let line = line.trim_start();
    markers.iter().find_map(|marker| line.strip_prefix(marker))
}

/// Files of the repository below this folder, without those of others and built ones.
fn files_in(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap_or_default();
        let is_hidden = name.starts_with('.') && ![".cargo", ".ci"].contains(&name.as_str());
        if is_hidden || ["target", "vendor", "node_modules", "corpus"].contains(&name.as_str()) {
            continue;
        }
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files_in(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

#[test]
fn comments_stay_within_100_columns() {
    let mut files = Vec::new();
    files_in(&top(), &mut files);
    let (mut checked, mut too_long) = (0, Vec::new());
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let Some(markers) = comment_markers(&path, &text) else { continue };
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            let Some(comment) = comment(line, markers) else { continue };
            if comment.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            checked += 1;
            let columns = line.chars().count();
            if columns > COLUMNS && !is_code && !comment.trim_start().starts_with('|') && !is_unbreakable(comment) {
                too_long.push(format!("{}:{}: {columns} columns", path.display(), number + 1));
            }
        }
    }
    assert!(checked > 10_000, "{checked} comments were checked");
    assert!(too_long.is_empty(), "longer than {COLUMNS} columns: {too_long:#?}");
}

#[test]
fn only_a_single_link_or_path_can_be_longer() {
    for line in ["- [two words](docs/x.md)", "  `crates/x/src/y.rs`,", "https://example.com/x"] {
        assert!(is_unbreakable(line), "{line}");
    }
    for line in ["two words", "- [x](y.md) and [z](a.md)", "[x] is not [y](z.md)"] {
        assert!(!is_unbreakable(line), "{line}");
    }
}
