//! A curator replaces an included tool and removes the replacement: one real system.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running};

/// Timeout for the system to act on a written record.
const PATIENCE: Duration = Duration::from_mins(2);
/// A native tool that succeeds without input.
pub const NATIVE: &str = "list_scheduled_tasks";
/// An included `tool.code.v1`.
const CODE: &str = "calculator";
pub const SOURCE: &str = "export async function execute() {\n  return { from: \"the replacement\" };\n}\n";

#[test]
fn a_curator_replaces_an_included_tool_and_undoes_it() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let shipped = ran(&up, NATIVE);
    assert_eq!(shipped.1, "tool.v1");

    let writer = up.json(&["token", "--agent", "writer", "--role", "emitter,subscriber"]);
    let code = a_record_of_an_emitter_becomes_a_curators(&up, folder.path(), &writer, &shipped.0);
    until(|| (ran(&up, NATIVE) == (code.clone(), "tool.code.v1".into())).then_some(()));
    assert_eq!(up.json(&["call", NATIVE, "{}"])["output"], json!({"from": "the replacement"}));
    commands_show_which_record_runs(&up, &shipped.0, &code);

    delete(&up, &code);
    until(|| (ran(&up, NATIVE) == shipped).then_some(()));
    assert!(up.json(&["call", NATIVE, "{}"])["output"].get("tasks").is_some());

    shipped_code_keeps_its_name(&up);
    one_bootstrap_is_enough_where_the_set_has_both_kinds(&up, folder.path(), &writer);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// The record and the schema that ran, as the response names them.
fn ran(up: &Running, tool: &str) -> (String, String) {
    let input = if tool == CODE { r#"{"expression": "6 * 7"}"# } else { "{}" };
    let response = up.json(&["call", tool, input]);
    let text = |name: &str| response["metadata"][name].as_str().unwrap().to_owned();
    (text("tool_id"), text("tool_schema_name"))
}

pub fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        assert!(begun.elapsed() < PATIENCE, "timed out");
    }
}

pub fn row(up: &Running, id: &str) -> Value {
    let rows = up.json(&["tool", "list"]);
    rows.as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone()
}

/// The runner's report on a record that does not run.
fn problem(up: &Running, id: &str) -> String {
    until(|| row(up, id)["problem"].as_str().map(str::to_owned))
}

pub fn definition(name: &str) -> Value {
    json!({
        "schema_name": "tool.code.v1",
        "title": "A replacement",
        "tags": ["tool", format!("tool:{name}")],
        "context": {
            "name": name,
            "description": "Says that it is the replacement",
            "version": "1.0.0",
            "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
            "examples": [{"description": "Nothing in", "input": {}, "explanation": "It needs no input"}]
        }
    })
}

/// Does what the report says: a curator bootstraps the file that an emitter wrote before. Returns
/// its record.
fn a_record_of_an_emitter_becomes_a_curators(up: &Running, folder: &Path, writer: &Value, shipped: &str) -> String {
    let tools = folder.join("replacements");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("replacement.json"), definition(NATIVE).to_string()).unwrap();
    std::fs::write(tools.join("replacement.ts"), SOURCE).unwrap();
    let bootstrap = ["bootstrap", tools.to_str().unwrap(), "--output", "json"];
    let dry_run = ["bootstrap", tools.to_str().unwrap(), "--output", "json", "--dry-run"];
    let done = |ran: Ran| -> Value { ran.ends_with(0).json()["files"][0].clone() };

    // The command waits for the runner, which refuses the tool.
    let refused = |ran: Ran| -> Value { ran.ends_with(1).json()["files"][0].clone() };
    let created = refused(up.run_as(writer, &bootstrap));
    assert_eq!((&created["what"], &created["runner"]["state"]), (&json!("created"), &json!("refused")), "{created}");
    let id = created["id"].as_str().unwrap().to_owned();
    let problem = problem(up, &id);
    assert!(problem.contains(shipped) && problem.contains("`rcrt bootstrap`"), "{problem}");
    assert_eq!(ran(up, NATIVE).0, shipped);
    let tags = || up.json(&["crumb", "get", &id])["tags"].to_string();
    assert!(!tags().contains("author:curator"));

    assert_eq!(refused(up.run_as(writer, &bootstrap))["what"], "unchanged", "an emitter changes nothing");
    assert_eq!(done(up.run(&dry_run))["what"], "updated");
    assert_eq!(done(up.run(&bootstrap))["what"], "updated");
    assert!(tags().contains("author:curator"));
    assert_eq!(done(up.run(&bootstrap))["what"], "unchanged");
    id
}

