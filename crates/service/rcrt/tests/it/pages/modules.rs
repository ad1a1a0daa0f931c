//! The imports between the files of a crate: no two files import each other, directly or through
//! others, and the crate's groups import in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::crates::crates;

/// The groups of each tested crate, which are folders or files at the top of its `src`. A group
/// imports only itself and those before it. The other files at the top can import all of them.
const CRATES: [(&str, &[&str]); 2] = [
    (
        "store",
        &[
            "database",
            "rights",
            "secrets",
            "rows",
            "events",
            "writing",
            "calls",
            "records",
            "search",
            "webhooks",
            "transfer",
            "options",
            "store",
            "tenant_store",
        ],
    ),
    (
        "runner",
        &[
            "backoff",
            "claim_health",
            "on_behalf_of",
            "options",
            "registry",
            "coordination",
            "publishing",
            "execution",
            "dispatch",
        ],
    ),
];

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// The modules of a crate, each with its code.
struct Sources(BTreeMap<Module, String>);

/// What a module imports, as it is written there.
#[derive(Default)]
struct Imports {
    paths: Vec<Vec<String>>,
    /// The path of each imported name.
    names: BTreeMap<String, Vec<String>>,
    /// Those of the names that other modules can import from here.
    exported: BTreeSet<String>,
}

impl Sources {
    fn of(name: &str) -> Self {
        let mut sources = Self(BTreeMap::new());
        sources.read(&crates()[name].join("src"), &[]);
        sources
    }

    fn read(&mut self, folder: &Path, module: &[String]) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
            let child = [module, std::slice::from_ref(&name)].concat();
            match name.as_str() {
                _ if entry.is_dir() => self.read(&entry, &child),
                "mod" | "lib" => drop(self.0.insert(module.to_vec(), code(&entry))),
                "tests" => {}
                _ => drop(self.0.insert(child, code(&entry))),
            }
        }
    }

    /// The other modules that each module uses.
    fn uses(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let imports: BTreeMap<&Module, Imports> =
            self.0.iter().map(|(module, code)| (module, self.imports(module, code))).collect();
        let used = |module: &Module| {
            let paths = imports[module].paths.iter();
            let used = paths.filter_map(|path| Some(self.defining(&imports, &self.absolute(module, path)?, 0)));
            used.filter(|used| used != module).collect()
        };
        self.0.keys().map(|module| (module.clone(), used(module))).collect()
    }

    fn imports(&self, module: &[String], code: &str) -> Imports {
        let mut imports = Imports::default();
        let mut rest = String::new();
        for statement in code.split_inclusive(';') {
            let is_visibility = |text: &str| matches!(text, "" | "pub " | "pub(crate) " | "pub(super) ");
            let declaration = statement.trim_start().split_once("use ").filter(|(start, _)| is_visibility(start));
            let Some((visibility, tree)) = declaration else {
                rest += statement;
                continue;
            };
            for path in expanded(tree.trim_end_matches(';')) {
                let name = path.last().unwrap().clone();
                if !visibility.is_empty() {
                    imports.exported.insert(name.clone());
                }
                imports.names.insert(name, path.clone());
                imports.paths.push(path);
            }
        }
        // Paths in the code itself.
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for text in rest.split(|c: char| !is_part(c)).filter(|text| text.contains("::")) {
            let path: Vec<String> = text.split("::").map(str::to_owned).take_while(|part| !part.is_empty()).collect();
            let Some(first) = path.first() else { continue };
            let is_child = self.0.contains_key(&[module, std::slice::from_ref(first)].concat());
            if is_child || matches!(first.as_str(), "crate" | "super" | "self") {
                imports.paths.push(path);
            } else if let Some(imported) = imports.names.get(first) {
                let path = [imported.as_slice(), &path[1..]].concat();
                imports.paths.push(path);
            }
        }
        imports
    }

    /// The path from the root of the crate. `None` for a path into another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => Some([&module[..module.len() - supers], &path[supers..]].concat()),
            first => self.0.contains_key(&[module, &[first.to_owned()]].concat()).then(|| [module, path].concat()),
        }
    }

    /// The module that defines what this path names. Follows exported imports.
    fn defining(&self, imports: &BTreeMap<&Module, Imports>, path: &[String], depth: usize) -> Module {
        let mut module = Module::new();
        for (at, part) in path.iter().enumerate() {
            let child = [module.as_slice(), std::slice::from_ref(part)].concat();
            if self.0.contains_key(&child) {
                module = child;
                continue;
            }
            if let Some(imports_here) = imports.get(&module)
                && imports_here.exported.contains(part)
                && depth < 8
                && let Some(exported) = self.absolute(&module, &imports_here.names[part])
            {
                return self.defining(imports, &[exported.as_slice(), &path[at + 1..]].concat(), depth + 1);
            }
            break;
        }
        module
    }
}

