//! Texts as an agent reads them, kept in files beside the tests, so that a change of them is seen and decided.

use std::path::Path;

/// Compares the text with `tests/golden/<name>` of the crate under test (`env!("CARGO_MANIFEST_DIR")`). With
/// `GOLDEN=renew` in the environment the file is written instead.
pub fn golden(manifest_dir: &str, name: &str, text: &str) {
    let path = Path::new(manifest_dir).join("tests/golden").join(name);
    if std::env::var("GOLDEN").is_ok_and(|wish| wish == "renew") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} is another text now (GOLDEN=renew keeps it):\n--- kept\n{kept}\n--- now\n{text}");
}
