//! The nginx configuration of `docs/behind-a-proxy.md`, run by nginx in front of one real system.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Response, Url};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

const PAGE: &str = include_str!("../../../../../docs/behind-a-proxy.md");
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn links_and_streams_are_right_under_a_path() {
    check("/rcrt");
}

#[test]
fn links_and_streams_are_right_without_a_path() {
    check("");
}

/// The program, or `None` where nginx is not installed. CI installs it.
fn nginx() -> Option<&'static str> {
    let found = ["nginx", "/usr/sbin/nginx"]
        .into_iter()
        .find(|name| Command::new(name).arg("-v").stderr(Stdio::null()).status().is_ok());
    if found.is_none() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "nginx is not installed");
        eprintln!("skipped: nginx is not installed (on Debian: apt-get install nginx)");
    }
    found
}

fn check(path: &str) {
    let Some(nginx) = nginx() else { return };
    let folder = TempDir::new().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let public = format!("http://127.0.0.1:{port}{path}");
    let arguments = ["up", "--listen", "127.0.0.1:0", "--public-url", &public];
    let up = Running::start(&folder.path().join("data"), &arguments);
    let mut proxy = start(nginx, &folder.path().join("nginx"), port, path, up.address().port());
    assert_eq!((&up.hello["public_url"], &up.hello["docs"]), (&json!(public), &json!(format!("{public}/docs"))));

    let token = std::fs::read_to_string(up.data.join("token")).unwrap().trim().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = PublicClient { http: Client::new(), base: public.clone(), token: token.clone() };
        links(&client).await;
        docs(&client).await;
    });
    commands(&up, &public, &token);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// The configuration of the page, with only addresses and the certificate replaced.
fn configuration(port: u16, path: &str, server: u16) -> String {
    let block = PAGE.split("```nginx\n").nth(1).unwrap().split("```").next().unwrap();
    let replaced = [
        ("    listen 443 ssl;\n", format!("    listen 127.0.0.1:{port};\n")),
        ("    ssl_certificate /etc/ssl/tools.example.com.pem;\n", String::new()),
        ("    ssl_certificate_key /etc/ssl/tools.example.com.key;\n", String::new()),
        ("location /rcrt/ {", format!("location {path}/ {{")),
        ("http://127.0.0.1:8081/", format!("http://127.0.0.1:{server}/")),
    ];
    replaced.into_iter().fold(block.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, &to)
    })
}

fn start(nginx: &str, folder: &Path, port: u16, path: &str, server: u16) -> Child {
    std::fs::create_dir(folder).unwrap();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {}/{name};\n", folder.display()))
        .concat();
    let text = format!(
        "pid {0}/pid;\nevents {{}}\nhttp {{\n    access_log off;\n{temporary}{1}}}\n",
        folder.display(),
        configuration(port, path, server)
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, text).unwrap();
    let mut child = Command::new(nginx)
        .args(["-e", "stderr", "-g", "daemon off; master_process off;", "-p"])
        .arg(folder)
        .arg("-c")
        .arg(&file)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE, "nginx did not start");
    }
    child
}

struct PublicClient {
    http: Client,
    base: String,
    token: String,
}

impl PublicClient {
    async fn send(&self, method: Method, url: &str, body: Option<Value>) -> Response {
        let mut request = self.http.request(method, url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body).header("Prefer", "respond-async");
        }
        request.send().await.unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> Response {
        self.send(Method::POST, &format!("{}{path}", self.base), Some(body)).await
    }
}

