//! Runs tools that were created from templates: against an API with a key, and on events in two
//! steps.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

const KEY: &str = "a-key-of-the-api";

#[test]
fn tools_from_templates_work() {
    let folder = TempDir::new().unwrap();
    let (data, tools) = (folder.path().join("data"), folder.path().join("tools"));
    let (api, seen) = api();
    let allowed = format!("items={api}");
    let up = Running::start(&data, &["up", "--listen", "127.0.0.1:0", "--allow-private-host", &allowed]);
    let dir = tools.to_str().unwrap();
    let host = format!("host={api}");
    let new = |name: &str, template: &str, more: &[&str]| {
        let arguments = [&["tool", "new", name, "--template", template, "--dir", dir][..], more].concat();
        up.run(&arguments).ends_with(0);
    };
    new("items", "http-api", &["--set", &host, "--set", "secret=ITEMS_KEY"]);
    new("two-steps", "async-event", &[]);
    // The API of this test has no TLS.
    let source = tools.join("items.ts");
    let text = std::fs::read_to_string(&source).unwrap().replace("https://${HOST}", "http://${HOST}");
    std::fs::write(&source, text).unwrap();
    up.run(&["bootstrap", dir, "--allow-private-host", &allowed]).ends_with(0);
    an_api_with_a_key(&up, &api.to_string(), &seen);
    two_steps(&up);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

fn an_api_with_a_key(up: &Running, api: &str, seen: &Mutex<Vec<String>>) {
    let call = |input: Value| up.run(&["call", "items", &input.to_string(), "--output", "json"]);
    let refused = call(json!({"query": "x"})).ends_with(4).json();
    assert_eq!(refused["error_code"], "PermissionDenied", "{refused}");
    up.run_with_stdin(&["secret", "set", "ITEMS_KEY", "--host", api], KEY).ends_with(0);
    up.run(&["secret", "grant", "ITEMS_KEY", "items"]).ends_with(0);

    let output = call(json!({"query": "blue & red", "limit": 2})).ends_with(0).json()["output"].clone();
    let items = json!([
        {"id": "1", "title": "Item 1", "url": "https://example.com/1"},
        {"id": "2", "title": "Item 2", "url": null},
    ]);
    assert_eq!(output, json!({"total": 3, "items": items}));
    let request = seen.lock().unwrap().pop().unwrap();
    assert!(request.starts_with("GET /v1/search?q=blue+%26+red&per_page=2 "), "{request}");
    assert!(request.to_lowercase().contains(&format!("authorization: bearer {KEY}\r\n")), "{request}");

    for (query, says) in [
        ("refused", "refused the key (401); check the secret ITEMS_KEY"),
        ("broken", "returned 503"),
        ("odd", "expected {total_count, results}"),
    ] {
        let response = call(json!({"query": query})).ends_with(4).json();
        assert_eq!(response["error_code"], "ExecutionFailed", "{response}");
        assert!(response["error"].as_str().unwrap().contains(says), "{response}");
        assert!(!response.to_string().contains(KEY), "{response}");
    }
    assert_eq!(call(json!({"query": "x", "limit": 51})).ends_with(4).json()["error_code"], "InvalidArguments");
}

/// Waits for the first record with this schema.
fn awaited(up: &Running, schema: &str) -> Value {
    let mut watch = up.command(&["crumb", "watch", "--schema", schema, "--since", "0"]);
    let mut watching = watch.stdout(Stdio::piped()).spawn().unwrap();
    let line = BufReader::new(watching.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    watching.kill().unwrap();
    watching.wait().unwrap();
    serde_json::from_str(&line).unwrap()
}

fn two_steps(up: &Running) {
    let create = |record: Value| up.json(&["crumb", "create", &record.to_string()])["id"].clone();
    let task = create(json!({"schema_name": "task.v1", "title": "Paint", "context": {"colour": "blue"}}));
    let question = awaited(up, "task.question.v1");
    assert_eq!(question["context"], json!({"correlation": task, "fields": ["colour"]}), "{question}");
    let tag = format!("correlation:{}", task.as_str().unwrap());
    assert!(question["tags"].as_array().unwrap().contains(&json!(tag)), "{question}");

    let answer = |correlation: &Value, text: &str| {
        let context = json!({"correlation": correlation, "answer": text});
        create(json!({"schema_name": "task.answer.v1", "title": "Answer", "context": context}))
    };
    // An answer without a question, then the right one.
    answer(&json!("00000000-0000-7000-8000-000000000000"), "without a question");
    let first = answer(&task, "two coats");
    let result = awaited(up, "task.result.v1");
    let expected = json!({"correlation": task, "task": task, "answer": "two coats"});
    assert_eq!(result["context"], expected, "{result}");

    // Called directly, each step reports what it does: the work is already done.
    let step = |id: &Value| {
        let input = json!({"breadcrumb_id": id}).to_string();
        up.json(&["call", "two-steps", &input])["output"].clone()
    };
    assert_eq!(step(&task), json!({"step": "nothing", "correlation": task}));
    assert_eq!(step(&first), json!({"step": "nothing", "correlation": task}));
    assert_eq!(up.json(&["call", "two-steps", "{}"])["output"], json!({"step": "nothing"}));
    let results = up.json(&["crumb", "list", "--schema", "task.result.v1"]);
    assert_eq!(results.as_array().unwrap().len(), 1, "{results}");
}

/// An API that needs a key. It stops with the test's process.
fn api() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = seen.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut connection = BufReader::new(connection);
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n") && connection.read_line(&mut request).unwrap_or(0) > 0 {}
            let (status, body) = answer(&request);
            requests.lock().unwrap().push(request);
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = connection.get_mut().write_all((head + &body).as_bytes());
        }
    });
    (address, seen)
}

fn answer(request: &str) -> (&'static str, String) {
    let item = |number: u32| match number {
        1 => json!({"id": 1, "name": "Item 1", "html_url": "https://example.com/1", "stock": 4}),
        _ => json!({"id": number.to_string(), "name": format!("Item {number}")}),
    };
    if !request.to_lowercase().contains(&format!("authorization: bearer {KEY}")) || request.contains("q=refused") {
        ("401 Unauthorized", json!({"message": "no"}).to_string())
    } else if request.contains("q=broken") {
        ("503 Service Unavailable", String::new())
    } else if request.contains("q=odd") {
        ("200 OK", json!([1, 2]).to_string())
    } else {
        ("200 OK", json!({"total_count": 3, "results": [item(1), item(2), item(3)]}).to_string())
    }
}
