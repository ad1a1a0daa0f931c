//! Messages that name the problem, its location and a fix: of commands that need no server, and of
//! calls in one real system.

use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, run};

fn definition(name: &str) -> Value {
    json!({
        "schema_name": "tool.code.v1",
        "title": format!("The tool {name}"),
        "tags": ["tool", format!("tool:{name}")],
        "context": {
            "name": name,
            "description": "Fails in its own way",
            "version": "1.0.0",
            "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
            "examples": [{"description": "Nothing in", "input": {}, "explanation": "It needs no input"}]
        }
    })
}

fn write(folder: &Path, name: &str, record: &Value, source: Option<&str>) -> String {
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.join(format!("{name}.json"));
    std::fs::write(&file, record.to_string()).unwrap();
    if let Some(source) = source {
        std::fs::write(folder.join(format!("{name}.ts")), source).unwrap();
    }
    file.to_str().unwrap().to_owned()
}

const SOURCE: &str = "export async function execute() {\n  return {};\n}\n";

#[test]
fn findings_of_a_definition_name_the_location_and_the_fix() {
    let folder = TempDir::new().unwrap();
    let validate = |record: &Value, source: Option<&str>| -> Ran {
        let _ = std::fs::remove_file(folder.path().join("tool.ts"));
        run(&["tool", "validate", &write(folder.path(), "tool", record, source)]).ends_with(1)
    };
    let missing = validate(&definition("tool"), None);
    assert!(missing.stdout.contains("context.code: is missing, and so is the source file"), "{}", missing.stdout);
    assert!(missing.stdout.contains("tool.ts: write the source there"), "{}", missing.stdout);
    assert!(missing.stdout.contains("1 error, 0 warnings"), "{}", missing.stdout);

    let mut untitled = definition("tool");
    untitled.as_object_mut().unwrap().remove("title");
    let untitled = validate(&untitled, Some(SOURCE));
    assert!(untitled.stdout.contains("tool.json: title: is required"), "{}", untitled.stdout);

    for host in ["10.0.0.5", "db.internal", "localhost"] {
        let mut private = definition("tool");
        private["context"]["permissions"] = json!({"net": [host]});
        let private = validate(&private, Some(SOURCE));
        assert!(private.stdout.contains("permissions.net[0]"), "{}", private.stdout);
        assert!(private.stdout.contains("--allow-private-host"), "{}", private.stdout);
    }
}

#[test]
fn malformed_json_has_its_position_once() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("tool.json");
    std::fs::write(&file, "{\n  \"title\": }").unwrap();
    let ran = run(&["tool", "validate", file.to_str().unwrap()]).ends_with(1);
    assert!(ran.stdout.contains("tool.json:2:12: is not valid JSON: expected value"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("at line"), "{}", ran.stdout);
}

