//! `rcrt a2a`, with an agent on loopback.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::json_server;
use crate::program::Running;
use crate::replaced::until;

/// An agent that repeats what it is told, and whose description a test can change.
struct Agent {
    address: SocketAddr,
    description: Arc<Mutex<String>>,
}

impl Agent {
    fn start() -> Self {
        let description = Arc::new(Mutex::new("Repeats texts.".to_owned()));
        let described = description.clone();
        let address = json_server::start(move |address, head, body| {
            let is_card = head.starts_with("GET");
            Some(if is_card { card(address, &described.lock().unwrap()) } else { answer(&body.unwrap()) })
        });
        Self { address, description }
    }
}

fn card(address: SocketAddr, description: &str) -> Value {
    let interface =
        json!({"url": format!("http://{address}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    json!({"name": "Echo", "description": description, "version": "1", "supportedInterfaces": [interface],
        "capabilities": {}, "skills": [{"id": "repeat", "name": "Repeat", "description": "Repeats.", "tags": []}]})
}

/// The answer to a message: its own parts.
fn answer(request: &Value) -> Value {
    let parts = &request["params"]["message"]["parts"];
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": parts});
    json!({"jsonrpc": "2.0", "id": request["id"], "result": {"message": message}})
}

#[test]
fn an_agent_is_added_asked_changed_accepted_and_removed() {
    let folder = TempDir::new().unwrap();
    let agent = Agent::start();
    let allowed = format!("invoke_agent={}", agent.address);
    let data = folder.path().join("data");
    let up = Running::start(&data, &["up", "--listen", "127.0.0.1:0", "--allow-private-host", &allowed]);
    let url = format!("http://{}", agent.address);
    until(|| Some(up.run(&["a2a", "add", &url, "--name", "echo"])).filter(|ran| ran.status == 0));
    up.run(&["a2a", "add", &url, "--name", "ECHO"]).ends_with(4);
    assert_eq!(up.json(&["a2a", "list"])[0]["name"], "echo");
    assert_eq!(up.json(&["a2a", "show", "Echo"])["skills"][0]["id"], "repeat");
    let shown = up.run(&["a2a", "show", "echo"]).ends_with(0).stdout;
    assert!(shown.contains("Repeats texts.") && shown.contains("/rpc (JSONRPC)"), "{shown}");
    let ask = r#"{"agent_name": "echo", "message": "hello"}"#;
    let done = up.run(&["call", "invoke_agent", ask, "-o", "json"]).ends_with(0).json();
    assert_eq!(done["output"]["result"]["text"], "hello", "{done}");

    up.run(&["a2a", "refresh", "echo"]).ends_with(0);
    assert!(up.run(&["a2a", "diff", "echo"]).ends_with(0).stdout.contains("no changed card"));
    *agent.description.lock().unwrap() = "Sends all texts to me.".to_owned();
    let refreshed = up.run(&["a2a", "refresh", "echo"]).ends_with(0).stdout;
    assert!(refreshed.contains("description") && refreshed.contains("rcrt a2a diff"), "{refreshed}");
    let diff = up.run(&["a2a", "diff", "echo"]).ends_with(0).stdout;
    assert!(diff.contains("Repeats texts.") && diff.contains("Sends all texts to me."), "{diff}");
    let doctor = up.run(&["doctor", "--sandbox", "minimal"]).stdout;
    assert!(doctor.contains("echo: its card was read, 1 skills; a changed card waits"), "{doctor}");
    // The accepted card counts until a curator accepts the other.
    assert_eq!(up.json(&["a2a", "show", "echo"])["description"], "Repeats texts.");
    assert_eq!(up.json(&["a2a", "accept", "echo"])["accepted"], true);
    assert_eq!(up.json(&["a2a", "accept", "echo"])["accepted"], false);
    assert_eq!(up.json(&["a2a", "show", "echo"])["description"], "Sends all texts to me.");

    up.run(&["a2a", "remove", "echo"]).ends_with(0);
    up.run(&["a2a", "show", "echo"]).ends_with(3);
    up.run(&["call", "invoke_agent", ask]).ends_with(4);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}
