//! Paths in the documents, and links.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::crates::crates;
use super::{Page, spans, top};

/// The names of the folders at the top of the repository and of the crates, from which paths can
/// start.
fn folders() -> BTreeSet<String> {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        folders.map(|entry| entry.file_name().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut folders = names(&top());
    folders.retain(|name| !matches!(name.as_str(), ".git" | "target"));
    folders.extend(crates().into_keys());
    folders.into_iter().collect()
}

/// The crate's folder in place of its name.
fn in_crate(path: &str) -> Option<PathBuf> {
    let (name, rest) = path.split_once('/')?;
    Some(crates().get(name)?.join(rest))
}

/// Collects the paths of all files of the repository.
fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_str().unwrap().to_owned();
        if entry.file_type().unwrap().is_dir() {
            if !matches!(name.as_str(), ".git" | "target" | "node_modules") {
                files(&entry.path(), found);
            }
        } else {
            found.push(format!("/{}", entry.path().strip_prefix(top()).unwrap().display()));
        }
    }
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == "rs")
}

#[test]
fn each_named_path_exists() {
    let folders = folders();
    let mut all = Vec::new();
    files(&top(), &mut all);
    let (mut checked, mut missing) = (0, Vec::new());
    for page in Page::all() {
        for span in page.spans() {
            let path = span.trim_end_matches('/');
            // A path with a placeholder is a pattern.
            let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            let parts: Vec<&str> = path.split('/').collect();
            if !is_plain || parts.len() < 2 || parts.contains(&"X") || parts[0].starts_with("my-") {
                continue;
            }
            let is_source = [".rs", ".ts", ".js", ".py", ".sql", ".sh", ".md"].iter().any(|end| path.ends_with(end));
            let beside = top().join(&page.path).with_file_name("").join(path).exists();
            let exists = if folders.contains(parts[0]) {
                top().join(path).exists() || in_crate(path).is_some_and(|path| path.exists()) || beside
            } else if is_source {
                // Relative to the module that the text is about.
                all.iter().any(|file| file.ends_with(&format!("/{path}")))
            } else {
                continue;
            };
            checked += 1;
            if !exists {
                missing.push(format!("{}: {span}", page.path));
            }
        }
    }
    assert!(checked > 100, "{checked} paths were checked");
    assert!(missing.is_empty(), "named, but missing: {missing:#?}");
}

/// Files that comments name are relative to the file, its crate's `src`, its crate or the top.
#[test]
fn each_file_named_in_a_comment_exists() {
    let crates = crates();
    let mut all = Vec::new();
    files(&top(), &mut all);
    let (mut checked, mut missing) = (0, Vec::new());
    for file in all.iter().map(|file| file.trim_start_matches('/')).filter(|file| is_rust(file)) {
        let Some(folder) = crates.values().find(|folder| top().join(file).starts_with(folder)) else { continue };
        let text = std::fs::read_to_string(top().join(file)).unwrap();
        let bases =
            [top().join(file).with_file_name(""), folder.join("src"), folder.join("tests/it"), folder.clone(), top()];
        let is_there = |path: &str| {
            bases.iter().any(|base| base.join(path).exists()) || in_crate(path).is_some_and(|path| path.exists())
        };
        for line in text.lines().map(str::trim_start).filter(|line| line.starts_with("//")) {
            for path in spans(line).into_iter().filter(|span| is_path(span) && is_rust(span)) {
                checked += 1;
                if !is_there(&path) {
                    missing.push(format!("{file}: {path}"));
                }
            }
        }
        for path in first_modules(&text) {
            checked += 1;
            if !is_there(&path) && !is_there(&format!("{path}.rs")) && !crates.contains_key(&path) {
                missing.push(format!("{file}: begin with {path}"));
            }
        }
    }
    assert!(checked > 100, "{checked} names were checked");
    assert!(missing.is_empty(), "named, but missing: {missing:#?}");
}

fn is_path(span: &str) -> bool {
    span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._".contains(c))
}

/// The files and modules that a crate's header names after "Begin with".
fn first_modules(text: &str) -> Vec<String> {
    let header: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let header = header.split(|line| line.is_empty()).map(|lines| lines.join(" "));
    let begins = header.filter_map(|paragraph| Some(paragraph.split_once("Begin with")?.1.to_owned()));
    begins.flat_map(|names| spans(&names)).filter(|span| is_path(span)).collect()
}

#[test]
fn each_link_has_an_existing_target() {
    let (mut checked, mut missing) = (0, Vec::new());
    for page in Page::all() {
        let prose = page.paragraphs().join("\n");
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            checked += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = top().join(&page.path).with_file_name(if file.is_empty() { "" } else { file });
            let target = if file.is_empty() { top().join(&page.path) } else { target };
            let text = std::fs::read_to_string(&target).unwrap_or_default();
            let exists = target.exists() && (heading.is_empty() || anchors(&text).contains(heading));
            if !exists {
                missing.push(format!("{}: {link}", page.path));
            }
        }
    }
    assert!(checked > 20, "{checked} links were checked");
    assert!(missing.is_empty(), "links without a target: {missing:#?}");
}

/// The anchors of the headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|heading| heading.to_lowercase().chars().filter(|c| is_part(*c)).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn each_promise_of_the_security_page_names_its_test() {
    let page = Page::read("SECURITY.md");
    let tables =
        page.tables().into_iter().filter(|table| matches!(table[0].last().unwrap().as_str(), "proven by" | "test"));
    let rows: Vec<Vec<String>> = tables.flat_map(|table| table.into_iter().skip(1)).collect();
    assert!(rows.len() > 30, "{} promises", rows.len());
    for row in rows {
        let [promise, tests] = row.as_slice() else { panic!("{row:?} has not two cells") };
        let is_proof = |path: &String| ["crates/", "tests/", "fuzz/"].iter().any(|start| path.starts_with(start));
        let proofs: Vec<String> = spans(tests).into_iter().filter(is_proof).collect();
        assert!(!proofs.is_empty(), "no test is named for: {promise}");
        let missing: Vec<&String> = proofs.iter().filter(|path| !top().join(path).exists()).collect();
        assert!(missing.is_empty(), "missing: {missing:?}, which should prove: {promise}");
    }
}
