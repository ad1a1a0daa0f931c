//! `rcrt bench` against a running system.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::Running;

#[test]
fn bench_measures_a_running_system() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    counts_every_due_call(&up);
    writes_json_and_a_chart(&up, &folder);
    reports_a_failing_call_before_measuring(&up);
    ctrl_c_prints_the_results_so_far(&up);
    assert_eq!(up.stop().0.code(), Some(0));
}

fn counts_every_due_call(up: &Running) {
    let found = up.json(&["bench", "--rate", "50", "--warm-up", "0", "--duration", "2"]);
    let measured = &found["measured"];
    assert_eq!(measured["failures"], serde_json::json!({}), "{found}");
    assert_eq!(measured["latency"]["count"], 100, "{found}");
    assert_eq!(found["plan"]["rate"], 50.0, "{found}");
    assert!(found["command"].as_str().unwrap().starts_with("rcrt bench --tool calculator"), "{found}");
    assert!(found["machine"]["processors"].as_u64().unwrap() >= 1, "{found}");
    let calls = up.json(&["crumb", "list", "--tag", "workspace:bench", "--limit", "1"]);
    assert_eq!(calls.as_array().unwrap().len(), 1);
}

fn writes_json_and_a_chart(up: &Running, folder: &TempDir) {
    let (json, svg) = (folder.path().join("found.json"), folder.path().join("latency.svg"));
    let ran = up.run(&[
        "bench",
        "--tool",
        "echo",
        "--input",
        r#"{"message": "hello"}"#,
        "--method",
        "invoke",
        "--in-flight",
        "3",
        "--warm-up",
        "0.5",
        "--duration",
        "1.5",
        "--json",
        json.to_str().unwrap(),
        "--svg",
        svg.to_str().unwrap(),
    ]);
    let ran = ran.ends_with(0);
    for what in ["rate", "calls/s", "latency p50", "latency p99.9"] {
        assert!(ran.stdout.contains(what), "{what} is not in {}", ran.stdout);
    }
    let found: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(found["plan"]["method"], "invoke");
    assert_eq!(found["measured"]["failures"], serde_json::json!({}), "{found}");
    assert!(found["measured"]["latency"]["count"].as_u64().unwrap() >= 1, "{found}");
    let picture = std::fs::read_to_string(svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("milliseconds"), "{picture}");
}

fn reports_a_failing_call_before_measuring(up: &Running) {
    let ran = up.run(&["bench", "--tool", "calculater"]).ends_with(3);
    assert!(ran.stderr.contains("calculator"), "{}", ran.stderr);
    let ran = up.run(&["bench", "--tool", "calculator", "--input", "{}"]).ends_with(4);
    assert!(ran.stderr.contains("the first call failed") && ran.stderr.contains("InvalidArguments"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    let ran = up.run(&["bench", "--server", "http://127.0.0.1:1", "--token", "x"]).ends_with(5);
    assert!(ran.stderr.contains("127.0.0.1:1"), "{}", ran.stderr);
}

fn ctrl_c_prints_the_results_so_far(up: &Running) {
    let mut command = up.command(&["bench", "--warm-up", "0", "--duration", "3600"]);
    let mut bench = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(bench.stderr.take().unwrap()).lines();
    // Printed after the response to the first call.
    let begins = lines.next().unwrap().unwrap();
    assert!(begins.contains("Ctrl-C stops it early"), "{begins}");
    kill(Pid::from_raw(bench.id() as i32), Signal::SIGINT).unwrap();
    let mut stdout = String::new();
    bench.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(bench.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(stdout.contains("measured for"), "{stdout}");
}
