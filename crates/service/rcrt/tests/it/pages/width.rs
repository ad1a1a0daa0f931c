//! The lines of the documents have at most 100 columns.

use super::Page;

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

#[test]
fn only_a_single_link_or_path_can_be_longer() {
    for line in ["- [two words](docs/x.md)", "  `crates/x/src/y.rs`,", "https://example.com/x"] {
        assert!(is_unbreakable(line), "{line}");
    }
    for line in ["two words", "- [x](y.md) and [z](a.md)", "[x] is not [y](z.md)"] {
        assert!(!is_unbreakable(line), "{line}");
    }
}
