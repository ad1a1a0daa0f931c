//! `rcrt up` and the commands that talk to it: one real system, started twice on the same folder.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};
use crate::secrets;

#[test]
fn all_commands_work_and_data_survives_a_restart() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let up = Running::start(&data, &["up", "--listen", "127.0.0.1:0"]);
    first_response(&up);
    only_the_owner_reads_keys_and_token(&data);
    sign_in(&up);
    calls(&up);
    tools(&up);
    crumbs(&up);
    secrets::are_created_and_changed(&up);
    secrets::are_available_to_tools_by_grants(&up, folder.path());
    agents(&up);
    bootstrap(&up, folder.path());
    tools_that_do_not_run(&up);
    doctor(&up);
    a_second_up_is_refused(&up, folder.path());
    let kept = up.json(&["crumb", "create", r#"{"title": "kept"}"#])["id"].as_str().unwrap().to_owned();
    let echo = edit_echo(&up);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let token = std::fs::read_to_string(data.join("token")).unwrap();
    assert!(!stderr.contains(token.trim()), "the token is in the log");

    let up = Running::start(&data, &["up", "--listen", "127.0.0.1:0"]);
    first_response(&up);
    assert_eq!(up.json(&["crumb", "get", &kept])["title"], "kept");
    // A change to an included tool survives a restart; `bootstrap --overwrite` undoes it.
    assert_eq!(up.json(&["crumb", "get", &echo])["context"]["description"], "Changed here");
    let rows = up.json(&["bootstrap", "--overwrite"])["files"].clone();
    let row = rows.as_array().unwrap().iter().find(|row| row["id"] == echo.as_str()).unwrap().clone();
    assert_eq!(row["what"], "updated");
    assert_ne!(up.json(&["crumb", "get", &echo])["context"]["description"], "Changed here");
    let (status, stderr) = up.end_by(Signal::SIGINT);
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// Ctrl-C before the system is ready: no process remains, and the status tells a script that it is
/// not ready.
#[test]
fn an_interrupted_first_start_fails_and_leaves_no_process() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let mut command = rcrt();
    command.args(["up", "--listen", "localhost:0", "--data"]).arg(&data);
    let mut up = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(up.stderr.take().unwrap()).lines();
    // The first step is printed after the signal handlers are set.
    let first = lines.next().unwrap().unwrap();
    kill(Pid::from_raw(up.id() as i32), Signal::SIGINT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(up.wait().unwrap().code(), Some(130), "{first} {rest:?}");

    let up = Running::start(&data, &["up", "--listen", "localhost:0"]);
    first_response(&up);
    assert_eq!(up.stop().0.code(), Some(0));
}

#[test]
fn with_a_log_in_json_each_line_on_stderr_is_json() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let lines: Vec<Value> = stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for message in ["Starting the runner", "Stopped"] {
        let line = lines.iter().find(|line| line["message"] == message).unwrap_or_else(|| panic!("{stderr}"));
        assert!(line["level"] == "INFO" && line["timestamp"].is_string(), "{line}");
    }
    let mut command = rcrt();
    command.args(["runner", "--server", "http://127.0.0.1:1", "--token", "x", "--log-format", "json"]);
    let ran = Ran::of(command.current_dir(&folder).output().unwrap()).ends_with(5);
    assert!(ran.stderr.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", ran.stderr);
}

fn first_response(up: &Running) {
    let response = &up.hello["response"]["context"];
    assert_eq!(response["status"], "success", "{response}");
    assert_eq!(response["tool"], "calculator");
    assert!(response["output"].to_string().contains("42"), "{response}");
    for key in ["api", "docs", "data", "token_file", "took_ms"] {
        assert!(!up.hello[key].is_null(), "{key}");
    }
}

fn only_the_owner_reads_keys_and_token(data: &Path) {
    let mode = |path: &str| std::fs::metadata(data.join(path)).unwrap().permissions().mode() & 0o777;
    for (path, expected) in
        [("", 0o700), ("keys", 0o700), ("keys/token.key", 0o600), ("keys/secrets.key", 0o600), ("token", 0o600)]
    {
        assert_eq!(mode(path), expected, "{path}");
    }
}

/// Both print a link of this server with a ticket that works once.
fn sign_in(up: &Running) {
    let begin = format!("{}/#/sign-in/", up.hello["api"].as_str().unwrap());
    let opened = up.run(&["open", "--print"]).ends_with(0).stdout;
    let links = [up.hello["sign_in"].as_str().unwrap(), opened.trim()];
    assert!(links.iter().all(|link| link.starts_with(&begin) && link.len() > begin.len() + 100), "{links:?}");
    assert_ne!(links[0], links[1]);
}

fn calls(up: &Running) {
    let ran = up.run(&["call", "calculator", r#"{"expression": "(1 + 2) * 3"}"#]).ends_with(0);
    assert!(ran.stdout.contains('9'), "{}", ran.stdout);
    let response = up.json(&["call", "calculator", r#"{"expression": "2 ** 10"}"#, "--workspace", "here"]);
    assert_eq!(response["status"], "success");
    let ran = up.run_with_stdin(&["call", "calculator", "-"], r#"{"expression": "1 + 1"}"#).ends_with(0);
    assert!(ran.stdout.contains('2'), "{}", ran.stdout);

    let ran = up.run(&["call", "calculator", r#"{"expresion": 1}"#]).ends_with(4);
    assert!(ran.stderr.contains("InvalidArguments") && ran.stderr.contains("expression"), "{}", ran.stderr);
    let ran = up.run(&["call", "no-such-tool", "{}", "--output", "json"]).ends_with(4);
    assert_eq!(ran.json()["error_code"], "ToolNotFound");
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert!(error["code"] == "tool_error" && error["exit"] == 4, "{error}");
    let ran = up.run(&["call", "calculater", "{}"]).ends_with(4);
    assert!(ran.stderr.contains("did you mean calculator?"), "{}", ran.stderr);
    let ran = up.run(&["call", "calculator", r#"{"expression": "1 +"}"#]).ends_with(4);
    assert!(ran.stderr.contains("at execute (calculator.ts:"), "{}", ran.stderr);
    // A repeated command with the same key is the same request.
    let again = ["call", "random", "{}", "--idempotency-key", "once"];
    assert_eq!(up.json(&again)["output"], up.json(&again)["output"]);
}

fn tools(up: &Running) {
    let tools = up.json(&["tool", "list"]);
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["breadcrumb-create", "breadcrumb-search", "calculator", "echo", "json-transform", "random", "timer"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    // Its host is private, and the operator has not allowed it.
    let ollama = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "ollama").unwrap();
    let waits = ollama["missing_requirements"].to_string();
    assert!(waits.contains("--allow-private-host ollama=localhost:11434"), "{ollama}");
    assert!(up.run(&["tool", "list"]).ends_with(0).stdout.starts_with("NAME"));
    assert!(up.run(&["tool", "show", "calculator"]).ends_with(0).stdout.contains("expression"));
    assert_eq!(up.json(&["tool", "show", "calculator"])["context"]["name"], "calculator");
    up.run(&["tool", "show", "no-such-tool"]).ends_with(3);
}

fn crumbs(up: &Running) {
    let mut watcher =
        up.command(&["crumb", "watch", "--tag", "watched", "--since", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let record = r#"{"title": "A note", "tags": ["watched"], "schema_name": "note.v1", "context": {"n": 5}}"#;
    let id = up.run(&["crumb", "create", record]).ends_with(0).stdout.trim().to_owned();
    let event: Value = serde_json::from_str(&events.next().unwrap().unwrap()).unwrap();
    assert_eq!((&event["breadcrumb_id"], &event["type"]), (&json!(id), &json!("breadcrumb.created")));
    assert!(event["number"].as_i64().unwrap() > 0);
    watcher.kill().unwrap();
    watcher.wait().unwrap();

    assert_eq!(up.json(&["crumb", "get", &id])["context"]["n"], 5);
    assert!(up.json(&["crumb", "get", &id]).get("owner_id").is_none());
    assert!(up.json(&["crumb", "get", &id, "--full"])["owner_id"].is_string());
    assert_eq!(up.json(&["crumb", "get", &id, "--history"]).as_array().unwrap().len(), 1);
    let found = |condition: &str| up.json(&["crumb", "list", "--schema", "note.v1", "--match", condition]);
    assert_eq!(found("$.n:gt:4").as_array().unwrap().len(), 1);
    assert_eq!(found("$.n:gt:5").as_array().unwrap().len(), 0);
    up.run(&["crumb", "get", "00000000-0000-0000-0000-000000000000"]).ends_with(3);
    let keyed = ["crumb", "create", r#"{"title": "once"}"#, "--idempotency-key", "k"];
    assert_eq!(up.json(&keyed)["id"], up.json(&keyed)["id"]);
}

fn agents(up: &Running) {
    let made = up.json(&["token", "--agent", "reader", "--role", "subscriber"]);
    let as_reader = |arguments: &[&str]| {
        let mut command = up.command(arguments);
        command.env("RCRT_OWNER_ID", made["owner_id"].as_str().unwrap());
        command.env("RCRT_AGENT_ID", made["id"].as_str().unwrap());
        command.env("RCRT_AGENT_KEY", made["agent_key"].as_str().unwrap());
        Ran::of(command.output().unwrap())
    };
    as_reader(&["tool", "list"]).ends_with(0);
    as_reader(&["crumb", "create", r#"{"title": "x"}"#]).ends_with(6);
    let token = as_reader(&["token"]).ends_with(0).stdout.trim().to_owned();
    up.run(&["tool", "list", "--token", &token]).ends_with(0);
    up.run(&["tool", "list", "--token", "forged"]).ends_with(6);
}

const TOOL: &str = r#"{
  "schema_name": "tool.code.v1",
  "title": "Doubles",
  "tags": ["tool", "tool:double"],
  "context": {
    "name": "double",
    "description": "Doubles a number",
    "version": "1.0.0",
    "input_schema": {
      "type": "object",
      "properties": {"n": {"type": "number", "description": "The number"}},
      "required": ["n"]
    },
    "output_schema": {
      "type": "object",
      "properties": {"doubled": {"type": "number", "description": "Twice the number"}},
      "required": ["doubled"]
    },
    "examples": [{"description": "Two", "input": {"n": 2}, "output": {"doubled": 4}, "explanation": "2 * 2"}]
  }
}"#;
const SOURCE: &str = "export async function execute(input: { n: number }) {\n  return { doubled: input.n * 2 };\n}\n";

fn bootstrap(up: &Running, folder: &Path) {
    let tools = folder.join("my-tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("double.json"), TOOL).unwrap();
    std::fs::write(tools.join("double.ts"), SOURCE).unwrap();
    std::fs::write(tools.join("note.json"), r#"{"title": "A seeded note", "schema_name": "note.v1"}"#).unwrap();
    let seed = |more: &[&str]| {
        let mut arguments = vec!["bootstrap", tools.to_str().unwrap(), "--output", "json"];
        arguments.extend(more);
        up.run(&arguments)
    };
    let done = |ran: &Ran| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        ran.json()["files"].as_array().unwrap().iter().map(|row| (text(&row["path"]), text(&row["what"]))).collect()
    };
    let rows = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(path, what)| ((*path).to_owned(), (*what).to_owned())).collect()
    };
    let all = |what| rows(&[("double.json", what), ("note.json", what)]);

    assert_eq!(done(&seed(&["--dry-run"]).ends_with(0)), all("created"));
    up.run(&["tool", "show", "double"]).ends_with(3);
    assert_eq!(done(&seed(&[]).ends_with(0)), all("created"));
    assert_eq!(done(&seed(&[]).ends_with(0)), all("unchanged"));
    assert_eq!(up.json(&["call", "double", r#"{"n": 4}"#])["output"]["doubled"], 8);

    // A change of only the source changes the tool. A file with errors does not stop the others.
    std::fs::write(tools.join("double.ts"), SOURCE.replace("n * 2", "n + input.n")).unwrap();
    std::fs::write(tools.join("broken.json"), TOOL.replace("double", "broken")).unwrap();
    std::fs::write(tools.join("broken.ts"), "\nexport function execute() {\n  return eval(\"1\");\n}\n").unwrap();
    let ran = seed(&[]).ends_with(1);
    assert_eq!(done(&ran), rows(&[("broken.json", "refused"), ("double.json", "updated"), ("note.json", "unchanged")]));
    let findings = ran.json()["files"][0]["findings"].to_string();
    assert!(findings.contains("broken.ts:3:10") && findings.contains("async"), "{findings}");

    std::fs::remove_file(tools.join("broken.json")).unwrap();
    std::fs::remove_file(tools.join("note.json")).unwrap();
    let pruned = rows(&[("double.json", "unchanged"), ("note.json", "removed")]);
    assert_eq!(done(&seed(&["--prune", "--dry-run"]).ends_with(0)), pruned);
    assert_eq!(done(&seed(&["--prune"]).ends_with(0)), pruned);
    assert_eq!(done(&seed(&["--prune"]).ends_with(0)), rows(&[("double.json", "unchanged")]));
    // A tool for an internal host is validated as by a runner with the same option.
    let inside = folder.join("inside-tools");
    std::fs::create_dir(&inside).unwrap();
    let mut tool: Value = serde_json::from_str(TOOL).unwrap();
    tool["context"]["name"] = json!("inside");
    tool["context"]["permissions"] = json!({"net": ["127.0.0.1:9401"]});
    std::fs::write(inside.join("inside.json"), tool.to_string()).unwrap();
    std::fs::write(inside.join("inside.ts"), SOURCE).unwrap();
    let seed = |more: &[&str]| {
        let mut arguments = vec!["bootstrap", inside.to_str().unwrap(), "--dry-run", "--output", "json"];
        arguments.extend(more);
        up.run(&arguments)
    };
    let ran = seed(&[]).ends_with(1);
    assert!(ran.json()["files"][0]["findings"].to_string().contains("[net-host]"), "{}", ran.stdout);
    assert_eq!(
        done(&seed(&["--allow-private-host", "inside=127.0.0.1"]).ends_with(0)),
        rows(&[("inside.json", "created")])
    );
    // Pruning does not remove the seeds of another folder.
    up.run(&["tool", "show", "calculator"]).ends_with(0);
    let table = up.run(&["bootstrap"]).ends_with(0).stdout;
    assert!(table.contains("unchanged") && !table.contains("created"), "{table}");
}

fn doctor(up: &Running) {
    let report = up.json(&["doctor"]);
    assert_eq!(report["server"]["reachable"], true, "{report}");
    assert!(report["engine"]["name"].is_string(), "{report}");
    assert_eq!(report["postgres"]["kind"], "embedded", "{report}");
    assert!(report["postgres"]["vector"].is_string(), "{report}");
    assert_eq!(report["data_folder"]["min_free_bytes"], 500_000_000, "{report}");
    assert_eq!(report["data_folder"]["packages_total_bytes"], 8_000_000_000_u64, "{report}");
    assert_eq!(report["data_folder"]["workdir_bytes"], 10_000_000_000_u64, "{report}");
    assert!(report["data_folder"]["held_by"].as_str().unwrap().contains(&up.pid().to_string()), "{report}");
    assert_eq!(report["stored"]["retention"]["keep_calls"], "30d", "{report}");
    let sizes = report["stored"]["sizes"].as_array().unwrap();
    assert!(sizes.iter().any(|one| one["kind"] == "responses" && one["bytes_of"] == "contexts"), "{report}");
    assert!(sizes.iter().any(|one| one["kind"] == "audit log" && one["bytes_of"] == "disk"), "{report}");
    let mut checked = BTreeSet::from(["README.md".to_owned()]);
    for runbook in report["runbooks"].as_array().unwrap() {
        let name = runbook["runbook"].as_str().unwrap();
        assert!(checked.insert(format!("{name}.md")), "{name} is there twice");
        let expected: &[&str] = match name {
            // Depend on the machine and its load.
            "full-disk" | "slow-database" | "stuck-runner" => &["good", "look"],
            // Nothing is archived.
            "point-in-time-recovery" => &["unknown"],
            _ => &["good"],
        };
        assert!(expected.contains(&runbook["state"].as_str().unwrap()), "{runbook}");
    }
    let pages = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/operate")).unwrap();
    let pages = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    assert_eq!(pages.collect::<BTreeSet<_>>(), checked);
    let text = up.run(&["doctor"]).stdout;
    assert!(text.contains("kept 30d (--keep-calls)") && text.contains("other records"), "{text}");
    assert!(text.contains("First checks of the runbooks") && text.contains("1 runner is live"), "{text}");
}

fn a_second_up_is_refused(up: &Running, folder: &Path) {
    let ran = up.run(&["up", "--listen", "127.0.0.1:0"]).ends_with(1);
    assert!(ran.stderr.contains(&up.pid().to_string()) && ran.stderr.contains("data folder"), "{}", ran.stderr);
    let mut command = rcrt();
    command.arg("up").arg("--listen").arg(up.address().to_string()).arg("--data").arg(folder.join("other"));
    let ran = Ran::of(command.output().unwrap()).ends_with(1);
    assert!(ran.stderr.contains(&up.address().to_string()), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("process {}", up.pid())), "{}", ran.stderr);
    assert!(!folder.join("other/postgres").exists());
}

/// The tool commands show the runner's reports.
fn tools_that_do_not_run(up: &Running) {
    let mut watcher = up
        .command(&["crumb", "watch", "--schema", "tool.error.v1", "--since", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let mut reported = |tool: &Value| {
        for line in events.by_ref() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let ran = up.run(&["crumb", "get", event["breadcrumb_id"].as_str().unwrap(), "--output", "json"]);
            if ran.status == 0 && ran.json()["context"]["tool_id"] == *tool {
                return;
            }
        }
        panic!("nothing was reported of {tool}");
    };
    let row = |tool: &Value| -> Value {
        let rows = up.json(&["tool", "list"]);
        rows.as_array().unwrap().iter().find(|row| row["id"] == *tool).unwrap().clone()
    };

    let double = up.json(&["tool", "show", "double"]);
    let copy = json!({"title": "A copy", "schema_name": "tool.code.v1", "context": double["context"]}).to_string();
    let copy = up.json(&["crumb", "create", &copy])["id"].clone();
    reported(&copy);
    let loser = row(&copy);
    assert_eq!(loser["running_version"], Value::Null, "{loser}");
    assert!(loser["problem"].as_str().unwrap().contains(double["id"].as_str().unwrap()), "{loser}");
    assert!(row(&double["id"]).get("problem").is_none());
    assert!(up.run(&["tool", "list"]).ends_with(0).stdout.contains("NOT RUN"));
    assert_eq!(up.json(&["tool", "show", "double"])["id"], double["id"]);

    let mut context = double["context"].clone();
    context["output_schema"] = json!({"type": 7});
    edit(up, &double, &context);
    reported(&double["id"]);
    let broken = row(&double["id"]);
    assert_eq!(broken["running_version"], double["version"], "{broken}");
    assert!(broken["problem"].as_str().unwrap().contains("output_schema"), "{broken}");
    let shown = up.run(&["tool", "show", "double"]).ends_with(0).stdout;
    assert!(shown.contains("This version is not run") && shown.contains("output_schema"), "{shown}");
    watcher.kill().unwrap();
    watcher.wait().unwrap();
}

/// Changes the included echo tool as a user would. Returns its record's id.
fn edit_echo(up: &Running) -> String {
    let tool = up.json(&["tool", "show", "echo"]);
    let mut context = tool["context"].clone();
    context["description"] = "Changed here".into();
    edit(up, &tool, &context);
    tool["id"].as_str().unwrap().to_owned()
}

/// Replaces a record's context.
pub fn edit(up: &Running, record: &Value, context: &Value) {
    let token = std::fs::read_to_string(up.data.join("token")).unwrap();
    let request = reqwest::Client::new()
        .patch(format!("{}/breadcrumbs/{}", up.api(), record["id"].as_str().unwrap()))
        .bearer_auth(token.trim())
        .header("If-Match", record["version"].to_string())
        .json(&json!({"context": context}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = runtime.block_on(request.send()).unwrap().status();
    assert!(status.is_success(), "{status}");
}
