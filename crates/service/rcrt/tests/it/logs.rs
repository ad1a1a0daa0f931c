//! `rcrt call --debug` and `rcrt logs`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::constant_tool;
use crate::program::Running;

/// Waits between its two lines until a record with the tag `go` exists.
const TALKS: &str = r#"export async function execute(_input: object, context: any) {
  console.info("first");
  while ((await context.api.searchBreadcrumbs({ tag: "go" })).length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  console.warn("last\u001b[31m");
  return { answer: "done" };
}
"#;
const FAILS: &str = r#"export async function execute() {
  console.error("before the end");
  throw new Error("no luck");
}
"#;
const FLOODS: &str = r"export async function execute() {
  for (let line = 0; ; line++) console.log(line);
}
";

/// The program with these tools.
fn up(folder: &Path, tools: &[(&str, &str)]) -> Running {
    let up = Running::start(&folder.join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let tools_folder = folder.join("tools");
    for (name, source) in tools {
        constant_tool::write(&tools_folder, name, "", &json!({"limits": {"timeout_ms": 120_000}}));
        std::fs::write(tools_folder.join(format!("{name}.ts")), source).unwrap();
    }
    // Their examples fail or do not end.
    up.run(&["bootstrap", tools_folder.to_str().unwrap(), "--no-examples"]).ends_with(0);
    up
}

/// The lines of a pipe, as they come.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    lines
}

fn spawn(up: &Running, arguments: &[&str]) -> Child {
    up.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_debugged_call_prints_its_lines_while_it_runs() {
    let folder = TempDir::new().unwrap();
    let up = up(folder.path(), &[("talks", TALKS)]);
    let mut call = spawn(&up, &["call", "talks", "--debug"]);
    let printed = lines(call.stderr.take().unwrap());
    assert_eq!(printed.recv().unwrap(), "[info] first");
    // It still runs.
    let logs = up.json(&["logs", "talks"]);
    assert_eq!((&logs[0]["state"], &logs[0]["lines"][0]["message"]), (&json!("running"), &json!("first")), "{logs}");
    assert_eq!(up.json(&["logs", "echo"]), json!([]));
    let unknown = up.run(&["logs", "talk"]).ends_with(3).stderr;
    assert!(unknown.contains("there is no tool named talk; did you mean talks?"), "{unknown}");

    let mut follow = spawn(&up, &["logs", "talks", "--follow", "-o", "json"]);
    let followed = lines(follow.stdout.take().unwrap());
    up.json(&["crumb", "create", r#"{"title": "go", "tags": ["go"]}"#]);
    let rest: Vec<String> = printed.iter().collect();
    assert_eq!(rest[0], "[warn] last[31m", "without the control character");
    assert!(rest.iter().any(|line| line.contains("searchBreadcrumbs  ok, ")), "{rest:?}");
    let used = rest.last().unwrap();
    assert!(used.starts_with("used ") && used.ends_with(", 2 console lines"), "{used}");
    assert!(used.contains(" ms of processor time, ") && used.contains(" MB of memory, "), "{used}");
    assert!(call.wait().unwrap().success());

    // The lines of a call without debug come with its response. The command follows from its start
    // on, which it does not report.
    let mut plain = BTreeSet::new();
    let mut of_plain = |followed: &Receiver<String>| loop {
        plain.insert(up.json(&["call", "talks"])["metadata"]["request"].clone().to_string());
        let lines = followed.try_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        if let Some(line) = lines.into_iter().find(|line| plain.contains(&line["request"].to_string())) {
            break line;
        }
        assert!(follow.try_wait().unwrap().is_none(), "the command ended");
    };
    let line = of_plain(&followed);
    assert_eq!(
        (&line["tool"], &line["level"], &line["attempt"]),
        (&json!("talks"), &json!("info"), &json!(1)),
        "{line}"
    );
    assert_eq!(line["message"], "first");
    follow.kill().unwrap();
    follow.wait().unwrap();
    assert_eq!(up.stop().0.code(), Some(0));
}

#[test]
fn logs_of_failed_calls_have_their_lines_and_errors() {
    let folder = TempDir::new().unwrap();
    let up = up(folder.path(), &[("fails", FAILS), ("fails-too", FAILS)]);
    for tool in ["fails", "fails-too"] {
        up.run(&["call", tool]).ends_with(4);
    }
    up.run(&["call", "fails", "--debug"]).ends_with(4);
    up.run(&["call", "echo", r#"{"message": "hi"}"#]).ends_with(0);
    let failed = up.json(&["logs", "--failed"]);
    let tools: Vec<&str> = failed.as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["fails", "fails-too", "fails"]);
    for call in failed.as_array().unwrap() {
        assert_eq!(call["lines"].as_array().unwrap().len(), 1, "{call}");
        assert_eq!(call["lines"][0]["message"], "before the end");
        assert!(call["error"].as_str().unwrap().starts_with("ExecutionFailed: "), "{call}");
    }
    let text = up.run(&["logs", "fails-too"]).ends_with(0).stdout;
    assert!(text.contains("  fails-too  ExecutionFailed\n  [error] before the end\n  ExecutionFailed: "), "{text}");
    assert_eq!(up.stop().0.code(), Some(0));
}

/// Its lines are bounded, and other calls are not kept waiting.
#[test]
fn a_flooding_tool_is_bounded_while_others_run() {
    let folder = TempDir::new().unwrap();
    let up = up(folder.path(), &[("floods", FLOODS)]);
    let call = spawn(&up, &["call", "floods", "--debug", "-o", "json"]);
    let is_full = |logs: &Value| logs[0]["lines"].as_array().is_some_and(|lines| lines.len() == 1000);
    while !is_full(&up.json(&["logs", "floods"])) {
        up.run(&["call", "echo", r#"{"message": "hi"}"#]).ends_with(0);
    }
    let logs = up.json(&["logs", "floods"]);
    assert_eq!(logs[0]["state"], "running", "{logs}");
    let request = logs[0]["request"].as_str().unwrap().to_owned();
    up.post(&format!("/calls/{request}/cancel"), &json!({}));
    let output = call.wait_with_output().unwrap();
    let response: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(response["error_code"], "Cancelled", "{response}");
    let log = &response["metadata"]["debug"]["log"];
    assert_eq!(log["lines"], 1000, "{log}");
    assert!(log["dropped"].as_u64().unwrap() > 0 && log["records"].as_u64().unwrap() < 100, "{log}");
    let text = up.run(&["logs", "floods"]).ends_with(0).stdout;
    assert!(text.contains(" or more lines were left out)"), "{}", &text[text.len() - 200..]);
    assert_eq!(up.stop().0.code(), Some(0));
}
