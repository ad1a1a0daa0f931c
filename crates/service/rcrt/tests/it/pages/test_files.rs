//! Each file of a crate's tests/it is declared by a `mod`. Otherwise its tests would never run.

use std::path::{Path, PathBuf};

use super::crates::crates;

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs"));
    own.chain(folders.iter().flat_map(|folder| rust_files(folder))).collect()
}

fn is_declared(file: &Path) -> bool {
    let module = if file.ends_with("mod.rs") { file.parent().unwrap().to_owned() } else { file.with_extension("") };
    let (folder, name) = (module.parent().unwrap(), module.file_name().unwrap().to_str().unwrap());
    let declaration = format!("mod {name};");
    let parents = [folder.join("main.rs"), folder.join("mod.rs"), folder.with_extension("rs")];
    parents.iter().filter_map(|parent| std::fs::read_to_string(parent).ok()).any(|text| {
        text.lines().any(|line| line == declaration || line.strip_prefix("pub ") == Some(declaration.as_str()))
    })
}

#[test]
fn each_test_file_is_declared() {
    let folders = crates().into_values().map(|folder| folder.join("tests/it")).filter(|folder| folder.exists());
    let files: Vec<PathBuf> = folders.flat_map(|folder| rust_files(&folder)).collect();
    assert!(files.len() > 100, "{}", files.len());
    let undeclared: Vec<_> = files.iter().filter(|file| !file.ends_with("main.rs") && !is_declared(file)).collect();
    assert!(undeclared.is_empty(), "no `mod` declares {undeclared:#?}");
}
