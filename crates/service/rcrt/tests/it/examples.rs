//! `rcrt tool test`: examples that are recorded, updated and made from the schema.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::authoring::{text, tool, write};
use crate::program::{Running, run};

const KEY: &str = "a-real-secret";

fn record(source: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(source.with_extension("json")).unwrap()).unwrap()
}

fn example(source: &Path) -> Value {
    record(source)["context"]["examples"][0].clone()
}

/// `tool test`, and the reports of the examples.
fn tested(source: &Path, more: &[&str], status: i32) -> Vec<Value> {
    let arguments = [&["tool", "test", text(source), "--output", "json"], more].concat();
    let reports = run(&arguments).ends_with(status).json();
    reports[0]["examples"].as_array().unwrap_or_else(|| panic!("{reports}")).clone()
}

/// Answers one request with the key that it got, and returns the request.
fn server() -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let mut connection = BufReader::new(listener.accept().unwrap().0);
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") && connection.read_line(&mut request).unwrap() > 0 {}
        let body = json!({"n": 7, "key": KEY}).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nset-cookie: session={KEY}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            body.len()
        );
        connection.get_mut().write_all((head + &body).as_bytes()).unwrap();
        request
    });
    (address, serving)
}

#[test]
fn an_example_is_recorded_from_one_real_run() {
    let folder = TempDir::new().unwrap();
    let (address, serving) = server();
    let body = format!(
        "const url = `http://{address}/n?at=${{Date.now()}}&key=${{context.secrets.KEY}}`;\n\
         const {{ n }} = await (await fetch(url)).json();\n\
         await context.api.createBreadcrumb({{ title: 'Seen', context: {{ n }} }});\n\
         return {{ n: n + (input.n ?? 0) }};"
    );
    let more = json!({"permissions": {"net": [address.to_string()]}, "required_secrets": ["KEY"]});
    let source = tool(folder.path(), "asks", &json!({"n": {"$type": "number"}}), &more, &body);
    let secrets = folder.path().join("values");
    std::fs::write(&secrets, json!({"KEY": KEY}).to_string()).unwrap();
    let allowed = format!("asks={address}");
    let allow = ["--allow-private-host", allowed.as_str()];

    assert_eq!(tested(&source, &allow, 0)[0]["status"], "not_run");
    let recording = [&allow[..], &["--record", "--secrets", text(&secrets)]].concat();
    let reports = tested(&source, &recording, 0);
    assert_eq!(reports[0]["status"], "passed", "{reports:?}");
    assert!(serving.join().unwrap().contains(&format!("key={KEY}")));

    let recorded = example(&source);
    assert!(!record(&source).to_string().contains(KEY), "{recorded}");
    let exchange = &recorded["http"][0];
    assert!(exchange["request"]["url"].as_str().unwrap().ends_with("&key=example-KEY"), "{recorded}");
    assert_eq!(exchange["response"]["body"]["n"], 7, "{recorded}");
    assert_eq!(exchange["response"]["headers"], json!({"content-type": "application/json"}), "{recorded}");
    assert_eq!(recorded["writes"][0]["create"]["title"], "Seen", "{recorded}");
    // A matcher that matches stays.
    assert_eq!(recorded["output"], json!({"n": {"$type": "number"}}), "{recorded}");
    // It runs again without the server, and there is nothing more to record.
    let reports = tested(&source, &recording, 0);
    assert_eq!((&reports[0]["status"], &reports[0]["actual"]), (&json!("passed"), &json!({"n": 9})), "{reports:?}");
    assert_eq!(example(&source), recorded);
}

#[test]
fn a_failed_run_is_not_recorded() {
    let folder = TempDir::new().unwrap();
    let more = json!({"permissions": {"net": ["127.0.0.1:1"]}});
    let source =
        tool(folder.path(), "asks", &json!({"n": 1}), &more, "await fetch('http://127.0.0.1:1/'); return { n: 1 };");
    let before = record(&source);
    let arguments = ["tool", "test", text(&source), "--record", "--allow-private-host", "127.0.0.1:1"];
    let ran = run(&arguments).ends_with(1);
    assert!(ran.stdout.contains("Two: not recorded: the tool failed: "), "{}", ran.stdout);
    assert_eq!(record(&source), before);
}

