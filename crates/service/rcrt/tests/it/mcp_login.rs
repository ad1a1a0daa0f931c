//! `rcrt mcp login`, with a server and its authorization server on loopback.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;
use crate::replaced::until;

const TOKEN: &str = "the-only-access-token";

/// Serves in a thread of its own, until the process ends.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/mcp", post(answer))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/authorize", get(authorize))
        .route("/token", post(token))
        .with_state(address);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    address
}

fn reply(body: &Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

async fn resource(State(address): State<SocketAddr>) -> Response {
    let url = format!("http://{address}");
    reply(&json!({"resource": format!("{url}/mcp"), "authorization_servers": [url]}))
}

async fn metadata(State(address): State<SocketAddr>) -> Response {
    let url = format!("http://{address}");
    reply(&json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "code_challenge_methods_supported": ["S256"],
    }))
}

async fn authorize(Query(query): Query<HashMap<String, String>>) -> Redirect {
    assert_eq!(query["client_id"], "known");
    Redirect::to(&format!("{}?code=a-code&state={}", query["redirect_uri"], query["state"]))
}

async fn token(body: String) -> Response {
    assert!(body.contains("code=a-code") && body.contains("code_verifier="), "{body}");
    reply(&json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}))
}

async fn answer(headers: HeaderMap, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    if headers.get("authorization").is_none_or(|given| given != &format!("Bearer {TOKEN}")[..]) {
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]).into_response();
    }
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "locked", "version": "1.0"},
        }),
        "tools/list" => json!({"tools": [{
            "name": "echo",
            "description": "Returns the text.",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "description": "A text."}}},
        }]}),
        "tools/call" => json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}),
        method => {
            let error = json!({"code": -32601, "message": format!("{method} is not known")});
            return reply(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    reply(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Logs in, as a person with a browser. Returns what the command prints.
fn login(up: &Running, allowed: &str) -> Value {
    let arguments =
        ["mcp", "login", "Docs", "--client-id", "known", "--allow-private-host", allowed, "--output", "json"];
    let mut command = up.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let url = lines.find_map(|line| Some(line.trim().to_owned()).filter(|line| line.starts_with("http://")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let page = async {
        let url = url.expect("a URL is shown");
        // Any other page that sends a browser there changes nothing.
        let asked = url::Url::parse(&url).unwrap();
        let (_, redirect) = asked.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap();
        let forged = reqwest::get(format!("{redirect}?code=a-code&state=guessed")).await.unwrap();
        assert_eq!(forged.status(), 404);
        reqwest::get(url).await.unwrap().text().await.unwrap()
    };
    assert!(runtime.block_on(page).contains("close this page"));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", lines.collect::<Vec<_>>());
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(!printed.contains(TOKEN));
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn a_login_makes_a_server_usable() {
    let folder = TempDir::new().unwrap();
    let address = serve();
    let allowed = format!("docs={address}");
    let data = folder.path().join("data");
    let up = Running::start(&data, &["up", "--listen", "127.0.0.1:0", "--allow-private-host", &allowed]);
    up.run(&["mcp", "add", "docs", "--url", &format!("http://{address}/mcp"), "--yes"]).ends_with(0);
    let asked = until(|| {
        let error = up.json(&["mcp", "show", "docs"])["status"]["error"].clone();
        error.as_str().map(str::to_owned)
    });
    assert!(asked.contains("rcrt mcp login"), "{asked}");
    // The gate of the command has its own rules.
    up.run(&["mcp", "login", "docs", "--client-id", "known"]).ends_with(5);
    up.run(&["mcp", "login", "nope"]).ends_with(3);

    assert_eq!(login(&up, &allowed)["secret"], "MCP_OAUTH_DOCS");
    let answered = until(|| {
        let ran = up.run(&["call", "docs__echo", r#"{"text": "hi"}"#, "-o", "json"]);
        Some(ran).filter(|ran| ran.status == 0)
    });
    assert_eq!(answered.json()["output"], "hi");
    assert!(!up.run(&["mcp", "show", "docs", "-o", "json"]).stdout.contains(TOKEN));
    // Another login replaces the tokens.
    login(&up, &allowed);
    let secrets = up.json(&["secret", "list"]);
    let secret = secrets.as_array().unwrap().iter().find(|secret| secret["name"] == "MCP_OAUTH_DOCS").unwrap();
    assert_eq!((&secret["version"], &secret["hosts"]), (&json!(2), &json!([address.to_string()])));
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains(TOKEN));
}
