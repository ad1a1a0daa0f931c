//! `rcrt tool test` on the included tools: each of their examples passes, and none is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::run;

#[test]
fn all_examples_of_the_included_tools_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bootstrap-breadcrumbs/tools-self-contained");
    let ran = run(&["tool", "test", folder.to_str().unwrap(), "--output", "json"]).ends_with(0);
    let tested = ran.json();
    let mut names = BTreeSet::new();
    for tool in tested.as_array().unwrap() {
        let examples = tool["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "{tool}");
        let passed = |example: &Value| example["status"] == "passed";
        assert!(examples.iter().all(passed), "{tool}");
        names.insert(format!("{}.json", tool["name"].as_str().unwrap()));
    }
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(names, files.map(name).collect());
}
