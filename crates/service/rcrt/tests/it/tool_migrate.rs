//! `rcrt tool migrate`: an http tool becomes code, from the files to the end of the old tool.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running};
use crate::replaced::until;

/// A server that responds with the path of the request.
fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let body = json!({"path": first.split(' ').nth(1)}).to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
            let _ = stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes());
        }
    });
    address
}

/// An http tool with one example that can be run.
fn http_tool(name: &str, server: SocketAddr, annotations: &Value) -> Value {
    let url = format!("http://{server}/days/2026");
    let exchange = json!({"request": {"url": url}, "response": {"body": {"path": "/days/2026"}}});
    let input = json!({"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]});
    json!({
        "schema_name": "tool.v1",
        "title": "Days",
        "tags": ["tool", format!("tool:{name}"), "workspace:tools"],
        "context": {
            "name": name,
            "description": "The days of a year.",
            "definition": {
                "inputSchema": input,
                "examples": [
                    {"description": "a year", "input": {"year": 2026}, "http": [exchange]},
                    {"description": "without http", "input": {"year": 2027}},
                ],
            },
            "implementation": {"type": "http", "url": format!("http://{server}/days/{{year}}")},
            "annotations": annotations,
        },
    })
}

/// Writes and bootstraps an http tool.
fn publish(up: &Running, folder: &Path, name: &str, server: SocketAddr, annotations: &Value) {
    let folder = folder.join(format!("{name}-old"));
    std::fs::create_dir_all(&folder).unwrap();
    let record = http_tool(name, server, annotations);
    std::fs::write(folder.join(format!("{name}.json")), record.to_string()).unwrap();
    up.run(&["bootstrap", folder.to_str().unwrap()]).ends_with(0);
}

/// The row of the list.
fn row(up: &Running, name: &str) -> Option<Value> {
    let rows = up.json(&["tool", "migrate"]);
    rows.as_array().unwrap().iter().find(|row| row["name"] == name).cloned()
}

#[test]
fn an_http_tool_becomes_code() {
    let (folder, server) = (TempDir::new().unwrap(), service());
    let private = server.to_string();
    let data = folder.path().join("data");
    let up = Running::start(&data, &["up", "--listen", "127.0.0.1:0", "--allow-private-host", &private]);
    let caller = up.json(&["token", "--agent", "bot", "--role", "emitter,subscriber"]);
    publish(&up, folder.path(), "days", server, &json!({"read_only": true}));
    publish(&up, folder.path(), "acting", server, &json!({}));
    let files = folder.path().join("new");
    let migrate = |name: &str, more: &[&str]| -> Ran {
        let dir = ["--dir", files.to_str().unwrap(), "--allow-private-host", &private];
        up.run(&[&["tool", "migrate", name], &dir[..], more].concat())
    };
    let call = || up.run_as(&caller, &["call", "days", "{\"year\": 2026}", "--output", "json"]).ends_with(0).json();

    assert_eq!(call()["metadata"]["tool_schema_name"], "tool.v1");
    let counted = until(|| row(&up, "days").filter(|row| row["calls_7d"] == 1));
    let expected = json!({"kind": "http", "code": "none", "calls_24h": 1, "failed_7d": 0, "callers": [caller["id"]]});
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&counted[field], value, "{field}: {counted}");
    }
    assert_eq!((counted["next"].as_str(), counted["last"].is_string()), (Some("rcrt tool migrate days"), true));
    let text = up.run(&["tool", "migrate"]).ends_with(0).stdout;
    assert!(text.contains("keep: its code is in the program"), "{text}");

    what_cannot_be_migrated_is_refused(&up, &migrate);
    the_examples_are_run_by_both(&files, &migrate);
    the_shadow_is_compared_and_promoted(&up, &migrate, &call);
    an_author_without_more_rights_sees_its_shadow(&up, &files, server);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

fn what_cannot_be_migrated_is_refused(up: &Running, migrate: &dyn Fn(&str, &[&str]) -> Ran) {
    let text = migrate("nothing", &[]).ends_with(3).stderr;
    assert!(text.contains("there is no tool \"nothing\" of the schema tool.v1"), "{text}");
    let text = migrate("read_file", &[]).ends_with(1).stderr;
    assert!(text.contains("implementation.type: is \"builtin\""), "{text}");
    for step in [&["--shadow", "10%"][..], &["--live"]] {
        let text = migrate("acting", step).ends_with(2).stderr;
        assert!(text.contains("neither read_only nor idempotent"), "{text}");
    }
    for wrong in [&["--shadow", "101%"][..], &["--shadow", "10", "--publish"], &["--secrets", "x"]] {
        migrate("days", wrong).ends_with(2);
    }
    up.run(&["tool", "migrate", "--promote"]).ends_with(2);
    for step in ["--promote", "--shadow=0"] {
        let text = migrate("days", &[step]).ends_with(3).stderr;
        assert!(text.contains("days has no draft"), "{text}");
    }
    let text = migrate("days", &["--retire-legacy"]).ends_with(2).stderr;
    assert!(text.contains("no tool.code.v1 answers the calls of days yet"), "{text}");
}

fn the_examples_are_run_by_both(files: &Path, migrate: &dyn Fn(&str, &[&str]) -> Ran) {
    let text = migrate("days", &[]).ends_with(0).stdout;
    assert!(text.contains("1 the same, 0 different, 1 not run"), "{text}");
    let live = migrate("days", &["--live", "--output", "json"]).ends_with(0).json();
    assert_eq!((&live["same"], &live["examples"][1]["passed"]), (&json!(true), &json!(true)), "{live}");
    assert_eq!(live["examples"][1]["actual"]["output"], json!({"path": "/days/2027"}));
    // The files are the author's from now on.
    let source = files.join("days.ts");
    let good = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, good.replace("method: \"GET\"", "method: \"DELETE\"")).unwrap();
    let ran = migrate("days", &["--live"]).ends_with(1);
    assert!(ran.stdout.contains("$.requests[0].method is a different string: expected \"GET\", got \"DELETE\""));
    let ran = migrate("days", &["--shadow", "10%"]).ends_with(1);
    assert!(ran.stdout.contains("0 the same, 1 different, 1 not run"), "{}", ran.stdout);
    std::fs::write(&source, good).unwrap();
}

