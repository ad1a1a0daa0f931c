//! The store's process and the runner's process apart.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::program::{Ran, Running};

#[test]
fn a_runner_of_its_own_answers_what_a_server_queues() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);

    // Nobody is there to answer: the call is given up, and cancelled.
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
fn a_call_whose_server_goes_away_says_so_and_claims_no_more() {
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
    // The request is written: from here on the answer is waited for.
    BufReader::new(watcher.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    assert_eq!(server.stop().0.code(), Some(0));

    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(5);
    assert_eq!(ran.stderr.matches("is lost").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot be reached") && ran.stderr.contains("not cancelled"), "{}", ran.stderr);
}
