//! SECURITY.md names a test for each promise; one that is gone takes the promise along.

use std::path::Path;

#[test]
fn each_proof_that_is_named_is_there() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(top.join("SECURITY.md")).unwrap();
    let quoted = page.split('`').skip(1).step_by(2);
    let named: Vec<&str> =
        quoted.filter(|text| ["crates/", "tests/", "fuzz/"].iter().any(|start| text.starts_with(start))).collect();
    assert!(named.len() > 30, "{named:?}");
    let gone: Vec<&&str> = named.iter().filter(|path| !top.join(path).exists()).collect();
    assert!(gone.is_empty(), "named in SECURITY.md, and not there: {gone:?}");
}
