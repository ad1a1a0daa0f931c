//! ARCHITECTURE.md: the table of crates names each crate once, and the crates that it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{Page, spans, top};

/// Each group uses only itself and the groups before it. `testing` can use all.
const GROUPS: [&str; 6] = ["core", "storage", "runtime", "tools", "service", "testing"];

/// The folders of the crates, by the folder's name, which is the crate's name without its prefix.
pub fn crates() -> BTreeMap<String, PathBuf> {
    let folders = GROUPS.iter().flat_map(|group| std::fs::read_dir(top().join("crates").join(group)).unwrap());
    folders.map(|entry| entry.unwrap()).map(|entry| (entry.file_name().into_string().unwrap(), entry.path())).collect()
}

/// The manifests of the workspace's crates.
fn manifests() -> BTreeMap<String, toml::Table> {
    let read = |(name, folder): (String, PathBuf)| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        assert_eq!(short_name(manifest["package"]["name"].as_str().unwrap()), name, "the prefix of {name}");
        (name, manifest)
    };
    crates().into_iter().chain([("bench".to_owned(), top().join("bench"))]).map(read).collect()
}

/// The name of one of our crates as the documents say it.
fn short_name(package: &str) -> String {
    package.strip_prefix("rcrt-").unwrap_or(package).replace('-', "_")
}

/// The crates of ours that this crate uses.
fn uses(manifest: &toml::Table) -> BTreeSet<String> {
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = dependencies.into_iter().flat_map(toml::Table::keys);
    names.filter(|name| name.starts_with("rcrt-")).map(|name| short_name(name)).collect()
}

#[test]
fn a_group_uses_no_later_group() {
    let group_of = |name: &str| {
        let folder = crates().remove(name);
        folder.and_then(|folder| GROUPS.iter().position(|group| folder.parent().unwrap().ends_with(group)))
    };
    for (name, manifest) in manifests() {
        let own = group_of(&name).unwrap_or(GROUPS.len());
        let later: Vec<String> = uses(&manifest).into_iter().filter(|used| group_of(used).unwrap() > own).collect();
        assert!(later.is_empty(), "{name} uses {later:?} of a later group");
    }
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
        let mut real = uses(manifest);
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