async fn links(client: &PublicClient) {
    let bodies = [
        ("/breadcrumbs", json!({"title": "A note"}), "/breadcrumbs/", 201),
        ("/tools/calculator/invoke", json!({"input": {"expression": "6 * 7"}}), "/calls/", 202),
    ];
    for (path, body, at, status) in bodies {
        let created = client.post(path, body).await;
        assert_eq!(created.status(), status, "{path}");
        let location = created.headers()["location"].to_str().unwrap().to_owned();
        assert!(location.starts_with(&format!("{}{at}", client.base)), "{location}");
        assert_eq!(client.send(Method::GET, &location, None).await.status(), 200, "{location}");
        if status == 202 {
            let accepted: Value = created.json().await.unwrap();
            assert_eq!(accepted["cancel"], format!("{location}/cancel"));
            let cancel = accepted["cancel"].as_str().unwrap();
            assert!(client.send(Method::POST, cancel, None).await.status().is_success(), "{cancel}");
        }
    }
    let unknown = client.send(Method::GET, &format!("{}/nowhere", client.base), None).await;
    let unknown: Value = unknown.json().await.unwrap();
    let listed = format!("; {}/docs lists the paths", client.base);
    assert!(unknown["detail"].as_str().unwrap().ends_with(&listed), "{unknown}");
    let refused = client.post("/breadcrumbs", json!({"title": 5})).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["content-type"]),
        (400, &"application/problem+json".parse().unwrap())
    );
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["type"], format!("{}/docs#problem-{}", client.base, problem["code"].as_str().unwrap()));
    assert_eq!(client.send(Method::GET, problem["type"].as_str().unwrap(), None).await.status(), 200);
}

/// The pages, and everything that they load and send requests to.
async fn docs(client: &PublicClient) {
    let home = client.send(Method::GET, &format!("{}/", client.base), None).await;
    assert!(home.text().await.unwrap().contains("src=\"./assets/"));
    let old = client.send(Method::GET, &format!("{}/swagger", client.base), None).await;
    assert_eq!(old.url().as_str(), format!("{}/docs", client.base));
    let (url, page) = (old.url().clone(), old.text().await.unwrap());
    let linked = |attribute: &str| -> Vec<Url> {
        let values = page.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap());
        values
            .filter(|link| !link.starts_with(['#']) && !link.starts_with("data:"))
            .map(|link| url.join(link).unwrap())
            .collect()
    };
    let links = [linked(" href=\""), linked(" src=\"")].concat();
    assert!(links.len() >= 3, "{links:?}");
    for link in &links {
        assert_eq!(client.send(Method::GET, link.as_str(), None).await.status(), 200, "{link}");
    }
    // The requests of the script are relative too.
    let script = links.iter().find(|link| link.path().ends_with("page.js")).unwrap();
    let script = client.send(Method::GET, script.as_str(), None).await.text().await.unwrap();
    assert!(script.contains("fetch(\"openapi.json\")") && !script.contains("fetch(\"/"));
    let description = client.send(Method::GET, &format!("{}/openapi.json", client.base), None).await;
    let description: Value = description.json().await.unwrap();
    assert_eq!(description["servers"], json!([{"url": client.base}]));
    assert!(description["paths"]["/breadcrumbs"].is_object());
}

/// The program as a client of the public URL. An event arrives while its stream is open.
fn commands(up: &Running, public: &str, token: &str) {
    let at_public = ["--server", public, "--token", token];
    let call = [&["call", "calculator", r#"{"expression": "6 * 7"}"#], &at_public[..]].concat();
    assert_eq!(up.json(&call)["output"]["result"], 42);
    let watch = [&["crumb", "watch", "--tag", "proxied", "--since", "0"], &at_public[..]].concat();
    let mut watch = up.command(&watch);
    let mut watcher = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(watcher.stdout.take().unwrap()).lines();
    for title in ["first", "second"] {
        let record = json!({"title": title, "tags": ["proxied"]}).to_string();
        let id = up.json(&["crumb", "create", &record])["id"].clone();
        let event: Value = serde_json::from_str(&events.next().unwrap().unwrap()).unwrap();
        assert_eq!(event["breadcrumb_id"], id);
    }
    watcher.kill().unwrap();
    watcher.wait().unwrap();
}
