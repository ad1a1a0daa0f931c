//! `rcrt secret`, and the output of `bootstrap`, `tool` and `call` for a tool that needs secrets.
//! Parts of a test that runs a whole system.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Ran, Running};

pub fn are_created_and_changed(up: &Running) {
    let set = |more: &[&str], value: &str| {
        let mut arguments = vec!["secret", "set", "API_KEY"];
        arguments.extend(more);
        up.run_with_stdin(&arguments, value)
    };
    let one = || up.json(&["secret", "list"])[0].clone();
    set(&["--keep-value", "--readable"], "").ends_with(3);
    let ran = set(&[], "s3cr3t-value\n").ends_with(0);
    assert_eq!(ran.stdout, "API_KEY created (version 1; hosts: none; tools: none)\n");
    assert!(ran.stderr.starts_with("warning: no tool can use API_KEY: it is bound to no host"), "{}", ran.stderr);
    let ran = set(&["--host", "API.Example.com.", "--host", "[::1]:8080"], "another value").ends_with(0);
    assert_eq!(ran.stdout, "API_KEY changed (version 2; hosts: api.example.com, [::1]:8080; tools: none)\n");
    assert_eq!(ran.stderr, "");
    set(&[], "a third value").ends_with(0);
    assert_eq!(one()["hosts"], json!(["api.example.com", "[::1]:8080"]), "a new value keeps the hosts");

    // Errors are reported before the command asks for a value.
    for (more, word) in [
        (vec!["--host", "https://api.example.com"], "hosts[0]"),
        (vec!["--host", "good.example.com", "--host", "*"], "hosts[1]"),
        (vec!["--keep-value"], "--keep-value"),
        (vec!["--no-host", "--host", "a.example.com"], "--no-host"),
        (vec!["--readable", "--not-readable"], "--not-readable"),
    ] {
        let ran = set(&more, "").ends_with(2);
        assert!(ran.stderr.contains(word), "{more:?}: {}", ran.stderr);
    }
    for bad in ["API-KEY", "9A", "API KEY"] {
        let ran = up.run_with_stdin(&["secret", "set", bad], "a long value").ends_with(2);
        assert!(ran.stderr.contains("name: must be a letter or _, then letters, digits and _"), "{}", ran.stderr);
    }
    let ran = set(&[], "short").ends_with(1);
    assert!(ran.stderr.contains("at least 8"), "{}", ran.stderr);
    set(&[], "").ends_with(2);
    assert_eq!(one()["version"], 3);

    let ran = set(&["--keep-value", "--readable", "--no-host"], "not read").ends_with(0);
    assert!(ran.stderr.contains("API_KEY is readable"), "{}", ran.stderr);
    assert_eq!((&one()["readable"], &one()["hosts"], &one()["version"]), (&json!(true), &json!([]), &json!(3)));
    set(&[], "short").ends_with(0);
    set(&["--keep-value", "--not-readable"], "").ends_with(1);
    set(&["--not-readable"], "long enough").ends_with(0);
    assert_eq!((&one()["readable"], &one()["version"]), (&json!(false), &json!(5)));

    let table = up.run(&["secret", "list"]).ends_with(0).stdout;
    let columns: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(columns, ["NAME", "VERSION", "HOSTS", "READABLE", "TOOLS", "CHANGED", "ID"]);
    assert!(table.contains("API_KEY") && !table.contains("long enough"), "{table}");
    let ran = up.run(&["secret", "grant", "API_KEY", "nobodys"]).ends_with(3);
    assert!(ran.stderr.contains("no tool named nobodys"), "{}", ran.stderr);
    up.run(&["secret", "grant", "ABSENT", "calculator"]).ends_with(3);
    up.run(&["secret", "revoke", "API_KEY", "calculator"]).ends_with(3);
    up.run(&["secret", "delete", "API_KEY"]).ends_with(0);
    up.run(&["secret", "delete", "API_KEY"]).ends_with(3);
}

const TOOL: &str = r#"{
  "schema_name": "tool.code.v1",
  "title": "Keyed",
  "tags": ["tool", "tool:keyed"],
  "context": {
    "name": "keyed",
    "description": "Tells what it sees of its secrets",
    "version": "1.0.0",
    "input_schema": {"type": "object"},
    "output_schema": {"type": "object"},
    "required_secrets": ["OPAQUE", "OPEN"],
    "examples": [{"description": "Nothing in", "input": {}, "explanation": "Only secrets"}]
  }
}"#;
const SOURCE: &str = "export async function execute(_: object, context: { secrets: Record<string, string> }) {\n  \
                      return { opaque: context.secrets.OPAQUE.slice(0, 19), open: context.secrets.OPEN.length };\n}\n";

