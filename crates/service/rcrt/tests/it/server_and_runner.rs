//! The server and the runner in separate processes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::program::{Ran, Running};

#[test]
fn a_separate_runner_runs_the_calls_of_a_server() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);

    // Without a runner, the call times out and is cancelled.
    let ran = server.run(&["call", "echo", r#"{"message": "x"}"#, "--timeout", "1"]).ends_with(1);
    assert!(ran.stderr.contains("no response within 1 s"), "{}", ran.stderr);

    let mut runner = server.command(&["runner"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let response = server.json(&["call", "calculator", r#"{"expression": "6 * 7"}"#]);
    assert_eq!(response["status"], "success", "{response}");
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(0));
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn a_call_reports_a_lost_server_and_claims_no_cancellation() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    let mut watch = server.command(&["crumb", "watch", "--schema", "tool.request.v1", "--since", "0"]);
    let mut watcher = watch.stdout(Stdio::piped()).spawn().unwrap();
    let call = server
        .command(&["call", "echo", "{}", "--timeout", "12"])
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
