//! A native tool is replaced by code under constant load: one real system.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::program::Running;
use crate::replaced::{NATIVE, SOURCE, definition, row, until};

const CALLERS: usize = 3;
const PATIENCE: Duration = Duration::from_mins(2);
const BROKEN: &str = "broken(";

/// The version that ran, as a response names it: record, schema and version.
type Ran = (String, String, u64);

/// Callers that call the tool all the time.
struct Load {
    seen: watch::Sender<Vec<Ran>>,
    stop: CancellationToken,
    callers: JoinSet<()>,
}

impl Load {
    fn start(base: &str, token: &str) -> Self {
        let (seen, stop, mut callers) = (watch::Sender::new(Vec::new()), CancellationToken::new(), JoinSet::new());
        for _ in 0..CALLERS {
            let (seen, stop) = (seen.clone(), stop.clone());
            let (url, token) = (format!("{base}/tools/{NATIVE}/invoke"), token.to_owned());
            callers.spawn(async move {
                let client = Client::new();
                while !stop.is_cancelled() {
                    let call = client.post(&url).bearer_auth(&token).json(&json!({"input": {}})).send().await.unwrap();
                    let status = call.status();
                    let response: Value = call.json().await.unwrap();
                    assert_eq!((status, &response["status"]), (StatusCode::OK, &json!("success")), "{response}");
                    seen.send_modify(|all| all.push(ran(&response)));
                }
            });
        }
        Self { seen, stop, callers }
    }

    /// Waits for ten more responses, the last four of them from a version that matches.
    async fn until(&self, wanted: impl Fn(&Ran) -> bool) -> Ran {
        let mut seen = self.seen.subscribe();
        let before = seen.borrow_and_update().len();
        let holds = |all: &Vec<Ran>| all.len() >= before + 10 && all[all.len() - 4..].iter().all(&wanted);
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(holds)).await;
        let last = waited.unwrap_or_else(|_| panic!("the last: {:?}", self.seen.borrow().last())).unwrap();
        last[last.len() - 1].clone()
    }

    /// Stops, and returns each version that responded. A failed call has failed the test.
    async fn end(mut self) -> BTreeSet<Ran> {
        self.stop.cancel();
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap();
        }
        self.seen.borrow().iter().cloned().collect()
    }
}

fn ran(response: &Value) -> Ran {
    let metadata = &response["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_else(|| panic!("no {name}: {response}")).to_owned();
    (text("tool_id"), text("tool_schema_name"), metadata["tool_version"].as_u64().unwrap())
}

fn code(source: &str) -> Value {
    let mut record = definition(NATIVE);
    record["context"]["code"] = json!({"language": "typescript", "source": source});
    record
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_native_tool_is_migrated_to_code_under_load_without_a_failed_call() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let token = std::fs::read_to_string(up.data.join("token")).unwrap().trim().to_owned();
    let ask = async |method: Method, path: &str, version: u64, body: Value| -> Value {
        let request = Client::new().request(method, format!("{}{path}", up.api())).bearer_auth(&token);
        let request = if version == 0 { request } else { request.header("If-Match", format!("\"{version}\"")) };
        let request = if body.is_null() { request } else { request.json(&body) };
        request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    };
    let load = Load::start(up.api(), &token);
    let native = load.until(|(_, schema, _)| schema == "tool.v1").await;

    // Added, and not valid: the native tool continues to serve. Then code that throws when it is
    // loaded.
    let throws = format!("throw new Error('at its load');\n{SOURCE}");
    let id = ask(Method::POST, "/breadcrumbs", 0, code(BROKEN)).await["id"].as_str().unwrap().to_owned();
    let path = format!("/breadcrumbs/{id}");
    let change = async |version: u64, source: &str| {
        ask(Method::PATCH, &path, version, json!({"context": code(source)["context"]})).await;
    };
    let is_reported = |part: &str| {
        let problem = || row(&up, &id)["problem"].as_str().filter(|problem| problem.contains(part)).map(str::to_owned);
        tokio::task::block_in_place(|| until(problem));
    };
    is_reported("");
    load.until(|ran| *ran == native).await;
    change(1, &throws).await;
    is_reported("at its load");
    load.until(|ran| *ran == native).await;

    // Fixed, and then invalid again in both ways: the last valid version stays.
    let by_code = |version: u64| (id.clone(), "tool.code.v1".to_owned(), version);
    change(2, SOURCE).await;
    load.until(|ran| *ran == by_code(3)).await;
    change(3, BROKEN).await;
    is_reported("");
    load.until(|ran| *ran == by_code(3)).await;
    change(4, &throws).await;
    is_reported("at its load");
    load.until(|ran| *ran == by_code(3)).await;
    change(5, &format!("// Better.\n{SOURCE}")).await;
    load.until(|ran| *ran == by_code(6)).await;

    ask(Method::DELETE, &path, 6, Value::Null).await;
    load.until(|ran| *ran == native).await;
    assert_eq!(load.end().await, BTreeSet::from([native, by_code(3), by_code(6)]));
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}