/// The code is first in the set, so the store has no `tool.v1` of its name yet when it is compared.
fn one_bootstrap_is_enough_where_the_set_has_both_kinds(up: &Running, folder: &Path, writer: &Value) {
    let tools = folder.join("both");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("a.json"), definition("greet").to_string()).unwrap();
    std::fs::write(tools.join("a.ts"), SOURCE).unwrap();
    let bootstrap = ["bootstrap", tools.to_str().unwrap(), "--output", "json"];
    assert_eq!(up.run_as(writer, &bootstrap).ends_with(0).json()["files"][0]["what"], "created");
    let legacy = json!({
        "schema_name": "tool.v1",
        "title": "The same by HTTP",
        "tags": ["tool", "tool:greet"],
        "context": {
            "name": "greet",
            "description": "Asks a server",
            "definition": {"examples": [{"description": "Nothing in", "input": {}}]},
            "implementation": {"type": "http", "url": "https://api.example.com/"}
        }
    });
    std::fs::write(tools.join("b.json"), legacy.to_string()).unwrap();
    // The runner refuses the `tool.v1`, which is newer than the code of its name.
    let outcomes = || -> Vec<Value> {
        let done = up.run(&bootstrap).ends_with(1).json();
        assert_eq!(done["files"][0]["runner"]["state"], "offered", "{done}");
        assert_eq!(done["files"][1]["runner"]["state"], "refused", "{done}");
        done["files"].as_array().unwrap().iter().map(|file| file["what"].clone()).collect()
    };
    assert_eq!(outcomes(), ["updated", "created"]);
    assert_eq!(outcomes(), ["unchanged", "unchanged"]);
}

fn commands_show_which_record_runs(up: &Running, shipped: &str, code: &str) {
    // The catalog is updated after the change.
    let shown = until(|| Some(up.json(&["tool", "show", NATIVE])).filter(|shown| shown["id"] == code));
    assert_eq!(shown["same_name"][0]["id"], shipped);
    assert_eq!(shown["same_name"][0]["schema_name"], "tool.v1");
    let shown = up.run(&["tool", "show", NATIVE]).ends_with(0).stdout;
    assert!(shown.contains(&format!("tool.v1 {shipped} (version 1): replaced by this record")), "{shown}");

    assert_eq!(row(up, shipped)["runs_instead"]["id"], code);
    assert_eq!(row(up, shipped)["runs_instead"]["schema_name"], "tool.code.v1");
    assert!(row(up, code).get("runs_instead").is_none());
    let table = up.run(&["tool", "list"]).ends_with(0).stdout;
    assert!(table.contains(&format!("REPLACED by tool.code.v1 {code}")), "{table}");
}

/// Of two records with the same schema, the older one has the name, even against a curator, who can
/// change or delete it.
fn shipped_code_keeps_its_name(up: &Running) {
    let shipped = ran(up, CODE);
    assert_eq!(shipped.1, "tool.code.v1");
    let mut second = definition(CODE);
    second["context"]["code"] = json!({"language": "typescript", "source": SOURCE});
    let second = up.json(&["crumb", "create", &second.to_string()])["id"].as_str().unwrap().to_owned();
    let problem = problem(up, &second);
    assert!(problem.contains(&shipped.0), "{problem}");
    assert_eq!(ran(up, CODE), shipped);

    delete(up, &shipped.0);
    until(|| (ran(up, CODE).0 == second).then_some(()));
}

fn delete(up: &Running, id: &str) {
    let token = std::fs::read_to_string(up.data.join("token")).unwrap();
    let request = reqwest::Client::new().delete(format!("{}/breadcrumbs/{id}", up.api())).bearer_auth(token.trim());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = runtime.block_on(request.send()).unwrap().status();
    assert!(status.is_success(), "{status}");
}
