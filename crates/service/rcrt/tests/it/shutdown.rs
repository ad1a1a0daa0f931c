//! Callers during an orderly shutdown.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};

const PATIENCE: Duration = Duration::from_mins(2);
/// A call in seconds. Longer than the interval at which `rcrt call` looks at its state, and than
/// what comes before the shutdown.
const CALL: u64 = 15;

#[test]
fn callers_get_their_responses_during_the_shutdown() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0", "--drain-seconds", "60"]);
    let token = up.run(&["token"]).ends_with(0).stdout.trim().to_owned();
    let call = called(&up, CALL);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(calls_run(&up, &token, 1));
    let url = format!("{}/tools/timer/invoke", up.api());
    let request = reqwest::Client::new().post(url).bearer_auth(&token).json(&json!({"input": {"seconds": CALL}}));
    let invoked = runtime.spawn(async { request.send().await.unwrap().json::<Value>().await.unwrap() });
    runtime.block_on(calls_run(&up, &token, 2));

    up.signal(Signal::SIGTERM);
    let response = runtime.block_on(invoked).unwrap();
    assert_eq!(response["output"]["requested_ms"], CALL * 1000, "{response}");
    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(0);
    assert_eq!(ran.json()["output"]["requested_ms"], CALL * 1000, "{}", ran.stdout);
    let (status, stderr) = up.ends();
    assert_eq!(status.code(), Some(0), "{stderr}");
    is_logged(&stderr, 2);
}

/// One line at the start of the shutdown, with the number of running calls, and one at its end.
#[track_caller]
fn is_logged(stderr: &str, calls: usize) {
    let line = |text: &str| stderr.lines().filter(|line| line.contains(text)).map(str::to_owned).collect::<Vec<_>>();
    let (begun, ended) = (line("stopping: waiting for running calls"), line("stopped"));
    assert!(begun.len() == 1 && begun[0].contains(&format!("calls={calls}")), "{stderr}");
    assert!(ended.iter().any(|line| line.ends_with(" stopped")), "{stderr}");
}

/// The server waits for the runner's calls, so it can stop first.
#[test]
fn a_caller_gets_its_response_if_the_runner_is_another_process() {
    let folder = TempDir::new().unwrap();
    let server =
        Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0", "--drain-seconds", "60"]);
    server.run(&["bootstrap"]).ends_with(0);
    let mut runner = server.command(&["runner"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let token = server.run(&["token"]).ends_with(0).stdout.trim().to_owned();
    let call = called(&server, CALL);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(calls_run(&server, &token, 1));

    server.signal(Signal::SIGTERM);
    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(0);
    assert_eq!(ran.json()["output"]["requested_ms"], CALL * 1000, "{}", ran.stdout);
    let (status, stderr) = server.ends();
    assert_eq!(status.code(), Some(0), "{stderr}");
    is_logged(&stderr, 1);
    runner.kill().unwrap();
    runner.wait().unwrap();
}

/// As docs/operations.md sets up a runner on another machine, with the key of the agent `runner`.
#[test]
fn the_drain_time_of_a_runner_of_its_own_is_an_option() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);
    let key = server.run(&["agent", "rotate-key", "runner"]).ends_with(0).stdout;
    let mut runner = rcrt();
    runner.args(["runner", "--server", server.api(), "--drain-seconds", "1", "--data"]).arg(folder.path().join("own"));
    runner.envs(key.lines().map(|line| line.split_once('=').unwrap()));
    let runner = runner.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let token = server.run(&["token"]).ends_with(0).stdout.trim().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = called(&server, 300);
    runtime.block_on(calls_run(&server, &token, 1));
    let log = stopped(runner);
    is_logged(&log, 1);
    assert!(log.contains("drain_seconds=1"), "{log}");
    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(4);
    assert!(ran.stdout.contains("the runner was stopped while the tool ran"), "{}", ran.stdout);
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    is_logged(&stderr, 0);
}

/// Stops a runner in order, and returns its log.
fn stopped(runner: Child) -> String {
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    let ran = Ran::of(runner.wait_with_output().unwrap()).ends_with(0);
    ran.stderr
}

fn called(up: &Running, seconds: u64) -> Child {
    let input = json!({"seconds": seconds}).to_string();
    let mut command = up.command(&["call", "timer", &input, "--output", "json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until this many calls of `timer` run.
async fn calls_run(up: &Running, token: &str, calls: usize) {
    let get = async |path: &str| -> Value {
        let request = reqwest::Client::new().get(format!("{}{path}", up.api())).bearer_auth(token);
        request.send().await.unwrap().json().await.unwrap()
    };
    let begun = Instant::now();
    loop {
        let requests = get("/breadcrumbs?schema_name=tool.request.v1&include_context=true").await;
        let mut running = 0;
        for request in requests.as_array().unwrap().iter().filter(|request| request["context"]["tool"] == "timer") {
            let call = get(&format!("/calls/{}", request["id"].as_str().unwrap())).await;
            running += usize::from(call["state"] == "running");
        }
        if running == calls {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{running} calls run, not {calls}: {requests}");
    }
}
