//! The store's process and the runner's process apart.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::program::Running;

#[test]
fn a_runner_of_its_own_answers_what_a_server_queues() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);

    // Nobody is there to answer: the call is given up, and cancelled.
    let ran = server.run(&["call", "echo", r#"{"message": "x"}"#, "--timeout", "1"]).ends_with(1);
    assert!(ran.stderr.contains("no answer within 1 s"), "{}", ran.stderr);

    let mut runner = server.command(&["runner"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let response = server.json(&["call", "calculator", r#"{"expression": "6 * 7"}"#]);
    assert_eq!(response["status"], "success", "{response}");
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(0));
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}