fn an_author_without_more_rights_sees_its_shadow(up: &Running, files: &Path, server: SocketAddr) {
    let author = up.json(&["token", "--agent", "author", "--role", "emitter,subscriber"]);
    let record = http_tool("own", server, &json!({"read_only": true})).to_string();
    up.run_as(&author, &["crumb", "create", &record]).ends_with(0);
    let private = server.to_string();
    let migrate = |more: &[&str]| {
        let common = ["tool", "migrate", "own", "--dir", files.to_str().unwrap(), "--allow-private-host", &private];
        up.run_as(&author, &[&common[..], more].concat()).ends_with(0)
    };
    migrate(&["--shadow", "100%"]);
    // The author's call has its draft validated.
    up.run_as(&author, &["call", "own", "{\"year\": 2026}"]).ends_with(0);
    up.run(&["call", "own", "{\"year\": 2026}"]).ends_with(0);
    let shown = until(|| Some(migrate(&["--output", "json"]).json()).filter(|shown| shown["report"]["same"] == 1));
    assert_eq!((&shown["shadow"], &shown["report"]["author"]), (&json!(100), &author["id"]), "{shown}");
    let text = migrate(&[]).stdout;
    assert!(text.contains("1 the same, 0 different, 0 failed, 0 skipped"), "{text}");
}

fn the_shadow_is_compared_and_promoted(up: &Running, migrate: &dyn Fn(&str, &[&str]) -> Ran, call: &dyn Fn() -> Value) {
    let set = migrate("days", &["--shadow", "50%", "--output", "json"]).ends_with(0).json();
    let text = migrate("days", &["--shadow", "100%"]).ends_with(0).stdout;
    let draft = set["id"].as_str().unwrap();
    assert!(text.contains(&format!("the draft of days (record {draft}) runs beside 100 % of the calls")), "{text}");
    assert!(text.contains("its author's calls are answered by the draft, and not compared"), "{text}");
    assert_eq!(row(up, "days").unwrap()["code"], "shadow 100%");
    // The author's call has its draft validated.
    up.run(&["call", "days", "{\"year\": 2026}"]).ends_with(0);
    for _ in 0..3 {
        assert_eq!(call()["metadata"]["tool_schema_name"], "tool.v1");
    }
    let shadow = || migrate("days", &["--output", "json"]).ends_with(0).json();
    let shown = until(|| Some(shadow()).filter(|shown| shown["report"]["same"] == 3));
    assert_eq!((&shown["shadow"], &shown["ready"]), (&json!(100), &json!(false)), "{shown}");
    assert_eq!((&shown["report"]["different"], &shown["report"]["failed"]), (&json!(0), &json!(0)), "{shown}");
    assert_eq!(row(up, "days").unwrap()["next"], "wait: 3 of 50 calls compared");
    let text = migrate("days", &["--publish"]).ends_with(2).stderr;
    assert!(text.contains("publish it with --promote"), "{text}");

    let text = migrate("days", &["--shadow=0"]).ends_with(0).stdout;
    assert!(text.contains("days has no shadow"), "{text}");
    assert_eq!(row(up, "days").unwrap()["next"], "rcrt tool migrate days --shadow 10%");
    let ran = migrate("days", &["--promote"]).ends_with(0);
    assert!(ran.stdout.contains("days is published"), "{}", ran.stdout);
    assert!(ran.stderr.contains("only 3 of 50 calls were compared"), "{}", ran.stderr);
    let answered = call();
    assert_eq!(
        (&answered["metadata"]["tool_schema_name"], &answered["output"]["path"]),
        (&json!("tool.code.v1"), &json!("/days/2026"))
    );
    assert_eq!(row(up, "days").unwrap()["next"], "rcrt tool migrate days --retire-legacy");
    // The catalog follows the write.
    let text = until(|| Some(migrate("days", &["--retire-legacy"])).filter(|ran| ran.status == 0)).stdout;
    assert!(text.contains("the tool.v1 days is retired"), "{text}");
    assert_eq!(row(up, "days"), None);
    assert_eq!(call()["output"]["path"], "/days/2026");

    // Without a shadow: the files are published if both do the same.
    let text = migrate("acting", &["--publish"]).ends_with(0).stdout;
    assert!(text.contains("acting: published version 1"), "{text}");
    assert_eq!(row(up, "acting").unwrap()["code"], "published");
}
