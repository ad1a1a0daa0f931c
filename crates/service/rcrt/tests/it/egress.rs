//! Outgoing requests: the operator's deny list, the egress log, and tokens that must not appear in
//! the program's log.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

/// A server that responds to every request with a page.
fn page() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let body = "<p>a page of some words</p>";
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

/// The first bytes of the response to a GET request.
fn status(server: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    String::from_utf8_lossy(&first).into_owned()
}

#[test]
fn outgoing_requests_are_logged_and_denied_hosts_are_refused() {
    let folder = TempDir::new().unwrap();
    let page = page();
    let allowed = format!("web_fetch={page}");
    let up = Running::start(
        &folder.path().join("data"),
        &[
            "up",
            "--listen",
            "127.0.0.1:0",
            "--allow-private-host",
            &allowed,
            "--deny-host",
            "*.denied.example,10.0.0.0/8",
            "--log",
            "info,rcrt_server=trace,rcrt_client=trace,hyper=trace,egress=info",
        ],
    );
    let fetch = |url: String| up.run(&["call", "web_fetch", &json!({"url": url}).to_string(), "-o", "json"]);
    fetch(format!("http://{page}/secret-path?key=hidden")).ends_with(0);
    let refused = fetch("https://www.denied.example/".into()).ends_with(4).json();
    assert!(refused["error"].as_str().unwrap().contains("the operator denies"), "{refused}");

    // The entries are written within some seconds.
    let entries = (0..300).find_map(|_| {
        let entries = up.json(&["audit", "egress", "--tool", "web_fetch"]);
        (entries.as_array().unwrap().len() == 2).then_some(entries)
    });
    let entries = entries.expect("the requests are in the egress log");
    let (denied, answered) = (&entries[0], &entries[1]);
    assert_eq!(
        (&denied["host"], &denied["outcome"], &denied["port"]),
        (&json!("www.denied.example"), &json!("refused"), &json!(443))
    );
    assert_eq!(
        (&answered["host"], &answered["outcome"], &answered["status"]),
        (&json!("127.0.0.1"), &json!("answered"), &json!(200))
    );
    assert_eq!(
        (&answered["method"], &answered["bytes_out"], &answered["bytes_in"]),
        (&json!("GET"), &json!(0), &json!(27))
    );
    for field in ["agent_id", "tool_id", "call"] {
        assert!(answered[field].is_string(), "{answered}");
    }
    assert!(!entries.to_string().contains("secret-path"), "{entries}");
    let only = |arguments: &[&str]| {
        let mut all = vec!["audit", "egress"];
        all.extend(arguments);
        up.json(&all).as_array().unwrap().len()
    };
    assert_eq!(only(&["--outcome", "refused"]), 1);
    assert_eq!(only(&["--since", "1h", "--host", "127.0.0.1"]), 1);
    assert_eq!(only(&["--until", "2020-01-01T00:00:00Z"]), 0);
    let table = up.run(&["audit", "egress"]).ends_with(0).stdout;
    assert!(table.contains("www.denied.example:443") && table.contains("refused: the operator denies"), "{table}");

    let token = revoked_token(&up);
    let (ended, log) = up.stop();
    assert_eq!(ended.code(), Some(0), "{log}");
    assert!(log.contains("/events/stream"), "the requests are not in the log: {log}");
    assert!(!log.contains(token.rsplit('.').next().unwrap()), "a token is in the log: {log}");
    let logged: Vec<&str> = log.lines().filter(|line| line.contains(" egress")).collect();
    assert!(logged.iter().any(|line| line.contains("www.denied.example") && line.contains("refused")), "{log}");
    assert!(logged.iter().all(|line| !line.contains("secret-path")), "{logged:?}");
}

/// Uses a token in a URL and then revokes it. Returns the token.
fn revoked_token(up: &Running) -> String {
    let agent: Value = up.json(&["token", "--agent", "dashboard", "--role", "subscriber"]);
    let name = |field: &str| agent[field].as_str().unwrap().to_owned();
    let as_agent = |arguments: &[&str]| {
        let mut command = up.command(arguments);
        for (variable, field) in
            [("RCRT_OWNER_ID", "owner_id"), ("RCRT_AGENT_ID", "id"), ("RCRT_AGENT_KEY", "agent_key")]
        {
            command.env(variable, name(field));
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let token = as_agent(&["token"]);
    let address: SocketAddr = up.hello["api"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
    assert_eq!(status(address, &format!("/events/stream?token={token}")), "HTTP/1.1 401");
    let latest = |token: &str| {
        let mut command = up.command(&["crumb", "list"]);
        command.env("RCRT_TOKEN", token).output().unwrap().status.code()
    };
    assert_eq!(latest(&token), Some(0));
    assert!(up.run(&["token", "revoke"]).ends_with(2).stderr.contains("--stdin"));
    let done = up.run_with_stdin(&["token", "revoke", "--stdin"], &token).ends_with(0);
    assert!(done.stdout.contains("revoked the token") && done.stdout.contains(&name("id")), "{}", done.stdout);
    assert_eq!(latest(&token), Some(6));
    let second = as_agent(&["token"]);
    assert_eq!(latest(&second), Some(0));
    up.run(&["token", "revoke", "--all", "--agent", &name("id")]).ends_with(0);
    assert_eq!(latest(&second), Some(6));
    token
}
