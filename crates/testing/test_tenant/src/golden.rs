//! Golden files: texts as an agent reads them, stored beside the tests, so that every change is
//! reviewed.

use std::path::Path;

/// Compares the text with `tests/golden/<name>` of the crate under test
/// (`env!("CARGO_MANIFEST_DIR")`). With `GOLDEN=renew` in the environment it writes the file
/// instead.
pub fn golden(manifest_dir: &str, name: &str, text: &str) {
    let path = Path::new(manifest_dir).join("tests/golden").join(name);
    if std::env::var("GOLDEN").is_ok_and(|mode| mode == "renew") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} has changed (GOLDEN=renew accepts it):\n--- stored\n{kept}\n--- now\n{text}");
}
