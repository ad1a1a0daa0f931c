//! `--compat rcrt` from outside: RCRT's clients as they are, with nothing but another URL.

use futures::StreamExt;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Running, rcrt};

/// As RCRT's clients ask for it.
fn who() -> Value {
    json!({"owner_id": "00000000-0000-0000-0000-000000000001", "agent_id": "00000000-0000-0000-0000-000000000AAA",
        "roles": ["curator", "emitter", "subscriber"]})
}

async fn ask(base: &str, method: Method, path: &str, token: &str, body: Value) -> Response {
    let request = Client::new().request(method, format!("{base}{path}")).bearer_auth(token);
    let request = if body.is_null() { request } else { request.json(&body) };
    request.send().await.unwrap()
}

async fn token(base: &str) -> String {
    let given = Client::new().post(format!("{base}/auth/token")).json(&who()).send().await.unwrap();
    given.error_for_status().unwrap().json::<Value>().await.unwrap()["token"].as_str().unwrap().to_owned()
}

/// Reads a stream until an event that fits.
async fn heard(stream: Response, fits: impl Fn(&Value) -> bool) -> Value {
    let mut bytes = stream.bytes_stream();
    let mut text = String::new();
    let reading = async {
        while let Some(part) = bytes.next().await {
            text.push_str(std::str::from_utf8(&part.unwrap()).unwrap());
            while let Some(end) = text.find('\n') {
                let line: String = text.drain(..=end).collect();
                let event = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
                if let Some(event) = event.filter(&fits) {
                    return event;
                }
            }
        }
        panic!("the stream ended: {text}");
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), reading).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rcrts_clients_write_hear_and_change_as_they_are() {
    let folder = TempDir::new().unwrap();
    let arguments = ["up", "--compat", "rcrt", "--auth", "open", "--listen", "127.0.0.1:0"];
    let up = Running::start(&folder.path().join("data"), &arguments);
    let base = up.api().to_owned();
    let token = token(&base).await;
    let stream = ask(&base, Method::GET, &format!("/events/stream?token={token}"), &token, Value::Null).await;
    assert_eq!(stream.status(), StatusCode::OK);
    let note = json!({"title": "", "schema_name": "note.v1", "tags": ["note"], "context": ["a", "b"], "sort": 1});
    let made = ask(&base, Method::POST, "/breadcrumbs", &token, note).await.json::<Value>().await.unwrap();
    let id = made["id"].as_str().unwrap().to_owned();
    // `--rcrt-events` comes with it.
    let event = heard(stream, |event| event["breadcrumb_id"] == id.as_str()).await;
    assert_eq!((&event["type"], &event["version"]), (&json!("breadcrumb.updated"), &json!(1)), "{event}");
    let path = format!("/breadcrumbs/{id}");
    let changed = ask(&base, Method::PATCH, &path, &token, json!({"title": "Changed"})).await;
    assert_eq!(changed.json::<Value>().await.unwrap()["ok"], true);
    let listed = ask(&base, Method::GET, "/breadcrumbs?tag=note&nn=10000&sort=x", &token, Value::Null).await;
    assert_eq!(listed.json::<Value>().await.unwrap()[0]["title"], "Changed");
    // A tool of this program, called as RCRT's agents call one.
    let call = json!({"title": "Call", "schema_name": "tool.request.v1", "tags": ["tool:request", "workspace:tools"],
        "context": {"tool": "calculator", "input": {"expression": "6 * 7"}, "requestId": "r-1", "requestedBy": "agent"}});
    let follow = ask(&base, Method::GET, "/events/stream?tag=request:r-1", &token, Value::Null).await;
    assert_eq!(ask(&base, Method::POST, "/breadcrumbs", &token, call).await.status(), StatusCode::CREATED);
    heard(follow, |event| event["schema_name"] == "tool.response.v1").await;
    // And a tool of theirs, which passes what only RCRT knows.
    let source = "export async function execute(input, context) {\n  const found = await \
                  context.api.searchBreadcrumbs({ tag: \"note\", sort: \"newest\", schema_name: null });\n  \
                  return { count: found.length };\n}\n";
    let tool = json!({"title": "Counts notes", "schema_name": "tool.code.v1", "tags": ["tool"], "context": {
        "name": "count_notes", "description": "Counts notes", "code": {"language": "javascript", "source": source},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "examples": [{"description": "Nothing in", "input": {}, "output": {"count": 1}}]}});
    assert_eq!(ask(&base, Method::POST, "/breadcrumbs", &token, tool).await.status(), StatusCode::CREATED);
    assert_eq!(up.json(&["call", "count_notes", "{}"])["output"], json!({"count": 1}));
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_reach_a_server_by_its_name_and_no_web_site_does() {
    let folder = TempDir::new().unwrap();
    let arguments = ["server", "--compat", "rcrt", "--auth", "open", "--listen", "0.0.0.0:0"];
    let server = Running::start(&folder.path().join("data"), &arguments);
    let base = server.api().to_owned();
    let asked = async |host: &str| {
        let request = Client::new().post(format!("{base}/auth/token")).header("Host", host).json(&who());
        request.send().await.unwrap().status()
    };
    assert_eq!(asked("rcrt:8080").await, StatusCode::OK);
    assert_eq!(asked("rcrt.evil.example").await, StatusCode::MISDIRECTED_REQUEST);
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("gets all rights"), "{stderr}");
}

#[test]
fn the_switch_is_an_option_of_all_three_and_has_an_environment_variable() {
    for command in ["up", "server", "runner"] {
        let help = rcrt().args([command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains("--compat") && help.contains("RCRT_COMPAT"), "{command}: {help}");
        let wrong = rcrt().arg(command).env("RCRT_COMPAT", "other").output().unwrap();
        assert_eq!(wrong.status.code(), Some(2), "{command}");
    }
}
