//! `rcrt tenant`, and drafts on the command line.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running};

fn as_agent(up: &Running, agent: &Value, arguments: &[&str]) -> Ran {
    let mut command = up.command(arguments);
    for (name, field) in [("RCRT_OWNER_ID", "owner_id"), ("RCRT_AGENT_ID", "id"), ("RCRT_AGENT_KEY", "agent_key")] {
        command.env(name, agent[field].as_str().unwrap());
    }
    Ran::of(command.output().unwrap())
}

fn as_token(up: &Running, token: &Value, arguments: &[&str]) -> Ran {
    Ran::of(up.command(arguments).env("RCRT_TOKEN", token["token"].as_str().unwrap()).output().unwrap())
}

#[test]
fn a_curator_sets_the_rule_and_publishes_drafts_and_an_operator_sets_quotas() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let shown = up.json(&["tenant", "show"]);
    assert_eq!((&shown["name"], &shown["publish"]), (&json!("default"), &json!("examples")), "{shown}");
    let ran = up.run(&["tenant", "set"]).ends_with(2);
    assert!(ran.stderr.contains("--publish"), "{}", ran.stderr);
    let set = up.json(&["tenant", "set", "default", "--publish", "curator"]);
    assert_eq!(set["publish"], "curator");
    assert!(up.run(&["tenant", "show", "other"]).ends_with(3).stderr.contains("there is no tenant"));

    // Every tool that another agent writes is a draft now.
    let writer = up.json(&["token", "--agent", "writer", "--role", "emitter,subscriber"]);
    let record = json!({"title": "twice", "schema_name": "tool.code.v1", "context": {
        "name": "twice", "description": "Doubles a number.",
        "code": {"language": "typescript", "source": "export async function execute(input: any) { return { n: 2 * input.n }; }"},
        "input_schema": {"type": "object", "properties": {"n": {"type": "number", "description": "The number."}}},
        "output_schema": {"type": "object", "properties": {"n": {"type": "number", "description": "Twice it."}}},
        "examples": [{"description": "one", "input": {"n": 1}, "output": {"n": 2}}]}})
    .to_string();
    as_agent(&up, &writer, &["crumb", "create", &record]).ends_with(0);
    as_agent(&up, &writer, &["call", "twice", r#"{"n": 4}"#]).ends_with(0);
    let refused = up.run(&["call", "twice", r#"{"n": 4}"#]);
    assert_ne!(refused.status, 0, "{}", refused.stdout);
    let row = |list: &Value| list.as_array().unwrap().iter().find(|row| row["name"] == "twice").unwrap().clone();
    assert_eq!(row(&up.json(&["tool", "list"]))["draft"], true);
    assert_ne!(as_agent(&up, &writer, &["tool", "publish", "twice"]).status, 0);
    let published = up.json(&["tool", "publish", "twice", "--record-version", "1"]);
    assert_eq!((&published["name"], &published["record_version"]), (&json!("twice"), &json!(2)));
    up.run(&["call", "twice", r#"{"n": 4}"#]).ends_with(0);
    assert_eq!(row(&up.json(&["tool", "list"])).get("draft"), None);

    // Quotas are the operator's. Others stay as they are.
    let refused = up.run(&["tenant", "set", "--max-tools", "1"]);
    assert!(refused.status != 0 && refused.stderr.contains("only the operator"), "{}", refused.stderr);
    let operator = up.json(&["token", "--operator"]);
    for quota in ["--max-records", "--max-tools"] {
        as_token(&up, &operator, &["tenant", "set", "default", quota, "1000"]).ends_with(0);
    }
    let quotas = up.json(&["tenant", "show"])["usage"]["own"].clone();
    assert_eq!((&quotas["max_records"], &quotas["max_tools"]), (&json!(1000), &json!(1000)), "{quotas}");
    assert_eq!(up.json(&["tenant", "show"])["publish"], "curator");
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}