#[test]
fn records_of_a_server_become_those_of_the_example() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let counted = json!({"title": "Counted", "schema_name": "count.v1", "context": {"n": 5}}).to_string();
    let id = up.json(&["crumb", "create", &counted])["id"].clone();
    let body = "const [found] = await context.api.searchBreadcrumbs({ schema_name: 'count.v1' });\n\
                const { version, context: { n } } = await context.api.getBreadcrumb(found.id);\n\
                await context.api.updateBreadcrumb(found.id, version, { context: { n: n + 1 } });\n\
                return { n };";
    let source = tool(&folder.path().join("tools"), "counts", &json!({"n": 0}), &json!({}), body);
    let reports = up.json(&["tool", "test", text(&source), "--record", "--server-records"]);
    assert_eq!(reports[0]["examples"][0]["status"], "passed", "{reports}");
    let recorded = example(&source);
    let found = &recorded["breadcrumbs"][0];
    assert_eq!((&found["id"], &found["context"]), (&id, &json!({"n": 5})), "{recorded}");
    assert_eq!(recorded["writes"], json!([{"update": {"id": id, "version": 1, "changes": {"context": {"n": 6}}}}]));
    assert_eq!(recorded["output"], json!({"n": 5}));
    assert_eq!(up.json(&["crumb", "get", id.as_str().unwrap()])["context"]["n"], 6);
    assert_eq!(tested(&source, &[], 0)[0]["status"], "passed");
    let ran = up.run(&["tool", "test", "calculator", "--update"]).ends_with(2);
    assert!(ran.stderr.contains("calculator is a tool of the store"), "{}", ran.stderr);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn expected_outputs_are_updated_where_they_differ() {
    let folder = TempDir::new().unwrap();
    let open = json!({"output_schema": {"type": "object"}});
    let expected = json!({"n": 1, "kept": {"$any": true}, "list": [1, {"$near": [2.0, 0.5]}], "gone": 1});
    let body = "return { n: 2, kept: 'x', list: [9, 2.1, { $any: true }], more: null };";
    let source = tool(folder.path(), "changes", &expected, &open, body);
    assert_eq!(tested(&source, &[], 1)[0]["status"], "failed");
    assert_eq!(tested(&source, &["--update"], 0)[0]["status"], "passed");
    let updated = example(&source);
    let expected = json!({
        "n": 2,
        "kept": {"$any": true},
        "list": [9, {"$near": [2.0, 0.5]}, {"$literal": {"$any": true}}],
        "more": null,
    });
    assert_eq!(updated["output"], expected);
    // A failure is not what an example expects.
    write(&source, "throw new Error('broken');");
    assert_eq!(tested(&source, &["--update"], 1)[0]["status"], "failed");
    assert_eq!(example(&source), updated);
}

#[test]
fn made_inputs_find_the_smallest_that_fails() {
    let folder = TempDir::new().unwrap();
    let schema = json!({"input_schema": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 50},
            "kind": {"enum": ["a", "b"]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        },
        "required": ["text"],
        "additionalProperties": false,
        "$defs": {"item": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}]}},
    }, "examples": [{"description": "A text", "input": {"text": "a"}, "output": {"n": 1}}]});
    let source = tool(folder.path(), "measures", &json!({}), &schema, "");
    let fuzzed = |body: &str, more: &[&str], status| {
        write(&source, body);
        let reports = tested(&source, &[&["--fuzz", "200"], more].concat(), status);
        assert_eq!(reports.len(), 2, "{reports:?}");
        reports[1].clone()
    };
    let input = "const { text } = input as any;";
    let report = fuzzed(&format!("{input} return {{ n: [...text].length }};"), &[], 0);
    assert_eq!(report["status"], "passed", "{report}");
    assert!(report["description"].as_str().unwrap().starts_with("200 inputs"), "{report}");
    // Its own errors are failures that the tool states.
    let stated = format!("{input} if (text.length > 1) throw new Error('too long'); return {{ n: 1 }};");
    assert_eq!(fuzzed(&stated, &[], 0)["status"], "passed");

    let misfit = format!("{input} return {{ n: [...text].length > 3 ? 'long' : 1 }};");
    let report = fuzzed(&misfit, &[], 1);
    let reason = report["reason"].as_str().unwrap();
    assert!(reason.starts_with(r#"with the input {"text":"aaaa"}: the output does not fit output_schema"#), "{reason}");
    assert_eq!(report["actual"], json!({"n": "long"}));
    // The same seed makes the same inputs.
    let again = fuzzed(&misfit, &["--seed", "1"], 1);
    assert_eq!((&again["description"], &again["reason"]), (&report["description"], &report["reason"]));

    let mistake = "const { list } = input as any; return { n: (list ?? []).map((one: any) => one.toFixed()).length };";
    let reason = fuzzed(mistake, &[], 1)["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with(r#"with the input {"text":"","list":[null]}: the tool failed at measures.ts:2:"#),
        "{reason}"
    );
    assert!(reason.contains("TypeError"), "{reason}");
    let network = "await fetch('https://api.example.com/'); return { n: 1 };";
    let more = json!({"permissions": {"net": ["api.example.com"]}});
    let source = tool(folder.path(), "asks", &json!({"n": 1}), &more, network);
    assert_eq!(tested(&source, &["--fuzz", "5"], 0)[1]["status"], "not_run");
    // A refusal of some inputs is right, of all of them a mistake.
    let source = tool(folder.path(), "refused", &json!({"n": 1}), &json!({}), network);
    let report = tested(&source, &["--fuzz", "5"], 1)[1].clone();
    let reason = report["reason"].as_str().unwrap();
    assert_eq!((&report["status"], reason.contains("api.example.com")), (&json!("failed"), true), "{report}");
}

#[test]
fn a_failed_example_names_the_line() {
    let folder = TempDir::new().unwrap();
    let body = "const list: string[] | undefined = undefined;\nreturn { n: (list as any).length };";
    let source = tool(folder.path(), "breaks", &json!({"n": 4}), &json!({}), body);
    let reason = tested(&source, &[], 1)[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("the tool failed at breaks.ts:3:"), "{reason}");
}

#[test]
fn a_report_for_ci_has_a_case_for_each_example() {
    let folder = TempDir::new().unwrap();
    let examples = json!({"examples": [
        {"description": "Two & \"two\"", "input": {"n": 2}, "output": {"n": 4}},
        {"description": "Three", "input": {"n": 3}, "output": {"n": 4}},
    ]});
    let source = tool(folder.path(), "double", &json!({}), &examples, "return { n: 2 * (input.n ?? 0) };");
    let report = run(&["tool", "test", text(&source), "--report", "junit"]).ends_with(1).stdout;
    for part in [
        r#"<testsuite name="double" tests="2" failures="1" errors="0" skipped="0">"#,
        r#"<testcase name="Two &amp; &quot;two&quot;" time=""#,
        r#"<failure message=""#,
    ] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
}
