//! ARCHITECTURE.md: the table of crates names each crate once, and the crates that it uses.

use std::collections::{BTreeMap, BTreeSet};

use super::{Page, spans, top};

/// The manifests of the workspace's crates, by the crate's name.
fn manifests() -> BTreeMap<String, toml::Table> {
    let folders = std::fs::read_dir(top().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let read = |folder: std::path::PathBuf| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        (manifest["package"]["name"].as_str().unwrap().to_owned(), manifest)
    };
    folders.chain([top().join("bench")]).map(read).collect()
}

#[test]
fn the_table_of_crates_names_each_once_with_what_it_uses() {
    let manifests = manifests();
    let ours: BTreeSet<&str> = manifests.keys().map(String::as_str).collect();
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in Page::read("ARCHITECTURE.md").table("crate") {
        let [names, _, uses] = row.as_slice() else { panic!("{row:?} has not three cells") };
        // Brackets contain the place of a crate, or what another crate is used for.
        for name in spans(&without_brackets(names)) {
            let uses = without_brackets(uses).split(',').map(|used| used.trim().to_owned()).collect();
            assert!(listed.insert(name.clone(), uses).is_none(), "{name} is in the table twice");
        }
    }
    let in_table: BTreeSet<&str> = listed.keys().map(String::as_str).collect();
    assert_eq!(in_table, ours, "the crates of the table, and those of crates/ and bench/");
    for (name, manifest) in &manifests {
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let real = dependencies.into_iter().flat_map(toml::Table::keys).filter(|crate_| ours.contains(crate_.as_str()));
        let mut real: BTreeSet<String> = real.cloned().collect();
        if listed[name].contains("all") {
            assert!(real.len() > 20, "{name} uses {real:?}");
            continue;
        }
        if real.is_empty() {
            real.insert("none".to_owned());
        }
        assert_eq!(listed[name], real, "what {name} uses, in the table and in its Cargo.toml");
    }
}

fn without_brackets(text: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        depth += i32::from(*c == '(');
        let is_outside = depth == 0;
        depth -= i32::from(*c == ')');
        is_outside
    };
    text.chars().filter(outside).collect()
}
