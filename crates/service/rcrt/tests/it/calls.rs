//! `rcrt calls`, and what the log says of calls.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{TryRecvError, channel};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

/// The id of the request.
fn called(up: &Running, tool: &str, input: &Value) -> String {
    let ran = up.run(&["call", tool, &input.to_string(), "-o", "json"]);
    ran.json()["metadata"]["request"].as_str().unwrap().to_owned()
}

#[test]
fn calls_are_followed_as_they_finish() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &UP);
    let mut follow = up.command(&["calls", "--follow", "--tool", "calculator", "-o", "json"]);
    let mut following = follow.stdout(Stdio::piped()).spawn().unwrap();
    let (send, lines) = channel();
    let stdout = BufReader::new(following.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            let _ = send.send(serde_json::from_str::<Value>(&line).unwrap());
        }
    });
    let sum = json!({"expression": "6 * 7"});
    // It follows from its start on, which it does not report.
    let mut before = BTreeSet::new();
    let first = loop {
        before.insert(called(&up, "calculator", &sum));
        match lines.try_recv() {
            Ok(call) => break call,
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => panic!("the command ended"),
        }
    };
    assert!(before.contains(first["request"].as_str().unwrap()), "{first}");
    assert_eq!((&first["tool"], &first["status"]), (&json!("calculator"), &json!("success")), "{first}");

    called(&up, "echo", &json!({"message": "not followed"}));
    let failed = called(&up, "calculator", &json!({"expression": "6 *"}));
    let last = lines.iter().find(|call| !before.contains(call["request"].as_str().unwrap())).unwrap();
    assert_eq!((&last["request"], &last["status"]), (&json!(failed), &json!("error")), "{last}");
    following.kill().unwrap();
    following.wait().unwrap();
    reading.join().unwrap();
    assert_eq!(up.stop().0.code(), Some(0));
}

#[test]
fn a_failed_call_is_one_line_of_the_log() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &UP);
    let good = called(&up, "calculator", &json!({"expression": "6 * 7"}));
    for input in [json!({"expression": "6 *"}), json!({"expression": 7})] {
        called(&up, "calculator", &input);
    }
    let request = json!({"title": "r", "schema_name": "tool.request.v1", "context": {"tool": "invented", "input": {}}});
    up.json(&["crumb", "create", &request.to_string()]);
    let failed = loop {
        let failed = up.json(&["calls", "--failed"]).as_array().unwrap().clone();
        if failed.iter().any(|call| call["error_code"] == "ToolNotFound") {
            break failed;
        }
    };
    assert!(failed.len() >= 3, "{failed:?}");
    let (status, log) = up.stop();
    assert_eq!(status.code(), Some(0));
    let lines_of =
        |request: &str| log.lines().filter(|line| line.contains("the call failed") && line.contains(request)).count();
    for call in &failed {
        let (request, tool) = (call["request"].as_str().unwrap(), call["tool"].as_str().unwrap());
        assert_eq!(lines_of(request), 1, "{call}\n{log}");
        let line = log.lines().find(|line| line.contains("the call failed") && line.contains(request)).unwrap();
        assert!(line.contains(" INFO ") && line.contains(&format!("tool=\"{tool}\"")), "{line}");
        assert!(line.contains(&format!("code={}", call["error_code"].as_str().unwrap())), "{line}");
    }
    assert_eq!(lines_of(&good), 0);
}

#[test]
fn a_quick_call_has_a_duration_and_a_trace() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &UP);
    let request = called(&up, "calculator", &json!({"expression": "6 * 7"}));
    let shown = up.json(&["calls", "show", &request]);
    let took = shown["duration_ms"].as_f64().unwrap();
    let run = shown["response_record"]["context"]["metadata"]["stages"]["run_ms"].as_f64().unwrap();
    assert!(took > 0.0 && took >= run, "{shown}");
    assert_eq!(shown["trace_id"], json!(request.replace('-', "")), "{shown}");
    assert_eq!(shown["trace_id"], shown["response_record"]["context"]["metadata"]["trace_id"], "{shown}");
    let table = up.run(&["calls", "--tool", "calculator", "--limit", "1"]).ends_with(0).stdout;
    assert!(table.contains(&format!("{took:.1}")), "{table}");
    assert_eq!(up.stop().0.code(), Some(0));
}