#[test]
fn the_next_step_of_a_new_tool_is_its_first_example() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_str().unwrap();
    let made = run(&["tool", "new", "x", "--dir", dir]).ends_with(0);
    let record = std::fs::read_to_string(folder.path().join("x.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let shown = made.stdout.lines().find_map(|line| line.trim().strip_prefix("rcrt call x ")).unwrap();
    let shown: Value = serde_json::from_str(&shown.trim_matches('\'').replace("'\\''", "'")).unwrap();
    assert_eq!(shown, record["context"]["examples"][0]["input"]);
    // A path with a space can be copied.
    let dir = folder.path().join("my tools");
    let made = run(&["tool", "new", "y", "--dir", dir.to_str().unwrap()]).ends_with(0);
    assert!(made.stdout.contains(&format!("rcrt bootstrap '{}'", dir.display())), "{}", made.stdout);
    assert!(made.stdout.contains(&format!("validate '{}/y.json'", dir.display())), "{}", made.stdout);
}

/// In the response, in a message for a model, and in `rcrt calls show`.
fn a_denied_fetch_has_its_code_once(up: &Running) {
    let response = up.run(&["call", "denied", "{}", "--output", "json"]).ends_with(4).json();
    assert_eq!(response["error_code"], "PermissionDenied", "{response}");
    assert!(response["error"].as_str().unwrap().starts_with("the tool cannot use the network"), "{response}");
    for (format, call, text) in [
        ("openai", json!({"id": "c1", "function": {"name": "denied", "arguments": "{}"}}), "/content"),
        ("anthropic", json!({"type": "tool_use", "id": "t1", "name": "denied", "input": {}}), "/content"),
        ("mcp", json!({"name": "denied", "arguments": {}}), "/content/0/text"),
    ] {
        let message = up.post(&format!("/tools/denied/invoke?format={format}"), &call);
        let text = message.pointer(text).and_then(Value::as_str).unwrap_or_default();
        assert!(text.starts_with("PermissionDenied: the tool cannot use the network"), "{format}: {message}");
    }
    let shown = up.run(&["calls", "show", response["request_id"].as_str().unwrap()]).ends_with(0).stdout;
    assert_eq!(shown.matches("PermissionDenied").count(), 1, "{shown}");
}

#[test]
fn failed_calls_state_each_problem_once() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let tools = folder.path().join("failing");
    let caused = "export async function execute() {\n  \
                  throw new Error(\"the order failed\", { cause: new Error(\"no paper\") });\n}\n";
    write(&tools, "caused", &definition("caused"), Some(caused));
    let denied = "export async function execute() {\n  await fetch(\"https://example.com/\");\n  return {};\n}\n";
    write(&tools, "denied", &definition("denied"), Some(denied));
    let mut signing = definition("signing");
    signing["context"]["required_secrets"] = json!(["SIGNING_KEY"]);
    write(&tools, "signing", &signing, Some(SOURCE));
    signing["context"]["name"] = json!("signing-client");
    signing["context"]["required_secrets"] = json!(["CLIENT_KEY"]);
    signing["context"]["permissions"] = json!({"net": ["api.example.com"]});
    write(&tools, "signing-client", &signing, Some(SOURCE));
    let ran = up.run(&["bootstrap", tools.to_str().unwrap(), "--no-examples"]).ends_with(0);
    // Its code computes with the value, as it has no network.
    assert!(ran.stderr.contains("`rcrt secret set SIGNING_KEY --readable &&"), "{}", ran.stderr);
    // Its code can send the value or compute with it.
    assert!(ran.stderr.contains("`rcrt secret set CLIENT_KEY --host HOST &&"), "{}", ran.stderr);
    assert!(ran.stderr.contains("(with --readable in place of --host HOST"), "{}", ran.stderr);

    let failed = |arguments: &[&str]| up.run(arguments).ends_with(4).stderr;
    let text = failed(&["call", "caused", "{}"]);
    assert!(text.contains("the order failed") && text.contains("caused by Error: no paper"), "{text}");
    a_cause_is_reported_everywhere(&up);
    let tested = up.run(&["tool", "test", tools.join("caused.json").to_str().unwrap()]).ends_with(1).stdout;
    assert!(tested.contains("the order failed; caused by Error: no paper"), "{tested}");
    an_error_outside_of_execute_has_its_cause_and_position(&up, folder.path());
    effects_are_described(&up, folder.path());
    a_cancelled_call_says_so(&up);
    let text = failed(&["call", "timer", r#"{"seconds": 60}"#, "--deadline", "0.05"]);
    assert!(text.contains("deadline_ms: 50") && text.lines().count() == 1, "{text}");
    let late = up.run(&["call", "timer", r#"{"seconds": 60}"#, "--timeout", "1"]).ends_with(1).stderr;
    assert!(late.contains("no response within 1 s") && late.contains("it was still running; --timeout"), "{late}");
    let text = failed(&["call", "denied", "{}"]);
    assert_eq!(text.matches("PermissionDenied").count(), 1, "{text}");
    a_denied_fetch_has_its_code_once(&up);
    let text = failed(&["call", "calculator", r#"{"expresion": "1"}"#]);
    for once in ["is not a property of the schema; did you mean expression?", "is required"] {
        assert_eq!(text.matches(once).count(), 1, "{text}");
    }
    let text = failed(&["call", "calculater", "{}"]);
    assert_eq!(text.to_lowercase().matches("did you mean calculator?").count(), 1, "{text}");
    let text = failed(&["call", "timer", r#"{"seconds": 1, "ms": 1}"#]);
    assert_eq!(text.matches("must have only one of seconds or ms").count(), 1, "{text}");
    let text = failed(&["call", "timer", "{}"]);
    assert_eq!(text.matches("must have seconds or ms").count(), 1, "{text}");

    up.json(&["token", "--agent", "one", "--role", "subscriber"]);
    let from = |name: &str| -> String {
        let rows = up.json(&["tool", "list"]);
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
        row["from"].as_str().unwrap().to_owned()
    };
    assert_eq!(from("calculator"), "included");
    assert_eq!(from("caused"), tools.canonicalize().unwrap().to_str().unwrap());
    let unknown = up.run(&["tool", "show", "calculater"]).ends_with(3).stderr;
    assert!(unknown.contains("did you mean calculator?"), "{unknown}");
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let logged = stderr.lines().find(|line| line.contains("the call failed") && line.contains("the order failed"));
    assert!(logged.is_some_and(|line| line.contains("no paper")), "{stderr}");
}

/// In the messages of a model's formats, and in `rcrt calls show`, which also has every violation.
fn a_cause_is_reported_everywhere(up: &Running) {
    for (format, call, text) in [
        ("openai", json!({"id": "c1", "function": {"name": "caused", "arguments": "{}"}}), "/content"),
        ("anthropic", json!({"type": "tool_use", "id": "t1", "name": "caused", "input": {}}), "/content"),
        ("mcp", json!({"name": "caused", "arguments": {}}), "/content/0/text"),
    ] {
        let message = up.post(&format!("/tools/caused/invoke?format={format}"), &call);
        let text = message.pointer(text).and_then(Value::as_str).unwrap_or_default();
        assert_eq!(text, "ExecutionFailed: the order failed\ncaused by Error: no paper", "{format}");
    }
    let shown = |tool: &str, input: &str| {
        let response = up.run(&["call", tool, input, "--output", "json"]).ends_with(4).json();
        up.run(&["calls", "show", response["request_id"].as_str().unwrap()]).ends_with(0).stdout
    };
    let text = shown("caused", "{}");
    assert!(text.contains("the order failed") && text.contains("caused by Error: no paper"), "{text}");
    let text = shown("calculator", r#"{"expresion": "1"}"#);
    assert!(text.contains("is not a property of the schema") && text.contains("is required"), "{text}");
}

fn an_error_outside_of_execute_has_its_cause_and_position(up: &Running, folder: &Path) {
    let tools = folder.join("throwing");
    let source =
        "\nthrow new Error(\"no start\", { cause: new TypeError(\"no key\") });\nexport async function execute() {}\n";
    write(&tools, "throwing", &definition("throwing"), Some(source));
    let ran = up.run(&["bootstrap", tools.to_str().unwrap(), "--no-examples"]).ends_with(1);
    let text = ran.stderr;
    assert!(text.contains("code.source:2:7: no start; caused by TypeError: no key"), "{text}");
}

fn effects_are_described(up: &Running, folder: &Path) {
    let tools = folder.join("effects");
    let cases = [
        ("plain", json!(null), "may delete things and use external systems (as declared, or"),
        ("reader", json!({"read_only": true, "idempotent": true, "open_world": false}), "changes nothing"),
        ("adder", json!({"destructive": false, "open_world": false}), "adds things, deletes nothing"),
        (
            "remover",
            json!({"destructive": true, "idempotent": true, "open_world": true}),
            "can change or delete things permanently; the same call again changes nothing more; uses external systems",
        ),
    ];
    for (name, annotations, _) in &cases {
        let mut record = definition(name);
        if !annotations.is_null() {
            record["context"]["annotations"] = annotations.clone();
        }
        write(&tools, name, &record, Some(SOURCE));
    }
    up.run(&["bootstrap", tools.to_str().unwrap(), "--no-examples"]).ends_with(0);
    for (name, _, effects) in cases {
        let shown = up.run(&["tool", "show", name]).ends_with(0).stdout;
        let line = shown.lines().find_map(|line| line.strip_prefix("Effects")).unwrap().trim();
        assert!(line.starts_with(effects), "{name}: {line}");
        assert_eq!(line.contains("external systems"), effects.contains("external") || name == "plain", "{line}");
    }
}

/// Ctrl-C during `rcrt call` cancels the call.
fn a_cancelled_call_says_so(up: &Running) {
    let mut command = up.command(&["call", "timer", r#"{"seconds": 60}"#, "--session", "interrupted"]);
    let mut call = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = ["calls", "--state", "running", "--session", "interrupted"];
    while up.json(&running).as_array().unwrap().is_empty() {
        assert!(call.try_wait().unwrap().is_none(), "the call ended by itself");
    }
    kill(Pid::from_raw(call.id() as i32), Signal::SIGINT).unwrap();
    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(130);
    assert!(ran.stderr.contains("stopped; the call was cancelled (request "), "{}", ran.stderr);
    let calls = up.json(&["calls", "--session", "interrupted"]);
    assert_eq!(calls[0]["error_code"], "Cancelled", "{calls}");
}
