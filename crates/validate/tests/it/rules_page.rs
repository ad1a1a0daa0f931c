//! bootstrap-breadcrumbs/README.md lists every rule, and no rule that is not there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn the_page_lists_the_rules_that_there_are() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(top.join("bootstrap-breadcrumbs/README.md")).unwrap();
    let (_, table) = page.split_once("| rule | what it asks |").unwrap();
    let listed: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once(" | "))
        .flat_map(|(rules, _)| rules.split(", "))
        .map(|rule| rule.trim_matches('`'))
        .collect();

    let code: Vec<String> = sources(&top.join("crates/validate/src"))
        .into_iter()
        .chain([top.join("crates/typescript/src/inspect.rs")])
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    // `Finding::new("rule", …)`, and the names of what the syntax tree shows.
    let rules: BTreeSet<&str> = code
        .iter()
        .flat_map(|text| text.split("Finding::new(").skip(1).chain(text.split("=> ").skip(1)))
        .filter_map(|text| text.trim_start().strip_prefix('"')?.split_once('"'))
        .map(|(rule, _)| rule)
        .filter(|rule| rule.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .collect();
    assert!(rules.len() > 20, "{rules:?}");
    assert!(rules.is_subset(&listed), "not listed: {:?}", rules.difference(&listed));
    let gone: Vec<_> =
        listed.iter().filter(|rule| !code.iter().any(|text| text.contains(&format!("\"{rule}\"")))).collect();
    assert!(gone.is_empty(), "listed, and not there: {gone:?}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
