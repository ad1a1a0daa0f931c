//! A tool whose output is a constant, as files and in a running system.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::Running;

/// Writes the tool's two files. `changes` of its context replace the fields of the same name.
pub fn write(folder: &Path, name: &str, answer: &str, changes: &Value) {
    std::fs::create_dir_all(folder).unwrap();
    let mut context = json!({
        "name": name,
        "description": "Returns a constant",
        "version": "1.0.0",
        "input_schema": {"type": "object"},
        "output_schema": {"type": "object"},
        "examples": [{"description": "Nothing in", "input": {}, "explanation": "It needs no input"}]
    });
    context.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let definition = json!({
        "schema_name": "tool.code.v1",
        "title": format!("The tool {name}"),
        "tags": ["tool", format!("tool:{name}")],
        "context": context,
    });
    std::fs::write(folder.join(format!("{name}.json")), definition.to_string()).unwrap();
    write_source(folder, name, answer);
}

pub fn write_source(folder: &Path, name: &str, answer: &str) {
    std::fs::write(folder.join(format!("{name}.ts")), source(answer)).unwrap();
}

fn source(answer: &str) -> String {
    format!("export async function execute() {{\n  return {{ answer: \"{answer}\" }};\n}}\n")
}

/// Calls the tool.
pub fn answer(up: &Running, name: &str) -> Value {
    up.json(&["call", name, "{}"])["output"]["answer"].clone()
}

/// Changes a record, as any client does.
pub fn patch(up: &Running, record: &Value, changes: &Value) {
    let token = std::fs::read_to_string(up.data.join("token")).unwrap();
    let request = reqwest::Client::new()
        .patch(format!("{}/breadcrumbs/{}", up.api(), record["id"].as_str().unwrap()))
        .bearer_auth(token.trim())
        .header("If-Match", record["version"].to_string())
        .json(changes);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = runtime.block_on(request.send()).unwrap().status();
    assert!(status.is_success(), "{status}");
}
