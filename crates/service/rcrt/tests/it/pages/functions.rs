//! Functions in ARCHITECTURE.md: `` `Type::function` (`file`) `` means that the file has the
//! function.

use super::crates::crates;
use super::{Page, top};

/// The pairs of a function and its file, as they are written.
fn pairs(text: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = text.split('`').collect();
    let spans = parts.windows(3).enumerate().filter(|(at, parts)| at % 2 == 1 && parts[1].trim() == "(");
    let pairs = spans.map(|(_, parts)| (parts[0].to_owned(), parts[2].to_owned()));
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    pairs.filter(|(name, file)| is_name(name) && file.split('.').next_back() == Some("rs")).collect()
}

#[test]
fn each_named_function_is_in_its_file() {
    let (mut checked, mut missing) = (0, Vec::new());
    for paragraph in Page::read("ARCHITECTURE.md").paragraphs() {
        for (name, file) in pairs(&paragraph) {
            let function = name.rsplit("::").next().unwrap();
            // A type or a module.
            if function.starts_with(char::is_uppercase) {
                continue;
            }
            let (folder, rest) = file.split_once('/').unwrap_or_else(|| panic!("{file} needs its crate"));
            let path = crates().get(folder).map_or_else(|| top().join(&file), |folder| folder.join(rest));
            let code = std::fs::read_to_string(path).unwrap_or_default();
            let has_it = |end: &str| code.contains(&format!("fn {function}{end}"));
            checked += 1;
            if !has_it("(") && !has_it("<") {
                missing.push(format!("{name} in {file}"));
            }
        }
    }
    assert!(checked > 30, "{checked} functions were checked");
    assert!(missing.is_empty(), "named, but missing: {missing:#?}");
}

#[test]
fn pairs_are_read_from_a_paragraph() {
    let text = "By `A::run` (`x/src/a.rs`), `B` and `c` (`x/src/c.rs`, `d`), not `e` in `x/src/e.rs`.";
    let expected = [("A::run", "x/src/a.rs"), ("c", "x/src/c.rs")];
    assert_eq!(pairs(text), expected.map(|(name, file)| (name.to_owned(), file.to_owned())));
}
