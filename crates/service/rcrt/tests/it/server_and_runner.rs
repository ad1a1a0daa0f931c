//! The server and the runner in separate processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use crate::program::{Ran, Running, run};
use crate::replaced::until;

/// The longest wait for a signal before the test fails.
const PATIENCE: Duration = Duration::from_mins(2);
const METRICS_TOKEN: &str = "a-token-for-metrics";

#[test]
fn a_separate_runner_runs_the_calls_of_a_server() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = Running::start(&data, &["server", "--listen", "127.0.0.1:0", "--metrics-token", METRICS_TOKEN]);
    server.run(&["bootstrap"]).ends_with(0);

    // Without a runner, the call times out and is cancelled.
    let ran = server.run(&["call", "echo", r#"{"message": "x"}"#, "--timeout", "1"]).ends_with(1);
    assert!(ran.stderr.contains("no response within 1 s"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no runner had started it; is one running?"), "{}", ran.stderr);
    assert!(server.run(&["runners"]).ends_with(0).stderr.contains("no runner is live"));

    // The port is free a moment later.
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = service.local_addr().unwrap().to_string();
    let options =
        ["runner", "--metrics-listen", &listen, "--metrics-token", METRICS_TOKEN, "--allow-private-host", &address];
    let mut runner = started(&server, &options);
    let response = server.json(&["call", "calculator", r#"{"expression": "6 * 7"}"#]);
    assert_eq!(response["status"], "success", "{response}");
    calls_are_listed_shown_and_counted(&server);
    for token in [None, Some("another-token-for-metrics")] {
        assert!(metrics(&listen, token).starts_with("HTTP/1.1 401 "));
    }
    // A probe needs no token.
    let runner_url = format!("http://{listen}");
    let ready = run(&["health", &runner_url, "-o", "json"]).ends_with(0).json();
    assert_eq!((&ready["status"], &ready["version"]), (&json!("ok"), &json!(env!("CARGO_PKG_VERSION"))), "{ready}");
    assert!(run(&["health", server.api()]).ends_with(0).stdout.contains(" ok "));
    assert!(get(&listen, "/health/live", None).starts_with("HTTP/1.1 200 "));
    let shows = |address: &str, lines: &[&str]| {
        until(|| {
            let metrics = metrics(address, Some(METRICS_TOKEN));
            let has = |line: &&str| metrics.lines().any(|own| own == *line);
            lines.iter().all(has).then_some(metrics)
        })
    };
    let idle = shows(
        &listen,
        &[r#"rcrt_runner_slots{kind="worker",state="used"} 0"#, r#"rcrt_runner_slots{kind="waiting",state="used"} 0"#],
    );
    assert!(idle.contains("rcrt_tool_invocations_total{tool=\"calculator\",status=\"success\"} 1"), "{idle}");
    assert!(idle.contains("rcrt_runner_info{") && idle.contains("rcrt_runner_draining 0"), "{idle}");
    assert!(idle.contains("rcrt_runner_ready 1"), "{idle}");

    let runners = server.json(&["runners"]);
    let own = &runners[0];
    assert_eq!((runners.as_array().unwrap().len(), &own["draining"]), (1, &json!(false)), "{runners}");
    assert!(idle.contains(&format!("runner={}", own["runner_id"])), "{runners}\n{idle}");
    let shown_in_metrics = |name: &str, value: &str| idle.contains(&format!("{name}=\"{value}\""));
    for name in ["host", "version"] {
        assert!(shown_in_metrics(name, own[name].as_str().unwrap()), "{runners}\n{idle}");
    }

    // A call of code.
    let mut timer = started(&server, &["call", "timer", r#"{"seconds": 300}"#]);
    shows(&listen, &[r#"rcrt_runner_slots{kind="worker",state="used"} 1"#]);
    until(|| {
        let shown = metrics(&server.address().to_string(), Some(METRICS_TOKEN));
        shown.lines().any(|line| line.ends_with(r#"tool="timer",state="running"} 1"#)).then_some(())
    });
    until(|| {
        let own = server.json(&["runners"])[0].clone();
        ((&own["slots"]["worker"]["used"], &own["running"]) == (&json!(1), &json!(1))).then_some(())
    });
    kill(Pid::from_raw(timer.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(timer.wait().unwrap().code(), Some(130));
    shows(&listen, &[r#"rcrt_runner_slots{kind="worker",state="used"} 0"#]);

    // A call that waits for a service, and ends while the runner drains.
    server.post("/breadcrumbs", &waiting_tool(&address));
    let mut waits = started(&server, &["call", "waits", "{}"]);
    let (accepted, connection) = channel();
    std::thread::spawn(move || accepted.send(service.accept().unwrap().0).unwrap());
    let mut connection = connection.recv_timeout(PATIENCE).expect("the tool's request");
    let used = r#"rcrt_runner_slots{kind="waiting",state="used"} 1"#;
    shows(&listen, &[used, r#"rcrt_runner_slots{kind="waiting",state="free"} 1999"#]);
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    shows(&listen, &[used, "rcrt_runner_draining 1", "rcrt_runner_ready 0"]);
    let stopping = run(&["health", &runner_url]).ends_with(5).stderr;
    assert!(stopping.contains("is not ready") && stopping.contains("the runner is stopping"), "{stopping}");
    assert!(get(&listen, "/health/live", None).starts_with("HTTP/1.1 200 "));
    connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone").unwrap();
    assert_eq!(waits.wait().unwrap().code(), Some(0));
    assert_eq!(runner.wait().unwrap().code(), Some(0));
    assert_eq!(server.json(&["runners"]), json!([]));
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    // The server itself ended the call that no runner claimed.
    let failed: Vec<&str> = stderr.lines().filter(|line| line.contains("the call failed")).collect();
    assert!(failed.len() == 1 && failed[0].contains("code=Cancelled"), "{stderr}");
}

/// A command of this server, whose output is not read.
pub fn started(server: &Running, arguments: &[&str]) -> Child {
    server.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A tool that waits for the service at this address.
fn waiting_tool(address: &str) -> serde_json::Value {
    json!({
        "schema_name": "tool.v1",
        "title": "Waits",
        "tags": ["tool", "tool:waits"],
        "context": {
            "name": "waits",
            "description": "Waits for a service.",
            "definition": {"examples": [{"description": "Nothing in", "input": {}}]},
            "implementation": {"type": "http", "url": format!("http://{address}/")}
        }
    })
}

/// A runner that is suspended reports nothing.
#[test]
fn a_bootstrap_without_the_runners_verdict_fails() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    let mut runner = server.command(&["runner"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while server.json(&["crumb", "list", "--schema", "tool.runner.v1"]).as_array().unwrap().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the runner registers");
    }
    let tools = folder.path().join("tools");
    let dir = tools.to_str().unwrap();
    run(&["tool", "new", "one", "--dir", dir]).ends_with(0);
    let offered = server.run(&["bootstrap", dir, "--wait", "60", "--output", "json"]).ends_with(0).json();
    assert_eq!(offered["files"][0]["runner"]["state"], "offered", "{offered}");
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGSTOP).unwrap();
    run(&["tool", "new", "two", "--dir", dir]).ends_with(0);
    let ran = server.run(&["bootstrap", dir, "--wait", "1"]).ends_with(1);
    assert!(ran.stderr.contains("has neither accepted nor refused two within 1 s"), "{}", ran.stderr);
    runner.kill().unwrap();
    runner.wait().unwrap();
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// The cancelled call of `echo` and the call of `calculator`.
fn calls_are_listed_shown_and_counted(server: &Running) {
    let calls = server.json(&["calls"]);
    let tools: Vec<&str> = calls.as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["calculator", "echo"]);
    let failed = server.json(&["calls", "--failed"]);
    assert_eq!((failed.as_array().unwrap().len(), failed[0]["error_code"].as_str()), (1, Some("Cancelled")));
    let id = calls[0]["request"].as_str().unwrap();
    let shown = server.json(&["calls", "show", id]);
    assert_eq!(shown["stages"].as_array().unwrap().len(), 5, "{shown}");
    assert_eq!(shown["response_record"]["context"]["status"], "success", "{shown}");
    let text = server.run(&["calls", "show", id]).ends_with(0).stdout;
    assert!(text.contains("calculator") && text.contains("finished, success") && text.contains("6 * 7"), "{text}");
    let table = server.run(&["calls", "--tool", "calculator"]).ends_with(0).stdout;
    assert!(table.contains(id) && table.contains("success") && !table.contains("echo"), "{table}");
    let stats = server.json(&["calls", "stats"]);
    assert_eq!((stats["all"]["calls"].as_u64(), stats["all"]["failed"].as_u64()), (Some(2), Some(1)));
    let text = server.run(&["calls", "stats"]).ends_with(0).stdout;
    assert!(text.contains("Cancelled 1"), "{text}");
    let unknown = server.run(&["calls", "show", "nothing"]).ends_with(3).stderr;
    assert!(unknown.contains("no call has the request id"), "{unknown}");
}

fn metrics(address: &str, token: Option<&str>) -> String {
    get(address, "/metrics", token)
}

/// The whole response.
fn get(address: &str, path: &str, token: Option<&str>) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let sent = token.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n{sent}connection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_runner_that_cannot_claim_is_not_ready() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut runner = started(&server, &["runner", "--metrics-listen", &listen]);
    let url = format!("http://{listen}");
    until(|| (run(&["health", &url]).status == 0).then_some(()));
    assert_eq!(server.stop().0.code(), Some(0));
    let why = until(|| {
        let ran = run(&["health", &url]);
        (ran.status == 5).then_some(ran.stderr)
    });
    // The client also waits some time for the server.
    assert!(why.contains("calls cannot be claimed: ") || why.contains("a claim has had no response"), "{why}");
    assert!(get(&listen, "/health/live", None).starts_with("HTTP/1.1 200 "), "it is alive");
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(0));
}

#[test]
fn metrics_beyond_this_machine_need_a_token() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    let refused = server.run(&["runner", "--metrics-listen", "0.0.0.0:0"]).ends_with(2).stderr;
    assert!(refused.contains("--metrics-token"), "{refused}");
}

#[test]
fn a_call_reports_a_lost_server_and_claims_no_cancellation() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    let mut watch = server.command(&["crumb", "watch", "--schema", "tool.request.v1", "--since", "0"]);
    let mut watcher = watch.stdout(Stdio::piped()).spawn().unwrap();
    let call = server
        .command(&["call", "echo", "{}", "--timeout", "20"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The request is written; the command now waits for the response.
    BufReader::new(watcher.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    assert_eq!(server.stop().0.code(), Some(0));

    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(5);
    assert_eq!(ran.stderr.matches("is lost").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot be reached") && ran.stderr.contains("not cancelled"), "{}", ran.stderr);
}

#[test]
fn a_runner_with_another_working_folder_warns_at_its_start() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut command = up.command(&["runner", "--workdir", other.to_str().unwrap()]);
    let mut runner = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(runner.stderr.take().unwrap()).lines().map_while(Result::ok);
    let warning = lines.find(|line| line.contains("another working folder")).expect("a warning");
    assert!(warning.contains(other.to_str().unwrap()) && warning.contains("--workdir"), "{warning}");
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    lines.for_each(drop);
    assert_eq!(runner.wait().unwrap().code(), Some(0));
    up.stop();
}