/// A file's code without comments and unit tests.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| line.split("// ").next().unwrap().to_owned() + "\n").collect()
}

/// The paths of a `use` declaration: `a::{b, c::d}` has `a::b` and `a::c::d`.
fn expanded(tree: &str) -> Vec<Vec<String>> {
    let parts = |path: &str| {
        let path = path.split(" as ").next().unwrap();
        path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let Some((start, rest)) = tree.split_once('{') else {
        let mut path = parts(tree);
        if path.last().is_some_and(|last| last == "self" || last == "*") && path.len() > 1 {
            path.pop();
        }
        return if path.is_empty() { Vec::new() } else { vec![path] };
    };
    let mut depth = 0;
    let items = rest.trim_end().trim_end_matches('}').split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let with_start = |item: &str| expanded(&format!("{start}{}", item.trim()));
    items.filter(|item| !item.trim().is_empty()).flat_map(with_start).collect()
}

/// The modules on cycles, with what they use there. A file may import its own folder's `mod.rs`,
/// which declares it.
fn cycles(mut uses: BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<Module, BTreeSet<Module>> {
    for (module, used) in &mut uses {
        used.retain(|used| !module.starts_with(used));
    }
    loop {
        let (modules, used): (BTreeSet<Module>, BTreeSet<Module>) =
            (uses.keys().cloned().collect(), uses.values().flatten().cloned().collect());
        uses.retain(|module, uses| {
            uses.retain(|used| modules.contains(used));
            used.contains(module) && !uses.is_empty()
        });
        if uses.len() == modules.len() {
            return uses;
        }
    }
}

fn module(path: &str) -> Module {
    path.split('/').map(str::to_owned).collect()
}

#[test]
fn imports_are_found_through_exports() {
    let uses = Sources::of("store").uses();
    assert!(uses[&module("events/feed")].contains(&module("events/sized_event")));
    // `crate::events::WrittenEvent`
    assert!(uses[&module("writing/batch_writer")].contains(&module("events/sized_event")));
    // `calls::claim(…)`
    assert!(uses[&module("tenant_store/call_queue")].contains(&module("calls/claim")));
    let cycle = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")];
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (user, used) in cycle {
        uses.entry(module(user)).or_default().insert(module(used));
    }
    assert_eq!(cycles(uses).into_keys().collect::<Vec<_>>(), ["a", "b", "c"].map(module));
}

#[test]
fn no_files_import_each_other() {
    for (name, _) in CRATES {
        let cycles = cycles(Sources::of(name).uses());
        assert!(cycles.is_empty(), "{name} has cycles: {cycles:#?}");
    }
}

#[test]
fn every_folder_is_a_group() {
    for (name, groups) in CRATES {
        for module in Sources::of(name).0.into_keys().filter(|module| module.len() > 1) {
            assert!(groups.contains(&module[0].as_str()), "{name}/src/{} is in no group", module[0]);
        }
    }
}

#[test]
fn a_group_imports_no_later_group() {
    for (name, groups) in CRATES {
        let uses = Sources::of(name).uses();
        for (place, group) in groups.iter().enumerate() {
            let earlier = &groups[..=place];
            let is_later = |used: &&Module| !used.first().is_some_and(|used| earlier.contains(&used.as_str()));
            let of_group: Vec<_> =
                uses.iter().filter(|(module, _)| module.first().is_some_and(|first| first == group)).collect();
            assert!(!of_group.is_empty(), "{name} has no group {group}");
            for (module, used) in of_group {
                let later: Vec<&Module> = used.iter().filter(is_later).collect();
                assert!(later.is_empty(), "{name}: {module:?} imports {later:?}");
            }
        }
    }
}
