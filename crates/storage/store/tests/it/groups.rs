//! The groups of modules in `src`: a group imports only itself and the groups before it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules at the top of `src`, which are files, can import all of them.
const GROUPS: [&str; 11] = [
    "database", "rights", "secrets", "rows", "events", "writing", "calls", "records", "search", "webhooks", "transfer",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The modules and names of the crate that this code uses, without its unit tests, which open a
/// whole store.
fn uses(code: &str) -> BTreeSet<&str> {
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = lines.flat_map(|line| line.split("crate::").skip(1));
    paths.map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()).collect()
}

#[test]
fn every_folder_is_a_group() {
    let entries = std::fs::read_dir(source()).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(folders.collect::<BTreeSet<_>>(), GROUPS.map(str::to_owned).into());
}

#[test]
fn a_group_uses_no_later_group() {
    for (index, group) in GROUPS.iter().enumerate() {
        for file in files(&source().join(group)) {
            if file.file_name().unwrap() == "tests.rs" {
                continue;
            }
            let code = std::fs::read_to_string(&file).unwrap();
            let later: Vec<&str> = uses(&code).into_iter().filter(|used| !GROUPS[..=index].contains(used)).collect();
            assert!(later.is_empty(), "{} uses {later:?}", file.display());
        }
    }
}
