//! docs/troubleshooting.md: it has each message of the source texts word for word, and our messages
//! are what the program prints.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rcrt_breadcrumb::StoreError;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, run};

/// The messages in the source texts, which agents and people search for.
const OF_THE_SOURCES: &[&str] = &[
    "⚠️ Deno runtime initialization failed",
    "Failed to execute: Network access denied",
    "Tool execution timed out after 30000ms",
    "Code must export an async function named \"execute\"",
    "ToolNotFound",
    "InvalidArguments",
    "ExecutionFailed",
    "[result truncated — N chars omitted]",
    "Attempting to register a duplicate tool name throws",
    "The file must already exist -- use `write_file` to create it first.",
    "No `eval()`, `Function()`, or dynamic imports",
    "No private/local network access (localhost, 127.0.0.1, 192.168.*, etc.)",
];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The blocks of the page: the text after ```` ```text ````, and the content.
fn blocks() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(top().join("docs/troubleshooting.md")).unwrap();
    let fenced = page.split("```text ").skip(1);
    fenced
        .map(|block| {
            let (kind, rest) = block.split_once('\n').unwrap();
            (kind.to_owned(), rest.split("\n```").next().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn every_message_of_the_source_texts_has_a_section() {
    let of_sources: Vec<String> =
        blocks().into_iter().filter(|(kind, _)| kind == "seed").map(|(_, text)| text).collect();
    assert_eq!(of_sources, OF_THE_SOURCES);
    let page = std::fs::read_to_string(top().join("docs/troubleshooting.md")).unwrap();
    for section in page.split("\n## ").skip(1) {
        for part in ["\n- **Cause.** ", "\n- **Fix.** ", "```text ours: "] {
            assert!(section.contains(part), "{part:?} is missing in {section}");
        }
    }
    let index = std::fs::read_to_string(top().join("docs/README.md")).unwrap();
    assert!(index.contains("(troubleshooting.md)"));
}

#[test]
fn the_quoted_messages_match_the_program() {
    let folder = TempDir::new().unwrap();
    let mut said = BTreeMap::new();
    validator(&folder.path().join("files"), &mut said);
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    calls(&up, &mut said);
    duplicate(&up, &mut said);
    // The store's own tests let the database return it.
    said.insert("full", StoreError::Full.to_string());
    #[cfg(target_os = "linux")]
    {
        let runner = crate::protections::refused(up.command(&["runner"])).output().unwrap();
        said.insert("no-protection", Ran::of(runner).ends_with(1).stderr);
    }
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");

    let ours = blocks().into_iter().filter_map(|(kind, text)| Some((kind.strip_prefix("ours: ")?.to_owned(), text)));
    // Other systems have no such jail.
    let ours: BTreeMap<String, String> =
        ours.filter(|(name, _)| name != "no-protection" || cfg!(target_os = "linux")).collect();
    assert_eq!(ours.keys().collect::<Vec<_>>(), said.keys().collect::<Vec<_>>());
    for (name, text) in ours {
        let mut rest = said[name.as_str()].as_str();
        for part in text.split('…').filter(|part| !part.is_empty()) {
            let found = rest.find(part).unwrap_or_else(|| panic!("{name}: {part:?} is not in {}", said[name.as_str()]));
            rest = &rest[found + part.len()..];
        }
    }
}

fn definition(name: &str, more: &Value) -> Value {
    let mut context = json!({
        "name": name, "description": "A tool of the test.", "version": "1.0.0",
        "code": {"language": "typescript", "source": "export async function execute() { return {}; }"},
        "input_schema": {"type": "object"}, "output_schema": {},
        "examples": [{"description": "Nothing.", "input": {}}],
    });
    context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"schema_name": "tool.code.v1", "title": name, "tags": ["tool", format!("tool:{name}")], "context": context})
}

fn code(source: &str) -> Value {
    json!({"language": "typescript", "source": source})
}

fn validator(folder: &Path, said: &mut BTreeMap<&'static str, String>) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, more) in [
        ("no-execute", json!({"code": code("export async function run() { return {}; }")})),
        ("eval", json!({"code": code("export async function execute() { return eval('1'); }")})),
        ("private-host", json!({"permissions": {"net": ["127.0.0.1"]}})),
    ] {
        let file = folder.join(format!("{name}.json"));
        std::fs::write(&file, definition("checked", &more).to_string()).unwrap();
        let ran = run(&["tool", "validate", file.to_str().unwrap()]).ends_with(1);
        said.insert(name, ran.stdout);
    }
}

fn calls(up: &Running, said: &mut BTreeMap<&'static str, String>) {
    let fetching = code("export async function execute() { return (await fetch('https://example.com/')).status; }");
    let waiting = code("export async function execute() { await new Promise((done) => setTimeout(done, 60_000)); }");
    for (name, more) in [
        ("closed", json!({"code": fetching, "permissions": {"net": false}})),
        ("elsewhere", json!({"code": fetching, "permissions": {"net": ["api.example.com"]}})),
        ("waiting", json!({"code": waiting, "limits": {"timeout_ms": 300}})),
    ] {
        up.json(&["crumb", "create", &definition(name, &more).to_string()]);
    }
    for (name, code, tool, input) in [
        ("no-network", "PermissionDenied", "closed", json!({})),
        ("other-host", "PermissionDenied", "elsewhere", json!({})),
        ("timeout", "Timeout", "waiting", json!({})),
        ("unknown-tool", "ToolNotFound", "calculatr", json!({})),
        ("invalid-input", "InvalidArguments", "calculator", json!({"expression": 5})),
        ("tool-error", "ExecutionFailed", "calculator", json!({"expression": "1/0"})),
        ("no-file", "ExecutionFailed", "append_file", json!({"path": "missing.md", "content": "x"})),
        ("no-search", "PermissionDenied", "web_search", json!({"query": "x"})),
    ] {
        let response = up.run(&["call", tool, &input.to_string(), "--output", "json"]).json();
        assert_eq!(response["error_code"], code, "{name}: {response}");
        said.insert(name, response["error"].as_str().unwrap().to_owned());
    }
    let input = json!({"message": "x".repeat(5000)}).to_string();
    let output = up.json(&["call", "echo", &input, "--max-result-chars", "1000"])["output"].clone();
    said.insert("truncated", output["text"].as_str().unwrap().to_owned());
}

fn duplicate(up: &Running, said: &mut BTreeMap<&'static str, String>) {
    let mut watch = up.command(&["crumb", "watch", "--schema", "tool.error.v1", "--since", "0"]);
    let mut watching = watch.stdout(Stdio::piped()).spawn().unwrap();
    up.json(&["crumb", "create", &definition("calculator", &json!({})).to_string()]);
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let log_line = lines.find(|line| line.as_ref().unwrap().contains("is taken by")).unwrap().unwrap();
    watching.kill().unwrap();
    watching.wait().unwrap();
    let event: Value = serde_json::from_str(&log_line).unwrap();
    let mut all = String::new();
    texts(&event["context"], &mut all);
    said.insert("duplicate", all);
}

/// Collects all strings in a value.
fn texts(value: &Value, found: &mut String) {
    match value {
        Value::String(text) => found.extend([text, "\n"]),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(entries) => entries.values().for_each(|item| texts(item, found)),
        _ => {}
    }
}
