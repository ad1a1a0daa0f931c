//! Callers during an orderly shutdown.

use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running};

/// The call takes longer than the interval at which `rcrt call` looks at its state.
#[test]
fn callers_get_their_responses_during_the_shutdown() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let token = up.run(&["token"]).ends_with(0).stdout.trim().to_owned();
    let call = called(&up, 6);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let url = format!("{}/tools/timer/invoke", up.api());
    let request = reqwest::Client::new().post(url).bearer_auth(&token).json(&json!({"input": {"seconds": 5}}));
    let invoked = runtime.spawn(async { request.send().await.unwrap().json::<Value>().await.unwrap() });
    runtime.block_on(calls_run(&up, &token, 2));

    up.signal(Signal::SIGTERM);
    let response = runtime.block_on(invoked).unwrap();
    assert_eq!(response["output"]["requested_ms"], 5000, "{response}");
    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(0);
    assert_eq!(ran.json()["output"]["requested_ms"], 6000, "{}", ran.stdout);
    let (status, stderr) = up.ends();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// The server waits for the runner's calls, so it can stop first.
#[test]
fn a_caller_gets_its_response_if_the_runner_is_another_process() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);
    let mut runner = server.command(&["runner"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let token = server.run(&["token"]).ends_with(0).stdout.trim().to_owned();
    let call = called(&server, 6);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(calls_run(&server, &token, 1));

    server.signal(Signal::SIGTERM);
    let ran = Ran::of(call.wait_with_output().unwrap()).ends_with(0);
    assert_eq!(ran.json()["output"]["requested_ms"], 6000, "{}", ran.stdout);
    let (status, stderr) = server.ends();
    assert_eq!(status.code(), Some(0), "{stderr}");
    runner.kill().unwrap();
    runner.wait().unwrap();
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
    }
}
