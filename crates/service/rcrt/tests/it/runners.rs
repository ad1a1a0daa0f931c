//! Several runner processes of one server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use futures::future::join_all;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

const SERVER: [&str; 3] = ["server", "--listen", "127.0.0.1:0"];
/// Changes of a tool, each with the calls after it.
const PAIRS: i64 = 36;

struct RunnerProcess(Child);

impl RunnerProcess {
    fn start(server: &Running, arguments: &[&str]) -> Self {
        let mut command = server.command(&["runner"]);
        Self(command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for RunnerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until so many runners have published what they serve. Returns their ids in that order.
fn runners(server: &Running, count: usize) -> Vec<Value> {
    let mut watch = server.command(&["crumb", "watch", "--schema", "tool.runner.v1", "--since", "0"]);
    let mut watcher = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut found: Vec<Value> = Vec::new();
    for line in BufReader::new(watcher.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = event["context"]["runner_id"].clone();
        if !found.contains(&id) {
            found.push(id);
        }
        if found.len() == count {
            break;
        }
    }
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    assert_eq!(found.len(), count, "the watch ended");
    found
}

struct Api {
    client: Client,
    url: String,
    token: String,
}

impl Api {
    fn of(server: &Running) -> Self {
        let token = std::fs::read_to_string(server.data.join("token")).unwrap().trim().to_owned();
        Self { client: Client::new(), url: server.api().to_owned(), token }
    }

    /// Returns the answer, and whether every live runner uses the change: the server waits a second
    /// for that, and says if it did not wait long enough.
    async fn send(&self, method: Method, path: &str, version: Option<i64>, body: Option<Value>) -> (Value, bool) {
        let mut request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
        if let Some(version) = version {
            request = request.header("If-Match", version.to_string());
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.header("Prefer", "wait=60").send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {answer:?}");
        let is_exact = !answer.headers().contains_key("runners-behind");
        (answer.json().await.unwrap_or_default(), is_exact)
    }

    async fn call(&self, tool: &str) -> Value {
        self.send(Method::POST, &format!("/tools/{tool}/invoke"), None, Some(json!({"input": {}}))).await.0
    }

    /// Returns the path of the tool's record.
    async fn create(&self, name: &str, number: i64) -> String {
        let context = tool(name, number);
        let record = json!({"title": "t", "schema_name": "tool.code.v1", "tags": ["tool"], "context": context});
        let (created, _) = self.send(Method::POST, "/breadcrumbs", None, Some(record)).await;
        format!("/breadcrumbs/{}", created["id"].as_str().unwrap())
    }
}

/// A tool that returns this number.
fn tool(name: &str, number: i64) -> Value {
    json!({
        "name": name,
        "description": "Returns a number.",
        "code": {
            "language": "typescript",
            "source": format!("export async function execute() {{ return {{ n: {number} }}; }}"),
        },
        "input_schema": {"type": "object"},
        "output_schema": true,
        "examples": [{"description": "one", "input": {}, "output": {"n": number}}],
    })
}

/// Each call may be claimed by any of them, and each must have the change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_reaches_the_next_call_on_any_of_three_runner_processes() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &SERVER);
    server.run(&["bootstrap", "--wait", "0"]).ends_with(0);
    let processes = [0; 3].map(|_| RunnerProcess::start(&server, &[]));
    runners(&server, 3);
    let api = Api::of(&server);
    let path = api.create("changing", 1).await;
    let (mut version, mut exact, mut calls_of) = (1, 0, BTreeMap::<String, u32>::new());
    while exact < PAIRS {
        let changed = json!({"context": tool("changing", version + 1)});
        let (_, is_exact) = api.send(Method::PATCH, &path, Some(version), Some(changed)).await;
        version += 1;
        for response in join_all((0..3).map(|_| api.call("changing"))).await {
            assert!(!is_exact || response["output"]["n"] == version, "{response}");
            *calls_of.entry(response["metadata"]["runner_id"].to_string()).or_default() += 1;
        }
        exact += i64::from(is_exact);
        assert!(version < 10 * PAIRS, "on this machine, the runners are mostly more than a second behind");
    }
    eprintln!("calls by runner: {calls_of:?}");
    for number in 0..6 {
        let name = format!("gone{number}");
        let path = api.create(&name, 1).await;
        while api.call(&name).await["status"] != "success" {}
        let (_, is_exact) = api.send(Method::DELETE, &path, None, None).await;
        let response = api.call(&name).await;
        assert!(!is_exact || response["error_code"] == "ToolNotFound", "{response}");
    }
    drop(processes);
    assert_eq!(server.stop().0.code(), Some(0));
}

#[test]
fn a_killed_runner_process_stops_counting_when_its_lease_ends() {
    const TOOL: &str = "list_scheduled_tasks";
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &SERVER);
    server.run(&["bootstrap", "--wait", "0"]).ends_with(0);
    let able = RunnerProcess::start(&server, &["--lease-ms", "20000"]);
    let killed = runners(&server, 1)[0].clone();
    let unable = RunnerProcess::start(&server, &["--lease-ms", "20000", "--disable-tool", TOOL]);
    runners(&server, 2);
    for _ in 0..3 {
        assert_eq!(server.json(&["call", TOOL, "{}"])["metadata"]["runner_id"], killed);
    }

    // SIGKILL.
    drop(able);
    let response = server.run(&["call", TOOL, "{}", "-o", "json"]).ends_with(4).json();
    assert_eq!(response["error_code"], "PermissionDenied", "{response}");
    assert_ne!(response["metadata"]["runner_id"], killed, "{response}");
    // Its record is still there: the other runner did not wait for the record's time to live.
    let records = server.json(&["crumb", "list", "--schema", "tool.runner.v1"]);
    let ids =
        records.as_array().unwrap().iter().map(|record| {
            server.json(&["crumb", "get", record["id"].as_str().unwrap()])["context"]["runner_id"].clone()
        });
    assert!(ids.collect::<Vec<_>>().contains(&killed), "{records}");
    drop(unable);
    assert_eq!(server.stop().0.code(), Some(0));
}

/// The runner is another process, as on another machine.
#[test]
fn a_runner_process_is_drained_and_takes_calls_again() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &SERVER);
    server.run(&["bootstrap", "--wait", "0"]).ends_with(0);
    let runner = RunnerProcess::start(&server, &[]);
    let id = runners(&server, 1)[0].as_str().unwrap().to_owned();
    server.json(&["call", "list_scheduled_tasks", "{}"]);

    let asked = server.json(&["runners", "drain", &id]);
    assert_eq!((&asked["runner_id"], &asked["drain_requested"]), (&json!(id), &json!(true)), "{asked}");
    while server.json(&["runners"])[0]["draining"] != true {}
    let context = json!({"tool": "list_scheduled_tasks", "input": {}});
    let request =
        server.post("/breadcrumbs", &json!({"title": "t", "schema_name": "tool.request.v1", "context": context}));
    let state = || server.json(&["calls", "show", request["id"].as_str().unwrap()])["state"].clone();
    assert_eq!(state(), "queued");

    // By the end of its id.
    let line = server.run(&["runners", "resume", &id[24..]]).ends_with(0).stdout;
    assert!(line.contains(&id) && line.contains("takes calls again"), "{line}");
    while state() != "finished" {}
    while server.json(&["runners"])[0]["draining"] != false {}
    let unknown = server.run(&["runners", "drain", "nowhere"]).ends_with(3);
    assert!(unknown.stderr.contains("no live runner has the id or the host \"nowhere\""), "{}", unknown.stderr);
    drop(runner);
    assert_eq!(server.stop().0.code(), Some(0));
}
