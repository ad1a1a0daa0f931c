//! The bench as its users start it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

fn bench(program: &Path, out: &Path, arguments: &[&str]) -> Output {
    let out = [Path::new("--out"), out];
    // As from a shell: the test's own environment must not affect it.
    Command::new(program).args(arguments).args(out).env_remove("RUST_BACKTRACE").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The bench without the programs that it measures.
fn alone(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("alone/deeper/bench");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(BENCH, &path).unwrap();
    path
}

#[test]
fn a_section_writes_a_page_and_json() {
    let folder = TempDir::new().unwrap();
    let output = bench(Path::new(BENCH), folder.path(), &["--quick", "--only", "floors"]);
    assert!(output.status.success(), "{}", said(&output));
    let found: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("results/floors.json")).unwrap()).unwrap();
    assert_eq!(found["command"], "make bench ARGS=\"--quick --only floors\"");
    let rows = found["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["unit"] == "calls/s" && row["value"].as_f64() > Some(0.0)));
    let page = fs::read_to_string(folder.path().join("RESULTS.md")).unwrap();
    assert!(page.contains("## floors") && page.contains("calls/s"), "{page}");
}

#[test]
fn a_section_that_fails_is_reported_and_keeps_its_earlier_results() {
    let folder = TempDir::new().unwrap();
    let program = alone(&folder);
    let failed = bench(&program, folder.path(), &["--quick", "--only", "start"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(said(&failed).contains("could not be measured: start"), "{}", said(&failed));
    let kept = folder.path().join("results/start.json");
    assert!(fs::read_to_string(&kept).unwrap().contains("rcrt is not built"));
    let before = fs::read_to_string(&kept).unwrap().replace("the section start", "an older run");
    fs::write(&kept, &before).unwrap();
    assert_eq!(bench(&program, folder.path(), &["--quick", "--only", "start"]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&kept).unwrap(), before);
}

#[test]
fn a_read_only_folder_is_reported_before_anything_is_measured() {
    let output = bench(Path::new(BENCH), Path::new("/proc/nowhere"), &["--quick", "--only", "floors"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("--out: /proc/nowhere cannot be written"), "{}", said(&output));
    assert!(!said(&output).contains("floors …"), "{}", said(&output));
}

#[test]
fn an_unknown_section_is_refused_with_the_names_of_all() {
    let folder = TempDir::new().unwrap();
    let output = bench(Path::new(BENCH), folder.path(), &["--only", "latncy"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("latncy") && said(&output).contains("waiting"), "{}", said(&output));
}
