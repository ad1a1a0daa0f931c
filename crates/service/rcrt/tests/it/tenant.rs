//! `rcrt tenant`, and drafts on the command line.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::constant_tool;
use crate::program::{Ran, Running};

const PATIENCE: Duration = Duration::from_mins(2);

fn as_token(up: &Running, token: &Value, arguments: &[&str]) -> Ran {
    Ran::of(up.command(arguments).env("RCRT_TOKEN", token["token"].as_str().unwrap()).output().unwrap())
}

fn an_operator_manages_tenants(up: &Running, operator: &Value, folder: &Path) {
    let refused = up.run(&["tenant", "new", "second"]).ends_with(6).stderr;
    assert!(refused.contains("only the operator can create tenants") && refused.contains("rcrt token --operator"));
    let first = as_token(up, operator, &["tenant", "new", "second", "-o", "json"]).ends_with(0).json();
    up.run_as(&first, &["crumb", "list"]).ends_with(0);
    as_token(up, operator, &["tenant", "new", "second"]).ends_with(1);
    let listed = as_token(up, operator, &["tenant", "list"]).ends_with(0).stdout;
    assert!(listed.contains("default") && listed.contains(first["owner_id"].as_str().unwrap()), "{listed}");
    let own: Vec<Value> = serde_json::from_value(up.json(&["tenant", "list"])).unwrap();
    assert_eq!(own.iter().map(|tenant| &tenant["name"]).collect::<Vec<_>>(), ["default"]);

    // A bootstrap beyond a quota says what was written, and what to do.
    as_token(up, operator, &["tenant", "set", "second", "--max-tools", "1", "--max-requests", "50"]).ends_with(0);
    let tools = folder.join("two-tools");
    for name in ["first-of-two", "second-of-two"] {
        constant_tool::write(&tools, name, "1", &json!({"permissions": {"net": false}}));
    }
    let arguments = ["bootstrap", tools.to_str().unwrap(), "--no-examples"];
    let ran = up.run_as(&first, &arguments).ends_with(1);
    assert!(ran.stdout.contains("1 created, 1 refused"), "{}", ran.stdout);
    let expected = "second-of-two.json: not written: the tenant's quota of 1 tools is used up (1 are stored); delete a tool \
                    that is not needed, or ask the operator for more (`rcrt tenant set`)";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);

    for (tenant, status) in [("nobody", 3), ("default", 1)] {
        as_token(up, operator, &["tenant", "delete", tenant]).ends_with(status);
    }
    up.run_as(&first, &["tenant", "delete", "second"]).ends_with(6);
    as_token(up, operator, &["tenant", "delete", "second"]).ends_with(0);
    as_token(up, operator, &["tenant", "show", "second"]).ends_with(3);
    up.run_as(&first, &["crumb", "list"]).ends_with(6);
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
    let context = json!({
        "name": "twice", "description": "Doubles a number.",
        "code": {"language": "typescript", "source": "export async function execute(input: any) { return { n: 2 * input.n }; }"},
        "input_schema": {"type": "object", "properties": {"n": {"type": "number", "description": "The number."}}},
        "output_schema": {"type": "object", "properties": {"n": {"type": "number", "description": "Twice it."}}},
        "examples": [{"description": "one", "input": {"n": 1}, "output": {"n": 2}}]});
    let record = json!({"title": "twice", "schema_name": "tool.code.v1", "context": context}).to_string();
    up.run_as(&writer, &["crumb", "create", &record]).ends_with(0);
    up.run_as(&writer, &["call", "twice", r#"{"n": 4}"#]).ends_with(0);
    let refused = up.run(&["call", "twice", r#"{"n": 4}"#]);
    assert_ne!(refused.status, 0, "{}", refused.stdout);
    let row = |list: &Value| list.as_array().unwrap().iter().find(|row| row["name"] == "twice").unwrap().clone();
    assert_eq!(row(&up.json(&["tool", "list"]))["draft"], true);
    up.run_as(&writer, &["tool", "publish", "twice"]).ends_with(6);
    let ran = up.run(&["tool", "publish", "twcie"]).ends_with(3);
    assert!(ran.stderr.contains("there is no tool named twcie"), "{}", ran.stderr);
    up.run(&["tool", "publish", "twice", "--record-version", "7"]).ends_with(1);
    let published = up.json(&["tool", "publish", "twice", "--record-version", "1"]);
    assert_eq!((&published["name"], &published["record_version"]), (&json!("twice"), &json!(2)));
    assert_eq!((&published["problem"], &published["runner"]["state"]), (&Value::Null, &json!("offered")));
    let ran = up.run(&["tool", "publish", "twice"]).ends_with(1);
    assert!(ran.stderr.contains("twice has no draft, so nothing was published"), "{}", ran.stderr);
    up.run(&["call", "twice", r#"{"n": 4}"#]).ends_with(0);
    assert_eq!(row(&up.json(&["tool", "list"])).get("draft"), None);

    // The next version is a draft too, and the others go on with the published one.
    let update = json!({"name": "twice", "changes": {"description": "Doubles any number."}});
    up.run_as(&writer, &["call", "update_tool", &update.to_string()]).ends_with(0);
    let begun = Instant::now();
    loop {
        let shown = up.run(&["tool", "show", "twice"]).ends_with(0).stdout;
        assert!(shown.contains("This version is a draft"), "{shown}");
        if shown.contains("others call version 2.") {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{shown}");
    }
    assert_eq!(row(&up.json(&["tool", "list"]))["published_version"], 2);
    let history = up.json(&["tool", "history", "twice"]);
    assert_eq!((&history[0]["state"], &history[1]["state"]), (&json!("draft"), &json!("current")), "{history}");

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
    an_operator_manages_tenants(&up, &operator, folder.path());
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}
