//! Commands that need no server: checking files and creating tools.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, rcrt, run};

#[test]
fn each_template_creates_a_valid_tool() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("tools");
    let dir = dir.to_str().unwrap();
    for template in ["http-api", "data", "transform", "async-event"] {
        let name = format!("my-{template}");
        run(&["tool", "new", &name, "--template", template, "--dir", dir]).ends_with(0);
        let json = format!("{dir}/{name}.json");
        let report = run(&["tool", "validate", &json, "--output", "json"]).ends_with(0).json();
        assert_eq!(report["valid"], true, "{report}");
        assert_eq!(report["files"][0]["name"], name.as_str());
        // A second run does not overwrite the files.
        let ran = run(&["tool", "new", &name, "--template", template, "--dir", dir]).ends_with(1);
        assert!(ran.stderr.contains("not overwritten"), "{}", ran.stderr);
    }
}

#[test]
fn validate_shows_all_findings_with_their_locations() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bad.json");
    std::fs::write(
        &file,
        r#"{"title": "Bad", "schema_name": "tool.code.v1", "context": {"name": "bad", "permissions": {"run": true},
            "input_schema": {"type": "object", "required": ["a"], "properties": {}}, "output_schema": {"type": 7}}}"#,
    )
    .unwrap();
    std::fs::write(folder.path().join("bad.ts"), "export async function execute() {\n  return eval('1');\n}\n")
        .unwrap();
    let ran = Ran::of(rcrt().arg("tool").arg("validate").arg(&file).output().unwrap()).ends_with(1);
    for part in ["bad.ts:2:10", "permissions.run", "input_schema", "output_schema", "example"] {
        assert!(ran.stdout.contains(part), "{part} is not in {}", ran.stdout);
    }
    // Either of the two files names the tool.
    let other = Ran::of(rcrt().arg("tool").arg("validate").arg(file.with_extension("ts")).output().unwrap());
    assert_eq!(other.ends_with(1).stdout, ran.stdout);
}

#[test]
fn malformed_json_is_reported_with_its_line() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bad.json");
    std::fs::write(&file, "{\n  \"title\": \"x\",\n  oops\n}").unwrap();
    let ran = Ran::of(rcrt().arg("tool").arg("validate").arg(&file).output().unwrap()).ends_with(1);
    assert!(ran.stdout.contains("bad.json:3:3"), "{}", ran.stdout);
}

#[test]
fn a_folder_selects_all_its_files() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("my.tools");
    let dir = dir.to_str().unwrap();
    for name in ["one", "two"] {
        run(&["tool", "new", name, "--template", "data", "--dir", dir]).ends_with(0);
    }
    std::fs::write(format!("{dir}/note.json"), r#"{"title": "A note", "schema_name": "note.v1"}"#).unwrap();
    let report = run(&["tool", "validate", dir, "--output", "json"]).ends_with(0).json();
    let names: Vec<&str> =
        report["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["A note", "one", "two"]);
    let text = format!("{dir}/read.me");
    std::fs::write(&text, "").unwrap();
    let ran = run(&["tool", "validate", &text]).ends_with(2);
    assert!(ran.stderr.contains("read.me is neither"), "{}", ran.stderr);
}

#[test]
fn a_private_host_is_valid_if_the_operator_allows_it() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_str().unwrap();
    run(&["tool", "new", "inside", "--template", "data", "--dir", dir]).ends_with(0);
    let file = format!("{dir}/inside.json");
    let mut tool: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    tool["context"]["permissions"]["net"] = json!(["127.0.0.1:9401"]);
    std::fs::write(&file, tool.to_string()).unwrap();
    let validate = |allowed: Option<&str>, more: &[&str]| {
        let mut command = rcrt();
        command.envs(allowed.map(|host| ("RCRT_ALLOW_PRIVATE_HOST", host))).args(["tool", "validate", &file]);
        Ran::of(command.args(more).output().unwrap())
    };
    for (allowed, more) in [
        (None, vec![]),
        (None, vec!["--allow-private-host", "127.0.0.1:9402"]),
        (Some("another=127.0.0.1:9401"), vec![]),
    ] {
        let ran = validate(allowed, &more).ends_with(1);
        assert!(ran.stdout.contains("[net-host]"), "{}", ran.stdout);
    }
    validate(None, &["--allow-private-host", "127.0.0.1:9401"]).ends_with(0);
    validate(Some("10.0.0.1,inside=127.0.0.1"), &[]).ends_with(0);
    validate(Some("127.0.0.1/8"), &[]).ends_with(2);
}