pub fn are_available_to_tools_by_grants(up: &Running, folder: &Path) {
    let tools = folder.join("keyed-tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("keyed.json"), TOOL).unwrap();
    std::fs::write(tools.join("keyed.ts"), SOURCE).unwrap();
    let seed = |more: &[&str]| -> Ran {
        let mut arguments = vec!["bootstrap", tools.to_str().unwrap(), "--output", "json"];
        arguments.extend(more);
        up.run(&arguments).ends_with(0)
    };
    let warnings = |ran: &Ran| -> Vec<String> { serde_json::from_value(ran.json()["warnings"].clone()).unwrap() };
    let warned = warnings(&seed(&["--dry-run"]));
    assert_eq!(
        warned[0],
        "keyed.json: the secret \"OPAQUE\" does not exist; fix it with `rcrt secret set OPAQUE --readable && rcrt \
         secret grant OPAQUE keyed`"
    );
    let ran = seed(&[]);
    assert_eq!(warnings(&ran).len(), 2);
    let id = ran.json()["files"][0]["id"].as_str().unwrap().to_owned();

    up.run_with_stdin(&["secret", "set", "OPAQUE"], "an opaque value").ends_with(0);
    up.run_with_stdin(&["secret", "set", "OPEN", "--readable"], "open").ends_with(0);
    let not_granted = |name: &str| {
        format!(
            "keyed.json: the secret {name:?} is not granted to this tool; fix it with `rcrt secret grant {name} {id}`"
        )
    };
    let readable = "keyed.json: the secret \"OPEN\" is readable: the tool's code gets the value itself";
    assert_eq!(warnings(&seed(&[])), [not_granted("OPAQUE"), not_granted("OPEN"), readable.to_owned()]);
    let listed = up.json(&["tool", "list"]);
    let row = listed.as_array().unwrap().iter().find(|row| row["name"] == "keyed").unwrap();
    assert_eq!(row["lacks"][0]["problem"], "not_granted");
    assert!(up.run(&["tool", "list"]).stdout.contains("LACKS SECRETS: OPAQUE (not_granted), OPEN (not_granted)"));

    let call = || up.run(&["call", "keyed", "{}", "--output", "json"]);
    let refused = call().ends_with(4);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("PermissionDenied") && said.contains("rcrt secret grant OPAQUE"), "{said}");
    let ran = up.run(&["secret", "grant", "OPAQUE", "keyed"]).ends_with(0);
    assert!(ran.stdout.starts_with("OPAQUE granted (") && ran.stdout.contains("tools: keyed"), "{}", ran.stdout);
    let granted = up.json(&["secret", "grant", "OPEN", &id]);
    assert_eq!((&granted["tools"][0]["tool"], &granted["tools"][0]["tool_id"]), (&json!("keyed"), &json!(id)));
    let unbound = "keyed.json: the secret \"OPAQUE\" is bound to no host and not readable, so it cannot be used; fix it \
                   with `rcrt secret set OPAQUE --keep-value --readable`";
    assert_eq!(warnings(&seed(&[])), [unbound, readable]);
    up.run(&["secret", "set", "OPAQUE", "--keep-value", "--host", "api.example.com"]).ends_with(0);
    assert_eq!(warnings(&seed(&[])), [readable]);
    let shown = up.run(&["tool", "show", "keyed"]).ends_with(0).stdout;
    assert!(shown.contains("OPAQUE (for api.example.com), OPEN (readable)"), "{shown}");
    assert_eq!(call().ends_with(0).json()["output"], json!({"opaque": "rcrt_secret_OPAQUE_", "open": 4}));

    // Another record with the same name: neither has the other's grants, and a grant must name one
    // of them by its id.
    let mut copy: Value = serde_json::from_str(TOOL).unwrap();
    copy["schema_name"] = json!("tool.v1");
    let copy = up.json(&["crumb", "create", &copy.to_string()])["id"].as_str().unwrap().to_owned();
    let ran = up.run(&["secret", "grant", "OPEN", "keyed"]).ends_with(2);
    assert!(ran.stderr.contains(&copy) && ran.stderr.contains(&id), "{}", ran.stderr);

    up.run(&["secret", "revoke", "OPEN", "keyed"]).ends_with(0);
    up.run(&["secret", "revoke", "OPEN", "keyed"]).ends_with(3);
    call().ends_with(4);
    for name in ["OPAQUE", "OPEN"] {
        up.run(&["secret", "delete", name]).ends_with(0);
    }
}
